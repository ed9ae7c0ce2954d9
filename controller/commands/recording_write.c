#include "controller/commands/recording_write.h"

#include "base/schedule.h"
#include "controller/commands/command.h"
#include "controller/policy/decide.h"
#include "controller/recall/recall.h"
#include "state/history.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* A file written for nobody else: fewer commits are quicker, and a crash leaves nothing. */
enum { TICKS_PER_COMMIT = 1000 };

struct writing {
	struct history *history;
	const struct manifest *manifest;
	const struct recorded_signals *signals;
	struct policy_state *memory;
	struct arena arena; /* of the tick */
	size_t next[256];   /* reading of each recorded pool */
	int64_t ready[256]; /* in the last one, by pool of the fleet */
	int64_t tick;
	millis now, interval;
};

static const struct recorded_pool *recorded(const struct writing *w, size_t pool, size_t *index)
{
	const struct pool_spec *spec = &w->manifest->fleet.pools[pool];
	char key[160];

	snprintf(key, sizeof key, "%s/%s", spec->namespace, spec->name);
	for (*index = 0; *index < w->signals->count; ++*index)
		if (!strcmp(w->signals->pools[*index].key, key))
			return &w->signals->pools[*index];
	return NULL;
}

static int64_t or_absent(int64_t value)
{
	return value == READING_UNKNOWN ? ABSENT : value;
}

static struct scrape_input scrape_of(const struct pool_reading *r)
{
	return (struct scrape_input){ .at = r->at,
				      .ready = r->ready,
				      .running = r->running,
				      .running_draining = r->running_draining,
				      .waiting = r->waiting,
				      .started = or_absent(r->started),
				      .late = r->late == READING_UNKNOWN ? 0 : r->late,
				      .completed = r->completed,
				      .prompt_tokens = r->prompt_tokens,
				      .output_tokens = r->output_tokens };
}

/* The readings of the tick; where none is, nothing could be read from the replicas that were there before. */
static void take_readings(struct writing *w, size_t pool, struct pool_snapshot *out)
{
	struct scrape_input *scrapes = arena_array(&w->arena, struct scrape_input, SCRAPES_MAX);
	size_t index;
	const struct recorded_pool *p = recorded(w, pool, &index);

	out->scrapes = scrapes;
	out->input.inter_token_latency_us = out->input.kv_cache_permille = ABSENT;
	for (; p && w->next[index] < p->count && p->readings[w->next[index]].at <= w->now; w->next[index]++) {
		const struct pool_reading *r = &p->readings[w->next[index]];
		out->input.scrapes_expected += r->expected;
		out->input.scrapes_fresh += r->fresh;
		w->ready[pool] = r->ready;
		if (r->fresh && out->scrape_count < SCRAPES_MAX)
			scrapes[out->scrape_count++] = scrape_of(r);
		if (r->inter_token_latency_us != READING_UNKNOWN)
			out->input.inter_token_latency_us = r->inter_token_latency_us;
		if (r->kv_cache_permille != READING_UNKNOWN)
			out->input.kv_cache_permille = r->kv_cache_permille;
	}
	if (p && !out->input.scrapes_expected)
		out->input.scrapes_expected = w->ready[pool];
}

/* All replicas are shown in the groups in order of preference, as far as these have room. */
static void place_replicas(struct writing *w, size_t pool, struct pool_snapshot *out)
{
	const struct fleet_spec *fleet = &w->manifest->fleet;
	const struct pool_spec *spec = &fleet->pools[pool];
	struct group_input *groups = arena_array(&w->arena, struct group_input, spec->group_count);
	int64_t left = w->ready[pool];

	out->groups = groups;
	out->group_count = spec->group_count;
	out->input.ready = left;
	for (size_t i = 0; i < spec->group_count; i++) {
		const struct group_spec *g = &fleet->groups[spec->groups[i]];
		int64_t each = replicas_per_node(g, spec), room = g->max_nodes * each;
		int64_t here = left < room || i + 1 == spec->group_count ? left : room;
		groups[i] = (struct group_input){ .ready = here,
						  .least_on_node = here < each ? here : each,
						  .billed_gpus_milli = here * spec->gpus_per_replica * 1000,
						  .nodes = each > 0 ? (here + each - 1) / each : 0 };
		left -= here;
	}
}

static void show_schedule(const struct writing *w, const struct pool_spec *spec, struct pool_input *in)
{
	struct schedule_state s = { 0 };

	if (spec->schedule_count)
		s = schedule_at(spec->schedule, spec->schedule_count, w->now);
	in->schedule_floor = s.floor;
	in->schedule_next_floor = s.next_floor;
	in->schedule_next_at = s.next_at;
}

static bool write_tick(struct writing *w, struct error *e)
{
	const struct fleet_spec *fleet = &w->manifest->fleet;
	struct pool_snapshot *pools = arena_array(&w->arena, struct pool_snapshot, fleet->pool_count);

	for (size_t i = 0; i < fleet->pool_count; i++) {
		take_readings(w, i, &pools[i]);
		place_replicas(w, i, &pools[i]);
		show_schedule(w, &fleet->pools[i], &pools[i].input);
	}
	const struct snapshot s = {
		.tick = w->tick, .now = w->now, .interval = w->interval, .fleet = fleet, .pools = pools
	};
	if (!recall_keep(w->history, w->memory, e))
		return false;
	struct plan plan = policy_decide(&s, w->memory, &w->arena);
	bool ok = history_append(w->history, &s, &plan, e);
	arena_clear(&w->arena);
	return ok;
}

static bool write_all(struct writing *w, struct error *e)
{
	millis last = 0;

	for (size_t i = 0; i < w->signals->count; i++) {
		const struct recorded_pool *p = &w->signals->pools[i];
		last = p->readings[p->count - 1].at > last ? p->readings[p->count - 1].at : last;
	}
	for (w->now = w->signals->begun; w->now < last + w->interval; w->now += w->interval, w->tick++)
		if (!write_tick(w, e))
			return false;
	return true;
}

bool recording_write(const char *path, const char *run, const struct manifest *m,
		     const struct recorded_signals *signals, millis interval, struct error *e)
{
	struct writing w = { .manifest = m, .signals = signals, .interval = interval };

	if (m->fleet.pool_count > sizeof w.ready / sizeof *w.ready)
		return error_set(e, ERROR_INVALID, "%zu pools; allowed: %zu at once", m->fleet.pool_count,
				 sizeof w.ready / sizeof *w.ready);
	w.history = history_create(&(struct history_setup){ .path = path,
							    .manifest = m->text,
							    .fleet = &m->fleet,
							    .program = command_version_text() + strlen("preheat "),
							    .policy = "preheat",
							    .run = run,
							    .ticks_per_commit = TICKS_PER_COMMIT,
							    .checkpoint_every = HOUR },
				   e);
	if (!w.history)
		return false;
	w.memory = policy_state_new(&m->fleet);
	bool ok = write_all(&w, e);
	policy_state_free(w.memory);
	arena_release(&w.arena);
	if (ok)
		return history_finish(w.history, e);
	history_close(w.history);
	unlink(path);
	return false;
}
