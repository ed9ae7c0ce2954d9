#include "tests/unit/loop/played_group.h"

#include "state/launch.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

struct cloud cloud;
struct starts starts;

static void begin(struct provider *p, struct provider_call *c)
{
	struct arena a = { 0 };
	struct launch *open;
	size_t count = 0;
	struct error e;

	(void)p;
	if (c->verb == PROVIDER_DESCRIBE) {
		assert_null(cloud.look);
		snprintf(cloud.pending, sizeof cloud.pending, "%s", c->pending);
		cloud.look = c;
		return;
	}
	assert_null(cloud.change); /* one operation at a time */
	cloud.change = c;
	assert_true(launch_open_ones(cloud.history, &a, &open, &count, &e));
	if (c->verb != PROVIDER_PROTECT) /* which buys and ends nothing */
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

enum {
	ALL = PROVIDER_NAMES_VICTIMS | PROVIDER_HAS_STANDBY | PROVIDER_BUYS_STANDBY | PROVIDER_STOPS_NAMED |
	      PROVIDER_CANCELS
};

static const struct provider_ops ops = {
	.name = "played", .abilities = ALL | PROVIDER_PROTECTS, .start = begin, .cancel = ignore
};

static struct node_stages stages(void *user, const char *machine)
{
	(void)user;
	for (size_t i = 0; i < cloud.node_count; i++)
		if (!strcmp(cloud.ids[i], machine))
			return (struct node_stages){ cloud.joined + 1, cloud.are_not_ready ? 0 : 2, 3 };
	return (struct node_stages){ 0 };
}

static bool list_lags(void *user, size_t group_index)
{
	(void)user;
	(void)group_index;
	return cloud.list_lags;
}

static bool serves(void *user, size_t pool)
{
	(void)user;
	(void)pool;
	return false;
}

static bool may_act(void *user)
{
	const struct stage_of_test *t = user;

	return !t->is_deposed;
}

static void refused(void *user, const struct start *s, enum error_kind why)
{
	struct stage_of_test *t = user;

	(void)s;
	(void)why;
	t->refused++;
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
					 .capacity_type = CAPACITY_SPOT,
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
static const struct group_user user = { 0, 0 };
static const struct group_users users = { &user, 1 };
static const struct fleet_spec fleet = { &group, 1, &pool, 1, &users };

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

int played_set_up(void **state)
{
	static struct stage_of_test t;
	const struct group_access access = { &ops, NULL, t.calls, &t.throttle, false, "{}" };

	t = (struct stage_of_test){ .loop = loop_open(), .clock = clock_open_by_hand(1000000) };
	snprintf(t.path, sizeof t.path, "/tmp/node_group_test.%d.db", (int)getpid());
	t.history = open_history(t.path);
	t.throttle = throttle_make(random_stream(1, "throttle"));
	cloud = (struct cloud){ .intent_was_there = true, .abilities = ALL, .history = t.history };
	t.context = (struct group_context){ .loop = t.loop,
					    .clock = &t.clock,
					    .history = t.history,
					    .fleet = &fleet,
					    .starts = &starts,
					    .term = 3,
					    .node_stages = stages,
					    .list_lags = list_lags,
					    .runs_work = serves,
					    .may_act = may_act,
					    .changed = nothing,
					    .refused = refused,
					    .user = &t };
	node_group_open(&t.g, &t.context, 0, &access);
	*state = &t;
	return 0;
}

int played_tear_down(void **state)
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

void played_add_machine(enum machine_state machine_state)
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

void played_look(struct stage_of_test *t)
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
						     .abilities = cloud.abilities,
						     .replaces_lost = cloud.replaces_lost,
						     .lacks = "",
						     .is_busy = cloud.is_busy || cloud.busy_with,
						     .busy_with = cloud.busy_with,
						     .emptied_by = cloud.emptied_by,
						     .promise = { .unread = cloud.unread, .unread_count = 1 },
						     .takes_turns = cloud.takes_turns,
						     .ends_one_by_one = cloud.ends_one_by_one,
						     .keeps_standby = cloud.keeps_standby,
						     .forgets_images = cloud.forgets_images,
						     .is_refused = cloud.is_refused,
						     .exposed = cloud.exposed,
						     .guarded = cloud.guarded,
						     .failures = cloud.failures,
						     .failure_count = cloud.failure_count };
	c->done(c);
}

void played_answer(enum error_kind kind)
{
	struct provider_call *c = cloud.change;

	assert_non_null(c);
	cloud.change = NULL;
	c->error = (struct error){ .kind = kind };
	c->operation = cloud.operation;
	c->retry_after = cloud.retry_after;
	c->done(c);
}

void played_ask(struct stage_of_test *t, int64_t machines)
{
	struct start like = { .pool = 0, .kind = START_COLD, .asked_at = clock_now(&t->clock) };

	starts_ask(&starts, &like, node_group_grow(&t->g, machines));
	node_group_drive(&t->g);
}

void played_wait_over(struct stage_of_test *t)
{
	t->g.quiet_until = t->throttle.until = 0;
	timer_stop(&t->g.timer);
}

void played_run(struct stage_of_test *t, size_t machines)
{
	for (size_t i = 0; i < machines; i++)
		played_add_machine(MACHINE_RUNNING);
	cloud.node_count = cloud.count;
	cloud.desired = (int64_t)cloud.count;
	played_look(t);
	assert_int_equal(starts.count, 0);
}

void played_expect(enum provider_verb verb, int64_t desired)
{
	assert_non_null(cloud.change);
	assert_int_equal(cloud.change->verb, verb);
	if (verb == PROVIDER_GROW || verb == PROVIDER_STANDBY)
		assert_int_equal(cloud.change->desired, desired);
}

void played_ask_as(struct stage_of_test *t, enum start_kind kind, int64_t count)
{
	struct start like = { .kind = kind, .asked_at = clock_now(&t->clock) };

	starts_ask(&starts, &like, count);
}

void played_refill(struct stage_of_test *t, int64_t count)
{
	node_group_set_standby(&t->g, t->g.standby_wanted + count);
	played_ask_as(t, START_REFILL, count);
}

int64_t played_starts(enum start_kind kind)
{
	int64_t count = 0;

	for (size_t i = 0; i < starts.count; i++)
		count += starts.items[i].kind == kind;
	return count;
}

struct start *played_start_on(const char *machine)
{
	for (size_t i = 0; i < starts.count; i++)
		if (!strcmp(starts.items[i].machine, machine))
			return &starts.items[i];
	return NULL;
}
