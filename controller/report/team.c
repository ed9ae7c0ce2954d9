/* The report on a terminal, and its words. */
#include "controller/report/team.h"

#include "base/terminal.h"
#include "base/json.h"
#include "base/quantity.h"
#include "base/table.h"
#include "controller/report/assets.h"

#include <string.h>

static int64_t billed(const struct team_slice *s);

/* "capacity was asked for and did not serve yet" */
static const char *team_cause_text(enum late_cause cause)
{
	static const char *const texts[LATE_CAUSE_COUNT] = {
		[LATE_BURST] = "more came at once than the headroom covered",
		[LATE_COLD_START] = "capacity was asked for and did not serve yet",
		[LATE_STOCKOUT] = "the cloud had none",
		[LATE_QUOTA] = "the cloud account may not have more",
		[LATE_MAX] = "the manifest's largest size or headroom was reached",
		[LATE_BUDGET] = "the budget was used up",
		[LATE_RATE] = "the pool grew as fast as it may",
		[LATE_STALE] = "signals were stale or missing",
		[LATE_NOT_ACTING] = "the pool is only watched, or paused",
	};

	return texts[cause];
}

/* "ran for 5h, and no request was in it at any look" */
static const char *team_holding_text(enum holding_kind kind)
{
	static const char *const texts[HOLDING_KIND_COUNT] = {
		[HOLDING_UNUSED] = "runs, and does nothing with its GPUs",
		[HOLDING_FINISHED] = "has ended, and still stands there with its request; delete it",
		[HOLDING_OVERSIZED] = "never used as many GPUs at once as it asked for",
	};

	return texts[kind];
}

/* GPU hours of the quota that no pod held. */
static millis team_unheld_ms(const struct quota_hour *q)
{
	return q->hard_gpu_ms > q->used_gpu_ms ? q->hard_gpu_ms - q->used_gpu_ms : 0;
}

static void add_hours(struct table *t, millis sum)
{
	table_text(t, human_decimal((double)sum / HOUR, 1).text);
}

static void add_share(struct table *t, int64_t part, int64_t whole)
{
	if (whole <= 0)
		table_absent(t);
	else
		table_text(t, human_share((double)part / (double)whole).text);
}

static void print_strong(const char *text, FILE *out)
{
	struct terminal t = terminal_of(out);

	fprintf(out, "%s%s%s", terminal_style(&t, STYLE_STRONG), text, terminal_style(&t, STYLE_PLAIN));
}

static void print_heading(const char *text, FILE *out)
{
	fputs("\n", out);
	print_strong(text, out);
	fputs("\n", out);
}

static void add_pool(struct table *t, const char *name, const char *namespace, const struct cost_sums *s)
{
	table_text(t, name);
	table_text(t, namespace);
	add_hours(t, cost_billed_gpu_ms(s));
	add_hours(t, s->gpu_ms[GPU_SERVING]);
	add_hours(t, s->gpu_ms[GPU_IDLE]);
	add_hours(t, s->gpu_ms[GPU_LENT]);
	add_hours(t, s->gpu_ms[GPU_STARTING]);
	add_share(t, s->gpu_ms[GPU_SERVING], cost_billed_gpu_ms(s));
	table_text(t, human_dollars((double)cost_micro_dollars(s) / 1e6).text);
	table_count(t, s->started);
	add_share(t, s->late, s->started);
	add_hours(t, s->gpu_ms[GPU_STANDBY]);
	add_hours(t, s->blind_gpu_ms);
	table_count(t, s->prompt_tokens);
	table_count(t, s->output_tokens);
}

static void print_pools(const struct team_report *r, bool is_wide, FILE *out)
{
	static const struct table_column columns[] = {
		{ .name = "pool" },
		{ .name = "namespace" },
		{ .name = "hours", .title = "GPU HOURS", .is_right = true },
		{ .name = "used", .is_right = true },
		{ .name = "idle", .is_right = true },
		{ .name = "lent", .is_right = true },
		{ .name = "starting", .is_right = true },
		{ .name = "share", .title = "IN USE", .is_right = true },
		{ .name = "dollars", .is_right = true },
		{ .name = "requests", .is_right = true },
		{ .name = "late", .is_right = true },
		{ .name = "standby", .is_right = true, .is_wide = true },
		{ .name = "unread", .is_right = true, .is_wide = true },
		{ .name = "prompt", .title = "PROMPT TOKENS", .is_right = true, .is_wide = true },
		{ .name = "output", .title = "OUTPUT TOKENS", .is_right = true, .is_wide = true },
	};
	struct table *t = table_new(columns, sizeof columns / sizeof *columns);

	for (size_t i = 0; i < r->pool_count; i++)
		add_pool(t, r->pools[i].name, r->pools[i].namespace, &r->pools[i].sums);
	if (r->pool_count > 1)
		add_pool(t, "total", "", &r->total);
	table_print(t, is_wide ? TABLE_WIDE : TABLE_PLAIN, out);
	table_free(t);
}

static void print_quotas(const struct team_report *r, FILE *out)
{
	static const struct table_column columns[] = {
		{ .name = "namespace" },
		{ .name = "quota" },
		{ .name = "resource" },
		{ .name = "hard", .is_right = true },
		{ .name = "most", .title = "MOST HELD", .is_right = true },
		{ .name = "hours", .title = "GPU HOURS", .is_right = true },
		{ .name = "held", .is_right = true },
		{ .name = "unheld", .title = "NOT USED", .is_right = true },
		{ .name = "share", .title = "NOT USED %", .is_right = true },
	};
	struct table *t = table_new(columns, sizeof columns / sizeof *columns);

	for (size_t i = 0; i < r->quota_count; i++) {
		const struct quota_hour *q = &r->quotas[i];
		table_text(t, q->namespace);
		table_text(t, q->name);
		table_text(t, q->resource);
		table_count(t, q->hard);
		table_count(t, q->used_most);
		add_hours(t, q->hard_gpu_ms);
		add_hours(t, q->used_gpu_ms);
		add_hours(t, team_unheld_ms(q));
		add_share(t, team_unheld_ms(q), q->hard_gpu_ms);
	}
	print_heading("Quota", out);
	table_print(t, TABLE_PLAIN, out);
	table_free(t);
}

static void add_gpus(struct table *t, int64_t milli)
{
	CLEANUP(buf_release) struct buf text = { 0 };

	if (milli == ABSENT) {
		table_absent(t);
		return;
	}
	fixed_format(milli, 3, &text);
	table_text(t, text.text);
}

static void print_holdings(const struct team_report *r, FILE *out)
{
	static const struct table_column columns[] = {
		{ .name = "pod" },
		{ .name = "namespace" },
		{ .name = "gpus", .is_right = true },
		{ .name = "used", .title = "MOST USED", .is_right = true },
		{ .name = "since" },
		{ .name = "for", .is_right = true },
		{ .name = "why" },
	};
	struct table *t = table_new(columns, sizeof columns / sizeof *columns);

	for (size_t i = 0; i < r->holding_count; i++) {
		const struct holding *h = &r->holdings[i];
		table_text(t, h->pod);
		table_text(t, h->namespace);
		add_gpus(t, h->gpus_milli);
		add_gpus(t, h->used_most_milli);
		table_text(t, r->holding_since[i]);
		table_text(t, human_duration(h->until - h->since).text);
		table_text(t, team_holding_text(h->kind));
	}
	print_heading("GPUs held for nothing", out);
	table_print(t, TABLE_PLAIN, out);
	table_free(t);
}

static void print_late(const struct team_report *r, FILE *out)
{
	static const struct table_column columns[] = {
		{ .name = "cause" },
		{ .name = "late", .is_right = true },
		{ .name = "share", .is_right = true },
		{ .name = "meaning" },
	};
	struct table *t = table_new(columns, sizeof columns / sizeof *columns);

	for (int i = 0; i < LATE_CAUSE_COUNT; i++) {
		if (!r->total.late_by[i])
			continue;
		table_text(t, late_cause_name((enum late_cause)i));
		table_count(t, r->total.late_by[i]);
		add_share(t, r->total.late_by[i], r->total.late);
		table_text(t, team_cause_text((enum late_cause)i));
	}
	print_heading("Late requests", out);
	table_print(t, TABLE_PLAIN, out);
	table_free(t);
}

void team_print(const struct team_report *r, bool is_wide, FILE *out)
{
	print_strong(r->namespace ? r->namespace : "All namespaces", out);
	fprintf(out, ", %s\n\n", r->period);
	print_pools(r, is_wide, out);
	if (r->quota_count)
		print_quotas(r, out);
	if (r->holding_count)
		print_holdings(r, out);
	if (r->total.late)
		print_late(r, out);
	for (size_t i = 0; i < r->note_count; i++)
		fprintf(out, "%s%s\n", i ? "" : "\n", r->notes[i]);
}

static void put_key(const char *name, struct buf *out)
{
	json_write_comma(out);
	json_write_text(name, out);
	buf_text(out, ":");
}

static void put_text(const char *name, const char *text, struct buf *out)
{
	put_key(name, out);
	if (text)
		json_write_text(text, out);
	else
		buf_text(out, "null");
}

static void put_count(const char *name, int64_t n, struct buf *out)
{
	put_key(name, out);
	buf_printf(out, "%lld", (long long)n);
}

static void put_fixed(const char *name, int64_t value, int digits, struct buf *out)
{
	put_key(name, out);
	if (value == ABSENT)
		buf_text(out, "null");
	else
		fixed_format(value, digits, out);
}

/* Hours from milliseconds. */
static void put_hours(const char *name, millis sum, struct buf *out)
{
	put_fixed(name, (int64_t)((__int128)sum * 1000000 / HOUR), 6, out);
}

static void put_states(const char *name, const int64_t *gpu_ms, struct buf *out)
{
	put_key(name, out);
	buf_text(out, "{");
	for (int i = 0; i < GPU_STATE_COUNT; i++)
		put_hours(gpu_state_name((enum gpu_state)i), gpu_ms[i], out);
	buf_text(out, "}");
}

static void put_sums(const struct cost_sums *s, struct buf *out)
{
	put_hours("gpu_hours", cost_billed_gpu_ms(s), out);
	put_states("gpu_hours_by_state", s->gpu_ms, out);
	put_fixed("dollars", cost_micro_dollars(s), 6, out);
	put_key("dollars_by_state", out);
	buf_text(out, "{");
	for (int i = 0; i < GPU_STATE_COUNT; i++)
		put_fixed(gpu_state_name((enum gpu_state)i), s->dollars[i], 6, out);
	buf_text(out, "}");
	put_hours("unread_gpu_hours", s->blind_gpu_ms, out);
	put_hours("watched_hours", s->watched_ms, out);
	put_count("requests", s->started, out);
	put_count("prompt_tokens", s->prompt_tokens, out);
	put_count("output_tokens", s->output_tokens, out);
	put_count("late", s->late, out);
	put_key("late_by_cause", out);
	buf_text(out, "{");
	for (int i = 0; i < LATE_CAUSE_COUNT; i++)
		put_count(late_cause_name((enum late_cause)i), s->late_by[i], out);
	buf_text(out, "}");
}

static void put_quota(const struct quota_hour *q, struct buf *out)
{
	json_write_comma(out);
	buf_text(out, "{");
	put_text("namespace", q->namespace, out);
	put_text("quota", q->name, out);
	put_text("resource", q->resource, out);
	put_count("hard", q->hard, out);
	put_count("most_held", q->used_most, out);
	put_hours("gpu_hours", q->hard_gpu_ms, out);
	put_hours("held_gpu_hours", q->used_gpu_ms, out);
	put_hours("not_used_gpu_hours", team_unheld_ms(q), out);
	buf_text(out, "}");
}

static void put_holding(const struct holding *h, struct buf *out)
{
	json_write_comma(out);
	buf_text(out, "{");
	put_text("kind", holding_kind_name(h->kind), out);
	put_text("namespace", h->namespace, out);
	put_text("pod", h->pod, out);
	put_text("node", h->node, out);
	put_fixed("gpus", h->gpus_milli, 3, out);
	put_fixed("gpus_used_most", h->used_most_milli, 3, out);
	put_fixed("since_s", h->since, 3, out);
	put_fixed("until_s", h->until, 3, out);
	buf_text(out, "}");
}

static void put_pools(const struct team_report *r, struct buf *out)
{
	put_key("pools", out);
	buf_text(out, "[");
	for (size_t i = 0; i < r->pool_count; i++) {
		json_write_comma(out);
		buf_text(out, "\n{");
		put_text("pool", r->pools[i].name, out);
		put_text("namespace", r->pools[i].namespace, out);
		put_text("class", pool_class_name(r->pools[i].class), out);
		put_sums(&r->pools[i].sums, out);
		buf_text(out, "}");
	}
	buf_text(out, "],\n");
}

void team_json(const struct team_report *r, struct buf *out)
{
	buf_text(out, "{");
	put_text("program", r->program, out);
	put_text("namespace", r->namespace, out);
	put_text("from", r->from, out);
	put_text("to", r->to, out);
	put_pools(r, out);
	put_key("total", out);
	buf_text(out, "{");
	put_sums(&r->total, out);
	buf_text(out, "},\n");
	put_key("quotas", out);
	buf_text(out, "[");
	for (size_t i = 0; i < r->quota_count; i++)
		put_quota(&r->quotas[i], out);
	buf_text(out, "],\n");
	put_key("held_for_nothing", out);
	buf_text(out, "[");
	for (size_t i = 0; i < r->holding_count; i++)
		put_holding(&r->holdings[i], out);
	buf_text(out, "],\n");
	put_key("notes", out);
	buf_text(out, "[");
	for (size_t i = 0; i < r->note_count; i++) {
		json_write_comma(out);
		json_write_text(r->notes[i], out);
	}
	buf_text(out, "]}\n");
}

/* The report as one page: no script, no other host, readable without colour. */

/* In the order in which they stand on each other. */
static const enum gpu_state stacked[GPU_BILLED_STATES] = { GPU_SERVING, GPU_LENT, GPU_STARTING, GPU_IDLE };
static const char *const state_words[GPU_STATE_COUNT] = { "idle", "lent", "starting", "used", "stopped" };

enum { CHART_WIDTH = 1000, CHART_HEIGHT = 220, CHART_LEFT = 70, CHART_BOTTOM = 36 };

static void page_put_text(const char *text, struct buf *out)
{
	for (; *text; text++)
		switch (*text) {
		case '<':
			buf_text(out, "&lt;");
			break;
		case '>':
			buf_text(out, "&gt;");
			break;
		case '&':
			buf_text(out, "&amp;");
			break;
		case '"':
			buf_text(out, "&quot;");
			break;
		default:
			buf_append(out, text, 1);
		}
}

static void put_cell(const char *text, bool is_number, struct buf *out)
{
	buf_text(out, is_number ? "<td class=\"number\">" : "<td>");
	page_put_text(text, out);
	buf_text(out, "</td>");
}

static void put_words(const char *text, struct buf *out)
{
	buf_text(out, "<td class=\"words\">");
	page_put_text(text, out);
	buf_text(out, "</td>");
}

static void page_put_hours(millis sum, struct buf *out)
{
	put_cell(human_decimal((double)sum / HOUR, 1).text, true, out);
}

static void put_share(int64_t part, int64_t whole, struct buf *out)
{
	put_cell(whole > 0 ? human_share((double)part / (double)whole).text : "-", true, out);
}

/* Titles separated by |; those that begin with # stand right. */
static void put_table(const char *titles, struct buf *out)
{
	buf_text(out, "<div class=\"scroll\" tabindex=\"0\"><table class=\"data\"><thead><tr>");
	while (*titles) {
		size_t len = strcspn(titles, "|");
		bool is_number = *titles == '#';
		buf_printf(out, "<th scope=\"col\"%s>%.*s</th>", is_number ? " class=\"number\"" : "",
			   (int)(len - is_number), titles + is_number);
		titles += len + (titles[len] == '|');
	}
	buf_text(out, "</tr></thead><tbody>\n");
}

static void end_table(struct buf *out)
{
	buf_text(out, "</tbody></table></div>\n");
}

/* --- the head --- */

static void put_tile(const char *number, const char *words, struct buf *out)
{
	buf_text(out, "<li><strong>");
	page_put_text(number, out);
	buf_text(out, "</strong> ");
	page_put_text(words, out);
	buf_text(out, "</li>\n");
}

static void put_tiles(const struct team_report *r, struct buf *out)
{
	const struct cost_sums *s = &r->total;
	int64_t billed = cost_billed_gpu_ms(s);
	double part = billed ? (double)s->gpu_ms[GPU_SERVING] / (double)billed : 0;

	buf_text(out, "<ul class=\"tiles\">\n");
	put_tile(human_decimal((double)billed / HOUR, 1).text, "GPU hours", out);
	put_tile(billed ? human_share(part).text : "-", "of them in use", out);
	put_tile(human_dollars((double)cost_micro_dollars(s) / 1e6).text, "dollars", out);
	put_tile(human_count(s->started).text, "requests", out);
	put_tile(s->started ? human_share((double)s->late / (double)s->started).text : "-", "late", out);
	buf_text(out, "</ul>\n");
}

static void put_head(const struct team_report *r, struct buf *out)
{
	static const char style[] =
		"ul.tiles { display: flex; flex-wrap: wrap; gap: 0.6rem; list-style: none; margin: 1rem 0; padding: 0; "
		"}\n"
		"ul.tiles li { background: var(--panel); padding: 0.6rem 0.9rem; flex: 1 1 7rem; color: var(--faint); "
		"}\n"
		"ul.tiles strong { display: block; font-size: 1.4rem; color: var(--ink); font-weight: 600; }\n"
		"svg.bars { width: 100%; height: auto; } svg.bars text { fill: var(--faint); font-size: 13px; }\n"
		"svg.bars line { stroke: var(--rule); }\n"
		".serving { fill: var(--ready); background: var(--ready); } .lent { fill: var(--lent); background: "
		"var(--lent); }\n"
		".starting { fill: var(--starting); background: var(--starting); } .idle { fill: var(--draining); "
		"background: var(--draining); }\n"
		"ul.tiles strong, .data td { white-space: nowrap; }\n"
		".data td.words { white-space: normal; min-width: 14rem; }\n"
		"@media (max-width: 40rem) { svg.bars text { font-size: 30px; } ul.tiles { gap: 0.4rem; }\n"
		"\tul.tiles strong { font-size: 1.1rem; } }\n"
		".meter { display: block; background: var(--panel); height: 0.6rem; min-width: 7rem; }\n"
		".meter span { display: block; height: 0.6rem; }\n";

	buf_text(out, "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
		      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
		      "<meta name=\"color-scheme\" content=\"light dark\">\n"
		      "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src "
		      "'unsafe-inline'\">\n<title>GPUs of ");
	page_put_text(r->namespace ? r->namespace : "all namespaces", out);
	buf_text(out, "</title>\n<style>\n");
	buf_append(out, asset_page_css.bytes, asset_page_css.size);
	buf_text(out, style);
	buf_text(out, "</style>\n</head>\n<body>\n<header>\n<h1>GPUs of ");
	page_put_text(r->namespace ? r->namespace : "all namespaces", out);
	buf_text(out, "</h1>\n<p>");
	page_put_text(r->period, out);
	buf_text(out, "</p>\n");
	for (size_t i = 0; i < r->note_count; i++) {
		buf_text(out, "<p class=\"notes\">");
		page_put_text(r->notes[i], out);
		buf_text(out, "</p>\n");
	}
	buf_text(out, "</header>\n<main>\n");
	put_tiles(r, out);
}

/* --- hours over time --- */

static int64_t billed(const struct team_slice *s)
{
	int64_t sum = 0;

	for (int i = 0; i < GPU_BILLED_STATES; i++)
		sum += s->gpu_ms[i];
	return sum;
}

static void put_bar(const struct team_slice *s, double x, double width, double per_ms, struct buf *out)
{
	double y = CHART_HEIGHT;

	buf_text(out, "<g><title>");
	page_put_text(s->label, out);
	for (int i = 0; i < GPU_BILLED_STATES; i++)
		buf_printf(out, "; %s %.1f h", state_words[stacked[i]], (double)s->gpu_ms[stacked[i]] / HOUR);
	buf_text(out, "</title>");
	for (int i = 0; i < GPU_BILLED_STATES; i++) {
		double height = (double)s->gpu_ms[stacked[i]] * per_ms;
		if (height <= 0)
			continue;
		y -= height;
		buf_printf(out, "<rect class=\"%s\" x=\"%.2f\" y=\"%.2f\" width=\"%.2f\" height=\"%.2f\"/>",
			   gpu_state_name(stacked[i]), x, y, width, height);
	}
	buf_text(out, "</g>\n");
}

static void put_axis(const struct team_report *r, double most, struct buf *out)
{
	for (int i = 0; i <= 2; i++) {
		double y = CHART_HEIGHT * (1 - i / 2.0 * 0.95);
		buf_printf(out,
			   "<line x1=\"%d\" x2=\"%d\" y1=\"%.1f\" y2=\"%.1f\"/><text x=\"%d\" y=\"%.1f\" "
			   "text-anchor=\"end\">%s</text>\n",
			   CHART_LEFT, CHART_WIDTH, y, y, CHART_LEFT - 6,
			   y + (i == 2	 ? 12
				: i == 1 ? 4
					 : 0),
			   human_decimal(most * i / 2 / HOUR, most < 20 * (double)HOUR ? 1 : 0).text);
	}
	buf_printf(out, "<text x=\"%d\" y=\"%d\">", CHART_LEFT, CHART_HEIGHT + CHART_BOTTOM - 8);
	page_put_text(r->slices[0].label, out);
	buf_printf(out, "</text><text x=\"%d\" y=\"%d\" text-anchor=\"end\">", CHART_WIDTH,
		   CHART_HEIGHT + CHART_BOTTOM - 8);
	page_put_text(r->slices[r->slice_count - 1].label, out);
	buf_text(out, "</text>\n");
}

static void put_legend(struct buf *out)
{
	buf_text(out, "<ul class=\"key\">");
	for (int i = 0; i < GPU_BILLED_STATES; i++)
		buf_printf(out, "<li><span class=\"swatch %s\"></span>%s</li>", gpu_state_name(stacked[i]),
			   state_words[stacked[i]]);
	buf_text(out, "</ul>\n");
}

static void put_chart(const struct team_report *r, struct buf *out)
{
	int64_t most = 0;

	for (size_t i = 0; i < r->slice_count; i++)
		most = billed(&r->slices[i]) > most ? billed(&r->slices[i]) : most;
	if (!most)
		return;
	double step = (double)(CHART_WIDTH - CHART_LEFT) / (double)r->slice_count;
	buf_printf(out, "<h2>GPU hours in each %s</h2>\n<figure>\n", r->slice_name);
	put_legend(out);
	buf_printf(
		out,
		"<svg class=\"bars\" viewBox=\"0 0 %d %d\" role=\"img\" aria-label=\"GPU hours over time and by what "
		"the GPUs did; the table below has the sums\">\n",
		CHART_WIDTH, CHART_HEIGHT + CHART_BOTTOM);
	put_axis(r, (double)most, out);
	for (size_t i = 0; i < r->slice_count; i++)
		put_bar(&r->slices[i], CHART_LEFT + step * (double)i, step * (r->slice_count > 200 ? 1.0 : 0.86),
			CHART_HEIGHT * 0.95 / (double)most, out);
	buf_text(out, "</svg>\n</figure>\n");
}

/* --- tables --- */

static void page_put_sums(const char *name, const char *namespace, const struct cost_sums *s, struct buf *out)
{
	buf_text(out, "<tr>");
	put_cell(name, false, out);
	put_cell(namespace, false, out);
	page_put_hours(cost_billed_gpu_ms(s), out);
	page_put_hours(s->gpu_ms[GPU_SERVING], out);
	page_put_hours(s->gpu_ms[GPU_IDLE], out);
	page_put_hours(s->gpu_ms[GPU_LENT], out);
	page_put_hours(s->gpu_ms[GPU_STARTING], out);
	put_share(s->gpu_ms[GPU_SERVING], cost_billed_gpu_ms(s), out);
	put_cell(human_dollars((double)cost_micro_dollars(s) / 1e6).text, true, out);
	put_cell(human_count(s->started).text, true, out);
	put_share(s->late, s->started, out);
	buf_text(out, "</tr>\n");
}

static void page_put_pools(const struct team_report *r, struct buf *out)
{
	buf_text(out, "<h2>Pools</h2>\n");
	put_table("Pool|Namespace|#GPU hours|#used|#idle|#lent|#starting|#in use|#Dollars|#Requests|#late", out);
	for (size_t i = 0; i < r->pool_count; i++)
		page_put_sums(r->pools[i].name, r->pools[i].namespace, &r->pools[i].sums, out);
	if (r->pool_count > 1)
		page_put_sums("total", "", &r->total, out);
	end_table(out);
	buf_text(out,
		 "<p class=\"hint\">Used: GPUs that running sequences keep busy. Idle: billed, and held by nobody "
		 "or by replicas beyond that need, headroom included. Lent: running others' work until taken back. "
		 "Starting: not serving yet.</p>\n");
}

static void put_meter(double share, const char *class, struct buf *out)
{
	buf_printf(out, "<td><span class=\"meter\"><span class=\"%s\" style=\"width: %.1f%%\"></span></span></td>",
		   class, share * 100);
}

static void put_quotas(const struct team_report *r, struct buf *out)
{
	buf_text(out, "<h2>Quota</h2>\n");
	if (!r->quota_count) {
		buf_text(out, "<p>No GPU quota was seen.</p>\n");
		return;
	}
	put_table("Namespace|Quota|Resource|#hard|#most held|#GPU hours|#held|#not used|#not used, share|Held", out);
	for (size_t i = 0; i < r->quota_count; i++) {
		const struct quota_hour *q = &r->quotas[i];
		buf_text(out, "<tr>");
		put_cell(q->namespace, false, out);
		put_cell(q->name, false, out);
		put_cell(q->resource, false, out);
		put_cell(human_count(q->hard).text, true, out);
		put_cell(human_count(q->used_most).text, true, out);
		page_put_hours(q->hard_gpu_ms, out);
		page_put_hours(q->used_gpu_ms, out);
		page_put_hours(team_unheld_ms(q), out);
		put_share(team_unheld_ms(q), q->hard_gpu_ms, out);
		put_meter(q->hard_gpu_ms ? 1 - (double)team_unheld_ms(q) / (double)q->hard_gpu_ms : 0, "serving", out);
		buf_text(out, "</tr>\n");
	}
	end_table(out);
}

static void put_gpus(int64_t milli, struct buf *out)
{
	CLEANUP(buf_release) struct buf text = { 0 };

	if (milli == ABSENT)
		buf_text(&text, "-");
	else
		fixed_format(milli, 3, &text);
	put_cell(text.text, true, out);
}

static void put_holdings(const struct team_report *r, struct buf *out)
{
	buf_text(out, "<h2>GPUs held for nothing</h2>\n");
	if (!r->holding_count) {
		buf_text(out, "<p>None was seen.</p>\n");
		return;
	}
	put_table("Pod|Namespace|#GPUs|#most used|Since|#for|Why", out);
	for (size_t i = 0; i < r->holding_count; i++) {
		const struct holding *h = &r->holdings[i];
		buf_text(out, "<tr>");
		put_cell(h->pod, false, out);
		put_cell(h->namespace, false, out);
		put_gpus(h->gpus_milli, out);
		put_gpus(h->used_most_milli, out);
		put_cell(r->holding_since[i], false, out);
		put_cell(human_duration(h->until - h->since).text, true, out);
		put_words(team_holding_text(h->kind), out);
		buf_text(out, "</tr>\n");
	}
	end_table(out);
}

static void put_late(const struct team_report *r, struct buf *out)
{
	buf_text(out, "<h2>Late requests</h2>\n");
	if (!r->total.late) {
		buf_text(out, "<p>None.</p>\n");
		return;
	}
	put_table("Cause|#late|#share||Meaning", out);
	for (int i = 0; i < LATE_CAUSE_COUNT; i++) {
		if (!r->total.late_by[i])
			continue;
		buf_text(out, "<tr>");
		put_cell(late_cause_name((enum late_cause)i), false, out);
		put_cell(human_count(r->total.late_by[i]).text, true, out);
		put_share(r->total.late_by[i], r->total.late, out);
		put_meter((double)r->total.late_by[i] / (double)r->total.late, "idle", out);
		put_words(team_cause_text((enum late_cause)i), out);
		buf_text(out, "</tr>\n");
	}
	end_table(out);
}

void team_page(const struct team_report *r, struct buf *out)
{
	put_head(r, out);
	put_chart(r, out);
	page_put_pools(r, out);
	put_quotas(r, out);
	put_holdings(r, out);
	put_late(r, out);
	buf_text(out, "</main>\n<footer><p>");
	page_put_text(r->program, out);
	buf_text(out, "</p></footer>\n</body>\n</html>\n");
}
