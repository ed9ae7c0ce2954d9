#include "base/quantity.h"
#include "controller/manifest/draft.h"

#include <string.h>

static void check_objective(struct draft *d, const struct spec_text *s)
{
	const struct objective_text *o = &s->objective;
	bool has_share = is_given(o->node, "attainment"), has_wait = is_given(o->node, "queueWait");
	bool has_cost = is_given(o->node, "violationCost"), has_outer_cost = is_given(s->node, "violationCost");
	static const char one_of[] = "{ queueWait: 2s, attainment: 99% }, or violationCost: 0.01 in its place";

	if (!is_given(s->node, "objective") && !has_outer_cost)
		schema_find_key(d->findings, s->node, "objective", NULL, one_of, "say what the pool must keep");
	if (o->node && !has_share && !has_cost && !has_outer_cost)
		schema_find_key(d->findings, o->node, "attainment", NULL, "a share, like 99%, or violationCost",
				"add it");
	if (has_share && !has_wait)
		schema_find_key(d->findings, o->node, "queueWait", NULL, "a duration, like 2s",
				"say which wait the share is about");
	if (has_share && (has_cost || has_outer_cost))
		schema_find_key(d->findings, has_cost ? o->node : s->node, "violationCost",
				"violationCost beside attainment", "one of the two", "delete one");
	if (has_cost && has_outer_cost)
		schema_find_key(d->findings, s->node, "violationCost", "violationCost at two places", "one of them",
				"delete one");
}

static void check_rates(struct draft *d, const struct workload_text *w)
{
	/* Half as much again is more than rounding and drafts of tokens explain. */
	if (!is_given(w->node, "maxSequences") || !is_given(w->node, "tokensPerSecond") ||
	    !is_given(w->node, "interTokenLatency"))
		return;
	double most = (double)w->max_sequences * 1e6 / (double)w->inter_token_latency_us;
	if ((double)w->tokens_per_second <= 1.5 * most)
		return;
	CLEANUP(buf_release) struct buf allowed = { 0 };
	buf_printf(&allowed, "at most about %.0f: maxSequences / interTokenLatency", most);
	schema_find_key(d->findings, w->node, "tokensPerSecond", NULL, allowed.text,
			"correct one of the three, or leave one out");
}

void find_above(struct draft *d, const struct yaml_node *map, const char *key, const char *bound, int64_t value,
		const char *remedy)
{
	CLEANUP(buf_release) struct buf allowed = { 0 };

	buf_printf(&allowed, "at most %s, which is %lld", bound, (long long)value);
	schema_find_key(d->findings, map, key, NULL, allowed.text, remedy);
}

void check_quantiles(struct draft *d, const struct quantiles_text *q)
{
	CLEANUP(buf_release) struct buf allowed = { 0 };

	if (!q->node || !q->p95 || !is_given(q->node, "p50"))
		return;
	buf_text(&allowed, "above 0 and at most p95, which is ");
	duration_format(q->p95, &allowed);
	if (q->p50 > q->p95 || !q->p50)
		schema_find_key(d->findings, q->node, "p50", NULL, allowed.text, "swap or correct them");
}

static void check_lead_time(struct draft *d, const struct lead_time_text *l)
{
	bool has_stage = false;

	check_quantiles(d, &l->total);
	for (int i = 0; i < STAGE_COUNT; i++) {
		check_quantiles(d, &l->stage[i]);
		has_stage = has_stage || l->stage[i].node;
	}
	if (l->total.node && has_stage)
		schema_find_key(d->findings, l->node, "total", "total beside stages", "total, or stages",
				"delete total, or all stages");
	if (l->total.node && is_given(l->total.node, "p95") && !l->total.p95)
		schema_find_key(d->findings, l->total.node, "p95", "a lead time of 0", "more than 0",
				"give what was measured, or leave leadTime out");
}

static void check_window(struct draft *d, const struct window_text *w)
{
	struct cron cron;
	bool has_cron = is_given(w->node, "cron"), has_for = is_given(w->node, "for");
	static const char *const clock[] = { "days", "from", "to" };

	if (w->from == DAY / MINUTE)
		schema_find_key(d->findings, w->node, "from", NULL, "a time of day before \"24:00\"",
				"write \"00:00\" and the next day");
	if (!has_cron) {
		for (int i = 1; i < 3; i++)
			if (w->node && !is_given(w->node, clock[i]))
				schema_find_key(d->findings, w->node, clock[i], NULL,
						"a time of day like \"08:00\", or cron and for", "add it");
		if (has_for)
			schema_find_key(d->findings, w->node, "for", "for without cron", "for beside cron",
					"write to: and the time, or add cron");
		return;
	}
	for (int i = 0; i < 3; i++)
		if (is_given(w->node, clock[i]))
			schema_find_key(d->findings, w->node, clock[i], "days, from or to beside cron",
					"one of the two forms", "delete it, or cron");
	if (!has_for)
		schema_find_key(d->findings, w->node, "for", NULL, "a duration from 1m to 1d, like 11h",
				"say how long the window stays open");
	if (w->cron && !cron_parse(w->cron, &cron))
		schema_find_key(d->findings, w->node, "cron", NULL,
				"\"MINUTE HOUR * * WEEKDAYS\" with at most 48 openings a day, like \"0 8 * * mon-fri\"",
				"day of month and month must be *; write steps as lists: 0,30");
	if (w->duration % MINUTE)
		schema_find_key(d->findings, w->node, "for", NULL, "whole minutes",
				"round it: a window opens and closes on the minute");
}

static void check_headroom(struct draft *d, const struct headroom_text *h)
{
	const struct window_text *windows = h->schedule.items;

	if (h->max && h->min > h->max)
		find_above(d, h->node, "min", "headroom.max", h->max, "raise max or lower min");
	for (size_t i = 0; i < h->schedule.count; i++) {
		check_window(d, &windows[i]);
		if (h->max && windows[i].min > h->max)
			find_above(d, windows[i].node, "min", "headroom.max", h->max,
				   "raise headroom.max or lower min");
	}
}

static void check_lending(struct draft *d, const struct spec_text *s)
{
	if (s->lend.to >> s->class & 1)
		schema_find_key(d->findings, s->lend.node, "to", "the pool's own class", "other classes",
				"delete it from the list; pools of one class share node groups already");
}

static void check_pool(struct draft *d, const struct spec_text *s)
{
	if (!s->node)
		return;
	check_objective(d, s);
	check_rates(d, &s->workload);
	check_signals(d, &s->signals);
	check_costs(d, &s->cost_labels);
	check_lead_time(d, &s->lead_time);
	check_headroom(d, &s->headroom);
	check_lending(d, s);
}

static void check_name(struct draft *d, size_t pool)
{
	const struct metadata_text *m = &d->pools[pool].metadata;

	for (size_t i = 0; m->name && i < pool; i++) {
		const struct metadata_text *other = &d->pools[i].metadata;
		if (!other->name || strcmp(other->name, m->name) != 0)
			continue;
		const struct yaml_node *at = yaml_child(other->node, "name");
		CLEANUP(buf_release) struct buf allowed = { 0 };
		buf_printf(&allowed, "a name of its own; another pool has this one at %s:%zu:%zu", at->file, at->line,
			   at->column);
		schema_find_key(d->findings, m->node, "name", NULL, allowed.text,
				"rename one; traces and history tell pools apart by name alone");
		return;
	}
}

void check_pools(struct draft *d)
{
	for (size_t i = 0; i < d->pool_count; i++) {
		check_workload(d, i);
		check_pool(d, draft_spec(d, i));
		check_name(d, i);
	}
}
