#include "tests/unit/providers/played_cluster.h"

static const char label[] = "{\"label\":\"cloud.google.com/gke-nodepool\",\"value\":\"gpu\"}";

/* Only counted: another autoscaler brings the nodes. */
static void external_nodes_are_counted(void **state)
{
	struct asked a = open_provider("external", label, 3);

	(void)state;
	assert_int_equal(ask(&a, (struct wish){ .verb = PROVIDER_DESCRIBE }), ERROR_NONE);
	assert_int_equal(a.call.description.desired, 3);
	assert_int_equal(ask(&a, (struct wish){ .verb = PROVIDER_GROW, .token = "t", .desired = 5 }), ERROR_NONE);
	assert_int_equal(ask(&a, (struct wish){ .verb = PROVIDER_DESCRIBE }), ERROR_NONE);
	assert_int_equal(a.call.description.desired, 5);
	assert_int_equal(a.call.description.machine_count, 3);
	assert_int_equal(ask(&a, (struct wish){ .verb = PROVIDER_CANCEL, .token = "u", .desired = 4 }), ERROR_NONE);
	assert_int_equal(ask(&a, (struct wish){ .verb = PROVIDER_DESCRIBE }), ERROR_NONE);
	assert_int_equal(a.call.description.desired, 4);
	assert_int_equal(ask(&a, (struct wish){ .verb = PROVIDER_REMOVE, .token = "v", .ids = { "m-1" } }),
			 ERROR_INVALID);
	assert_string_equal(played.log, "");
	close_provider(&a);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(external_nodes_are_counted),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
