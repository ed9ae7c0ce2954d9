/* Karpenter, and what it shares with Cluster API. */
#include "tests/unit/providers/played_cluster.h"

static const char karpenter[] = "{\"nodePool\":\"gpu\"}";
static const char deployment[] = "{\"machineDeployment\":\"gpu\",\"namespace\":\"capi\"}";

static const struct {
	const char *provider, *settings, *owner;
} owned[] = {
	{ "karpenter", karpenter, "/apis/karpenter.sh/v1/nodepools/gpu" },
	{ "clusterApi", deployment, "/apis/cluster.x-k8s.io/v1beta2/namespaces/capi/machinedeployments/gpu" },
};

static void a_group_is_described(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof owned / sizeof *owned; i++) {
		struct asked a = open_provider(owned[i].provider, owned[i].settings, 3);
		const struct group_description *d = &a.call.description;
		played.replicas = 4;
		played.machines[1].runs = false;
		played.machines[2].is_going = true;
		assert_int_equal(ask(&a, (struct recommendation){ .verb = PROVIDER_DESCRIBE }), ERROR_NONE);
		assert_int_equal(d->desired, 4);
		assert_int_equal(d->max, 9);
		assert_int_equal(d->machine_count, 3);
		assert_string_equal(d->machines[0].id, "m-1");
		assert_string_equal(d->machines[0].provider_id, "aws:///z1/i-m-1");
		assert_string_equal(d->machines[0].zone, "z1");
		assert_int_equal(d->machines[0].state, MACHINE_RUNNING);
		assert_int_equal(d->machines[1].state, MACHINE_PENDING);
		assert_int_equal(d->machines[2].state, MACHINE_TERMINATING);
		assert_string_equal(played.log, "");
		close_provider(&a);
	}
}

static void whoever_sized_it_is_named(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof owned / sizeof *owned; i++) {
		struct asked a = open_provider(owned[i].provider, owned[i].settings, 3);
		const char *const *by = &a.call.description.resized_by;
		assert_int_equal(ask(&a, (struct recommendation){ .verb = PROVIDER_DESCRIBE }), ERROR_NONE);
		assert_string_equal(*by, "");
		played.writer = "kubectl-scale";
		assert_int_equal(ask(&a, (struct recommendation){ .verb = PROVIDER_DESCRIBE }), ERROR_NONE);
		assert_string_equal(*by, "field manager kubectl-scale");
		played.writer = "preheat";
		assert_int_equal(ask(&a, (struct recommendation){ .verb = PROVIDER_DESCRIBE }), ERROR_NONE);
		assert_string_equal(*by, "");
		close_provider(&a);
	}
}

static void pages_are_put_together(void **state)
{
	struct asked a = open_provider("karpenter", karpenter, 1100);

	(void)state;
	assert_int_equal(ask(&a, (struct recommendation){ .verb = PROVIDER_DESCRIBE }), ERROR_NONE);
	assert_int_equal(a.call.description.machine_count, 1100);
	close_provider(&a);
}

static void a_list_without_end_ends(void **state)
{
	struct asked a = open_provider("karpenter", karpenter, 0);

	(void)state;
	played.is_endless = true;
	assert_int_equal(ask(&a, (struct recommendation){ .verb = PROVIDER_DESCRIBE }), ERROR_INVALID);
	assert_non_null(strstr(a.call.error.message, "without end"));
	close_provider(&a);
}

/* Each request is in time, all of them together are not: the server below answers later than the call may last. */
static void a_call_ends_in_its_time(void **state)
{
	struct asked a = open_provider("karpenter", karpenter, 3);

	(void)state;
	played.delay = 5;
	a.call = (struct provider_call){ .verb = PROVIDER_DESCRIBE,
					 .group = "g",
					 .settings = karpenter,
					 .timeout = 1,
					 .done = finished,
					 .user = &a };
	a.ops->start(a.provider, &a.call);
	while (!a.done && loop_once(played.loop))
		;
	assert_int_equal(a.call.error.kind, ERROR_TIMEOUT);
	close_provider(&a);
}

static void growing_goes_through_the_scale_and_never_shrinks(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof owned / sizeof *owned; i++) {
		struct asked a = open_provider(owned[i].provider, owned[i].settings, 3);
		char wanted[300];
		assert_int_equal(ask(&a, (struct recommendation){ .verb = PROVIDER_GROW, .token = "t", .desired = 5 }),
				 ERROR_NONE);
		snprintf(wanted, sizeof wanted,
			 "PATCH %s/scale {\"metadata\":{\"resourceVersion\":\"7\"},\"spec\":{\"replicas\":5}}\n",
			 owned[i].owner);
		assert_string_equal(played.log, wanted);
		assert_int_equal(ask(&a, (struct recommendation){ .verb = PROVIDER_GROW, .token = "t", .desired = 5 }),
				 ERROR_NONE);
		assert_int_equal(ask(&a, (struct recommendation){ .verb = PROVIDER_GROW, .token = "u", .desired = 2 }),
				 ERROR_NONE);
		assert_int_equal(ask(&a, (struct recommendation){ .verb = PROVIDER_GROW, .token = "v", .desired = 10 }),
				 ERROR_INVALID);
		assert_string_equal(played.log, wanted);
		assert_int_equal(played.replicas, 5);
		close_provider(&a);
	}
}

static void removing_lowers_once_and_takes_those_named(void **state)
{
	const struct recommendation remove = { .verb = PROVIDER_REMOVE, .token = "t-1", .ids = { "m-2", "m-never" } };
	struct asked a = open_provider("karpenter", karpenter, 3);

	(void)state;
	assert_int_equal(ask(&a, remove), ERROR_NONE);
	assert_string_equal(
		played.log,
		"PATCH /apis/karpenter.sh/v1/nodepools/gpu {\"metadata\":{\"resourceVersion\":\"7\",\"annotations\":"
		"{\"preheat.dev/operation\":\"t-1\"}},\"spec\":{\"replicas\":2}}\n"
		"DELETE /apis/karpenter.sh/v1/nodeclaims/m-2 \n");
	assert_true(played.machines[1].is_going);
	assert_int_equal(ask(&a, remove), ERROR_NONE);
	assert_int_equal(played.replicas, 2);
	close_provider(&a);
}

/* The size fell, and the answer to that, or to the deletion, was lost: the same token takes nobody else. */
static void a_lost_answer_lowers_nothing_twice(void **state)
{
	const struct recommendation remove = { .verb = PROVIDER_REMOVE, .token = "t-1", .ids = { "m-2" } };

	(void)state;
	for (int lost = 1; lost <= 2; lost++) {
		struct asked a = open_provider("karpenter", karpenter, 3);
		played.lost = lost;
		for (int i = 0; i < lost; i++)
			assert_int_equal(ask(&a, remove), ERROR_UNAVAILABLE);
		assert_int_equal(ask(&a, remove), ERROR_NONE);
		assert_int_equal(played.replicas, 2);
		assert_true(played.machines[1].is_going);
		assert_false(played.machines[0].is_going || played.machines[2].is_going);
		close_provider(&a);
	}
}

/* The process ended after the size had fallen: the next one names the same machine by a token of its own. */
static void a_size_that_fell_before_falls_no_further(void **state)
{
	static const enum provider_verb verbs[] = { PROVIDER_REMOVE, PROVIDER_CANCEL };

	(void)state;
	for (size_t i = 0; i < sizeof owned / sizeof *owned; i++)
		for (size_t k = 0; k < sizeof verbs / sizeof *verbs; k++) {
			struct asked a = open_provider(owned[i].provider, owned[i].settings, 3);
			played.machines[1].runs = verbs[k] == PROVIDER_REMOVE;
			played.replicas = 2;
			snprintf(played.operation, sizeof played.operation, "of the life before");
			if (i)
				snprintf(played.machines[1].mark, sizeof played.machines[1].mark, "preheat");
			assert_int_equal(
				ask(&a, (struct recommendation){ .verb = verbs[k], .token = "t-9", .ids = { "m-2" } }),
				ERROR_NONE);
			assert_int_equal(played.replicas, 2);
			assert_true(i || played.machines[1].is_going);
			close_provider(&a);
		}
}

static void cancelling_leaves_what_runs(void **state)
{
	struct asked a = open_provider("karpenter", karpenter, 3);

	(void)state;
	played.replicas = 8; /* five never came */
	played.machines[2].runs = false;
	assert_int_equal(ask(&a,
			     (struct recommendation){
				     .verb = PROVIDER_CANCEL, .token = "t", .desired = 0, .ids = { "m-1", "m-3" } }),
			 ERROR_NONE);
	assert_int_equal(played.replicas, 2);
	assert_true(played.machines[2].is_going);
	assert_false(played.machines[0].is_going);
	close_provider(&a);
}

/* Karpenter takes claims without a providerID first: lowered, the size would end the start and not the node that was
 * emptied. */
static void a_start_is_not_lost_to_a_lower_size(void **state)
{
	static const struct recommendation remove = { .verb = PROVIDER_REMOVE, .token = "t", .ids = { "m-1" } },
					   both = { .verb = PROVIDER_CANCEL, .token = "t-2", .ids = { "m-2", "m-3" } },
					   one = { .verb = PROVIDER_CANCEL, .token = "t-3", .ids = { "m-2" } };
	struct asked a = open_provider("karpenter", karpenter, 3);

	(void)state;
	for (int i = 1; i < 3; i++) {
		played.machines[i].runs = false;
		played.machines[i].has_no_machine = true;
	}
	assert_int_equal(ask(&a, remove), ERROR_CONFLICT);
	assert_non_null(strstr(a.call.error.message, "m-2 is still starting"));
	assert_int_equal(ask(&a, one), ERROR_CONFLICT);
	assert_string_equal(played.log, "");
	assert_int_equal(ask(&a, both), ERROR_NONE);
	assert_int_equal(played.replicas, 1);
	close_provider(&a);
	a = open_provider("karpenter", karpenter, 3);
	played.replicas = 5; /* two claims are still to be made: nothing is taken for a size of four */
	played.machines[2].runs = false;
	played.machines[2].has_no_machine = true;
	assert_int_equal(ask(&a, remove), ERROR_NONE);
	assert_int_equal(played.replicas, 4);
	close_provider(&a);
}

/* Its node is not ready, so no pods are on it. */
static void a_node_that_joins_is_not_lost_to_a_lower_size(void **state)
{
	struct asked a = open_provider("karpenter", karpenter, 3);

	(void)state;
	played.machines[1].is_joining = true;
	assert_int_equal(ask(&a, (struct recommendation){ .verb = PROVIDER_REMOVE, .token = "t", .ids = { "m-1" } }),
			 ERROR_CONFLICT);
	assert_non_null(strstr(a.call.error.message, "m-2 is still starting"));
	assert_int_equal(ask(&a, (struct recommendation){ .verb = PROVIDER_REMOVE, .token = "u", .ids = { "m-2" } }),
			 ERROR_NONE);
	assert_int_equal(played.replicas, 2);
	close_provider(&a);
}

/* What takes the place of a node that drifted would go first. */
static void what_karpenter_replaces_is_let(void **state)
{
	const struct recommendation remove = { .verb = PROVIDER_REMOVE, .token = "t", .ids = { "m-1" } };
	struct asked a = open_provider("karpenter", karpenter, 3);

	(void)state;
	played.machines[2].is_replaced = true;
	assert_int_equal(ask(&a, remove), ERROR_CONFLICT);
	assert_non_null(strstr(a.call.error.message, "Karpenter replaces NodeClaim m-3"));
	assert_string_equal(played.log, "");
	played.machines[2].is_going = true; /* the other has come */
	played.replicas = 2;
	assert_int_equal(ask(&a, remove), ERROR_NONE);
	assert_int_equal(played.replicas, 1);
	close_provider(&a);
}

/* The other claim comes first, beyond the size: nobody uses it yet, and it would go by its name, with no size to lower.
 */
static void a_replacement_is_not_taken_as_one_too_many(void **state)
{
	const struct recommendation replacement = { .verb = PROVIDER_REMOVE, .token = "t", .ids = { "m-2" } };
	struct asked a = open_provider("karpenter", karpenter, 2);

	(void)state;
	played.replicas = 1;
	played.machines[0].is_replaced = played.machines[0].has_drifted = true;
	assert_int_equal(ask(&a, (struct recommendation){ .verb = PROVIDER_DESCRIBE }), ERROR_NONE);
	assert_true(a.call.description.is_busy);
	assert_non_null(strstr(a.call.description.busy_with, "Karpenter replaces NodeClaim m-1"));
	assert_int_equal(ask(&a, replacement), ERROR_CONFLICT);
	assert_non_null(strstr(a.call.error.message, "Karpenter replaces NodeClaim m-1"));
	snprintf(played.operation, sizeof played.operation, "t"); /* and not as the rest of what was asked before */
	assert_int_equal(ask(&a, replacement), ERROR_CONFLICT);
	played.machines[0].is_going = true; /* the other serves by now */
	assert_int_equal(ask(&a, (struct recommendation){ .verb = PROVIDER_DESCRIBE }), ERROR_NONE);
	assert_false(a.call.description.is_busy);
	assert_null(a.call.description.busy_with);
	assert_string_equal(played.log, "");
	close_provider(&a);
}

/* Between the lower size and the deletion: what is too many may be the other claim, or the one that waits for it. */
static void a_replacement_that_begins_meanwhile_is_let(void **state)
{
	struct asked a = open_provider("karpenter", karpenter, 3);

	(void)state;
	played.replaced_next = &played.machines[0];
	assert_int_equal(ask(&a, (struct recommendation){ .verb = PROVIDER_REMOVE, .token = "t", .ids = { "m-2" } }),
			 ERROR_CONFLICT);
	assert_non_null(strstr(a.call.error.message, "m-2 stands: Karpenter began to replace one"));
	assert_int_equal(played.replicas, 2);
	assert_null(strstr(played.log, "DELETE"));
	close_provider(&a);
}

/* Its condition is gone, and a claim too many stands until Karpenter has settled that. */
static void a_replacement_that_was_given_up_is_karpenters_to_settle(void **state)
{
	const struct recommendation remove = { .verb = PROVIDER_REMOVE, .token = "t", .ids = { "m-2" } };
	struct asked a = open_provider("karpenter", karpenter, 2);

	(void)state;
	played.replicas = 1;
	played.machines[0].has_drifted = true;
	assert_int_equal(ask(&a, (struct recommendation){ .verb = PROVIDER_DESCRIBE }), ERROR_NONE);
	assert_true(a.call.description.is_busy);
	assert_non_null(
		strstr(a.call.description.busy_with, "m-1 drifted, and Karpenter has 2 NodeClaims for a size of 1"));
	assert_int_equal(ask(&a, remove), ERROR_CONFLICT);
	assert_string_equal(played.log, "");
	played.replicas = 2; /* one that drifted and must wait for its turn holds up nobody */
	assert_int_equal(ask(&a, (struct recommendation){ .verb = PROVIDER_DESCRIBE }), ERROR_NONE);
	assert_false(a.call.description.is_busy);
	assert_int_equal(ask(&a, remove), ERROR_NONE);
	assert_int_equal(played.replicas, 1);
	close_provider(&a);
}

/* Karpenter acts on the lower size before anybody could delete: for one that is too many one NodeClaim goes, not two.
 */
static void what_karpenter_took_is_not_taken_again(void **state)
{
	const struct recommendation remove = { .verb = PROVIDER_REMOVE, .token = "t", .ids = { "m-2" } };
	struct asked a = open_provider("karpenter", karpenter, 3);

	(void)state;
	played.machines[1].is_empty = true;
	assert_int_equal(ask(&a, remove), ERROR_NONE);
	assert_int_equal(played.replicas, 2);
	assert_true(played.machines[1].is_going);
	assert_null(strstr(played.log, "DELETE"));
	close_provider(&a);
	a = open_provider("karpenter", karpenter, 3);
	played.machines[0].is_empty = true; /* drained too, and to be removed next */
	assert_int_equal(ask(&a, remove), ERROR_CONFLICT);
	assert_non_null(strstr(a.call.error.message, "m-2 stands: Karpenter took another"));
	assert_int_equal(played.replicas, 2);
	assert_false(played.machines[1].is_going);
	assert_null(strstr(played.log, "DELETE"));
	assert_int_equal(ask(&a, remove), ERROR_NONE); /* named, it goes as well */
	assert_int_equal(played.replicas, 1);
	assert_true(played.machines[1].is_going);
	assert_false(played.machines[2].is_going);
	close_provider(&a);
}

static void a_pause_can_be_cancelled(void **state)
{
	const struct recommendation remove = { .verb = PROVIDER_REMOVE, .token = "t", .ids = { "m-2" } };
	struct asked a = open_provider("karpenter", karpenter, 3);

	(void)state;
	a.call = (struct provider_call){ .verb = remove.verb,
					 .group = "g",
					 .settings = karpenter,
					 .token = remove.token,
					 .ids = remove.ids,
					 .id_count = 1,
					 .done = finished,
					 .user = &a };
	a.ops->start(a.provider, &a.call);
	while (played.replicas == 3 && loop_once(played.loop))
		;
	loop_once(played.loop); /* the answer */
	a.ops->cancel(a.provider, &a.call);
	while (!a.done && loop_once(played.loop))
		;
	assert_int_equal(a.call.error.kind, ERROR_CANCELLED);
	assert_null(strstr(played.log, "DELETE"));
	close_provider(&a);
}

/* Between the look and the call somebody lowered it: nothing is sent. */
static void a_size_that_fell_meanwhile_is_let(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof owned / sizeof *owned; i++) {
		struct asked a = open_provider(owned[i].provider, owned[i].settings, 1);
		assert_int_equal(
			ask(&a,
			    (struct recommendation){ .verb = PROVIDER_GROW, .token = "t", .desired = 5, .change = 2 }),
			ERROR_CONFLICT);
		assert_true(a.call.is_outdated);
		assert_string_equal(played.log, "");
		assert_int_equal(played.replicas, 1);
		close_provider(&a);
	}
}

static void somebody_elses_change_is_a_conflict(void **state)
{
	struct asked a = open_provider("karpenter", karpenter, 3);

	(void)state;
	played.conflicts = 1;
	assert_int_equal(ask(&a, (struct recommendation){ .verb = PROVIDER_GROW, .token = "t", .desired = 5 }),
			 ERROR_CONFLICT);
	assert_int_equal(played.replicas, 3);
	assert_non_null(strstr(a.call.error.message, "group g"));
	close_provider(&a);
}

static void a_dynamic_node_pool_is_refused(void **state)
{
	struct asked a = open_provider("karpenter", karpenter, 3);

	(void)state;
	played.has_replicas = false;
	assert_int_equal(ask(&a, (struct recommendation){ .verb = PROVIDER_DESCRIBE }), ERROR_INVALID);
	assert_non_null(strstr(a.call.error.message, "use provider external"));
	close_provider(&a);
}

static void what_makes_no_sense_is_refused(void **state)
{
	static const struct {
		const char *provider, *settings;
	} bad[] = {
		{ "karpenter", "" },
		{ "karpenter", "{}" },
		{ "karpenter", "{\"nodePool\":\"../pods\"}" },
		{ "karpenter", "{\"nodePool\":3}" },
		{ "clusterApi", "{\"machineDeployment\":\"gpu\"}" },
		{ "clusterApi", "{\"machineDeployment\":\"gpu\",\"namespace\":\"a/b\"}" },
		{ "external", "{\"label\":\"a b\",\"value\":\"c\"}" },
		{ "external", "{\"label\":\"\",\"value\":\"c\"}" },
		{ "external", "{\"label\":\"a\"}" },
	};
	static const char *const spoiled[] = { "",
					       "null",
					       "[]",
					       "{\"spec\":{\"replicas\":-1}}",
					       "{\"spec\":{\"replicas\":1.5}}",
					       "{\"spec\":{\"replicas\":\"3\"}}",
					       "{\"spec\":{\"replicas\":99999999999999999999999999}}",
					       "<html>" };

	(void)state;
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
		struct asked a = open_provider(bad[i].provider, bad[i].settings, 1);
		assert_int_equal(ask(&a, (struct recommendation){ .verb = PROVIDER_DESCRIBE }), ERROR_INVALID);
		assert_non_null(strstr(a.call.error.message, "settings"));
		close_provider(&a);
	}
	struct asked a = open_provider("karpenter", karpenter, 1);
	for (size_t i = 0; i < sizeof spoiled / sizeof *spoiled; i++) {
		played.first = spoiled[i];
		assert_int_equal(ask(&a, (struct recommendation){ .verb = PROVIDER_DESCRIBE }), ERROR_INVALID);
	}
	assert_int_equal(ask(&a, (struct recommendation){ .verb = PROVIDER_GROW, .token = "", .desired = 2 }),
			 ERROR_INVALID);
	assert_int_equal(ask(&a, (struct recommendation){ .verb = PROVIDER_GROW, .token = "t", .desired = -2 }),
			 ERROR_INVALID);
	assert_int_equal(ask(&a, (struct recommendation){ .verb = PROVIDER_REMOVE, .token = "t", .ids = { "../x" } }),
			 ERROR_INVALID);
	assert_int_equal(ask(&a, (struct recommendation){ .verb = PROVIDER_STANDBY, .token = "t", .desired = 1 }),
			 ERROR_INVALID);
	assert_string_equal(played.log, "");
	close_provider(&a);
}

static void a_cancelled_call_completes_once(void **state)
{
	struct asked a = open_provider("karpenter", karpenter, 1);

	(void)state;
	a.call = (struct provider_call){
		.verb = PROVIDER_DESCRIBE, .group = "g", .settings = karpenter, .done = finished, .user = &a
	};
	a.ops->start(a.provider, &a.call);
	a.ops->cancel(a.provider, &a.call); /* before anything is asked */
	loop_once(played.loop);
	assert_int_equal(a.done, 1);
	assert_int_equal(a.call.error.kind, ERROR_CANCELLED);
	played.is_silent = true;
	a.ops->start(a.provider, &a.call);
	loop_once(played.loop); /* asked, and never answered */
	assert_int_equal(a.done, 1);
	a.ops->cancel(a.provider, &a.call);
	a.ops->cancel(a.provider, &a.call);
	loop_once(played.loop);
	assert_int_equal(a.done, 2);
	assert_int_equal(a.call.error.kind, ERROR_CANCELLED);
	close_provider(&a);
}

static void without_a_cluster_there_is_no_such_provider(void **state)
{
	struct error e = { 0 };

	(void)state;
	assert_null(provider_find("karpenter")->open(&(struct provider_setup){ 0 }, &e));
	assert_int_equal(e.kind, ERROR_INVALID);
}

/* By reviews, which store nothing: who we are, and each right that its calls need. */
static void a_check_asks_for_each_right(void **state)
{
	struct asked a = open_provider("karpenter", karpenter, 2);
	const struct permission *p;

	(void)state;
	played.denied = "\"resource\":\"nodepools\",\"subresource\":\"scale\",\"verb\":\"patch\",\"namespace\":\"\","
			"\"name\":\"gpu\"";
	assert_int_equal(ask(&a, (struct recommendation){ .verb = PROVIDER_CHECK }), ERROR_NONE);
	assert_string_equal(a.call.identity, "system:serviceaccount:preheat:preheat");
	assert_int_equal(a.call.permission_count, 5);
	p = a.call.permissions;
	assert_string_equal(p[1].action, "patch nodepools.karpenter.sh/scale");
	assert_string_equal(p[1].message, "no role");
	for (size_t i = 0; i < 5; i++)
		assert_int_equal(p[i].state, i == 1 ? PERMISSION_DENIED : PERMISSION_GRANTED);
	assert_string_equal(played.log, "");
	played.is_old = true;
	assert_int_equal(ask(&a, (struct recommendation){ .verb = PROVIDER_CHECK }), ERROR_NONE);
	assert_non_null(strstr(a.call.identity, "does not tell"));
	played.first = NULL;
	close_provider(&a);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_group_is_described),
		cmocka_unit_test(whoever_sized_it_is_named),
		cmocka_unit_test(pages_are_put_together),
		cmocka_unit_test(a_list_without_end_ends),
		cmocka_unit_test(a_call_ends_in_its_time),
		cmocka_unit_test(growing_goes_through_the_scale_and_never_shrinks),
		cmocka_unit_test(removing_lowers_once_and_takes_those_named),
		cmocka_unit_test(a_lost_answer_lowers_nothing_twice),
		cmocka_unit_test(a_size_that_fell_before_falls_no_further),
		cmocka_unit_test(cancelling_leaves_what_runs),
		cmocka_unit_test(a_start_is_not_lost_to_a_lower_size),
		cmocka_unit_test(a_node_that_joins_is_not_lost_to_a_lower_size),
		cmocka_unit_test(what_karpenter_replaces_is_let),
		cmocka_unit_test(a_replacement_is_not_taken_as_one_too_many),
		cmocka_unit_test(a_replacement_that_begins_meanwhile_is_let),
		cmocka_unit_test(a_replacement_that_was_given_up_is_karpenters_to_settle),
		cmocka_unit_test(what_karpenter_took_is_not_taken_again),
		cmocka_unit_test(a_pause_can_be_cancelled),
		cmocka_unit_test(a_size_that_fell_meanwhile_is_let),
		cmocka_unit_test(somebody_elses_change_is_a_conflict),
		cmocka_unit_test(a_dynamic_node_pool_is_refused),
		cmocka_unit_test(what_makes_no_sense_is_refused),
		cmocka_unit_test(a_cancelled_call_completes_once),
		cmocka_unit_test(without_a_cluster_there_is_no_such_provider),
		cmocka_unit_test(a_check_asks_for_each_right),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
