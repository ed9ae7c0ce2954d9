#include "controller/report/report.h"

#include "base/buf.h"
#include "base/terminal.h"
#include "base/file.h"
#include "base/table.h"
#include "controller/explain/explain.h"
#include "controller/report/assets.h"
#include "controller/report/verdict.h"

#include <string.h>

/* Some ticks in a row, of one pool. Sums are over ticks; levels divide by `ticks`. */
struct point {
	int64_t ticks;
	int64_t demand_milli, demand_most; /* sum of the ticks, largest of the ticks */
	int64_t ready, starting, draining, standby, lent;
	int64_t waiting, waiting_most;
	int64_t arrived, started, late;
	int64_t gpu_ms, micro_dollars;
	int64_t margin_permille, hold_ms; /* of the rule in force at the end */
};

/* A decision worth a mark: the largest change of its stretch of time. */
struct mark {
	millis end; /* since the start of the traffic; 0: none in this stretch */
	int64_t tick;
	int64_t before, changes; /* hot before it; changes in the stretch */
	struct pool_plan plan;	 /* groups copied */
};

/* A time during which one rule was in force. */
struct reign {
	millis from;
	struct pool_decision decision; /* when it was adopted */
};

enum { REIGNS = 200 };

struct pool_report {
	struct point *points; /* most_points */
	struct mark *marks;   /* most_marks */
	struct reign *reigns; /* REIGNS, the latest ones */
	size_t reign_count;
	int64_t reigns_before; /* left out, because there were more */
	int64_t hot;	       /* after the last decision, ABSENT before the first */
	struct objective_price prices[OBJECTIVE_PRICES];
	size_t price_count;
	struct pool_decision last;
	struct pool_score score, first; /* of all draws, and of the one that was seen */
};

struct rival_node {
	struct rival_node *next;
	struct report_rival rival;
};

struct report {
	struct arena arena;
	struct report_run run;
	struct pool_report *pools;
	size_t most_points, most_marks; /* of a pool, so that the page stays small with many pools */
	size_t point_count;		/* in use */
	int64_t ticks_a_point;		/* 0 before the first tick */
	int64_t ticks, ticks_planned;
	bool is_stopped, has_scores, has_rules;
	struct rival_node *rivals, **rivals_end; /* in the order given */
};

/* --- collecting, tick by tick --- */

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

void report_result(struct report *r, const struct run_result *result, const struct pool_score *first)
{
	r->has_scores = true;
	r->is_stopped = result->stopped;
	for (size_t i = 0; i < r->run.fleet->pool_count; i++) {
		r->pools[i].score = result->pools[i];
		r->pools[i].first = first[i];
	}
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

/* --- the page: its numbers as JSON --- */

/* "10 % over demand, hold 13m30s, chase 0.25, standby 0.2". */
static void write_rule(const struct pool_decision *d, struct buf *out)
{
	double margin = (double)d->margin_permille / 10;

	buf_printf(out, "%.3g %% %s demand, hold %s, chase %.3g", margin < 0 ? -margin : margin,
		   margin < 0 ? "under" : "over", human_duration(d->hold_ms).text, (double)d->chase_permille / 1000);
	if (d->stock_permille != ABSENT)
		buf_printf(out, ", standby %.3g of hot", (double)d->stock_permille / 1000);
}

static double per(int64_t sum, int64_t count)
{
	return count ? (double)sum / (double)count : 0;
}

/* A JSON string that can also stand inside a script element. */
static void put_text(struct buf *out, const char *text)
{
	buf_text(out, "\"");
	for (; *text; text++) {
		unsigned char c = (unsigned char)*text;

		if (c < 0x20 || c == '"' || c == '\\' || c == '<' || c == 0x7f)
			buf_printf(out, "\\u%04x", c);
		else
			buf_append(out, text, 1);
	}
	buf_text(out, "\"");
}

static void put_member(struct buf *out, const char *name, const char *text)
{
	buf_printf(out, "\"%s\":", name);
	put_text(out, text);
	buf_text(out, ",");
}

/* The columns of the timeline: how a point becomes a number. */
enum column_kind { COLUMN_MEAN, COLUMN_MEAN_MILLI, COLUMN_SUM, COLUMN_MOST, COLUMN_MOST_MILLI };

struct column {
	const char *name;
	enum column_kind kind;
	size_t offset;
};

#define COLUMN(name, kind)                                \
	{                                                 \
#name, kind, offsetof(struct point, name) \
	}
static const struct column columns[] = {
	{ "demand", COLUMN_MEAN_MILLI, offsetof(struct point, demand_milli) },
	{ "demand_most", COLUMN_MOST_MILLI, offsetof(struct point, demand_most) },
	COLUMN(ready, COLUMN_MEAN),
	COLUMN(starting, COLUMN_MEAN),
	COLUMN(draining, COLUMN_MEAN),
	COLUMN(standby, COLUMN_MEAN),
	COLUMN(lent, COLUMN_MEAN),
	COLUMN(waiting, COLUMN_MEAN),
	COLUMN(waiting_most, COLUMN_MOST),
	COLUMN(arrived, COLUMN_SUM),
	COLUMN(started, COLUMN_SUM),
	COLUMN(late, COLUMN_SUM),
	{ "margin_permille", COLUMN_MOST, offsetof(struct point, margin_permille) },
	{ "hold_ms", COLUMN_MOST, offsetof(struct point, hold_ms) },
	{ "micro_dollars", COLUMN_SUM, offsetof(struct point, micro_dollars) },
	{ "gpu_ms", COLUMN_SUM, offsetof(struct point, gpu_ms) },
};
#undef COLUMN

static void put_value(struct buf *out, const struct column *c, const struct point *p)
{
	int64_t value;

	memcpy(&value, (const char *)p + c->offset, sizeof value);
	switch (c->kind) {
	case COLUMN_MEAN:
		buf_printf(out, "%.4g", per(value, p->ticks));
		break;
	case COLUMN_MEAN_MILLI:
		buf_printf(out, "%.4g", per(value, p->ticks) / 1000);
		break;
	case COLUMN_MOST_MILLI:
		buf_printf(out, "%.4g", (double)value / 1000);
		break;
	case COLUMN_SUM:
	case COLUMN_MOST:
		buf_printf(out, "%lld", (long long)value);
		break;
	}
}

static void put_timeline(struct buf *out, const struct report *r, const struct pool_report *p)
{
	buf_text(out, "\"ticks\":[");
	for (size_t i = 0; i < r->point_count; i++)
		buf_printf(out, "%s%lld", i ? "," : "", (long long)p->points[i].ticks);
	buf_text(out, "],\"timeline\":{");
	for (size_t c = 0; c < sizeof columns / sizeof *columns; c++) {
		buf_printf(out, "%s\"%s\":[", c ? "," : "", columns[c].name);
		for (size_t i = 0; i < r->point_count; i++) {
			buf_text(out, i ? "," : "");
			put_value(out, &columns[c], &p->points[i]);
		}
		buf_text(out, "]");
	}
	buf_text(out, "},");
}

/* Title and text of each part, in turn; nothing for a policy that does not explain itself. */
static void put_reasons(struct buf *out, const struct report *r, size_t pool, const struct mark *m)
{
	CLEANUP(arena_release) struct arena a = { 0 };
	struct explained x = {
		.fleet = r->run.fleet, .pool = pool, .tick = m->tick, .now = r->run.start + m->end, .plan = &m->plan
	};

	if (m->plan.decision.slots_milli <= 0)
		return;
	struct explanation explanation = explain_decision(&x, &a);
	for (size_t i = 0; i < explanation.count; i++) {
		buf_text(out, i ? "," : "");
		put_text(out, explanation.parts[i].title);
		buf_text(out, ",");
		put_text(out, explanation.parts[i].text);
	}
}

static void put_mark(struct buf *out, const struct report *r, size_t pool, const struct mark *m)
{
	const struct pool_decision *d = &m->plan.decision;
	const char *limit = limit_name((enum limit)d->held_by);

	buf_printf(out, "{\"end_s\":%lld,\"before\":%lld,\"wished\":%lld,\"decided\":%lld,\"changes\":%lld,",
		   (long long)(m->end / SECOND), (long long)m->before,
		   (long long)(d->wished == ABSENT ? d->decided : d->wished), (long long)d->decided,
		   (long long)m->changes);
	buf_text(out, "\"held_by\":");
	put_text(out, d->held_by == LIMIT_NONE || !limit ? "" : limit);
	buf_text(out, ",\"reasons\":[");
	put_reasons(out, r, pool, m);
	buf_text(out, "]}");
}

static void put_marks(struct buf *out, const struct report *r, size_t pool)
{
	const struct mark *marks = r->pools[pool].marks;
	const char *comma = "";

	buf_text(out, "\"decisions\":[");
	for (size_t i = 0; i < r->most_marks; i++) {
		if (!marks[i].end)
			continue;
		buf_text(out, comma);
		put_mark(out, r, pool, &marks[i]);
		comma = ",\n";
	}
	buf_text(out, "],");
}

static void put_reigns(struct buf *out, const struct pool_report *p)
{
	struct buf text = { 0 };

	buf_printf(out, "\"rules_left_out\":%lld,\"rules\":[", (long long)p->reigns_before);
	for (size_t i = 0; i < p->reign_count; i++) {
		const struct pool_decision *d = &p->reigns[i].decision;

		buf_clear(&text);
		write_rule(d, &text);
		buf_printf(out, "%s{\"from_s\":%lld,\"number\":%lld,\"share_ppm\":%lld,\"target_ppm\":%lld,\"text\":",
			   i ? "," : "", (long long)(p->reigns[i].from / SECOND), (long long)d->rule,
			   (long long)d->rule_share_ppm, (long long)d->target_ppm);
		put_text(out, text.text);
		buf_text(out, "}");
	}
	buf_text(out, "],");
	buf_release(&text);
}

static void put_prices(struct buf *out, const struct pool_report *p)
{
	const char *comma = "";

	buf_text(out, "\"prices\":[");
	for (size_t i = 0; i < p->price_count; i++) {
		const struct objective_price *o = &p->prices[i];

		if (o->rule == ABSENT)
			buf_printf(out, "%s{\"late_ppm\":%lld,\"dollars_per_hour\":null}", comma,
				   (long long)o->late_ppm);
		else
			buf_printf(out,
				   "%s{\"late_ppm\":%lld,\"dollars_per_hour\":%.6g,\"gpus\":%.5g,\"share_ppm\":%lld}",
				   comma, (long long)o->late_ppm, (double)o->dollars_per_hour / 1e6,
				   (double)o->gpu_milli / 1000, (long long)o->share_ppm);
		comma = ",";
	}
	buf_text(out, "],");
}

static void put_score(struct buf *out, const char *name, const struct score *s)
{
	buf_printf(out, "\"%s\":{\"requests\":%lld,\"late\":%lld,\"late_share\":%.6g,\"wait_p50_s\":", name,
		   (long long)s->requests, (long long)s->late, score_late_share(s));
	score_write_wait(s, s->wait_p50, out);
	buf_text(out, ",\"wait_p99_s\":");
	score_write_wait(s, s->wait_p99, out);
	buf_printf(out, ",\"gpu_hours\":%.6g,\"dollars\":%.8g,\"starts\":%lld,\"removals\":%lld,", score_gpu_hours(s),
		   score_dollars(s), (long long)s->starts, (long long)s->removals);
	buf_printf(out, "\"draws\":%lld,\"draws_met\":%lld,\"late_share_least\":%.6g,\"late_share_most\":%.6g}",
		   (long long)s->draws, (long long)s->draws_met, s->late_least, s->late_most);
}

static void put_rivals(struct buf *out, const struct report *r, size_t pool)
{
	const char *comma = "";

	buf_text(out, "\"rivals\":[");
	for (const struct rival_node *n = r->rivals; n; n = n->next) {
		if (n->rival.pool != pool)
			continue;
		buf_printf(out, "%s{", comma);
		put_member(out, "family", n->rival.family);
		put_member(out, "setting", n->rival.setting);
		buf_printf(out, "\"dollars\":%.8g,\"gpu_hours\":%.6g,\"late_share\":%.6g,\"draws\":%lld}",
			   n->rival.dollars, n->rival.gpu_hours, n->rival.late_share, (long long)n->rival.draws);
		comma = ",\n";
	}
	buf_text(out, "],");
}

static void put_pool(struct buf *out, const struct report *r, size_t i)
{
	const struct pool_spec *spec = &r->run.fleet->pools[i];
	const struct pool_report *p = &r->pools[i];

	buf_text(out, "{");
	put_member(out, "name", spec->name);
	put_member(out, "class", pool_class_name(spec->class));
	buf_printf(out, "\"objective_wait_s\":%.6g,\"objective_late_ppm\":%lld,\"violation_cost\":%.6g,",
		   (double)spec->objective_wait / 1000, (long long)spec->objective_late_ppm,
		   (double)spec->violation_cost / 1e6);
	buf_printf(out, "\"is_priced\":%s,", spec->is_unpriced ? "false" : "true");
	if (r->has_scores) {
		put_score(out, "whole", &p->score.whole);
		buf_text(out, ",");
		put_score(out, "scored", &p->score.scored);
		buf_text(out, ",");
	}
	put_timeline(out, r, p);
	put_marks(out, r, i);
	put_reigns(out, p);
	put_prices(out, p);
	put_rivals(out, r, i);
	buf_printf(out, "\"tier_saving_permille\":%lld}",
		   (long long)(p->last.tier_saving_permille == ABSENT ? 0 : p->last.tier_saving_permille));
}

static void put_numbers(struct buf *out, const struct report *r)
{
	const struct report_run *run = &r->run;

	buf_text(out, "{");
	put_member(out, "program", run->program);
	put_member(out, "policy", run->policy);
	put_member(out, "setting", run->setting);
	put_member(out, "traffic", run->traffic);
	buf_printf(out,
		   "\"seed\":\"%llu\",\"start_s\":%lld,\"tick_s\":%.6g,\"warm_up_s\":%.6g,\"ticks\":%lld,"
		   "\"ticks_planned\":%lld,\"stopped\":%s,\"has_rules\":%s,\"pools\":[\n",
		   (unsigned long long)run->seed, (long long)(run->start / SECOND), (double)run->interval / 1000,
		   (double)run->warm_up / 1000, (long long)r->ticks, (long long)r->ticks_planned,
		   r->is_stopped ? "true" : "false", r->has_rules ? "true" : "false");
	for (size_t i = 0; i < run->fleet->pool_count; i++) {
		buf_text(out, i ? ",\n" : "");
		put_pool(out, r, i);
	}
	buf_text(out, "]}");
}

static void put_element(struct buf *out, const char *open, const struct asset *content, const char *close)
{
	buf_text(out, open);
	buf_append(out, content->bytes, content->size);
	buf_text(out, close);
}

bool report_write(const struct report *r, const char *path, struct error *e)
{
	struct buf out = { 0 };

	buf_text(&out, "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n");
	buf_append(&out, asset_head_html.bytes, asset_head_html.size);
	put_element(&out, "<style>\n", &asset_tiers_css, "</style>\n");
	put_element(&out, "<style>\n", &asset_page_css, "</style>\n");
	put_element(&out, "<style>\n", &asset_chart_css, "</style>\n</head>\n");
	buf_append(&out, asset_body_html.bytes, asset_body_html.size);
	buf_text(&out, "<script type=\"application/json\" id=\"numbers\">\n");
	put_numbers(&out, r);
	buf_text(&out, "\n</script>\n");
	put_element(&out, "<script>\n", &asset_chart_js, "</script>\n");
	put_element(&out, "<script>\n", &asset_draw_js, "</script>\n");
	put_element(&out, "<script>\n", &asset_rivals_js, "</script>\n");
	put_element(&out, "<script>\n", &asset_page_js, "</script>\n</body>\n</html>\n");
	bool is_written = buf_ok(&out) ? file_write(path, out.text, out.len, e)
				       : error_set(e, ERROR_INTERNAL, "%s: the report grew too large", path);
	buf_release(&out);
	return is_written;
}

/* --- on a terminal --- */

enum { CHARTED_POOLS = 4, CAPACITY_ROWS = 8, LATE_ROWS = 3 };

static const struct table_column score_columns[] = {
	{ .name = "pool" },
	{ .name = "part" },
	{ .name = "objective", .is_wide = true },
	{ .name = "late", .is_right = true },
	{ .name = "draws", .is_right = true },
	{ .name = "met" },
	{ .name = "requests", .is_right = true, .is_wide = true },
	{ .name = "wait_p50", .title = "WAIT P50", .is_right = true, .is_wide = true },
	{ .name = "wait_p99", .title = "WAIT P99", .is_right = true },
	{ .name = "gpu_hours", .title = "GPU HOURS", .is_right = true },
	{ .name = "dollars", .is_right = true },
	{ .name = "starts", .is_right = true, .is_wide = true },
	{ .name = "removals", .is_right = true, .is_wide = true },
	{ .name = "gave_up", .title = "GAVE UP", .is_right = true, .is_wide = true },
	{ .name = "lost", .is_right = true, .is_wide = true },
	{ .name = "refused", .is_right = true, .is_wide = true },
	{ .name = "standby_gpu_hours", .title = "STANDBY GPU HOURS", .is_right = true, .is_wide = true },
};

static void put_objective(struct table *t, const struct pool_spec *spec)
{
	char text[96];

	if (spec->violation_cost > 0)
		snprintf(text, sizeof text, "$%.4g a late one", (double)spec->violation_cost / 1e6);
	else
		snprintf(text, sizeof text, "%.6g %% in %s", 100 - (double)spec->objective_late_ppm / 1e4,
			 human_duration(spec->objective_wait).text);
	table_text(t, text);
}

static bool is_judged(const struct pool_spec *spec, const struct score *s)
{
	return spec->violation_cost <= 0 && s->requests > 0;
}

static void put_verdict(struct table *t, const struct pool_spec *spec, const struct score *s)
{
	if (is_judged(spec, s))
		verdict_put_met(t, s, spec->objective_late_ppm);
	else
		table_absent(t);
}

static void put_wait(struct table *t, const struct score *s, millis wait)
{
	if (s->started)
		table_text(t, human_duration(wait).text);
	else
		table_absent(t);
}

static void put_score_row(struct table *t, const struct pool_spec *spec, const char *part, const struct score *s)
{
	table_text(t, spec->name);
	table_text(t, part);
	put_objective(t, spec);
	table_text(t, human_share(score_late_share(s)).text);
	verdict_put_range(t, s);
	put_verdict(t, spec, s);
	table_count(t, s->requests);
	put_wait(t, s, s->wait_p50);
	put_wait(t, s, s->wait_p99);
	table_decimal(t, score_gpu_hours(s), 1);
	spec->is_unpriced ? table_absent(t) : table_text(t, human_dollars(score_dollars(s)).text);
	table_count(t, s->starts);
	table_count(t, s->removals);
	table_count(t, s->gave_up);
	table_count(t, s->lost);
	table_count(t, s->refused);
	table_decimal(t, (double)s->standby_gpu_ms / HOUR, 1);
}

/* The longest waits may be of those that are in no quantile yet. */
static void print_waiting(const struct report *r, FILE *out)
{
	for (size_t i = 0; i < r->run.fleet->pool_count; i++) {
		int64_t waiting = r->pools[i].score.whole.waiting;

		if (waiting)
			fprintf(out, "%s: %s requests still waited at the end; WAIT is of those that started\n",
				r->run.fleet->pools[i].name, human_count(waiting).text);
	}
}

/* Where chance decides, a word alone would say too much. */
static void print_split(const struct report *r, size_t pool, FILE *out)
{
	const struct pool_spec *spec = &r->run.fleet->pools[pool];
	const struct score *s = &r->pools[pool].score.scored;
	CLEANUP(buf_release) struct buf words = { 0 };

	if (is_judged(spec, s))
		verdict_write_split(s, spec->objective_late_ppm, &words);
	if (!words.len)
		return;
	fprintf(out, "%s %s%s.\n", spec->name, words.text, r->run.warm_up > 0 ? ", after the warm-up" : "");
}

/* What the figures are the mean of, and what is of the first draw alone. */
static void print_draws(const struct report *r, FILE *out)
{
	int64_t draws = r->pools[0].score.scored.draws;

	if (draws < 2)
		return;
	for (size_t i = 0; i < r->run.fleet->pool_count; i++)
		print_split(r, i, out);
	fprintf(out,
		"All figures are means of %lld draws of chance; DRAWS is late in the best and the\n"
		"worst of them. Charts and decisions are of the first draw",
		(long long)draws);
	if (r->run.fleet->pool_count == 1)
		fprintf(out, ", with %s late", human_share(score_late_share(&r->pools[0].first.whole)).text);
	fputs(".\n", out);
}

static void print_table(const struct report *r, bool is_wide, FILE *out)
{
	struct table *t = table_new(score_columns, sizeof score_columns / sizeof *score_columns);

	for (size_t i = 0; i < r->run.fleet->pool_count; i++) {
		const struct pool_spec *spec = &r->run.fleet->pools[i];

		if (r->run.warm_up > 0)
			put_score_row(t, spec, "scored", &r->pools[i].score.scored);
		put_score_row(t, spec, "whole", &r->pools[i].score.whole);
	}
	table_print(t, is_wide ? TABLE_WIDE : TABLE_PLAIN, out);
	if (r->run.warm_up > 0)
		fprintf(out, "scored: without the first %s\n", human_duration(r->run.warm_up).text);
	table_free(t);
	print_waiting(r, out);
	print_draws(r, out);
}

static millis length_of(const struct report *r)
{
	return r->ticks * r->run.interval;
}

static void print_capacity(const struct report *r, size_t pool, const struct terminal *t, FILE *out)
{
	CLEANUP(arena_release) struct arena a = { 0 };
	double *demand = arena_array(&a, double, r->point_count), *hot = arena_array(&a, double, r->point_count);
	char title[96];

	for (size_t i = 0; i < r->point_count; i++) {
		const struct point *p = &r->pools[pool].points[i];

		demand[i] = (double)p->demand_milli / 1000 / (double)p->ticks;
		hot[i] = (double)p->ready / (double)p->ticks;
	}
	snprintf(title, sizeof title, "%.80s", r->run.fleet->pools[pool].name);
	chart_print(&(struct chart){ .title = title,
				     .unit = "replicas",
				     .area = { "demand", demand, CHART_MEAN },
				     .line = { "hot capacity", hot, CHART_MEAN },
				     .points = r->point_count,
				     .length = length_of(r),
				     .height = CAPACITY_ROWS },
		    t, out);
}

static void print_late(const struct report *r, size_t pool, const struct terminal *t, FILE *out)
{
	CLEANUP(arena_release) struct arena a = { 0 };
	double *late = arena_array(&a, double, r->point_count);
	char title[120], unit[64];
	int64_t sum = 0;

	for (size_t i = 0; i < r->point_count; i++) {
		late[i] = (double)r->pools[pool].points[i].late;
		sum += r->pools[pool].points[i].late;
	}
	if (!sum)
		return;
	snprintf(title, sizeof title, "%.80s late", r->run.fleet->pools[pool].name);
	snprintf(unit, sizeof unit, "most requests in %s", human_duration(r->ticks_a_point * r->run.interval).text);
	chart_print(&(struct chart){ .title = title,
				     .unit = unit,
				     .area = { "late", late, CHART_MAX },
				     .points = r->point_count,
				     .length = length_of(r),
				     .height = LATE_ROWS },
		    t, out);
}

void report_print_next(const struct report *r, const char *folder, FILE *out)
{
	if (!folder) {
		fprintf(out, "Nothing was written; --out DIR keeps the decisions and a report with charts.\n");
		return;
	}
	fprintf(out, "Next:\n");
	if (strcmp(r->run.policy, "preheat") == 0)
		fprintf(out,
			"  # why the largest decision was made\n"
			"  preheat explain --db %s/history.db --largest\n"
			"  # decide all of it again\n"
			"  preheat replay --db %s/history.db\n",
			folder, folder);
	fprintf(out, "  # charts, for a browser: %s/report.html\n", folder);
}

void report_print(const struct report *r, bool is_wide, FILE *out)
{
	struct terminal t = terminal_of(out);
	size_t pools = r->run.fleet->pool_count;

	for (size_t i = 0; i < pools && i < CHARTED_POOLS; i++) {
		print_capacity(r, i, &t, out);
		print_late(r, i, &t, out);
		putc('\n', out);
	}
	if (pools > CHARTED_POOLS)
		fprintf(out, "Charts of %zu more pools are in the report.\n\n", pools - CHARTED_POOLS);
	if (r->is_stopped)
		fprintf(out, "Stopped early: %s of %s ticks.\n", human_count(r->ticks).text,
			human_count(r->ticks_planned).text);
	print_table(r, is_wide, out);
	putc('\n', out);
}
