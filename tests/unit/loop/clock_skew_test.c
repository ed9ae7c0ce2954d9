/* The controller's time, while the machine's clock is set by years. */
#include "controller/loop/controller_state.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>

static const millis YEAR = 365 * DAY, START = 1795255200000;
static struct controller *c;
static char path[64];

static struct history *open_history(void)
{
	static const struct group_spec group = { .name = "g5", .provider = "simulated", .settings = "{}" };
	static const size_t indices[] = { 0 };
	static const struct pool_spec pool = {
		.name = "a", .namespace = "llm", .groups = indices, .group_count = 1, .budget_name = ""
	};
	static const struct fleet_spec fleet = { &group, 1, &pool, 1, NULL };
	struct error e;

	return history_resume(&(struct history_setup){ .path = path,
						       .manifest = "a",
						       .fleet = &fleet,
						       .program = "test",
						       .policy = "preheat",
						       .run = "test",
						       .ticks_per_commit = 1,
						       .checkpoint_every = HOUR },
			      &e);
}

static int set_up(void **state)
{
	(void)state;
	snprintf(path, sizeof path, "/tmp/own_time_test.%d.db", (int)getpid());
	c = calloc(1, sizeof *c);
	c->skew.clock = clock_open_by_hand(START);
	c->clock = &c->skew.clock;
	c->cluster = cluster_new();
	c->history = open_history();
	assert_non_null(c->history);
	return 0;
}

static int tear_down(void **state)
{
	static const char *const ends[] = { "", "-wal", "-shm" };
	char name[80];

	(void)state;
	history_close(c->history);
	cluster_free(c->cluster);
	free(c);
	for (size_t i = 0; i < 3; i++) {
		snprintf(name, sizeof name, "%s%s", path, ends[i]);
		unlink(name);
	}
	return 0;
}

static void jumps_are_not_followed(void **state)
{
	static const millis jumps[] = { 4 * YEAR, -4 * YEAR, -START, 60 * YEAR, -2 * MINUTE };
	millis then = START;

	(void)state;
	clock_skew_begin(c);
	for (size_t i = 0; i < sizeof jumps / sizeof *jumps; i++) {
		c->skew.clock.now += jumps[i];
		clock_turn(&c->skew.clock, 15 * SECOND);
		then += 15 * SECOND;
		clock_skew_follow(c);
		assert_int_equal(clock_now(c->clock), then);
	}
}

static void small_corrections_are(void **state)
{
	(void)state;
	clock_skew_begin(c);
	c->skew.clock.now -= 2 * SECOND;
	clock_skew_follow(c);
	assert_int_equal(clock_now(c->clock), START - 2 * SECOND);
	c->skew.clock.now += 2 * HOUR; /* it slept, say */
	clock_skew_follow(c);
	assert_int_equal(clock_now(c->clock), START + 2 * HOUR - 2 * SECOND);
	assert_int_equal(c->skew.clock.ahead, 0);
}

static void time_never_begins_before_the_history_ends(void **state)
{
	struct pool_snapshot pool = { 0 };
	struct group_input group = { 0 };
	struct group_decision decision = { 0 };
	struct pool_plan plan = { .groups = &decision, .group_count = 1 };
	struct error e;

	(void)state;
	pool.groups = &group;
	pool.group_count = 1;
	const struct snapshot s = { .now = START + 4 * YEAR, .interval = 15 * SECOND, .pools = &pool };
	assert_true(history_append(c->history, &s, &(struct plan){ &plan, 1 }, &e));
	clock_skew_begin(c);
	assert_true(clock_now(c->clock) >= START + 4 * YEAR);
	clock_turn(&c->skew.clock, MINUTE);
	clock_skew_follow(c);
	assert_true(clock_now(c->clock) >= START + 4 * YEAR + MINUTE);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(jumps_are_not_followed),
		TEST(small_corrections_are),
		TEST(time_never_begins_before_the_history_ends),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
