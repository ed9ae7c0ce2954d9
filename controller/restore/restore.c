#include "controller/restore/restore.h"

#include "base/alloc.h"
#include "base/log.h"
#include "state/reserve.h"

#include <stdlib.h>
#include <string.h>

/* Lasts with the arena, for a fleet that points into it. */
static const struct manifest *load(struct history *h, int64_t tick, struct arena *a, struct error *e)
{
	CLEANUP(findings_release) struct findings findings = { 0 };
	struct manifest *m = arena_new(a, struct manifest);
	const char *text;

	if (!history_manifest(h, tick, a, &text, e))
		return NULL;
	if (manifest_load_text("manifest", text, a, m, &findings, e))
		return m;
	error_wrap(e, "%s: its manifest of tick %lld", history_path(h), (long long)tick);
	return NULL;
}

struct tick_cursor {
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

/* The newest stretch is known as far as there are ticks: it may end with any that is still to come. */
static bool find_stretch(struct tick_cursor *w, int64_t tick, struct history_stretch *out, struct error *e)
{
	struct history_span span;

	if (!history_span(w->history, &span, e) || !history_stretch_at(w->history, tick, &w->arena, out, e))
		return false;
	if (out->until > span.last_tick)
		out->until = span.last_tick;
	return true;
}

static bool take_stretch(struct tick_cursor *w, int64_t tick, struct error *e)
{
	struct history_stretch stretch;
	const struct manifest *m;

	if (!find_stretch(w, tick, &stretch, e))
		return false;
	if (w->manifest && stretch.from == w->stretch.from) {
		w->stretch = stretch;
		return true;
	}
	if (!(m = load(w->history, tick, &w->arena, e)))
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

struct tick_cursor *tick_cursor_open(struct history *h, int64_t tick, struct error *e)
{
	struct tick_cursor *w = xnew(struct tick_cursor);

	w->history = h;
	w->next = tick;
	if (take_stretch(w, tick, e))
		return w;
	tick_cursor_close(w);
	return NULL;
}

void tick_cursor_close(struct tick_cursor *w)
{
	if (!w)
		return;
	arena_release(&w->arena);
	free(w);
}

static bool read_pools(struct tick_cursor *w, struct error *e)
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

bool tick_cursor_next(struct tick_cursor *w, struct cursor_tick *out, struct error *e)
{
	const struct manifest *was = w->manifest;
	int64_t fresh;

	if (w->next > w->stretch.until && !take_stretch(w, w->next, e))
		return false;
	if (!history_last_fresh(w->history, w->next, &fresh, e) || !read_pools(w, e))
		return false;
	*out = (struct cursor_tick){
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

bool tick_walk(struct history *h, const struct tick_walk *walk, struct error *e)
{
	struct tick_cursor *w = tick_cursor_open(h, walk->first, e);
	struct cursor_tick t = { .snapshot.tick = walk->first - 1 };
	bool ok = w != NULL;

	while (ok && t.snapshot.tick < walk->last) {
		ok = tick_cursor_next(w, &t, e);
		if (ok)
			walk->take(walk->user, &t);
	}
	tick_cursor_close(w);
	return ok;
}

/* As many ticks decided again at the next start are cheap. */
enum { FOLD_ENOUGH = 40 };

/* What is folded, from where the memory is known to the last tick. */
struct fold {
	struct history *history;
	struct history_span span;
	struct arena *arena;
	struct restored *out;
	struct policy_state *memory;
	const struct manifest *manifest; /* of the memory */
};

/* The memory where it is known last: at a checkpoint, or where it was a new one. */
static bool find_start(struct fold *f, int64_t *start, struct error *e)
{
	CLEANUP(buf_release) struct buf kept = { 0 };
	int64_t fresh, last = f->span.last_tick + 1, at = -1;

	if (!history_last_fresh(f->history, last, &fresh, e))
		return false;
	if (!history_last_checkpoint(f->history, last, &at, &kept, e) && e->kind != ERROR_NOT_FOUND)
		return false;
	*start = at >= fresh ? at : fresh;
	if (*start < f->span.first_tick)
		return error_set(e, ERROR_INVALID, "%s: no checkpoint at or after its first tick",
				 history_path(f->history));
	f->manifest = load(f->history, *start, f->arena, e);
	if (!f->manifest)
		return false;
	f->memory = at >= fresh ? policy_state_decode(kept.text, kept.len, &f->manifest->fleet, e)
				: policy_state_new(&f->manifest->fleet);
	return f->memory || error_wrap(e, "%s: the checkpoint of tick %lld", history_path(f->history), (long long)at);
}

static void carry(struct fold *f, const struct fleet_spec *was, const struct fleet_spec *now)
{
	struct policy_state *m = policy_state_migrate(f->memory, was, now);

	policy_state_free(f->memory);
	f->memory = m;
}

static struct plan copy_plan(const struct cursor_tick *t, struct arena *a)
{
	size_t count = t->snapshot.fleet->pool_count;
	struct plan plan = { arena_array(a, struct pool_plan, count), count };

	for (size_t i = 0; i < count; i++) {
		struct pool_plan *p = &plan.pools[i];

		*p = *t->plans[i];
		p->groups = arena_array(a, struct group_decision, p->group_count);
		if (p->group_count)
			memcpy(p->groups, t->plans[i]->groups, p->group_count * sizeof *p->groups);
	}
	return plan;
}

static const struct pool_snapshot *copy_groups(const struct snapshot *s, struct arena *a)
{
	size_t count = s->fleet->pool_count;
	struct pool_snapshot *pools = arena_array(a, struct pool_snapshot, count);

	for (size_t i = 0; i < count; i++) {
		size_t group_count = s->pools[i].group_count;
		struct group_input *groups = arena_array(a, struct group_input, group_count);

		if (group_count)
			memcpy(groups, s->pools[i].groups, group_count * sizeof *groups);
		pools[i] = (struct pool_snapshot){ .groups = groups, .group_count = group_count };
	}
	return pools;
}

static bool take_last(struct fold *f, const struct cursor_tick *t, struct error *e)
{
	f->out->manifest = load(f->history, t->snapshot.tick, f->arena, e);
	if (!f->out->manifest)
		return false;
	f->out->plan = copy_plan(t, f->arena);
	f->out->snapshot = t->snapshot;
	f->out->snapshot.fleet = &f->out->manifest->fleet;
	f->out->snapshot.pools = copy_groups(&t->snapshot, f->arena);
	return true;
}

/* From the tick before `start` on, if need be: its plan is wanted although it is not decided again. */
static bool fold_through(struct fold *f, struct tick_cursor *w, int64_t start, struct error *e)
{
	struct cursor_tick t;

	for (int64_t tick = start > f->span.last_tick ? f->span.last_tick : start; tick <= f->span.last_tick; tick++) {
		CLEANUP(arena_release) struct arena scratch = { 0 };

		if (!tick_cursor_next(w, &t, e))
			return false;
		if (tick < start)
			continue;
		if (t.was)
			carry(f, t.was, t.snapshot.fleet);
		policy_decide(&t.snapshot, f->memory, &scratch);
		f->out->folded++;
	}
	return take_last(f, &t, e);
}

static bool fold(struct fold *f, struct error *e)
{
	int64_t start;

	if (!find_start(f, &start, e))
		return false;
	struct tick_cursor *w = tick_cursor_open(f->history, start > f->span.last_tick ? f->span.last_tick : start, e);
	if (!w)
		return false;
	bool ok = fold_through(f, w, start, e);
	tick_cursor_close(w);
	if (ok && f->out->folded)
		f->manifest = f->out->manifest;
	return ok;
}

bool restore_memory(struct history *h, const struct fleet_spec *fleet, struct arena *a, struct restored *out,
		    struct error *e)
{
	struct fold f = { .history = h, .arena = a, .out = out };
	struct error why = { .kind = ERROR_NONE };

	*out = (struct restored){ .folded = 0 };
	if (!history_span(h, &f.span, e))
		return false;
	if (f.span.last_tick >= f.span.first_tick && !fold(&f, &why)) {
		policy_state_free(f.memory);
		f.memory = NULL;
		if (why.kind != ERROR_INVALID && why.kind != ERROR_NOT_FOUND) {
			*e = why;
			return false;
		}
		out->trouble = why;
	}
	if (f.memory)
		carry(&f, &f.manifest->fleet, fleet);
	out->memory = f.memory ? f.memory : policy_state_new(fleet);
	return true;
}

bool restore_keep(struct history *h, const struct policy_state *m, struct error *e)
{
	CLEANUP(buf_release) struct buf bytes = { 0 };

	if (!history_wants_checkpoint(h))
		return true;
	policy_state_encode(m, &bytes);
	return history_checkpoint(h, &bytes, e);
}

static bool keep_at_start(struct history *h, const struct restored *r, struct error *e)
{
	CLEANUP(buf_release) struct buf bytes = { 0 };

	if (r->trouble.kind != ERROR_NONE && !history_begin_anew(h, e))
		return false;
	if (r->folded <= FOLD_ENOUGH)
		return restore_keep(h, r->memory, e);
	policy_state_encode(r->memory, &bytes);
	return history_checkpoint(h, &bytes, e);
}

/* One of another version of the program is no reason not to start: it stays, under another name. */
static struct history *resume(const struct history_setup *setup, struct error *aside, struct error *e)
{
	CLEANUP(buf_release) struct buf name = { 0 };
	struct history *h = history_resume(setup, e);

	if (h || e->kind != ERROR_CONFLICT)
		return h;
	*aside = *e;
	if (!history_set_aside(setup->path, &name, e))
		return NULL;
	error_wrap(aside, "set aside as %s", name.text);
	return history_resume(setup, e);
}

static struct history *resume_with_memory(const struct history_setup *setup, struct arena *a, struct restored *out,
					  struct error *e)
{
	struct error aside = { .kind = ERROR_NONE };
	struct history *h = resume(setup, &aside, e);

	*out = (struct restored){ .folded = 0 };
	if (!h)
		return NULL;
	if (restore_memory(h, setup->fleet, a, out, e) && keep_at_start(h, out, e)) {
		if (aside.kind != ERROR_NONE)
			out->trouble = aside;
		return h;
	}
	policy_state_free(out->memory);
	out->memory = NULL;
	history_close(h);
	return NULL;
}

struct history *restore_resume(const struct history_setup *setup, struct arena *a, struct restored *out,
			       struct error *e)
{
	/* Leading begins with writing, on whatever the copying of a follower left. */
	if (reserve_give_up(setup->path, reserve_free(setup->path)))
		log_error("history-disk-full", LOG_S("file", setup->path), LOG_END);
	struct history *h = resume_with_memory(setup, a, out, e);
	/* A quota does not show in the disk's free bytes. */
	if (h || !error_is_transient(e) || !reserve_give_up(setup->path, 0))
		return h;
	log_error("history-reserve-given-up", LOG_S("file", setup->path), LOG_E(e), LOG_END);
	return resume_with_memory(setup, a, out, e);
}
