#include "controller/simulation/simulate.h"

#include "controller/simulation/waits.h"

enum { TICKS_KEPT = 16 }; /* their memory is given back together */

/* Totals at the border between the warm-up and the scored part. */
struct border {
	struct world_totals totals;
	struct waits waits;
	int64_t lent_ms;
	bool is_set;
};

struct run {
	const struct simulation *s;
	struct world *world;
	void *policy;
	size_t pools;
	struct tick_result *results;
	struct border *borders; /* one per pool */
	int64_t *lent_ms;	/* one per pool, since the start */
	struct arena recent;	/* snapshots and plans of the last few ticks */
	millis now;
	int64_t ticks;
};

static struct score make_score(const struct run *r, size_t pool, const struct border *from)
{
	struct world_totals t = world_totals(r->world, pool), b = from ? from->totals : (struct world_totals){ 0 };
	const struct waits *waits = world_waits(r->world, pool), *before = from ? &from->waits : NULL;

	return (struct score){ .requests = t.arrived - b.arrived,
			       .late = t.late - b.late + t.waiting_late,
			       .gave_up = t.gave_up - b.gave_up,
			       .started = t.started - b.started,
			       .waiting = t.arrived + t.returned - t.started - t.gave_up,
			       .wait_p50 = waits_quantile(waits, before, 500),
			       .wait_p99 = waits_quantile(waits, before, 990),
			       .gpu_ms = t.gpu_ms - b.gpu_ms,
			       .micro_dollars = t.micro_dollars - b.micro_dollars,
			       .standby_gpu_ms = t.standby_gpu_ms - b.standby_gpu_ms,
			       .lent_replica_ms = r->lent_ms[pool] - (from ? from->lent_ms : 0),
			       .starts = t.starts - b.starts,
			       .removals = t.removals - b.removals,
			       .lost = t.lost - b.lost,
			       .refused = t.refused - b.refused,
			       .batch_lost_ms = t.batch_lost_ms - b.batch_lost_ms };
}

static void look_at_border(struct run *r)
{
	for (size_t i = 0; i < r->pools; i++) {
		struct border *b = &r->borders[i];
		if (b->is_set || r->now < r->s->warm_up)
			continue;
		*b = (struct border){ world_totals(r->world, i), *world_waits(r->world, i), r->lent_ms[i], true };
	}
}

static bool observe(const struct run *r, const struct snapshot *s, const struct plan *plan, struct error *e)
{
	struct tick_view view = { .snapshot = s,
				  .plan = plan,
				  .results = r->results,
				  .end = r->now,
				  .ticks = r->ticks,
				  .policy = r->policy };

	for (size_t i = 0; i < r->s->observer_count; i++)
		if (!r->s->observers[i].tick(r->s->observers[i].user, &view, e))
			return false;
	return true;
}

static bool run_tick(struct run *r, struct error *e)
{
	if (r->now / r->s->world.interval % TICKS_KEPT == 0)
		arena_release(&r->recent);
	world_advance(r->world);
	r->now += r->s->world.interval;
	struct snapshot snapshot = world_snapshot(r->world, &r->recent);
	for (size_t i = 0; i < r->pools; i++) {
		r->results[i] = world_result(r->world, i);
		r->lent_ms[i] += r->results[i].lent * r->s->world.interval;
	}
	struct plan plan = r->s->policy->decide(r->policy, &snapshot, &r->recent);
	look_at_border(r);
	world_apply(r->world, &plan);
	return observe(r, &snapshot, &plan, e);
}

/* The pool's dollars by the slot time of each label. */
static void score_classes(const struct run *r, size_t pool, struct arena *a, struct pool_score *out)
{
	const struct trace *t = r->s->world.traces[pool];
	double all = 0;

	if (!t || t->is_binned || !t->label_count)
		return;
	struct class_score *classes = arena_array(a, struct class_score, t->label_count);
	for (size_t i = 0; i < t->label_count; i++) {
		struct label_use use = world_label_use(r->world, pool, i);
		classes[i] = (struct class_score){ t->labels[i], use.requests, use.late, use.slot_ms, 0 };
		all += (double)use.slot_ms;
	}
	for (size_t i = 0; all > 0 && i < t->label_count; i++)
		classes[i].micro_dollars =
			(int64_t)((double)out->whole.micro_dollars * (double)classes[i].slot_ms / all);
	out->classes = classes;
	out->class_count = t->label_count;
}

static void finish(const struct run *r, struct arena *a, struct run_result *out)
{
	out->pools = arena_array(a, struct pool_score, r->pools);
	out->simulated = r->now;
	for (size_t i = 0; i < r->pools; i++) {
		out->pools[i].whole = make_score(r, i, NULL);
		if (!r->s->warm_up)
			out->pools[i].scored = out->pools[i].whole;
		else if (r->borders[i].is_set)
			out->pools[i].scored = make_score(r, i, &r->borders[i]);
		score_classes(r, i, a, &out->pools[i]);
	}
}

static bool run_all(struct run *r, struct arena *a, struct run_result *out, struct error *e)
{
	millis length = world_length(r->world);

	r->ticks = (length + r->s->world.interval - 1) / r->s->world.interval;
	bool is_stopped = false;
	for (int64_t i = 0; i < r->ticks && !is_stopped; i++) {
		if (!run_tick(r, e))
			return false;
		is_stopped = r->s->stop && *r->s->stop;
	}
	finish(r, a, out);
	out->stopped = is_stopped && r->now < length;
	return true;
}

bool simulate(const struct simulation *s, struct arena *a, struct run_result *out, struct error *e)
{
	CLEANUP(arena_release) struct arena own = { 0 };
	struct run r = { .s = s, .pools = s->world.fleet->pool_count };

	r.policy = s->policy->open(s->world.fleet, s->setting ? s->setting : "", e);
	if (!r.policy)
		return false;
	r.world = world_new(&s->world);
	r.results = arena_array(&own, struct tick_result, r.pools);
	r.borders = arena_array(&own, struct border, r.pools);
	r.lent_ms = arena_array(&own, int64_t, r.pools);
	bool is_done = run_all(&r, a, out, e);
	arena_release(&r.recent);
	world_free(r.world);
	s->policy->close(r.policy);
	return is_done;
}
