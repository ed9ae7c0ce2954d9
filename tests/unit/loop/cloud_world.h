/*
 * A node group on a random cloud with a history that lasts: its calls wait
 * until they are answered, and the process dies where a test says: after a
 * write of an intent, or with a call on its way.
 */
#pragma once
#include "tests/unit/loop/random_cloud.h"

#include "controller/loop/group_operations.h"
#include "state/launch.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

enum { MAX_NODES = 12, MAX_STANDBY = 4 };

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
	struct group_users users;
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

static inline int64_t below(int64_t n)
{
	return (int64_t)(random_next(&w.chance) % (uint64_t)n);
}

static inline bool one_in(int64_t n)
{
	return below(n) == 0;
}

/* After each write that reached the disk. */
static inline void wrote(void)
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

bool __real_launch_end_partly(struct history *h, const char *token, int64_t reached, millis at, struct error *e);
bool __wrap_launch_end_partly(struct history *h, const char *token, int64_t reached, millis at, struct error *e);
bool __wrap_launch_end_partly(struct history *h, const char *token, int64_t reached, millis at, struct error *e)
{
	bool ok = w.is_dead || __real_launch_end_partly(h, token, reached, at, e);

	wrote();
	return ok;
}

static inline void show_cloud(void)
{
	arena_release(&w.shown_arena);
	w.shown = random_cloud_describe(&w.cloud, &w.shown_arena);
}

/* The intent is on disk, and of what goes on beside it there is one at most. */
static inline void check_intents(const struct provider_call *c)
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

static inline unsigned needs(enum provider_verb verb)
{
	switch (verb) {
	case PROVIDER_STANDBY:
		return PROVIDER_HAS_STANDBY;
	case PROVIDER_STOP:
		return PROVIDER_HAS_STANDBY | PROVIDER_STOPS_NAMED;
	case PROVIDER_CANCEL:
		return PROVIDER_CANCELS;
	case PROVIDER_PROTECT:
		return PROVIDER_PROTECTS;
	case PROVIDER_DESCRIBE:
	case PROVIDER_GROW:
	case PROVIDER_REMOVE:
	case PROVIDER_CHECK:
	case PROVIDER_VERB_COUNT:
		break;
	}
	return 0;
}

static inline void begin(struct provider *p, struct provider_call *c)
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

static inline void cancel(struct provider *p, struct provider_call *c)
{
	(void)p;
	(void)c;
}

static const struct provider_ops ops = {
	.name = "random", .abilities = CLOUD_ABILITIES, .start = begin, .cancel = cancel
};

static inline struct node_stages stages(void *user, const char *machine)
{
	const struct random_machine *m = random_cloud_machine(&w.cloud, machine);

	(void)user;
	return m && m->has_node ? (struct node_stages){ 1, 2, 3 } : (struct node_stages){ 0 };
}

static inline bool runs_work(void *user, size_t pool)
{
	(void)user;
	(void)pool;
	return true;
}

static inline bool may_act(void *user)
{
	(void)user;
	return true;
}

static inline void ignore(void *user, const struct start *s, enum error_kind why)
{
	(void)user;
	(void)s;
	(void)why;
}

static inline void nothing(void *user)
{
	(void)user;
}

static inline void answer_look(bool fails)
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
static inline void answer_change(bool goes_well)
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

static inline void open_group(void)
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

static inline void close_group(void)
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
static inline void adopt_intents(void)
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
static inline void begin_anew(void)
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

static inline void make_world(uint64_t seed)
{
	static const int64_t sizes[] = { 1, 1, 2, 8 };

	w = (struct world){ .loop = w.loop, .history = w.history, .clock = clock_open_by_hand(HOUR), .seed = seed };
	w.chance = random_stream(seed, "world");
	w.group = (struct group_spec){ .name = "g5",
				       .capacity_type = CAPACITY_SPOT,
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
	static const struct group_user both[] = { { 0, 0 }, { 1, 0 } };
	w.users = (struct group_users){ both, 1 + (size_t)below(2) };
	w.fleet = (struct fleet_spec){ &w.group, 1, w.pools, w.users.count, &w.users };
	w.throttle = throttle_make(random_stream(seed, "throttle"));
	w.cloud = random_cloud(&w.chance, MAX_NODES, MAX_STANDBY);
}

static char path[64];

static inline void open_history(void)
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
	static const struct fleet_spec fleet = { &group, 1, &pool, 1, NULL };
	struct error e = { 0 };

	w.history = history_resume(&(struct history_setup){ .path = path,
							    .manifest = "a",
							    .fleet = &fleet,
							    .program = "test",
							    .policy = "preheat",
							    .run = "test",
							    .ticks_per_commit = 1,
							    .checkpoint_every = HOUR },
				   &e);
}

static inline int set_up(void **state)
{
	(void)state;
	/* A thousand worlds write much: in memory, where there is such a place. */
	snprintf(path, sizeof path, "%s/cloud_world.%d.db", access("/dev/shm", W_OK) ? "/tmp" : "/dev/shm",
		 (int)getpid());
	w.loop = loop_open();
	open_history();
	return w.history ? 0 : -1;
}

static inline int tear_down(void **state)
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
