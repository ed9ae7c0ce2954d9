#include "tests/unit/providers/played_cluster.h"

static const char deployment[] = "{\"machineDeployment\":\"gpu\",\"namespace\":\"capi\"}";

static void a_machine_is_marked_before_the_size_falls(void **state)
{
	const struct wish remove = { .verb = PROVIDER_REMOVE, .token = "t-1", .ids = { "m-2", "m-never" } };
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

static void a_paused_deployment_is_left_alone(void **state)
{
	struct asked a = open_provider("clusterApi", deployment, 3);

	(void)state;
	played.is_paused = true;
	assert_int_equal(ask(&a, (struct wish){ .verb = PROVIDER_GROW, .token = "t", .desired = 5 }), ERROR_CONFLICT);
	assert_string_equal(played.log, "");
	close_provider(&a);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_machine_is_marked_before_the_size_falls),
		cmocka_unit_test(a_paused_deployment_is_left_alone),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
