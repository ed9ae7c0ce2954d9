/*
 * A controller's life in small: a history that is written tick by tick under
 * manifests that change, with whatever the pools might show. Not a world: the
 * policy answers, nobody acts.
 */
#pragma once
#include "base/random.h"
#include "controller/restore/restore.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

enum { LIVED_POOLS = 4, LIVED_GROUPS = 4 };

static const millis LIVED_TICK = 15000;

struct lived {
	struct random random;
	char path[96];
	struct arena arena; /* of manifests */
	const struct manifest *manifest;
	struct history *history;
	struct policy_state *memory;
	millis now;
	bool is_lazy; /* keeps a checkpoint only when it starts */
	struct error error;
};

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

static inline int64_t draw(struct lived *l, int64_t below)
{
	return (int64_t)(random_next(&l->random) % (uint64_t)below);
}

static inline void write_group(struct lived *l, int64_t group, const char *const *described, struct buf *out)
{
	(void)l;
	buf_printf(out, "    - { name: g%lld%s }\n", (long long)group, described[group]);
}

static inline void write_pool(struct lived *l, const char *name, const char *const *described, struct buf *out)
{
	static const char *const waits[] = { "2s", "2s", "2s", "5s" };
	static const char *const shares[] = { "99%", "99%", "99.5%", "99.9%" };
	static const char *const leads[] = { "", "", "  leadTime: { total: { p50: 200s, p95: 300s } }\n" };
	static const char *const extras[] = { "  mode: act\n", "  mode: act\n", "  mode: paused\n",
					      "  mode: act\n  lend: { to: [ batch ] }\n",
					      "  mode: act\n  headroom: { min: 1 }\n" };
	int64_t first = draw(l, LIVED_GROUPS), count = 1 + draw(l, 3);

	buf_printf(out,
		   "---\napiVersion: preheat.dev/v1alpha1\nkind: WarmPool\nmetadata: { name: %s, namespace: llm }\n"
		   "spec:\n  objective: { queueWait: %s, attainment: %s }\n%s%s  nodeGroups:\n",
		   name, waits[draw(l, 4)], shares[draw(l, 4)], leads[draw(l, 3)], extras[draw(l, 5)]);
	for (int64_t i = 0; i < count; i++)
		write_group(l, (first + i) % LIVED_GROUPS, described, out);
}

/* One of many manifests: some of the pools, in some order, on some of the groups. */
static inline const struct manifest *lived_manifest(struct lived *l)
{
	static const char *const names[LIVED_POOLS] = { "chat", "code", "batch", "embed" };
	static const char *const kinds[] = { "", ", max: 20", ", standby: { max: 5 }" };
	CLEANUP(buf_release) struct buf text = { 0 };
	CLEANUP(findings_release) struct findings findings = { 0 };
	const char *described[LIVED_GROUPS];
	struct manifest *m = arena_new(&l->arena, struct manifest);
	int64_t first = draw(l, LIVED_POOLS), count = 1 + draw(l, LIVED_POOLS);

	for (size_t i = 0; i < LIVED_GROUPS; i++)
		described[i] = kinds[draw(l, 3)];
	for (int64_t i = 0; i < count; i++)
		write_pool(l, names[(first + i) % LIVED_POOLS], described, &text);
	if (!manifest_load_text("lived", text.text, &l->arena, m, &findings, &l->error))
		fail_msg("%s\n%s", text.text, l->error.message);
	return m;
}

static inline struct history_setup lived_setup(const struct lived *l, const char *path)
{
	return (struct history_setup){ .path = path,
				       .manifest = l->manifest->text,
				       .fleet = &l->manifest->fleet,
				       .program = "0.2.0",
				       .policy = "preheat",
				       .run = "run",
				       .ticks_per_commit = 1,
				       .checkpoint_every = 10 * MINUTE };
}

static inline void draw_pool(struct lived *l, const struct pool_spec *spec, struct pool_snapshot *out, struct arena *a)
{
	struct scrape_input *scrapes = arena_array(a, struct scrape_input, 3);
	struct group_input *groups = arena_array(a, struct group_input, spec->group_count);
	struct event_input *event = arena_new(a, struct event_input);
	int64_t load = draw(l, 900), ready = 0;

	for (size_t i = 0; i < spec->group_count; i++) {
		int64_t n = draw(l, 8);
		groups[i] = (struct group_input){
			.ready = n, .nodes = n, .billed_gpus_milli = n * 1000, .least_on_node = n > 0
		};
		ready += n;
	}
	for (int64_t i = 0; i < 3; i++)
		scrapes[i] = (struct scrape_input){ .at = l->now - (2 - i) * 5000,
						    .ready = ready,
						    .running = load,
						    .waiting = draw(l, 40) * draw(l, 2),
						    .started = load / 5,
						    .completed = load / 5 };
	*event = (struct event_input){ draw(l, (int64_t)spec->group_count),
				       draw(l, 3) ? EVENT_SERVING : EVENT_REFUSED,
				       START_COLD,
				       STAGE_LOAD,
				       0,
				       1,
				       0 };
	event->value = event->what == EVENT_SERVING ? 200000 + draw(l, 400000) : ERROR_STOCKOUT;
	*out = (struct pool_snapshot){ .input = { .scrapes_expected = ready * 3,
						  .scrapes_fresh = ready * 3,
						  .ready = ready,
						  .inter_token_latency_us = ABSENT,
						  .kv_cache_permille = ABSENT },
				       .scrapes = scrapes,
				       .scrape_count = 3,
				       .groups = groups,
				       .group_count = spec->group_count,
				       .events = event,
				       .event_count = (size_t)(draw(l, 4) == 0) };
}

static inline void lived_keep(struct lived *l)
{
	if (!l->is_lazy && !restore_keep(l->history, l->memory, &l->error))
		fail_msg("%s", l->error.message);
}

/* False when the tick could not be kept. */
static inline bool lived_try(struct lived *l)
{
	CLEANUP(arena_release) struct arena a = { 0 };
	const struct fleet_spec *fleet = &l->manifest->fleet;
	struct pool_snapshot *pools = arena_array(&a, struct pool_snapshot, fleet->pool_count);

	l->now += LIVED_TICK;
	for (size_t i = 0; i < fleet->pool_count; i++)
		draw_pool(l, &fleet->pools[i], &pools[i], &a);
	struct snapshot s = { history_next_tick(l->history), l->now, LIVED_TICK, fleet, pools };
	struct plan plan = policy_decide(&s, l->memory, &a);
	return history_append(l->history, &s, &plan, &l->error);
}

static inline void lived_tick(struct lived *l)
{
	if (!lived_try(l))
		fail_msg("%s", l->error.message);
	lived_keep(l);
}

/* A controller that is told of another manifest while it runs. */
static inline void lived_change(struct lived *l)
{
	const struct manifest *m = lived_manifest(l);
	struct policy_state *carried = policy_state_migrate(l->memory, &l->manifest->fleet, &m->fleet);

	policy_state_free(l->memory);
	l->memory = carried;
	l->manifest = m;
	if (!history_use_manifest(l->history, m->text, &m->fleet, &l->error))
		fail_msg("%s", l->error.message);
	lived_keep(l);
}

/* A controller that starts, after one that left or was killed. */
static inline void lived_start(struct lived *l)
{
	struct history_setup setup = lived_setup(l, l->path);
	CLEANUP(arena_release) struct arena a = { 0 };
	struct restored r;

	history_close(l->history);
	policy_state_free(l->memory);
	l->history = restore_resume(&setup, &a, &r, &l->error);
	if (!l->history || r.trouble.kind != ERROR_NONE)
		fail_msg("%s", l->history ? r.trouble.message : l->error.message);
	l->memory = r.memory;
	l->now += draw(l, 2) * draw(l, 5 * HOUR);
}

static inline void lived_begin(struct lived *l, const char *folder, uint64_t seed)
{
	*l = (struct lived){ .random = random_stream(seed, "lived"), .now = INT64_C(1700000000000) };
	l->is_lazy = seed % 2;
	snprintf(l->path, sizeof l->path, "%s/history.db", folder);
	unlink(l->path);
	l->manifest = lived_manifest(l);
	lived_start(l);
}

static inline void lived_end(struct lived *l)
{
	history_close(l->history);
	policy_state_free(l->memory);
	arena_release(&l->arena);
}
