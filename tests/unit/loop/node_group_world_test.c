/*
 * A node group in a thousand seeded random worlds: answers get lost, launches
 * fail, zones run out, operations get stuck, the account is throttled,
 * machines are taken, others resize, groups lack abilities, and the process
 * is killed between and within its steps, also right after a write of the
 * state file. After each step: nothing waits for a machine that cannot come,
 * one operation at a time with its intent on disk, never above max, no call
 * of a throttled account, no call that the group cannot do. In the end: all
 * starts are over, nothing was asked for twice, no intent is open, and the
 * cloud has what is wanted. SEED=n plays one world alone.
 */
#include "tests/unit/loop/random_cloud.h"

#include "controller/loop/node_group_parts.h"
#include "state/launch.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

enum { WORLDS = 1000, STEPS = 200, ROUNDS = 120, MAX_NODES = 12, MAX_STANDBY = 4 };

static const size_t indices[] = { 0 };

struct world {
	struct random_cloud cloud;
	struct random chance;
	struct loop *loop;
	struct clock clock;
	struct history *history;
	struct group_spec group;
	struct pool_spec pools[2];
	struct fleet_spec fleet;
	struct starts starts;
	struct group_context context;
	provider_counts calls;
	struct node_group g;
	struct throttle throttle;
	struct provider_call *look, *change;
	struct group_description shown; /* to the look under way */
	struct arena shown_arena;
	int64_t writes_left; /* until the process dies right after a write; 0: it does not */
	bool is_dead;	     /* nothing that it does has an effect any more */
	int64_t granted;     /* machines that were asked of the group, all lives together */
	uint64_t seed;
};

static struct world w;

static int64_t below(int64_t n)
{
	return (int64_t)(random_next(&w.chance) % (uint64_t)n);
}

static bool one_in(int64_t n)
{
	return below(n) == 0;
}

/* After each write that reached the disk. */
static void wrote(void)
{
	w.is_dead |= w.writes_left && --w.writes_left == 0;
}

bool __real_launch_save(struct history *h, const struct launch *l, struct error *e);
bool __wrap_launch_save(struct history *h, const struct launch *l, struct error *e);
bool __wrap_launch_save(struct history *h, const struct launch *l, struct error *e)
{
	bool ok = w.is_dead || __real_launch_save(h, l, e);

	wrote();
	return ok;
}

bool __real_launch_goes_on(struct history *h, const char *token, const char *operation, struct error *e);
bool __wrap_launch_goes_on(struct history *h, const char *token, const char *operation, struct error *e);
bool __wrap_launch_goes_on(struct history *h, const char *token, const char *operation, struct error *e)
{
	bool ok = w.is_dead || __real_launch_goes_on(h, token, operation, e);

	wrote();
	return ok;
}

bool __real_launch_end(struct history *h, const char *token, const char *outcome, millis at, struct error *e);
bool __wrap_launch_end(struct history *h, const char *token, const char *outcome, millis at, struct error *e);
bool __wrap_launch_end(struct history *h, const char *token, const char *outcome, millis at, struct error *e)
{
	bool ok = w.is_dead || __real_launch_end(h, token, outcome, at, e);

	wrote();
	return ok;
}

static void show_cloud(void)
{
	arena_release(&w.shown_arena);
	w.shown = random_cloud_describe(&w.cloud, &w.shown_arena);
}

/* The intent is on disk, and of what goes on beside it there is one at most. */
static void check_intents(const struct provider_call *c)
{
	struct arena a = { 0 };
	struct launch *open;
	size_t count = 0, found = 0;
	struct error e;

	assert_true(launch_open_ones(w.history, &a, &open, &count, &e));
	for (size_t i = 0; i < count; i++)
		found += !strcmp(open[i].token, c->token);
	assert_int_equal(found, 1);
	assert_true(count <= 1 + (w.g.ongoing.name != NULL));
	arena_release(&a);
}

static unsigned needs(enum provider_verb verb)
{
	switch (verb) {
	case PROVIDER_STANDBY:
		return PROVIDER_HAS_STANDBY;
	case PROVIDER_STOP:
		return PROVIDER_HAS_STANDBY | PROVIDER_STOPS_NAMED;
	case PROVIDER_CANCEL:
		return PROVIDER_CANCELS;
	case PROVIDER_DESCRIBE:
	case PROVIDER_GROW:
	case PROVIDER_REMOVE:
	case PROVIDER_CHECK:
	case PROVIDER_VERB_COUNT:
		break;
	}
	return 0;
}

static void begin(struct provider *p, struct provider_call *c)
{
	(void)p;
	if (!w.is_dead)
		assert_int_equal(throttle_wait(&w.throttle, loop_now(w.loop)), 0);
	if (c->verb == PROVIDER_DESCRIBE) {
		assert_null(w.look);
		w.look = c;
		show_cloud();
		return;
	}
	assert_null(w.change);
	w.change = c;
	if (w.is_dead)
		return;
	check_intents(c);
	assert_int_equal(needs(c->verb) & ~w.cloud.abilities, 0);
	assert_true(c->verb == PROVIDER_CANCEL || !w.g.seen.is_busy);
	if (c->verb == PROVIDER_GROW)
		assert_true(c->desired <= MAX_NODES);
	if (c->verb == PROVIDER_STANDBY)
		assert_true(c->desired <= MAX_STANDBY || c->desired <= w.cloud.standby);
}

static void cancel(struct provider *p, struct provider_call *c)
{
	(void)p;
	(void)c;
}

static const struct provider_ops ops = {
	.name = "random", .abilities = CLOUD_ABILITIES, .start = begin, .cancel = cancel
};

static struct node_stages stages(void *user, const char *machine)
{
	const struct random_machine *m = random_cloud_machine(&w.cloud, machine);

	(void)user;
	return m && m->has_node ? (struct node_stages){ 1, 2, 3 } : (struct node_stages){ 0 };
}

static bool runs_work(void *user, size_t pool)
{
	(void)user;
	(void)pool;
	return true;
}

static bool may_act(void *user)
{
	(void)user;
	return true;
}

static void ignore(void *user, const struct start *s, enum error_kind why)
{
	(void)user;
	(void)s;
	(void)why;
}

static void nothing(void *user)
{
	(void)user;
}

static void answer_look(bool fails)
{
	struct provider_call *c = w.look;

	w.look = NULL;
	if (one_in(2))
		show_cloud(); /* the cloud looked at the end of the call */
	c->error = (struct error){ .kind = !fails ? ERROR_NONE : one_in(3) ? ERROR_THROTTLED : ERROR_TIMEOUT };
	if (!fails) {
		c->description = w.shown;
		c->arena = w.shown_arena;
		w.shown_arena = (struct arena){ 0 };
	}
	c->done(c);
}

/* The effect may come without an answer, and an answer without the effect. */
static void answer_change(bool goes_well)
{
	static const enum error_kind kinds[] = { ERROR_TIMEOUT,	 ERROR_UNAVAILABLE, ERROR_THROTTLED, ERROR_CONFLICT,
						 ERROR_STOCKOUT, ERROR_QUOTA,	    ERROR_AUTH };
	struct provider_call *c = w.change;
	enum error_kind kind = goes_well || one_in(2) ? ERROR_NONE : kinds[below(7)];
	bool is_lost = kind == ERROR_TIMEOUT || kind == ERROR_UNAVAILABLE;

	w.change = NULL;
	if (random_cloud_refuses(&w.cloud, c))
		kind = ERROR_CONFLICT;
	else if (kind == ERROR_NONE || (is_lost && one_in(2)))
		random_cloud_change(&w.cloud, c);
	c->error = (struct error){ .kind = kind };
	c->operation = kind == ERROR_NONE ? random_cloud_operation(&w.cloud, &w.chance) : NULL;
	c->done(c);
}

static void open_group(void)
{
	static int64_t term;
	const struct group_access access = { &ops, NULL, w.calls, &w.throttle, false, "{}" };

	w.context = (struct group_context){ .loop = w.loop,
					    .clock = &w.clock,
					    .history = w.history,
					    .fleet = &w.fleet,
					    .starts = &w.starts,
					    .term = ++term,
					    .node_stages = stages,
					    .runs_work = runs_work,
					    .may_act = may_act,
					    .changed = nothing,
					    .refused = ignore };
	w.throttle.until = 0;
	node_group_open(&w.g, &w.context, 0, &access);
}

static void close_group(void)
{
	node_group_stop(&w.g);
	if (w.look)
		answer_look(true);
	if (w.change) {
		struct provider_call *c = w.change;
		w.change = NULL;
		c->error = (struct error){ .kind = ERROR_CANCELLED };
		c->done(c);
	}
	node_group_close(&w.g);
	starts_release(&w.starts);
}

/* As the controller does on becoming the leader. */
static void adopt_intents(void)
{
	struct arena a = { 0 };
	struct launch *open;
	size_t count;
	struct error e;

	assert_true(launch_open_ones(w.history, &a, &open, &count, &e));
	for (size_t i = 0; i < count; i++)
		if (open[i].operation[0] && i + 1 == count)
			node_group_resume(&w.g, open[i].token, open[i].operation, open[i].asked_at);
		else
			assert_true(launch_end(w.history, open[i].token, "adopted", clock_now(&w.clock), &e));
	arena_release(&a);
}

/* kill -9: what was on its way to the cloud arrives, or not; what was begun after that never left. */
static void begin_anew(void)
{
	if (w.change && !w.is_dead && one_in(2) && !random_cloud_refuses(&w.cloud, w.change)) {
		random_cloud_change(&w.cloud, w.change);
		w.cloud.others_acted = true; /* so it looks */
	}
	w.is_dead = true;
	close_group();
	w.writes_left = one_in(2) ? 1 + below(6) : 0;
	w.is_dead = false;
	open_group();
	adopt_intents();
	node_group_look(&w.g);
	if (w.is_dead)
		begin_anew();
}

static struct start like(size_t pool, enum start_kind kind)
{
	return (struct start){
		.pool = pool, .kind = kind, .asked_at = clock_now(&w.clock), .ends_at_device = kind != START_REFILL
	};
}

static int64_t per_node(size_t pool)
{
	return replicas_per_node(&w.group, &w.pools[pool]);
}

static void buy(size_t pool, enum start_kind kind, int64_t count)
{
	struct start s = like(pool, kind);
	int64_t machines = node_group_grow(&w.g, (count + per_node(pool) - 1) / per_node(pool));
	int64_t room = machines * per_node(pool);

	w.granted += machines;
	starts_ask(&w.starts, &s, count < room ? count : room);
}

static void refill(size_t pool, int64_t machines)
{
	struct start s = like(pool, START_REFILL);
	int64_t before = w.g.standby_wanted;

	node_group_set_standby(&w.g, before + machines);
	starts_ask(&w.starts, &s, (w.g.standby_wanted - before) * per_node(pool));
}

static void cancel_some(size_t pool, enum start_kind kind, int64_t count)
{
	for (; count > 0; count--) {
		size_t i = starts_youngest(&w.starts, pool, 0, kind);
		char machine[MACHINE_ID_MAX + 1];
		if (i == w.starts.count)
			break;
		memcpy(machine, w.starts.items[i].machine, sizeof machine);
		starts_drop(&w.starts, i);
		if (machine[0] && !starts_know_machine(&w.starts, machine))
			node_group_remove(&w.g, machine, kind == START_WAKE ? PROVIDER_STOP : PROVIDER_CANCEL);
	}
	node_group_give_up(&w.g, node_group_missing(&w.g));
}

static void remove_some(enum provider_verb how)
{
	if (!w.g.seen.machine_count)
		return;
	const struct machine *m = &w.g.seen.machines[below((int64_t)w.g.seen.machine_count)];
	if (m->state == MACHINE_RUNNING)
		node_group_remove(&w.g, m->id, how);
}

static void wish(void)
{
	size_t pool = (size_t)below((int64_t)w.fleet.pool_count);

	switch (below(7)) {
	case 0:
		buy(pool, START_COLD, 1 + below(2 * per_node(pool)));
		break;
	case 1:
		buy(pool, START_WAKE, 1 + below(per_node(pool)));
		break;
	case 2:
		refill(pool, 1 + below(2));
		break;
	case 3:
		cancel_some(pool, one_in(2) ? START_COLD : START_WAKE, 1 + below(per_node(pool)));
		break;
	case 4:
		remove_some(PROVIDER_REMOVE);
		break;
	case 5:
		remove_some(PROVIDER_STOP);
		break;
	default:
		node_group_set_standby(&w.g, w.g.standby_wanted - 1);
	}
}

static void time_passes(void)
{
	for (size_t i = 0; i < w.cloud.count; i++)
		w.cloud.machines[i].is_seen = node_group_machine(&w.g, w.cloud.machines[i].id);
	random_cloud_move(&w.cloud, &w.chance);
	for (size_t i = 0; i < w.cloud.count; i++) {
		const struct random_machine *m = &w.cloud.machines[i];
		struct node_stages up = { 1, 2, 3 };
		if (m->has_node)
			starts_follow_node(&w.starts, m->id, &up);
	}
}

static void step(void)
{
	switch (below(10)) {
	case 0:
	case 1:
		if (w.look)
			answer_look(one_in(6));
		break;
	case 2:
	case 3:
		if (w.change)
			answer_change(false);
		break;
	case 4:
	case 5:
		if (w.g.is_known) {
			wish();
			node_group_drive(&w.g);
		}
		break;
	case 6:
		time_passes();
		break;
	case 7:
		if (one_in(4))
			random_cloud_meddle(&w.cloud, &w.chance);
		else if (one_in(8))
			begin_anew();
		break;
	case 8:
		w.g.quiet_until = w.throttle.until = 0;
		node_group_look(&w.g);
		break;
	default:
		clock_turn(&w.clock, 10 * SECOND);
		node_group_drive(&w.g);
	}
}

static void check_starts(bool is_standby, int64_t missing)
{
	int64_t gpus = 0;

	for (size_t i = 0; i < w.starts.count; i++) {
		const struct start *s = &w.starts.items[i];
		if (!s->machine[0] && (s->kind == START_REFILL) == is_standby)
			gpus += w.pools[s->pool].gpus_per_replica;
	}
	if (gpus > missing * w.group.gpus_per_node)
		fail_msg("%d GPUs are waited for, %d machines are to come%s", (int)gpus, (int)missing,
			 is_standby ? " to standby" : "");
}

static void check(void)
{
	check_starts(false, node_group_missing(&w.g));
	check_starts(true, standby_missing(&w.g));
	assert_true(w.g.wanted >= 0 && w.g.standby_wanted >= 0);
	for (size_t i = 0; i < w.starts.event_count && !w.cloud.others_acted; i++)
		assert_int_not_equal(w.starts.events[i].event.what, EVENT_RESIZED);
	starts_events_taken(&w.starts);
	if (w.cloud.grown > w.granted + w.cloud.lowered)
		fail_msg("%d machines were granted, %d asked for", (int)(w.granted + w.cloud.lowered),
			 (int)w.cloud.grown);
}

/* What never came is given up, as the loop does after its patience. */
static void give_up_all(void)
{
	for (size_t i = w.starts.count; i-- > 0;)
		if (!w.starts.items[i].machine[0] && w.starts.items[i].kind != START_REFILL)
			starts_drop(&w.starts, i);
	node_group_give_up(&w.g, node_group_missing(&w.g));
}

/* Nothing goes wrong any more, and nobody wishes anything. */
static void come_to_rest(void)
{
	w.cloud.fails = 0;
	w.cloud.gets_stuck = false;
	for (int i = 0; i < ROUNDS; i++) {
		w.g.quiet_until = w.throttle.until = 0;
		node_group_look(&w.g);
		if (w.look)
			answer_look(false);
		if (w.change)
			answer_change(true);
		w.g.quiet_until = w.throttle.until = 0;
		node_group_drive(&w.g);
		time_passes();
		clock_turn(&w.clock, MINUTE);
		check();
		if (i == ROUNDS / 3)
			give_up_all();
		if (i == ROUNDS / 2 && w.cloud.busy == INT64_MAX)
			w.cloud.busy = 0; /* it comes round by itself */
	}
}

static void check_rest(void)
{
	struct arena a = { 0 };
	struct launch *open;
	size_t count = 0;
	struct error e;

	assert_true(launch_open_ones(w.history, &a, &open, &count, &e));
	arena_release(&a);
	assert_int_equal(count, 0);

	assert_int_equal(w.starts.count, 0);
	assert_null(w.change);
	assert_string_equal(w.g.operation.token, "");
	assert_int_equal(w.g.removal_count, 0);
	assert_int_equal(w.g.wanted, w.cloud.desired);
	assert_int_equal(w.g.standby_wanted, w.cloud.standby);
	assert_int_equal(node_group_count(&w.g, MACHINE_RUNNING), w.cloud.desired);
	assert_int_equal(node_group_count(&w.g, MACHINE_STOPPED), w.cloud.standby);
}

static void make_world(uint64_t seed)
{
	static const int64_t sizes[] = { 1, 1, 2, 8 };

	w = (struct world){ .loop = w.loop, .history = w.history, .clock = clock_open_by_hand(HOUR), .seed = seed };
	w.chance = random_stream(seed, "world");
	w.group = (struct group_spec){ .name = "g5",
				       .provider = "random",
				       .settings = "{}",
				       .zone = "",
				       .instance_type = "",
				       .gpus_per_node = sizes[below(4)],
				       .max_nodes = MAX_NODES,
				       .standby_max_nodes = MAX_STANDBY };
	for (int64_t i = 0; i < 2; i++)
		w.pools[i] = (struct pool_spec){ .name = i ? "b" : "a",
						 .namespace = "llm",
						 .gpus_per_replica = 1 + below(w.group.gpus_per_node),
						 .groups = indices,
						 .group_count = 1,
						 .budget_name = "" };
	w.fleet = (struct fleet_spec){ &w.group, 1, w.pools, 1 + (size_t)below(2) };
	w.throttle = throttle_make(random_stream(seed, "throttle"));
	w.cloud = random_cloud(&w.chance, MAX_NODES, MAX_STANDBY);
}

static void play(uint64_t seed)
{
	make_world(seed);
	open_group();
	node_group_look(&w.g);
	for (int i = 0; i < STEPS; i++) {
		step();
		if (w.is_dead)
			begin_anew();
		check();
	}
	w.writes_left = 0;
	come_to_rest();
	check_rest();
	close_group();
	arena_release(&w.shown_arena);
}

static uint64_t failing_seed;

/* cmocka leaves a test that failed from within. */
static int tell_seed(void **state)
{
	(void)state;
	if (failing_seed)
		print_message("world %d; again alone with SEED=%d\n", (int)failing_seed, (int)failing_seed);
	return 0;
}

static void all_worlds_come_to_rest(void **state)
{
	const char *only = getenv("SEED");

	(void)state;
	for (uint64_t seed = 1; seed <= WORLDS; seed++) {
		if (only && strtoull(only, NULL, 10) != seed)
			continue;
		failing_seed = seed;
		play(seed);
	}
	failing_seed = 0;
}

static char path[64];

static int set_up(void **state)
{
	static const struct group_spec group = {
		.name = "g5", .provider = "random", .settings = "{}", .zone = "", .instance_type = "", .max_nodes = 1
	};
	static const struct pool_spec pool = { .name = "a",
					       .namespace = "llm",
					       .gpus_per_replica = 1,
					       .groups = indices,
					       .group_count = 1,
					       .budget_name = "" };
	static const struct fleet_spec fleet = { &group, 1, &pool, 1 };
	struct error e = { 0 };

	(void)state;
	/* A thousand worlds write much: in memory, where there is such a place. */
	snprintf(path, sizeof path, "%s/node_group_world_test.%d.db", access("/dev/shm", W_OK) ? "/tmp" : "/dev/shm",
		 (int)getpid());
	w.loop = loop_open();
	w.history = history_resume(&(struct history_setup){ .path = path,
							    .manifest = "a",
							    .fleet = &fleet,
							    .program = "test",
							    .policy = "preheat",
							    .run = "test",
							    .ticks_per_commit = 1,
							    .checkpoint_every = HOUR },
				   &e);
	return w.history ? 0 : -1;
}

static int tear_down(void **state)
{
	static const char *const ends[] = { "", "-wal", "-shm" };
	char name[80];

	(void)state;
	history_close(w.history);
	loop_close(w.loop);
	for (size_t i = 0; i < 3; i++) {
		snprintf(name, sizeof name, "%s%s", path, ends[i]);
		unlink(name);
	}
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test_teardown(all_worlds_come_to_rest, tell_seed) };

	return cmocka_run_group_tests(tests, set_up, tear_down);
}
