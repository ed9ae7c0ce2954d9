#include "tests/unit/providers/played_cluster.h"

static const char label[] = "{\"label\":\"cloud.google.com/gke-nodepool\",\"value\":\"gpu\"}";

/* Only counted: another autoscaler brings the nodes. */
static void external_nodes_are_counted(void **state)
{
	struct asked a = open_provider("external", label, 3);

	(void)state;
	assert_int_equal(ask(&a, (struct recommendation){ .verb = PROVIDER_DESCRIBE }), ERROR_NONE);
	assert_int_equal(a.call.description.desired, 3);
	assert_int_equal(ask(&a, (struct recommendation){ .verb = PROVIDER_GROW, .token = "t", .desired = 5 }),
			 ERROR_NONE);
	assert_int_equal(ask(&a, (struct recommendation){ .verb = PROVIDER_DESCRIBE }), ERROR_NONE);
	assert_int_equal(a.call.description.desired, 5);
	assert_int_equal(a.call.description.machine_count, 3);
	assert_int_equal(ask(&a, (struct recommendation){ .verb = PROVIDER_CANCEL, .token = "u", .desired = 4 }),
			 ERROR_NONE);
	assert_int_equal(ask(&a, (struct recommendation){ .verb = PROVIDER_DESCRIBE }), ERROR_NONE);
	assert_int_equal(a.call.description.desired, 4);
	assert_int_equal(ask(&a, (struct recommendation){ .verb = PROVIDER_REMOVE, .token = "v", .ids = { "m-1" } }),
			 ERROR_NONE);
	assert_int_equal(ask(&a, (struct recommendation){ .verb = PROVIDER_REMOVE, .token = "v", .ids = { "m-1" } }),
			 ERROR_NONE);
	assert_int_equal(ask(&a, (struct recommendation){ .verb = PROVIDER_DESCRIBE }), ERROR_NONE);
	assert_int_equal(a.call.description.machines[0].state, MACHINE_TERMINATING);
	assert_int_equal(a.call.description.desired, 3); /* one of the two that were to come */
	assert_string_equal(played.log, "");
	/* they came, and later the other autoscaler took one: nobody misses it */
	played.machines[0].is_there = false;
	snprintf(played.machines[3].name, sizeof played.machines[3].name, "m-4");
	played.machines[3].is_there = played.machines[3].runs = true;
	played.machine_count = 4;
	assert_int_equal(ask(&a, (struct recommendation){ .verb = PROVIDER_DESCRIBE }), ERROR_NONE);
	assert_int_equal(a.call.description.desired, 3);
	played.machines[3].is_there = false;
	assert_int_equal(ask(&a, (struct recommendation){ .verb = PROVIDER_DESCRIBE }), ERROR_NONE);
	assert_int_equal(a.call.description.desired, 2);
	close_provider(&a);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(external_nodes_are_counted),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
