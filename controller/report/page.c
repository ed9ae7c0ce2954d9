#include "base/file.h"
#include "controller/explain/explain.h"
#include "controller/report/assets.h"
#include "controller/report/collect.h"

#include <string.h>

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
		report_rule_text(d, &text);
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
	buf_printf(out, ",\"gpu_hours\":%.6g,\"dollars\":%.8g,\"starts\":%lld,\"removals\":%lld}", score_gpu_hours(s),
		   score_dollars(s), (long long)s->starts, (long long)s->removals);
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
		buf_printf(out, "\"dollars\":%.8g,\"gpu_hours\":%.6g,\"late_share\":%.6g}", n->rival.dollars,
			   n->rival.gpu_hours, n->rival.late_share);
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
