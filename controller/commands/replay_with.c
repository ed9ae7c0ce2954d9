#include "controller/commands/replay_with.h"

#include "base/terminal.h"
#include "base/table.h"
#include "controller/commands/recording.h"
#include "controller/simulation/simulate.h"
#include "controller/simulation/world.h"

#include <stdio.h>
#include <string.h>

/* What a stretch came to for one pool, counted alike from a record and from a model. */
struct figures {
	double requests, late, gpu_hours, dollars, starts;
	double node_ticks, ticks, most_nodes;
};

/* One tick of one pool. */
struct tick_seen {
	const struct pool_snapshot *snapshot;
	const struct pool_plan *plan;
	millis interval;
};

static void add_readings(struct figures *f, const struct pool_snapshot *s)
{
	for (size_t i = 0; i < s->scrape_count; i++) {
		const struct scrape_input *r = &s->scrapes[i];

		f->requests += (double)(r->started != ABSENT ? r->started : r->completed);
		f->late += r->late != ABSENT ? (double)r->late : 0;
	}
}

static int64_t nodes_for(int64_t replicas, int64_t per_node)
{
	return (replicas + per_node - 1) / per_node;
}

/* Machines, not replicas: what fills free GPUs of a node that runs already starts none. */
static void add_group(struct figures *f, const struct fleet_spec *fleet, const struct pool_spec *p,
		      const struct tick_seen *seen, size_t group)
{
	const struct group_spec *g = &fleet->groups[p->groups[group]];
	const struct group_input *in = &seen->snapshot->groups[group];
	const struct group_decision *d = &seen->plan->groups[group];
	int64_t fit = replicas_per_node(g, p), per_node = fit > 0 ? fit : 1;
	double gpus = (double)in->billed_gpus_milli / 1000, hours = (double)seen->interval / HOUR;
	double stopped = (double)nodes_for(in->standby, per_node) * (double)g->standby_price_ppm / 1e6;

	f->gpu_hours += gpus * hours;
	f->dollars += (gpus / (double)g->gpus_per_node + stopped) * (double)g->price_per_hour / 1e6 * hours;
	f->starts +=
		(double)(nodes_for(d->cold, per_node) + nodes_for(d->wake, per_node) + nodes_for(d->refill, per_node));
}

static void add_tick(struct figures *f, const struct fleet_spec *fleet, size_t pool, const struct tick_seen *seen)
{
	const struct pool_spec *p = &fleet->pools[pool];
	const struct pool_snapshot *s = seen->snapshot;
	double nodes = 0;

	add_readings(f, s);
	for (size_t i = 0; i < p->group_count && i < s->group_count && i < seen->plan->group_count; i++) {
		add_group(f, fleet, p, seen, i);
		nodes += (double)s->groups[i].nodes;
	}
	f->node_ticks += nodes;
	f->ticks++;
	if (nodes > f->most_nodes)
		f->most_nodes = nodes;
}

/* How far it is: one figure over reading, adding up, and both models. */
struct telling {
	bool as_lines;
	int64_t told; /* per cent */
	struct progress shown;
};

static void tell_progress(struct telling *t, double part)
{
	int64_t percent = (int64_t)(part * 100);

	if (percent == t->told)
		return;
	t->told = percent;
	if (t->as_lines)
		fprintf(stderr, "{\"progress\":%.2f}\n", (double)percent / 100);
	else
		progress_show(&t->shown, percent);
}

/* Where each part begins. */
static const double READ_UNTIL = .2, ADDED_UNTIL = .3, MODELLED_ONCE = .65;

/* What is compared: a stretch under one manifest. */
struct replayed {
	struct history *history;
	const struct manifest *then, *other;
	const struct replay_range *range;
	const size_t *pools; /* of the history, one per pool of `then` */
	struct recording rec;
	struct telling *telling;
};

/* --- as it was --- */

/* `place`: of the manifest; `pool`: of the history. */
static bool read_figures(const struct replayed *w, size_t place, struct figures *f, struct error *e)
{
	struct tick_record r;

	for (int64_t tick = w->range->from; tick <= w->range->to; tick++) {
		if (!history_read(w->history, tick, w->pools[place], &r, e))
			return false;
		add_tick(f, &w->then->fleet, place, &(struct tick_seen){ &r.snapshot, &r.plan, r.interval });
	}
	return true;
}

/* --- as a model has it --- */

struct modelling {
	struct figures *seen;
	struct telling *telling;
	double from, until; /* of its progress */
};

static bool on_tick(void *user, const struct tick_view *v, struct error *e)
{
	const struct snapshot *s = v->snapshot;
	const struct modelling *m = user;

	(void)e;
	if (v->ticks > 0)
		tell_progress(m->telling, m->from + (m->until - m->from) * (double)s->tick / (double)v->ticks);
	for (size_t i = 0; i < s->fleet->pool_count; i++)
		add_tick(&m->seen[i], s->fleet, i,
			 &(struct tick_seen){ &s->pools[i], &v->plan->pools[i], s->interval });
	return true;
}

static size_t pool_named(const struct fleet_spec *fleet, const struct pool_spec *as)
{
	size_t i = 0;

	while (i < fleet->pool_count &&
	       (strcmp(fleet->pools[i].name, as->name) || strcmp(fleet->pools[i].namespace, as->namespace)))
		i++;
	return i;
}

static struct world_spec world_for(const struct fleet_spec *fleet, const struct replayed *w, const size_t *place,
				   struct arena *a)
{
	struct world_spec spec = world_spec_default(fleet, a);
	struct pool_world *pools = arena_array(a, struct pool_world, fleet->pool_count);

	for (size_t i = 0; i < w->then->fleet.pool_count; i++) {
		pools[place[i]] = spec.pools[place[i]];
		pools[place[i]].initial_replicas = w->rec.initial_replicas[w->pools[i]];
	}
	spec.pools = pools;
	return spec;
}

/* `place` says which pool of the fleet each one of the recorded manifest is. */
static bool model(const struct replayed *w, const struct fleet_spec *fleet, const size_t *place, struct figures *out,
		  struct error *e)
{
	CLEANUP(arena_release) struct arena a = { 0 };
	struct world_spec spec = world_for(fleet, w, place, &a);
	const struct trace **traces = arena_array(&a, const struct trace *, fleet->pool_count);
	struct figures *seen = arena_array(&a, struct figures, fleet->pool_count);
	bool is_first = fleet == &w->then->fleet;
	struct modelling modelling = { seen, w->telling, is_first ? ADDED_UNTIL : MODELLED_ONCE,
				       is_first ? MODELLED_ONCE : 1 };
	const struct observer observer = { on_tick, &modelling };
	struct run_result result = { 0 };
	struct simulation s = { .world = { fleet, &spec, traces, w->rec.start, w->rec.interval, 1, schedule_at },
				.observers = &observer,
				.observer_count = 1 };

	for (size_t i = 0; i < w->then->fleet.pool_count; i++)
		traces[place[i]] = &w->rec.traces[w->pools[i]];
	if (!replay_policy(w->history, &a, &s.policy, &s.setting, e) || !simulate(&s, &a, &result, e))
		return false;
	for (size_t i = 0; i < w->then->fleet.pool_count; i++)
		out[i] = seen[place[i]];
	return true;
}

/* --- the comparison --- */

static double late_share(const struct figures *f)
{
	return f->requests > 0 ? f->late / f->requests * 100 : 0;
}

static double mean_nodes(const struct figures *f)
{
	return f->ticks > 0 ? f->node_ticks / f->ticks : 0;
}

#define MEMBER(member)                                      \
	static double get_##member(const struct figures *f) \
	{                                                   \
		return f->member;                           \
	}
MEMBER(requests)
MEMBER(late)
MEMBER(gpu_hours)
MEMBER(dollars)
MEMBER(starts)
MEMBER(most_nodes)
#undef MEMBER

static const struct row {
	const char *name;
	double (*get)(const struct figures *f);
	int places;
} rows[] = {
	{ "requests", get_requests, 0 },  { "late requests", get_late, 0 },	 { "late, %", late_share, 2 },
	{ "nodes, mean", mean_nodes, 2 }, { "nodes, most", get_most_nodes, 0 },	 { "GPU hours", get_gpu_hours, 1 },
	{ "dollars", get_dollars, 2 },	  { "machines started", get_starts, 0 },
};

static void add_rows(struct table *t, const char *pool, const struct figures *recorded, const struct figures *then,
		     const struct figures *other)
{
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		const struct row *r = &rows[i];

		table_text(t, pool);
		table_text(t, r->name);
		table_decimal(t, r->get(recorded), r->places);
		table_decimal(t, r->get(then), r->places);
		table_decimal(t, r->get(other), r->places);
		table_decimal(t, r->get(other) - r->get(then), r->places);
	}
}

static bool place_pools(const struct manifest *then, const struct manifest *other, size_t *same, size_t *place,
			struct error *e)
{
	for (size_t i = 0; i < then->fleet.pool_count; i++) {
		same[i] = i;
		place[i] = pool_named(&other->fleet, &then->fleet.pools[i]);
		if (place[i] == other->fleet.pool_count)
			return error_set(e, ERROR_INVALID,
					 "--with: it has no pool %s/%s, which the history has; give settings for the "
					 "same pools",
					 then->fleet.pools[i].namespace, then->fleet.pools[i].name);
	}
	return true;
}

static void print(const struct replayed *w, struct figures *const f[3], const char *output)
{
	static const struct table_column columns[] = {
		{ .name = "pool" },
		{ .name = "figure" },
		{ .name = "recorded", .is_right = true },
		{ .name = "model_same", .title = "MODEL, SAME SETTINGS", .is_right = true },
		{ .name = "model_with", .title = "MODEL, OTHER SETTINGS", .is_right = true },
		{ .name = "difference", .is_right = true },
	};
	struct table *t = table_new(columns, sizeof columns / sizeof *columns);

	for (size_t i = 0; i < w->then->fleet.pool_count; i++)
		if (w->range->pool == ANY || w->range->pool == (int64_t)w->pools[i])
			add_rows(t, w->then->fleet.pools[i].name, &f[0][i], &f[1][i], &f[2][i]);
	table_print(t, table_format_of(output), stdout);
	table_free(t);
	if (table_is_for_programs(table_format_of(output)))
		return;
	puts("\nThis is a model: the recorded arrivals, binned by tick, went through a modelled cluster in which "
	     "nothing\n"
	     "fails, once with each manifest; lengths are means. Judge it by how close RECORDED and SAME SETTINGS "
	     "are;\n"
	     "DIFFERENCE is between the two models. Nodes are those of the pool's groups, all pools; GPU hours and "
	     "dollars\n"
	     "are the pool's own, as billed tick by tick; machines started are those that the plans asked for.");
}

/* One manifest for all of it, or there is no "same settings" to compare with. */
static bool find_pools(struct replayed *w, struct arena *a, struct error *e)
{
	struct history_stretch s;

	if (!history_stretch_at(w->history, w->range->from, a, &s, e))
		return false;
	if (s.until < w->range->to)
		return error_set(e, ERROR_INVALID,
				 "%s: its manifest changes at tick %lld; choose a stretch before or after it with "
				 "--from and --to",
				 history_path(w->history), (long long)s.until + 1);
	w->pools = s.pools;
	return s.pool_count == w->then->fleet.pool_count ||
	       error_set(e, ERROR_INVALID, "%s: damaged: its manifest is not that of its decisions",
			 history_path(w->history));
}

static bool read_all_figures(const struct replayed *w, struct figures *f, struct error *e)
{
	size_t pools = w->then->fleet.pool_count;

	for (size_t i = 0; i < pools; i++) {
		tell_progress(w->telling, READ_UNTIL + (ADDED_UNTIL - READ_UNTIL) * (double)i / (double)pools);
		if (!read_figures(w, i, &f[i], e))
			return false;
	}
	return true;
}

static bool compare(struct replayed *w, struct arena *a, const char *output, struct error *e)
{
	size_t pools = w->then->fleet.pool_count;
	size_t *same = arena_array(a, size_t, pools), *place = arena_array(a, size_t, pools);
	struct figures *f[3];

	for (size_t i = 0; i < 3; i++)
		f[i] = arena_array(a, struct figures, pools);
	if (!find_pools(w, a, e) || !place_pools(w->then, w->other, same, place, e) ||
	    !recording_read(w->history, w->range->from, w->range->to, a, &w->rec, e))
		return false;
	if (!read_all_figures(w, f[0], e) || !model(w, &w->then->fleet, same, f[1], e) ||
	    !model(w, &w->other->fleet, place, f[2], e))
		return false;
	progress_end(&w->telling->shown);
	print(w, f, output);
	return true;
}

bool replay_with(struct history *h, const struct manifest *then, const struct manifest *other,
		 const struct replay_range *range, const struct replay_telling *told, struct error *e)
{
	struct telling telling = { .as_lines = told->is_progress_told, .shown = progress_start("modelling", "%", 100) };
	struct replayed w = { .history = h, .then = then, .other = other, .range = range, .telling = &telling };
	struct arena a = { 0 };
	bool ok = compare(&w, &a, told->output, e);

	progress_end(&telling.shown);
	recording_release(&w.rec);
	arena_release(&a); /* the recording lies in it */
	return ok;
}
