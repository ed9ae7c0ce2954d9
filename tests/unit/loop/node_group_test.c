/*
 * One node group against a cloud that the test plays: what is sent, in which
 * order, with which token, and what becomes of lost answers and refusals.
 */
#include "controller/loop/node_group.h"
#include "state/launch.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

enum { MACHINES = 16, SENT = 64 };

/* The played cloud: calls wait until the test answers them. */
struct cloud {
	struct provider_call *look, *change;
	struct machine machines[MACHINES];
	char ids[MACHINES][16];
	size_t count;
	int64_t desired, standby;
	struct launch_failure failures[4];
	size_t failure_count;
	char tokens[SENT][64];
	enum provider_verb verbs[SENT];
	size_t sent;
	bool intent_was_there; /* before every call so far */
	struct history *history;
};

static struct cloud cloud;
static struct starts starts;

static void begin(struct provider *p, struct provider_call *c)
{
	struct arena a = { 0 };
	struct launch *open;
	size_t count = 0;
	struct error e;

	(void)p;
	if (c->verb == PROVIDER_DESCRIBE) {
		assert_null(cloud.look);
		cloud.look = c;
		return;
	}
	assert_null(cloud.change); /* one operation at a time */
	cloud.change = c;
	assert_true(launch_open_ones(cloud.history, &a, &open, &count, &e));
	cloud.intent_was_there &= count == 1 && !strcmp(open[0].token, c->token);
	arena_release(&a);
	assert_true(cloud.sent < SENT);
	snprintf(cloud.tokens[cloud.sent], sizeof cloud.tokens[0], "%s", c->token);
	cloud.verbs[cloud.sent++] = c->verb;
}

static void ignore(struct provider *p, struct provider_call *c)
{
	(void)p;
	(void)c;
}

static const struct provider_ops ops = { .name = "played", .start = begin, .cancel = ignore };

static struct node_stages no_stages(void *user, const char *machine)
{
	(void)user;
	(void)machine;
	return (struct node_stages){ 0 };
}

static bool serves(void *user, size_t pool)
{
	(void)user;
	(void)pool;
	return false;
}

static void nothing(void *user)
{
	(void)user;
}

static const struct group_spec group = { .name = "g5",
					 .provider = "played",
					 .settings = "{}",
					 .zone = "",
					 .instance_type = "",
					 .gpus_per_node = 1,
					 .max_nodes = 8,
					 .standby_max_nodes = 4 };
static const size_t indices[] = { 0 };
static const struct pool_spec pool = { .name = "chat",
				       .namespace = "llm",
				       .gpus_per_replica = 1,
				       .groups = indices,
				       .group_count = 1,
				       .budget_name = "" };
static const struct fleet_spec fleet = { &group, 1, &pool, 1 };

struct stage_of_test {
	struct loop *loop;
	struct clock clock;
	struct history *history;
	struct group_context context;
	provider_counts calls;
	struct node_group g;
	char path[64];
};

static struct history *open_history(const char *path)
{
	struct error e = { 0 };
	const struct history_setup setup = { .path = path,
					     .manifest = "chat",
					     .fleet = &fleet,
					     .program = "test",
					     .policy = "preheat",
					     .run = "test",
					     .ticks_per_commit = 1,
					     .checkpoint_every = HOUR };
	struct history *h = history_resume(&setup, &e);

	if (!h)
		fail_msg("%s", e.message);
	return h;
}

static int set_up(void **state)
{
	static struct stage_of_test t;
	const struct group_access access = { &ops, NULL, t.calls };

	t = (struct stage_of_test){ .loop = loop_open(), .clock = clock_open_by_hand(1000000) };
	snprintf(t.path, sizeof t.path, "/tmp/node_group_test.%d.db", (int)getpid());
	t.history = open_history(t.path);
	cloud = (struct cloud){ .intent_was_there = true, .history = t.history };
	t.context = (struct group_context){ .loop = t.loop,
					    .clock = &t.clock,
					    .history = t.history,
					    .fleet = &fleet,
					    .starts = &starts,
					    .term = 3,
					    .node_stages = no_stages,
					    .runs_work = serves,
					    .changed = nothing };
	node_group_open(&t.g, &t.context, 0, &access);
	*state = &t;
	return 0;
}

static int tear_down(void **state)
{
	struct stage_of_test *t = *state;
	char more[80];

	node_group_stop(&t->g);
	node_group_close(&t->g);
	starts_release(&starts);
	history_close(t->history);
	loop_close(t->loop);
	unlink(t->path);
	snprintf(more, sizeof more, "%s-wal", t->path);
	unlink(more);
	snprintf(more, sizeof more, "%s-shm", t->path);
	unlink(more);
	return 0;
}

static void add_machine(enum machine_state machine_state)
{
	size_t i = cloud.count++;

	snprintf(cloud.ids[i], sizeof cloud.ids[i], "m%zu", i);
	cloud.machines[i] =
		(struct machine){ .id = cloud.ids[i],
				  .provider_id = cloud.ids[i],
				  .zone = "",
				  .state = machine_state,
				  .is_standby = machine_state == MACHINE_STOPPING || machine_state == MACHINE_STOPPED,
				  .launched_at = 500000 };
}

/* Answers the look under way, after starting one where none is. */
static void look(struct stage_of_test *t)
{
	if (!cloud.look)
		node_group_look(&t->g);
	struct provider_call *c = cloud.look;
	assert_non_null(c);
	cloud.look = NULL;
	c->error = (struct error){ 0 };
	struct machine *machines = arena_array(&c->arena, struct machine, MACHINES);
	memcpy(machines, cloud.machines, sizeof cloud.machines);
	c->description = (struct group_description){ .max = 100,
						     .desired = cloud.desired,
						     .standby = cloud.standby,
						     .machines = machines,
						     .machine_count = cloud.count,
						     .failures = cloud.failures,
						     .failure_count = cloud.failure_count };
	c->done(c);
}

static void answer(enum error_kind kind)
{
	struct provider_call *c = cloud.change;

	assert_non_null(c);
	cloud.change = NULL;
	c->error = (struct error){ .kind = kind };
	c->done(c);
}

static void ask(struct stage_of_test *t, int64_t machines)
{
	struct start like = { .pool = 0, .kind = START_COLD, .asked_at = clock_now(&t->clock) };

	starts_ask(&starts, &like, node_group_grow(&t->g, machines));
	node_group_drive(&t->g);
}

/* After a failure the group is quiet for a while of the world's time. */
static void wait_over(struct stage_of_test *t)
{
	t->g.quiet_until = 0;
	timer_stop(&t->g.timer);
}

static void grows_once(void **state)
{
	struct stage_of_test *t = *state;

	look(t);
	ask(t, 2);
	assert_int_equal(cloud.change->verb, PROVIDER_GROW);
	assert_int_equal(cloud.change->desired, 2);
	cloud.desired = 2;
	add_machine(MACHINE_PENDING);
	add_machine(MACHINE_PENDING);
	answer(ERROR_NONE);
	look(t);
	assert_null(cloud.change);
	assert_int_equal(cloud.sent, 1);
	assert_true(cloud.intent_was_there);
	assert_string_equal(starts.items[0].machine, "m0");
	assert_string_equal(starts.items[1].machine, "m1");
	assert_int_equal(starts.event_count, 0);
}

static void a_lost_answer_is_looked_up_and_not_asked_twice(void **state)
{
	struct stage_of_test *t = *state;

	look(t);
	ask(t, 2);
	cloud.desired = 2; /* it had its effect */
	answer(ERROR_TIMEOUT);
	wait_over(t);
	look(t);
	assert_null(cloud.change);
	assert_int_equal(cloud.sent, 1);
	assert_int_equal(starts.count, 2);
}

static void what_had_no_effect_is_asked_again_with_the_same_token(void **state)
{
	struct stage_of_test *t = *state;

	look(t);
	ask(t, 2);
	answer(ERROR_UNAVAILABLE);
	wait_over(t);
	look(t);
	assert_non_null(cloud.change);
	assert_int_equal(cloud.sent, 2);
	assert_string_equal(cloud.tokens[0], cloud.tokens[1]);
	assert_int_equal(starts.count, 2); /* still on their way */
}

static void after_five_tries_the_starts_are_refused(void **state)
{
	struct stage_of_test *t = *state;

	look(t);
	ask(t, 1);
	for (int i = 0; i < 5; i++) {
		answer(ERROR_UNAVAILABLE);
		wait_over(t);
		look(t);
	}
	assert_null(cloud.change);
	assert_int_equal(cloud.sent, 5);
	assert_int_equal(starts.count, 0);
	assert_int_equal(starts.events[0].event.what, EVENT_REFUSED);
	assert_int_equal(starts.events[0].event.value, ERROR_UNAVAILABLE);
	assert_int_equal(t->g.wanted, 0);
}

static void a_refusal_ends_the_starts_at_once(void **state)
{
	static const enum error_kind kinds[] = { ERROR_STOCKOUT, ERROR_QUOTA, ERROR_AUTH, ERROR_INVALID };
	struct stage_of_test *t = *state;

	look(t);
	for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
		starts_events_taken(&starts);
		ask(t, 3);
		answer(kinds[i]);
		assert_int_equal(starts.count, 0);
		assert_int_equal(starts.event_count, 3);
		assert_int_equal(starts.events[0].event.value, kinds[i]);
		assert_int_equal(t->g.wanted, 0);
		cloud.look = NULL;
		t->g.is_looking = false;
		look(t);
	}
}

static void throttled_calls_wait_and_keep_their_starts(void **state)
{
	struct stage_of_test *t = *state;

	look(t);
	ask(t, 1);
	answer(ERROR_THROTTLED);
	node_group_drive(&t->g);
	assert_null(cloud.change);
	assert_int_equal(starts.count, 1);
	wait_over(t);
	look(t);
	assert_non_null(cloud.change);
}

static void a_launch_that_failed_refuses_so_many_starts(void **state)
{
	struct stage_of_test *t = *state;

	look(t);
	ask(t, 3);
	cloud.desired = 3;
	add_machine(MACHINE_PENDING);
	answer(ERROR_NONE);
	cloud.failures[0] =
		(struct launch_failure){ .id = 7, .kind = ERROR_STOCKOUT, .message = "none left", .count = 2 };
	cloud.failure_count = 1;
	cloud.desired = 1;
	look(t);
	assert_int_equal(starts.count, 1);
	assert_string_equal(starts.items[0].machine, "m0");
	assert_int_equal(starts.event_count, 2);
	assert_int_equal(starts.events[0].event.value, ERROR_STOCKOUT);
	look(t); /* told again: known */
	assert_int_equal(starts.event_count, 2);
}

static void old_failures_are_no_news(void **state)
{
	struct stage_of_test *t = *state;

	cloud.failures[0] = (struct launch_failure){ .id = 7, .kind = ERROR_STOCKOUT, .message = "", .count = 2 };
	cloud.failure_count = 1;
	look(t);
	assert_int_equal(starts.event_count, 0);
}

static void never_above_the_manifests_and_the_clouds_max(void **state)
{
	struct stage_of_test *t = *state;

	look(t);
	assert_int_equal(node_group_grow(&t->g, 100), 8);
	assert_int_equal(node_group_grow(&t->g, 1), 0);
}

static void machines_that_were_there_are_adopted(void **state)
{
	struct stage_of_test *t = *state;

	add_machine(MACHINE_PENDING);
	add_machine(MACHINE_TERMINATING);
	cloud.desired = 1;
	look(t);
	assert_int_equal(starts.count, 1);
	assert_true(starts.items[0].is_adopted);
	assert_int_equal(starts.items[0].asked_at, 500000);
	assert_int_equal(t->g.wanted, 1);
	assert_null(cloud.change);
}

static void a_size_that_others_set_is_told_and_kept(void **state)
{
	struct stage_of_test *t = *state;

	look(t);
	cloud.desired = 4;
	look(t);
	assert_int_equal(starts.events[0].event.what, EVENT_RESIZED);
	assert_int_equal(starts.events[0].event.value, 4);
	assert_int_equal(t->g.wanted, 4);
	node_group_drive(&t->g);
	assert_null(cloud.change);
}

static void exactly_that_machine_is_removed(void **state)
{
	struct stage_of_test *t = *state;

	add_machine(MACHINE_RUNNING);
	add_machine(MACHINE_RUNNING);
	cloud.desired = 2;
	look(t);
	assert_true(node_group_remove(&t->g, "m1", PROVIDER_REMOVE));
	assert_false(node_group_remove(&t->g, "m1", PROVIDER_REMOVE));
	node_group_drive(&t->g);
	assert_int_equal(cloud.change->verb, PROVIDER_REMOVE);
	assert_int_equal(cloud.change->id_count, 1);
	assert_string_equal(cloud.change->ids[0], "m1");
	cloud.machines[1].state = MACHINE_TERMINATING;
	cloud.desired = 1;
	answer(ERROR_NONE);
	look(t);
	assert_int_equal(t->g.wanted, 1);
	assert_false(node_group_is_removing(&t->g, "m1"));
	assert_null(cloud.change);
}

static void what_never_came_is_given_up_before_more_is_asked(void **state)
{
	struct stage_of_test *t = *state;

	look(t);
	ask(t, 4);
	cloud.desired = 4;
	add_machine(MACHINE_PENDING);
	answer(ERROR_NONE);
	look(t);
	node_group_give_up(&t->g, 2); /* all three are waited for */
	node_group_drive(&t->g);
	assert_null(cloud.change);
	starts_drop(&starts, 3);
	starts_drop(&starts, 2);
	node_group_give_up(&t->g, 3);
	node_group_drive(&t->g);
	assert_int_equal(cloud.change->verb, PROVIDER_CANCEL);
	assert_int_equal(cloud.change->desired, 2);
	assert_int_equal(cloud.change->id_count, 0);
}

static void a_barred_group_sends_nothing_and_forgets_the_wish(void **state)
{
	struct stage_of_test *t = *state;

	look(t);
	t->context.is_barred = true;
	ask(t, 3);
	assert_null(cloud.change);
	assert_int_equal(starts.count, 0);
	assert_int_equal(starts.event_count, 0);
	assert_int_equal(t->g.wanted, 0);
}

static void a_machine_that_vanishes_ends_its_start(void **state)
{
	struct stage_of_test *t = *state;

	look(t);
	ask(t, 1);
	cloud.desired = 1;
	add_machine(MACHINE_PENDING);
	answer(ERROR_NONE);
	look(t);
	cloud.count = 0;
	cloud.desired = 0;
	look(t);
	assert_int_equal(starts.count, 0);
	assert_int_equal(starts.events[0].event.what, EVENT_REFUSED);
}

int main(void)
{
#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		CASE(grows_once),
		CASE(a_lost_answer_is_looked_up_and_not_asked_twice),
		CASE(what_had_no_effect_is_asked_again_with_the_same_token),
		CASE(after_five_tries_the_starts_are_refused),
		CASE(a_refusal_ends_the_starts_at_once),
		CASE(throttled_calls_wait_and_keep_their_starts),
		CASE(a_launch_that_failed_refuses_so_many_starts),
		CASE(old_failures_are_no_news),
		CASE(never_above_the_manifests_and_the_clouds_max),
		CASE(machines_that_were_there_are_adopted),
		CASE(a_size_that_others_set_is_told_and_kept),
		CASE(exactly_that_machine_is_removed),
		CASE(what_never_came_is_given_up_before_more_is_asked),
		CASE(a_barred_group_sends_nothing_and_forgets_the_wish),
		CASE(a_machine_that_vanishes_ends_its_start),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
