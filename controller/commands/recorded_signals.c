#include "controller/commands/recorded_signals.h"

#include "state/history.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { READINGS_MOST = 20000000 };

/* Grown by doubling; the arena keeps what was outgrown. */
struct gathered {
	struct pool_reading *items;
	size_t count, room;
};

static void add(struct gathered *g, const struct pool_reading *r, struct arena *a)
{
	if (g->count == g->room) {
		size_t room = g->room ? 2 * g->room : 1024;
		struct pool_reading *items = arena_array(a, struct pool_reading, room);
		if (g->count)
			memcpy(items, g->items, g->count * sizeof *items);
		g->items = items;
		g->room = room;
	}
	g->items[g->count++] = *r;
}

static int64_t told(int64_t value)
{
	return value == ABSENT ? READING_UNKNOWN : value;
}

static int64_t known(int64_t value)
{
	return value == ABSENT ? 0 : value;
}

/* The tick knows how many readings were due and came in all; each scrape gets its share. */
static int64_t share(int64_t sum, size_t index, size_t count)
{
	return sum * (int64_t)(index + 1) / (int64_t)count - sum * (int64_t)index / (int64_t)count;
}

static void add_tick(const struct tick_record *t, struct gathered *g, struct arena *a)
{
	const struct pool_snapshot *s = &t->snapshot;

	if (!s->scrape_count && s->input.scrapes_expected > 0 && s->input.scrapes_fresh <= 0)
		add(g, &(struct pool_reading){ .at = t->now, .expected = s->input.scrapes_expected }, a);
	for (size_t i = 0; i < s->scrape_count; i++) {
		const struct scrape_input *in = &s->scrapes[i];
		bool is_last = i + 1 == s->scrape_count;
		struct pool_reading r = {
			.at = in->at,
			.expected = share(s->input.scrapes_expected, i, s->scrape_count),
			.fresh = share(s->input.scrapes_fresh, i, s->scrape_count),
			.ready = known(in->ready),
			.running = known(in->running),
			.running_draining = known(in->running_draining),
			.waiting = known(in->waiting),
			.started = told(in->started),
			.late = told(in->late),
			.completed = known(in->completed),
			.prompt_tokens = known(in->prompt_tokens),
			.output_tokens = known(in->output_tokens),
			.inter_token_latency_us = is_last ? told(s->input.inter_token_latency_us) : READING_UNKNOWN,
			.kv_cache_permille = is_last ? told(s->input.kv_cache_permille) : READING_UNKNOWN,
		};
		add(g, &r, a);
	}
}

static bool read_pool(struct history *h, const struct history_span *span, size_t pool, struct gathered *g,
		      struct arena *a, struct error *e)
{
	struct tick_record t;

	for (int64_t tick = span->first_tick; tick <= span->last_tick; tick++) {
		if (!history_read(h, tick, pool, &t, e)) {
			if (e->kind == ERROR_NOT_FOUND)
				continue;
			return false;
		}
		add_tick(&t, g, a);
		if (g->count > READINGS_MOST)
			return error_set(e, ERROR_INVALID,
					 "more than %d readings of one pool: take a shorter recording", READINGS_MOST);
	}
	*e = (struct error){ 0 };
	return true;
}

static bool take_pool(struct history *h, const struct history_span *span, const struct pool_spec *spec, struct arena *a,
		      struct recorded_signals *out, struct error *e)
{
	char key[160];
	size_t pool;
	struct gathered g = { 0 };

	snprintf(key, sizeof key, "%s/%s", spec->namespace, spec->name);
	if (!history_find_pool(h, key, &pool, e) && !history_find_pool(h, spec->name, &pool, e))
		return false;
	if (!read_pool(h, span, pool, &g, a, e))
		return false;
	if (!g.count)
		return error_set(e, ERROR_INVALID,
				 "there are no readings of pool %s in it; do: leave it out of the manifest", key);
	out->pools[out->count++] = (struct recorded_pool){ arena_strdup(a, key, strlen(key)), g.items, g.count };
	out->begun = !out->begun || g.items[0].at < out->begun ? g.items[0].at : out->begun;
	return true;
}

static bool read_all(struct history *h, const struct manifest *m, struct arena *a, struct recorded_signals *out,
		     struct error *e)
{
	struct history_span span;

	if (!history_span(h, &span, e))
		return false;
	if (span.last_tick < span.first_tick)
		return error_set(e, ERROR_INVALID, "there are no ticks in it");
	out->pools = arena_array(a, struct recorded_pool, m->fleet.pool_count);
	for (size_t i = 0; i < m->fleet.pool_count; i++)
		if (m->pools[i].spec.signals.engine != SOURCE_PODS &&
		    !take_pool(h, &span, &m->fleet.pools[i], a, out, e))
			return false;
	return out->count > 0 ||
	       error_set(e, ERROR_INVALID,
			 "no pool of the manifest reads model servers: there is nothing to tell them");
}

bool recorded_signals_read(const char *path, const struct manifest *m, struct arena *a, struct recorded_signals *out,
			   struct error *e)
{
	struct recorded_signals r = { 0 };
	struct history *h = history_open(path, e);

	if (!h)
		return false;
	bool ok = read_all(h, m, a, &r, e);
	history_close(h);
	if (!ok) /* the history's own errors name it */
		return strstr(e->message, path) ? false : error_wrap(e, "%s", path);
	*out = r;
	return true;
}
