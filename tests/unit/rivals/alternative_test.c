/* The same traffic under other fleets, each pool alone. */
#include "controller/simulation/rivals/alternative.h"
#include "tests/unit/simulation/toy.h"

static struct score run(const struct simulation *s, size_t pool, const struct alternative *with)
{
	struct score score = { 0 };
	struct error e = { 0 };

	if (!alternative_run(s, pool, with, &score, &e))
		fail_msg("%s:%s: %s", with->policy, with->setting, e.message);
	return score;
}

/* chat has 4 requests of 10 s a second, on ten slots a replica: 4 replicas; batch a tenth of that, and other machines.
 */
static struct simulation two_pools(struct toy *t)
{
	toy_setup(t);
	toy_two_pools(t);
	toy_requests(t, 0, 13800, 0, 260, 10 * SECOND);
	toy_requests(t, 1, 1400, 0, 2500, 10 * SECOND);
	return (struct simulation){
		.world = t->setup, .policy = &policy_preheat, .setting = "", .warm_up = 15 * MINUTE
	};
}

static void a_fleet_of_the_peak_is_never_late_and_always_paid(void **state)
{
	struct toy t;
	struct simulation s = two_pools(&t);

	(void)state;
	assert_int_equal(alternative_peak(&s, 0), 4);
	assert_int_equal(alternative_peak(&s, 1), 1);
	struct score peak = run(&s, 0, &(struct alternative){ "static", "replicas=5", 5 });
	assert_int_equal(peak.late, 0);
	assert_int_equal(peak.requests, 13800 - 3462);
	/* An hour less the warm-up, at $3.60 an hour. */
	assert_int_equal(peak.gpu_ms, 5 * 45 * MINUTE);
	assert_int_equal(peak.micro_dollars, 5 * 3600000 * 3 / 4);
	struct score less = run(&s, 0, &(struct alternative){ "static", "replicas=3", 3 });
	assert_true(less.late > less.requests / 2 && less.micro_dollars < peak.micro_dollars);
	toy_end(&t);
}

/* What the other pool does changes nothing. */
static void a_pool_is_alone(void **state)
{
	struct toy t;
	struct simulation s = two_pools(&t);
	const struct alternative hpa = { "hpa", "target=0.8,window=300", 0 };

	(void)state;
	struct score before = run(&s, 1, &hpa);
	t.groups[0].max_nodes = 6;
	t.pool_worlds[0].max_sequences = 1;
	struct score after = run(&s, 1, &hpa);
	assert_true(before.requests > 0 && before.gpu_ms > 0);
	assert_memory_equal(&before, &after, sizeof before);
	toy_end(&t);
}

static void a_bad_setting_is_refused(void **state)
{
	struct toy t;
	struct simulation s = two_pools(&t);
	struct score score;
	struct error e = { 0 };

	(void)state;
	assert_false(alternative_run(&s, 0, &(struct alternative){ "hpa", "target=9", 0 }, &score, &e));
	assert_non_null(strstr(e.message, "target=9"));
	toy_end(&t);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_fleet_of_the_peak_is_never_late_and_always_paid),
		cmocka_unit_test(a_pool_is_alone),
		cmocka_unit_test(a_bad_setting_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
