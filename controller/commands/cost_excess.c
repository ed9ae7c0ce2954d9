#include "controller/commands/cost_excess.h"

#include "base/quantity.h"
#include "base/table.h"
#include "base/terminal.h"
#include "controller/commands/recording.h"
#include "controller/policy/excess.h"
#include "controller/restore/restore.h"
#include "controller/simulation/rivals/compare.h"

#include <stdio.h>
#include <string.h>

struct held {
	struct excess_sums sums;
	int64_t busy_ppm; /* see cost_add_tick() */
	millis watched;
	double bound_gpu_hours; /* negative: the recording has no traffic of it */
	double bound_dollars;
};

struct excess {
	struct history_args *args;
	int64_t first, last; /* ticks */
	struct held *pools;  /* one per history_pools() */
	size_t pool_count;
};

static bool is_asked(const struct excess *x, size_t pool)
{
	return x->args->pool_index == ANY || (size_t)x->args->pool_index == pool;
}

/* --- what was held --- */

static void take_tick(void *user, const struct cursor_tick *t)
{
	struct excess *x = user;

	for (size_t i = 0; i < t->snapshot.fleet->pool_count; i++) {
		struct held *h = &x->pools[t->pools[i]];
		const struct cost_tick tick = { &t->snapshot, i, t->plans[i], t->snapshot.interval, NULL };
		if (!is_asked(x, t->pools[i]) || t->damage[i].kind != ERROR_NONE)
			continue;
		excess_add_tick(&h->sums, &tick, &h->busy_ppm);
		h->watched += t->snapshot.interval;
	}
}

/* Sums of hours are kept for longer than the decisions that say what for. */
static bool find_ticks(struct excess *x, const struct cost_period *p, struct error *e)
{
	struct history_args *q = x->args;
	CLEANUP(buf_release) struct buf first = { 0 };

	if (!history_tick_at(q->history, p->from, &x->first, e) || !history_tick_at(q->history, p->to, &x->last, e))
		return false;
	x->first += p->from >= q->span.from;
	history_args_print_time(q, q->span.from, false, &first);
	if (p->to < q->span.from || x->first > x->last)
		return error_set(e, ERROR_NOT_FOUND, "%s: no decisions in this period; they begin at %s",
				 history_path(q->history), first.text);
	if (p->from < q->span.from / HOUR * HOUR)
		fprintf(stderr, "Note: decisions are kept from %s on; what was before is left out.\n", first.text);
	return true;
}

static bool read_ticks(struct excess *x, struct error *e)
{
	return history_args_walk(x->args, &(struct tick_walk){ x->first, x->last, take_tick, x }, e);
}

/* --- the least --- */

/* Of a GPU hour, in the cheapest group. */
static double least_price(const struct fleet_spec *fleet, const struct pool_spec *p)
{
	double least = 0;

	for (size_t i = 0; i < p->group_count; i++) {
		const struct group_spec *g = &fleet->groups[p->groups[i]];
		double price = (double)g->price_per_hour / 1e6 / (double)(g->gpus_per_node > 0 ? g->gpus_per_node : 1);
		least = i == 0 || price < least ? price : least;
	}
	return least;
}

static double bound_gpu_hours(const struct pool_spec *p, const struct pool_world *world, const struct trace *trace,
			      millis interval, struct arena *a)
{
	struct queue_truth truth = queue_truth_of(p, world);
	struct load load = load_of(trace, &truth, interval, a);
	const struct oracle_question q = { .load = &load,
					   .lead_s = oracle_mean_start(p, world),
					   .late_share = (double)p->objective_late_ppm / 1e6 };

	return oracle_bound(&q, a).replica_hours * (double)p->gpus_per_replica;
}

/* By the recorded traffic, and what the recording measured of replicas and starts. */
static bool find_bounds(struct excess *x, struct error *e)
{
	CLEANUP(recording_release) struct recording rec = { 0 };
	struct history_args *q = x->args;
	struct arena *a = &q->arena;
	struct manifest m;
	struct world_spec spec;
	if (!history_args_manifest(q->history, x->last, a, &m, e) ||
	    !recording_read(q->history, x->first, x->last, a, &rec, e))
		return false;
	size_t *recorded = arena_array(a, size_t, m.fleet.pool_count);
	const struct trace **traces = arena_array(a, const struct trace *, m.fleet.pool_count);
	const struct recording_question ask = {
		q->history, { x->first, x->last, rec.start }, &rec, &m.fleet, recorded
	};

	for (size_t i = 0; i < m.fleet.pool_count; i++)
		recorded[i] = recording_pool(q->history, &m.fleet.pools[i]);
	if (!recording_world(&ask, traces, a, &spec, e))
		return false;
	for (size_t i = 0; i < m.fleet.pool_count; i++) {
		const struct pool_spec *p = &m.fleet.pools[i];
		if (!traces[i] || !is_asked(x, recorded[i]))
			continue;
		struct held *h = &x->pools[recorded[i]];
		h->bound_gpu_hours = bound_gpu_hours(p, &spec.pools[i], traces[i], rec.interval, a);
		h->bound_dollars = h->bound_gpu_hours * least_price(&m.fleet, p);
		if (m.fleet.pools[i].is_unpriced) {
			memset(h->sums.dollars, 0, sizeof h->sums.dollars);
			h->bound_dollars = 0;
		}
	}
	return true;
}

/* --- printed --- */

static const struct table_column columns[] = {
	{ .name = "pool" },
	{ .name = "part" },
	{ .name = "gpu_hours", .title = "GPU HOURS", .is_right = true },
	{ .name = "dollars", .is_right = true },
	{ .name = "share", .is_right = true },
	{ .name = "what", .title = "HELD FOR" },
};

static const char *said(enum excess_part part)
{
	static const char *const words[EXCESS_PARTS] = {
		[EXCESS_WORK] = "running sequences",
		[EXCESS_MARGIN] = "margin over demand, a queue",
		[EXCESS_HOLD] = "remembered peak, deadlines",
		[EXCESS_FLOOR] = "min, headroom.min, schedules",
		[EXCESS_LEAVING] = "nothing: waits for release",
		[EXCESS_EMPTY] = "machines without a replica",
		[EXCESS_STARTS] = "what is starting",
		[EXCESS_DRAIN] = "what drains",
		[EXCESS_LENT] = "other pools, lent to them",
		[EXCESS_STANDBY] = "stopped machines",
	};

	return words[part];
}

/* The share is of all that the pool cost. */
static void add_figures(struct table *t, double gpu_hours, double dollars, double all)
{
	char raw[64];

	snprintf(raw, sizeof raw, "%.6f", gpu_hours);
	table_value(t, human_decimal(gpu_hours, 1).text, raw);
	if (all <= 0) { /* no price is given */
		table_absent(t);
		table_absent(t);
		return;
	}
	snprintf(raw, sizeof raw, "%.6f", dollars);
	table_value(t, human_dollars(dollars).text, raw);
	snprintf(raw, sizeof raw, "%.6f", dollars / all);
	table_value(t, human_share(dollars / all).text, raw);
}

static void add_name(struct table *t, const char *pool, const char *part)
{
	table_text(t, pool);
	table_text(t, part);
}

static void add_pool(struct table *t, const char *name, const struct held *h)
{
	int64_t gpu_ms = 0, dollars = 0;

	for (int i = 0; i < EXCESS_PARTS; i++) {
		gpu_ms += i == EXCESS_STANDBY ? 0 : h->sums.gpu_ms[i];
		dollars += h->sums.dollars[i];
	}
	double all = (double)dollars / 1e6;
	for (int i = 0; i < EXCESS_PARTS; i++) {
		if (!h->sums.gpu_ms[i] && !h->sums.dollars[i])
			continue;
		add_name(t, name, excess_part_name((enum excess_part)i));
		add_figures(t, (double)h->sums.gpu_ms[i] / (double)HOUR, (double)h->sums.dollars[i] / 1e6, all);
		table_text(t, said((enum excess_part)i));
	}
	add_name(t, name, "all");
	add_figures(t, (double)gpu_ms / (double)HOUR, all, all);
	table_text(t, "stopped ones not in GPU hours");
	if (h->bound_gpu_hours < 0)
		return;
	add_name(t, name, "bound");
	add_figures(t, h->bound_gpu_hours, h->bound_dollars, all);
	table_text(t, "the least, arrivals foreknown");
}

static void print(const struct excess *x, const char *output)
{
	const struct history_pool *pools = history_pools(x->args->history, &(size_t){ 0 });
	struct table *t = table_new(columns, sizeof columns / sizeof *columns);

	for (size_t i = 0; i < x->pool_count; i++)
		if (x->pools[i].watched > 0)
			add_pool(t, pools[i].name, &x->pools[i]);
	table_print(t, table_format_of(output), stdout);
	table_free(t);
}

bool cost_excess_print(struct history_args *q, struct cost_period *p, const char *output, struct error *e)
{
	struct excess x = { .args = q };
	struct costs c;

	if (!costs_read(q, p, &c, e) || !find_ticks(&x, p, e))
		return false;
	history_pools(q->history, &x.pool_count);
	x.pools = arena_array(&q->arena, struct held, x.pool_count);
	for (size_t i = 0; i < x.pool_count; i++) {
		x.pools[i].busy_ppm = ABSENT;
		x.pools[i].bound_gpu_hours = -1;
	}
	if (!read_ticks(&x, e) || !find_bounds(&x, e))
		return false;
	print(&x, output);
	if (!table_is_for_programs(table_format_of(output)))
		printf("\n%s\n", c.period);
	return true;
}
