#include "controller/report/collect.h"
#include "base/terminal.h"

#include <string.h>

/* Of all pools together. */
enum { POINTS_OF_ALL = 8000, DECISIONS_OF_ALL = 1000 };

static size_t share_of(size_t all, size_t pools, size_t most)
{
	size_t share = all / (pools ? pools : 1);

	return share > most ? most : share ? share : 1;
}

struct report *report_new(const struct report_run *run)
{
	struct arena first = { 0 };
	struct report *r = arena_new(&first, struct report);

	*r = (struct report){ .arena = first, .run = *run };
	r->rivals_end = &r->rivals;
	r->pools = arena_array(&r->arena, struct pool_report, run->fleet->pool_count);
	r->most_points = share_of(POINTS_OF_ALL, run->fleet->pool_count, REPORT_POINTS);
	r->most_marks = share_of(DECISIONS_OF_ALL, run->fleet->pool_count, REPORT_DECISIONS);
	for (size_t i = 0; i < run->fleet->pool_count; i++) {
		struct pool_report *p = &r->pools[i];

		p->points = arena_array(&r->arena, struct point, r->most_points);
		p->marks = arena_array(&r->arena, struct mark, r->most_marks);
		p->reigns = arena_array(&r->arena, struct reign, REIGNS);
		p->hot = ABSENT;
	}
	return r;
}

void report_free(struct report *r)
{
	if (!r)
		return;
	struct arena own = r->arena; /* the report lies in it */
	arena_release(&own);
}

/* Rivals do not say what demand they saw: then the sequences that run, in replicas. */
static int64_t demand_of(const struct pool_spec *spec, const struct pool_decision *d, const struct tick_result *t)
{
	if (d->slots_milli > 0 && d->demand_milli != ABSENT)
		return d->demand_milli;
	return (t->running + t->running_draining) * 1000 / (spec->max_sequences > 0 ? spec->max_sequences : 1);
}

static int64_t larger(int64_t a, int64_t b)
{
	return a > b ? a : b;
}

static void add_tick(struct point *p, int64_t demand, const struct pool_decision *d, const struct tick_result *t)
{
	p->ticks++;
	p->demand_milli += demand;
	p->demand_most = larger(p->demand_most, demand);
	p->ready += t->ready;
	p->starting += t->starting;
	p->draining += t->draining;
	p->standby += t->standby;
	p->lent += t->lent;
	p->waiting += t->waiting;
	p->waiting_most = larger(p->waiting_most, t->waiting);
	p->arrived += t->arrived;
	p->started += t->started;
	p->late += t->late;
	p->gpu_ms += t->gpu_ms;
	p->micro_dollars += t->micro_dollars;
	p->margin_permille = d->margin_permille;
	p->hold_ms = d->hold_ms;
}

static struct pool_plan copy_plan(struct arena *a, const struct mark *old, const struct pool_plan *plan)
{
	struct pool_plan copy = *plan;
	size_t bytes = plan->group_count * sizeof *plan->groups;

	copy.groups = old->plan.groups ? old->plan.groups : arena_array(a, struct group_decision, plan->group_count);
	if (bytes)
		memcpy(copy.groups, plan->groups, bytes);
	return copy;
}

static int64_t size_of_change(int64_t before, int64_t after)
{
	return before > after ? before - after : after - before;
}

static void add_mark(struct report *r, struct pool_report *p, const struct tick_view *v, const struct pool_plan *plan)
{
	int64_t before = p->hot, after = plan->decision.decided;
	int64_t most = (int64_t)r->most_marks, stretch = (v->ticks + most - 1) / most, at = (r->ticks - 1) / stretch;

	p->hot = after;
	if (before == ABSENT || before == after || after == ABSENT || at >= most)
		return;
	struct mark *m = &p->marks[at];
	m->changes++;
	if (m->end && size_of_change(m->before, m->plan.decision.decided) >= size_of_change(before, after))
		return;
	*m = (struct mark){ .end = v->end,
			    .tick = r->ticks - 1,
			    .before = before,
			    .changes = m->changes,
			    .plan = copy_plan(&r->arena, m, plan) };
}

static void add_reign(struct pool_report *p, millis end, const struct pool_decision *d)
{
	if (p->reign_count && p->reigns[p->reign_count - 1].decision.rule == d->rule)
		return;
	if (p->reign_count == REIGNS) {
		memmove(p->reigns, p->reigns + 1, (REIGNS - 1) * sizeof *p->reigns);
		p->reign_count--;
		p->reigns_before++;
	}
	p->reigns[p->reign_count++] = (struct reign){ .from = end, .decision = *d };
}

static void add_pool(struct report *r, size_t i, const struct tick_view *v)
{
	const struct pool_plan *plan = &v->plan->pools[i];
	const struct pool_decision *d = &plan->decision;
	struct pool_report *p = &r->pools[i];
	int64_t demand = demand_of(&r->run.fleet->pools[i], d, &v->results[i]);

	add_tick(&p->points[r->point_count - 1], demand, d, &v->results[i]);
	add_mark(r, p, v, plan);
	if (d->slots_milli > 0 && d->rule != ABSENT) {
		r->has_rules = true;
		add_reign(p, v->end, d);
	}
	p->last = *d;
	p->price_count = plan->price_count;
	memcpy(p->prices, plan->prices, sizeof p->prices);
}

bool report_tick(void *report, const struct tick_view *v, struct error *e)
{
	struct report *r = report;

	(void)e;
	if (!r->ticks_a_point) {
		r->ticks_planned = v->ticks;
		r->ticks_a_point = larger(1, (v->ticks + (int64_t)r->most_points - 1) / (int64_t)r->most_points);
	}
	size_t point = (size_t)(r->ticks / r->ticks_a_point);
	if (point >= r->most_points)
		point = r->most_points - 1;
	r->point_count = point + 1;
	r->ticks++;
	for (size_t i = 0; i < v->plan->pool_count; i++)
		add_pool(r, i, v);
	return true;
}

void report_result(struct report *r, const struct run_result *result)
{
	r->has_scores = true;
	r->is_stopped = result->stopped;
	for (size_t i = 0; i < r->run.fleet->pool_count; i++)
		r->pools[i].score = result->pools[i];
}

static const char *keep(struct report *r, const char *text)
{
	return arena_strdup(&r->arena, text, strlen(text));
}

void report_add_rival(struct report *r, const struct report_rival *rival)
{
	struct rival_node *node = arena_new(&r->arena, struct rival_node);

	node->rival = *rival;
	node->rival.family = keep(r, rival->family);
	node->rival.setting = keep(r, rival->setting);
	*r->rivals_end = node;
	r->rivals_end = &node->next;
}

void report_rule_text(const struct pool_decision *d, struct buf *out)
{
	double margin = (double)d->margin_permille / 10;

	buf_printf(out, "%.3g %% %s demand, hold %s, chase %.3g", margin < 0 ? -margin : margin,
		   margin < 0 ? "under" : "over", human_duration(d->hold_ms).text, (double)d->chase_permille / 1000);
	if (d->stock_permille != ABSENT)
		buf_printf(out, ", standby %.3g of hot", (double)d->stock_permille / 1000);
}
