/* Histories made for tests, in a folder of their own, and what must be in them. */
#pragma once
#include "base/random.h"
#include "state/history.h"

#include <setjmp.h>
#include <sqlite3.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

static const struct group_spec groups[] = { { .name = "spot" }, { .name = "on-demand" } };
static const size_t both[] = { 0, 1 }, second[] = { 1 };
static const struct pool_spec pools[] = {
	{ .name = "chat", .namespace = "llm", .groups = both, .group_count = 2 },
	{ .name = "batch", .namespace = "llm", .groups = second, .group_count = 1 },
};
static const struct fleet_spec fleet = { groups, 2, pools, 2, NULL };
static const millis TICK = 15000;
static const millis start = INT64_C(1700000000000);

static char folder[] = "/tmp/preheat-history-XXXXXX";
static char path[64];

/* What tick `t` was, made from its number alone. */
struct made {
	struct snapshot snapshot;
	struct plan plan;
	struct pool_snapshot snapshots[2];
	struct pool_plan plans[2];
	struct scrape_input scrapes[3];
	struct group_input group_inputs[2];
	struct group_decision decisions[2][2];
};

static inline void make(struct made *m, int64_t t)
{
	struct random r = random_stream((uint64_t)t, "history-test");

	*m = (struct made){ 0 };
	for (size_t i = 0; i < 3; i++)
		m->scrapes[i] = (struct scrape_input){ .at = start + t * TICK + (int64_t)i * 5000,
						       .running = (int64_t)(random_next(&r) % 500),
						       .output_tokens = (int64_t)(random_next(&r) % 100000) };
	for (size_t p = 0; p < 2; p++) {
		size_t count = pools[p].group_count;

		m->snapshots[p] = (struct pool_snapshot){
			.scrapes = m->scrapes, .scrape_count = 3, .groups = m->group_inputs, .group_count = count
		};
		m->plans[p] = (struct pool_plan){ .groups = m->decisions[p], .group_count = count };
		m->plans[p].decision = (struct pool_decision){
			.ready = 5, .decided = 5, .started = 7, .late = 1, .dollars_per_hour = p ? 0 : 7200000
		};
	}
	if (t % 10 == 3) {
		m->decisions[0][t % 20 == 3].cold = t % 7 + 1;
		m->plans[0].decision.decided = 5 + t % 7 + 1;
	}
	if (t % 50 == 1)
		m->plans[1].decision.held_by = LIMIT_BUDGET;
	m->snapshot = (struct snapshot){ t, start + (t + 1) * TICK, TICK, &fleet, m->snapshots };
	m->plan = (struct plan){ m->plans, 2 };
}

static inline void write_file(int64_t ticks, int64_t ticks_per_commit)
{
	struct history_setup setup = { path,	  "kind: WarmPool\n", &fleet,		"0.1.0",
				       "preheat", "a test",	      ticks_per_commit, HOUR };
	struct error e = { 0 };
	struct made m;

	unlink(path);
	struct history *h = history_create(&setup, &e);
	assert_string_equal(e.message, "");
	assert_non_null(h);
	for (int64_t t = 0; t < ticks; t++) {
		make(&m, t);
		assert_true(history_append(h, &m.snapshot, &m.plan, &e));
		if (history_wants_checkpoint(h)) {
			struct buf memory = { 0 };

			buf_printf(&memory, "memory before %lld", (long long)t + 1);
			assert_true(history_checkpoint(h, &memory, &e));
			buf_release(&memory);
		}
	}
	assert_true(history_finish(h, &e));
}

static inline struct history *open_file(void)
{
	struct error e = { 0 };
	struct history *h = history_open(path, &e);

	assert_string_equal(e.message, "");
	return h;
}

static inline void sql(const char *text)
{
	sqlite3 *db;
	char *message = NULL;

	assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
	if (sqlite3_exec(db, text, NULL, NULL, &message) != SQLITE_OK)
		fail_msg("%s: %s", text, message);
	sqlite3_close(db);
}

static inline void assert_tick(const struct tick_record *r, int64_t t)
{
	struct made m;

	make(&m, t);
	assert_int_equal(r->tick, t);
	assert_int_equal(r->now, m.snapshot.now);
	assert_memory_equal(r->snapshot.scrapes, m.scrapes, sizeof m.scrapes);
	assert_memory_equal(&r->plan.decision, &m.plans[r->pool].decision, sizeof r->plan.decision);
	assert_memory_equal(r->plan.groups, m.decisions[r->pool], r->plan.group_count * sizeof *r->plan.groups);
}

/* With its logs. */
static inline void remove_history(const char *file)
{
	static const char *const suffixes[] = { "", "-wal", "-shm" };
	char name[160];

	for (size_t i = 0; i < sizeof suffixes / sizeof *suffixes; i++) {
		snprintf(name, sizeof name, "%s%s", file, suffixes[i]);
		unlink(name);
	}
}

static inline int make_folder(void **state)
{
	(void)state;
	if (!mkdtemp(folder))
		return -1;
	snprintf(path, sizeof path, "%s/history.db", folder);
	return 0;
}

static inline int remove_folder(void **state)
{
	(void)state;
	unlink(path);
	return rmdir(folder);
}
