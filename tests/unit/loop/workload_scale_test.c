/* What somebody else sets is found out, also where the API server fails. */
#include "tests/unit/loop/played_controller.h"

static const char pool_text[] =
	"apiVersion: preheat.dev/v1alpha1\n"
	"kind: WarmPool\n"
	"metadata: { name: chat, namespace: llm }\n"
	"spec:\n"
	"  class: interactive\n"
	"  objective: { queueWait: 2s, attainment: 99% }\n"
	"  workload: { selector: { matchLabels: { app: chat } }, scaleTargetRef: { kind: Deployment, name: chat },\n"
	"      warm: replicas, maxSequences: 8, interTokenLatency: 30ms }\n"
	"  nodeGroups:\n"
	"    - { name: g5, provider: simulated, gpusPerNode: 1, pricePerHour: 1.2, min: 0, max: 10 }\n"
	"  leadTime: { total: { p50: 200s, p95: 300s } }\n"
	"  mode: act\n";

static struct controller *c;

static int set_up(void **state)
{
	(void)state;
	c = play_controller(pool_text);
	server.replicas = 2;
	cloud_tells(c, 0);
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	close_controller(c);
	return 0;
}

static void decide(int64_t replicas)
{
	act_on(c, (struct group_decision){ 0 }, replicas);
	settle_calls();
}

/* When it is looked at again: with a call that fails, and once more. */
static void decide_where_one_fails(int64_t replicas, const char *method)
{
	play_until(play_now() + MINUTE + SECOND);
	server.scale_fails = method;
	decide(replicas);
	server.scale_fails = NULL;
	play_until(play_now() + 2 * SECOND);
	decide(replicas);
}

static const struct scale_contest *contest(void)
{
	return &c->pools[0]->scale.contest;
}

static void undone_twice_where_one_fails(const char *method)
{
	decide(5);
	for (int64_t number = 1; number <= 2; number++) {
		assert_false(contest()->is_left);
		server.replicas = number;
		decide_where_one_fails(5, method);
	}
	assert_true(contest()->is_left);
	forget_log();
	decide_where_one_fails(5, method);
	assert_null(asked("PUT", "/scale"));
}

static void a_read_that_fails_hides_nobody(void **state)
{
	(void)state;
	undone_twice_where_one_fails("GET");
}

static void a_write_that_fails_hides_nobody(void **state)
{
	(void)state;
	undone_twice_where_one_fails("PUT");
}

static void what_was_written_without_an_answer_is_ours(void **state)
{
	(void)state;
	decide(5);
	for (int64_t number = 6; number <= 8; number++) {
		server.is_scaled_all_the_same = true;
		decide_where_one_fails(number, "PUT");
		assert_int_equal(server.replicas, number);
	}
	assert_int_equal(contest()->undone, 0);
	assert_false(contest()->is_left);
}

/* It was left the number, and changes ours again though later than who insists would. */
static void who_was_left_it_insists_with_one_more(void **state)
{
	(void)state;
	undone_twice_where_one_fails("PUT");
	play_until(play_now() + 11 * MINUTE);
	decide(5);
	play_until(play_now() + 2 * MINUTE);
	decide(5);
	assert_false(contest()->is_left);
	assert_int_equal(server.replicas, 5);
	play_until(play_now() + 9 * MINUTE);
	server.replicas = 2;
	decide(5);
	assert_true(contest()->is_left);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_read_that_fails_hides_nobody),
		TEST(a_write_that_fails_hides_nobody),
		TEST(who_was_left_it_insists_with_one_more),
		TEST(what_was_written_without_an_answer_is_ours),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
