#include "controller/simulation/simulate.h"

#include "base/quantity.h"
#include "controller/policy/decide.h"
#include "controller/simulation/queue.h"

#include <string.h>

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
	struct score s = { .requests = t.arrived - b.arrived,
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
			   .batch_lost_ms = t.batch_lost_ms - b.batch_lost_ms,
			   .draws = 1 };

	s.draws_met = score_keeps(&s, r->s->world.fleet->pools[pool].objective_late_ppm);
	s.late_least = s.late_most = score_late_share(&s);
	return s;
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

double score_late_share(const struct score *s)
{
	return s->requests ? (double)s->late / (double)s->requests : 0;
}

bool score_keeps(const struct score *s, int64_t late_ppm)
{
	return (double)s->late * 1e6 <= (double)late_ppm * (double)s->requests;
}

double score_gpu_hours(const struct score *s)
{
	return (double)s->gpu_ms / (double)HOUR;
}

double score_dollars(const struct score *s)
{
	return (double)s->micro_dollars / 1e6;
}

void score_write_dollars(const struct pool_spec *pool, int64_t micro_dollars, struct buf *out)
{
	if (pool->is_unpriced)
		buf_text(out, "null");
	else
		buf_printf(out, "%.4f", (double)micro_dollars / 1e6);
}

void score_write_wait(const struct score *s, millis wait, struct buf *out)
{
	if (s->started)
		buf_printf(out, "%.3f", (double)wait / 1000);
	else
		buf_text(out, "null");
}

struct preheat {
	struct policy_state *memory;
	struct arena arena;
};

static bool fix_rule(struct policy_state *m, const struct fleet_spec *fleet, const char *setting, struct error *e)
{
	int64_t rule;

	if (!*setting)
		return true;
	if (strncmp(setting, "rule=", 5) != 0 || !fixed_parse(setting + 5, strlen(setting + 5), 0, &rule))
		return error_set(e, ERROR_INVALID,
				 "preheat: setting '%s'; allowed: nothing, or rule=N to follow one rule; "
				 "the numbers stand in the decisions (preheat explain)",
				 setting);
	for (size_t i = 0; i < fleet->pool_count; i++) {
		if (rule >= (int64_t)rule_count(m, i))
			return error_set(e, ERROR_INVALID, "preheat: rule=%lld; pool %s has rules 0 to %zu",
					 (long long)rule, fleet->pools[i].name, rule_count(m, i) - 1);
		policy_state_fix_rule(m, i, rule);
	}
	return true;
}

static void preheat_close(void *state)
{
	struct preheat *p = state;

	policy_state_free(p->memory);
	struct arena arena = p->arena; /* the state lies in it */
	arena_release(&arena);
}

static void *preheat_open(const struct fleet_spec *fleet, const char *setting, struct error *e)
{
	struct arena arena = { 0 };
	struct preheat *p = arena_new(&arena, struct preheat);

	p->arena = arena;
	p->memory = policy_state_new(fleet);
	if (fix_rule(p->memory, fleet, setting, e))
		return p;
	preheat_close(p);
	return NULL;
}

static struct plan preheat_decide(void *state, const struct snapshot *s, struct arena *a)
{
	return policy_decide(s, ((struct preheat *)state)->memory, a);
}

struct policy_state *preheat_memory(void *state)
{
	return ((struct preheat *)state)->memory;
}

const struct policy_ops policy_preheat = {
	.name = "preheat",
	.help = "shadow fleets: follows the rule that would have met the objective most cheaply so far",
	.open = preheat_open,
	.close = preheat_close,
	.decide = preheat_decide,
};
