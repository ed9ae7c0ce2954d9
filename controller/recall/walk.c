#include "controller/recall/walk.h"

#include <stdio.h>
#include <stdlib.h>

struct walk {
	struct history *history;
	struct arena arena; /* of manifests */
	const struct manifest *manifest;
	struct history_stretch stretch;
	struct tick_record *records;
	struct error *damage;
	const struct pool_plan **plans;
	struct pool_snapshot *pools;
	int64_t next, fresh;
};

static const struct manifest *load(struct walk *w, int64_t tick, struct error *e)
{
	CLEANUP(findings_release) struct findings findings = { 0 };
	struct manifest *m = arena_new(&w->arena, struct manifest);
	const char *text;

	if (!history_manifest(w->history, tick, &w->arena, &text, e))
		return NULL;
	if (manifest_load_text("manifest", text, &w->arena, m, &findings, e))
		return m;
	error_wrap(e, "%s: its manifest of tick %lld", history_path(w->history), (long long)tick);
	return NULL;
}

/* The newest stretch is known as far as there are ticks: it may end with any that is still to come. */
static bool find_stretch(struct walk *w, int64_t tick, struct history_stretch *out, struct error *e)
{
	struct history_span span;

	if (!history_span(w->history, &span, e) || !history_stretch_at(w->history, tick, &w->arena, out, e))
		return false;
	if (out->until > span.last_tick)
		out->until = span.last_tick;
	return true;
}

static bool take_stretch(struct walk *w, int64_t tick, struct error *e)
{
	struct history_stretch stretch;
	const struct manifest *m;

	if (!find_stretch(w, tick, &stretch, e))
		return false;
	if (w->manifest && stretch.from == w->stretch.from) {
		w->stretch = stretch;
		return true;
	}
	if (!(m = load(w, tick, e)))
		return false;
	size_t count = m->fleet.pool_count;
	if (count != stretch.pool_count)
		return error_set(e, ERROR_INVALID,
				 "%s: damaged: the manifest of tick %lld is not that of its decisions",
				 history_path(w->history), (long long)tick);
	w->manifest = m;
	w->stretch = stretch;
	w->records = arena_array(&w->arena, struct tick_record, count);
	w->damage = arena_array(&w->arena, struct error, count);
	w->plans = arena_array(&w->arena, const struct pool_plan *, count);
	w->pools = arena_array(&w->arena, struct pool_snapshot, count);
	return true;
}

struct walk *walk_open(struct history *h, int64_t tick, struct error *e)
{
	struct walk *w = calloc(1, sizeof *w);

	if (!w) {
		fputs("out of memory\n", stderr);
		abort();
	}
	w->history = h;
	w->next = tick;
	if (take_stretch(w, tick, e))
		return w;
	walk_close(w);
	return NULL;
}

void walk_close(struct walk *w)
{
	if (!w)
		return;
	arena_release(&w->arena);
	free(w);
}

static bool read_pools(struct walk *w, struct error *e)
{
	const struct fleet_spec *fleet = &w->manifest->fleet;

	for (size_t i = 0; i < fleet->pool_count; i++) {
		if (!history_read_lenient(w->history, w->next, w->stretch.pools[i], &w->records[i], &w->damage[i], e))
			return false;
		w->pools[i] = w->records[i].snapshot;
		w->plans[i] = &w->records[i].plan;
		if (w->pools[i].group_count != fleet->pools[i].group_count)
			return error_set(e, ERROR_INVALID, "%s: damaged: tick %lld is not of its manifest",
					 history_path(w->history), (long long)w->next);
	}
	return true;
}

bool walk_next(struct walk *w, struct walk_tick *out, struct error *e)
{
	const struct manifest *was = w->manifest;
	int64_t fresh;

	if (w->next > w->stretch.until && !take_stretch(w, w->next, e))
		return false;
	if (!history_last_fresh(w->history, w->next, &fresh, e) || !read_pools(w, e))
		return false;
	*out = (struct walk_tick){
		.snapshot = { w->next, w->records[0].now, w->records[0].interval, &w->manifest->fleet, w->pools },
		.manifest = w->manifest,
		.pools = w->stretch.pools,
		.was = was != w->manifest ? &was->fleet : NULL,
		.is_fresh = fresh == w->next,
		.plans = w->plans,
		.damage = w->damage,
	};
	w->next++;
	return true;
}
