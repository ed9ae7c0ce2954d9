#include "tests/unit/providers/played_cluster.h"

static const char deployment[] = "{\"machineDeployment\":\"gpu\",\"namespace\":\"capi\"}";

static void a_machine_is_marked_before_the_size_falls(void **state)
{
	const struct recommendation remove = { .verb = PROVIDER_REMOVE, .token = "t-1", .ids = { "m-2", "m-never" } };
	struct asked a = open_provider("clusterApi", deployment, 3);

	(void)state;
	assert_int_equal(ask(&a, remove), ERROR_NONE);
	assert_string_equal(
		played.log,
		"PATCH /apis/cluster.x-k8s.io/v1beta2/namespaces/capi/machines/m-2 {\"metadata\":{\"annotations\":"
		"{\"cluster.x-k8s.io/delete-machine\":\"preheat\"}}}\n"
		"PATCH /apis/cluster.x-k8s.io/v1beta2/namespaces/capi/machinedeployments/gpu "
		"{\"metadata\":{\"resourceVersion\":"
		"\"7\",\"annotations\":{\"preheat.dev/operation\":\"t-1\"}},\"spec\":{\"replicas\":2}}\n");
	assert_int_equal(ask(&a, remove), ERROR_NONE);
	assert_int_equal(played.replicas, 2);
	close_provider(&a);
}

/* Between the list and the mark: what serves soon is not ended for a start that was called off. */
static void a_start_that_joins_meanwhile_stays(void **state)
{
	struct asked a = open_provider("clusterApi", deployment, 4);

	(void)state;
	for (int i = 2; i < 4; i++)
		played.machines[i].runs = false;
	played.machines[2].joins_next = true;
	assert_int_equal(ask(&a,
			     (struct recommendation){
				     .verb = PROVIDER_CANCEL, .token = "t", .desired = 2, .ids = { "m-3", "m-4" } }),
			 ERROR_NONE);
	assert_int_equal(played.replicas, 3);
	assert_string_equal(played.machines[2].mark, "");
	assert_string_equal(played.machines[3].mark, "preheat");
	close_provider(&a);
}

/* A MachineSet that made it meanwhile would choose among all that have no node, whoever is about to get one. */
static void what_is_being_made_is_called_off_by_name_or_once_it_never_comes(void **state)
{
	const struct recommendation cancel = { .verb = PROVIDER_CANCEL, .token = "t", .desired = 3 };
	struct asked a = open_provider("clusterApi", deployment, 4);

	(void)state;
	played.machines[3] = (struct played_machine){ .name = "m-4", .comes_next = true };
	assert_int_equal(ask(&a, cancel), ERROR_NONE);
	assert_string_equal(played.log, "");
	assert_int_equal(played.replicas, 4);
	played.machines[3] = (struct played_machine){ .name = "m-4" };
	assert_int_equal(ask(&a, cancel), ERROR_NONE);
	assert_int_equal(played.replicas, 3);
	close_provider(&a);
}

static void a_paused_deployment_is_left_alone(void **state)
{
	struct asked a = open_provider("clusterApi", deployment, 3);

	(void)state;
	for (int by_mark = 0; by_mark < 2; by_mark++) {
		played.is_paused = !by_mark;
		played.is_marked_paused = by_mark;
		assert_int_equal(ask(&a, (struct recommendation){ .verb = PROVIDER_GROW, .token = "t", .desired = 5 }),
				 ERROR_CONFLICT);
		assert_string_equal(played.log, "");
	}
	close_provider(&a);
}

/* A lower size would be spread over the machines of the old template and of the new one. */
static void a_rollout_is_let(void **state)
{
	const struct recommendation remove = { .verb = PROVIDER_REMOVE, .token = "t", .ids = { "m-2" } };
	struct asked a = open_provider("clusterApi", deployment, 3);

	(void)state;
	played.is_rolling = true;
	assert_int_equal(ask(&a, remove), ERROR_CONFLICT);
	assert_non_null(strstr(a.call.error.message, "rolling out"));
	assert_string_equal(played.log, "");
	assert_int_equal(ask(&a, (struct recommendation){ .verb = PROVIDER_DESCRIBE }), ERROR_NONE);
	assert_true(a.call.description.only_grows);
	assert_int_equal(ask(&a, (struct recommendation){ .verb = PROVIDER_GROW, .token = "u", .desired = 4 }),
			 ERROR_NONE);
	played.rollout = "OnDelete"; /* which lasts until somebody deletes */
	assert_int_equal(ask(&a, remove), ERROR_NONE);
	assert_int_equal(played.replicas, 3);
	played.rollout = "";
	played.is_rolling = false;
	played.behind = 1; /* a template that its controller has not seen yet */
	assert_int_equal(ask(&a, (struct recommendation){ .verb = PROVIDER_REMOVE, .token = "v", .ids = { "m-3" } }),
			 ERROR_CONFLICT);
	close_provider(&a);
}

/* Before it fights with them. */
static void who_else_sizes_it_is_told(void **state)
{
	struct asked a = open_provider("clusterApi", deployment, 3);
	const struct group_description *d = &a.call.description;

	(void)state;
	played.is_of_topology = true;
	assert_int_equal(ask(&a, (struct recommendation){ .verb = PROVIDER_DESCRIBE }), ERROR_NONE);
	assert_int_equal(d->caution_count, 2);
	assert_non_null(strstr(d->cautions[0], "Cluster Autoscaler sizes it, too"));
	assert_non_null(strstr(d->cautions[1], "md-0 of its Cluster's topology"));
	close_provider(&a);
}

/* The write of the size came to nothing: whoever shrinks next must not take the machine that stayed. */
static void a_mark_of_a_call_that_was_given_up_goes(void **state)
{
	struct asked a = open_provider("clusterApi", deployment, 3);

	(void)state;
	played.conflicts = 1;
	assert_int_equal(ask(&a, (struct recommendation){ .verb = PROVIDER_REMOVE, .token = "t-1", .ids = { "m-2" } }),
			 ERROR_CONFLICT);
	assert_string_equal(played.machines[1].mark, "preheat");
	assert_int_equal(ask(&a, (struct recommendation){ .verb = PROVIDER_REMOVE, .token = "t-2", .ids = { "m-3" } }),
			 ERROR_NONE);
	assert_int_equal(played.replicas, 2);
	assert_string_equal(played.machines[1].mark, "");
	assert_string_equal(played.machines[2].mark, "preheat");
	close_provider(&a);
}

/* One that is on its way by its mark keeps it; without it another would go. */
static void a_mark_of_a_machine_that_goes_stays(void **state)
{
	struct asked a = open_provider("clusterApi", deployment, 4);

	(void)state;
	assert_int_equal(ask(&a, (struct recommendation){ .verb = PROVIDER_REMOVE, .token = "t-1", .ids = { "m-2" } }),
			 ERROR_NONE);
	assert_int_equal(ask(&a, (struct recommendation){ .verb = PROVIDER_REMOVE, .token = "t-2", .ids = { "m-3" } }),
			 ERROR_NONE);
	assert_string_equal(played.machines[1].mark, "preheat");
	assert_string_equal(played.machines[2].mark, "preheat");
	assert_int_equal(played.replicas, 2);
	snprintf(played.machines[3].mark, sizeof played.machines[3].mark, "preheat"); /* whose, then, will go? */
	assert_int_equal(ask(&a, (struct recommendation){ .verb = PROVIDER_REMOVE, .token = "t-3", .ids = { "m-1" } }),
			 ERROR_CONFLICT);
	assert_int_equal(played.replicas, 2);
	close_provider(&a);
}

static void somebody_elses_mark_is_told(void **state)
{
	struct asked a = open_provider("clusterApi", deployment, 3);

	(void)state;
	snprintf(played.machines[0].mark, sizeof played.machines[0].mark, "yes");
	assert_int_equal(ask(&a, (struct recommendation){ .verb = PROVIDER_REMOVE, .token = "t-1", .ids = { "m-2" } }),
			 ERROR_CONFLICT);
	assert_non_null(strstr(a.call.error.message, "m-1"));
	assert_string_equal(played.log, "");
	close_provider(&a);
}

/* The answer to the lower size was lost, and machines of an earlier growth are still to be made: nothing else keeps the
 * same token from lowering it again. */
static void a_repeat_lowers_nothing_during_a_growth(void **state)
{
	struct asked a = open_provider("clusterApi", deployment, 3);

	(void)state;
	played.replicas = 5;
	snprintf(played.operation, sizeof played.operation, "t");
	snprintf(played.machines[1].mark, sizeof played.machines[1].mark, "preheat");
	assert_int_equal(ask(&a, (struct recommendation){ .verb = PROVIDER_REMOVE, .token = "t", .ids = { "m-2" } }),
			 ERROR_NONE);
	assert_int_equal(played.replicas, 5);
	close_provider(&a);
}

static void the_size_never_falls_below_min(void **state)
{
	struct asked a = open_provider("clusterApi", deployment, 3);

	(void)state;
	played.min = 2;
	assert_int_equal(
		ask(&a, (struct recommendation){ .verb = PROVIDER_REMOVE, .token = "t-1", .ids = { "m-1", "m-2" } }),
		ERROR_INVALID);
	assert_non_null(strstr(a.call.error.message, "below its min of 2"));
	assert_string_equal(played.log, "");
	assert_int_equal(ask(&a, (struct recommendation){ .verb = PROVIDER_REMOVE, .token = "t-2", .ids = { "m-1" } }),
			 ERROR_NONE);
	assert_int_equal(ask(&a, (struct recommendation){ .verb = PROVIDER_REMOVE, .token = "t-2", .ids = { "m-1" } }),
			 ERROR_NONE);
	assert_int_equal(played.replicas, 2);
	played.replicas = 8;
	played.machines[0].is_there = played.machines[1].is_there = played.machines[2].is_there = false;
	assert_int_equal(ask(&a, (struct recommendation){ .verb = PROVIDER_CANCEL, .token = "t-3", .desired = 0 }),
			 ERROR_NONE);
	assert_int_equal(played.replicas, 2);
	close_provider(&a);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_machine_is_marked_before_the_size_falls),
		cmocka_unit_test(a_start_that_joins_meanwhile_stays),
		cmocka_unit_test(what_is_being_made_is_called_off_by_name_or_once_it_never_comes),
		cmocka_unit_test(a_rollout_is_let),
		cmocka_unit_test(who_else_sizes_it_is_told),
		cmocka_unit_test(a_mark_of_a_call_that_was_given_up_goes),
		cmocka_unit_test(a_mark_of_a_machine_that_goes_stays),
		cmocka_unit_test(somebody_elses_mark_is_told),
		cmocka_unit_test(a_repeat_lowers_nothing_during_a_growth),
		cmocka_unit_test(the_size_never_falls_below_min),
		cmocka_unit_test(a_paused_deployment_is_left_alone),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
