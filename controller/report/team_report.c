#include "controller/report/team_report.h"

#include "base/terminal.h"
#include "base/json.h"
#include "base/record.h"
#include "base/quantity.h"
#include "base/table.h"
#include "controller/report/assets.h"

#include <string.h>

/* "capacity was asked for and did not serve yet" */
static const char *cause_text(enum late_cause cause)
{
	static const char *const texts[LATE_CAUSE_COUNT] = {
		[LATE_BURST] = "more came at once than the headroom covered",
		[LATE_STARTING] = "capacity was asked for and did not serve yet",
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
static const char *holding_text(enum holding_kind kind)
{
	static const char *const texts[HOLDING_KIND_COUNT] = {
		[HOLDING_UNUSED] = "runs, and does nothing with its GPUs",
		[HOLDING_FINISHED] = "has ended, and still stands there with its request; delete it",
		[HOLDING_OVERSIZED] = "never used as many GPUs at once as it asked for",
	};

	return texts[kind];
}

/* GPU hours of the quota that no pod held. */
static millis unheld_ms(const struct quota_hour *q)
{
	return q->hard_gpu_ms > q->used_gpu_ms ? q->hard_gpu_ms - q->used_gpu_ms : 0;
}

/* --- rows: the same cells on a terminal and on the page --- */

/* Where cells go: one of both. */
struct sheet {
	struct table *table;
	struct buf *page;
};

static void write_escaped(const char *text, struct buf *out)
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

/* `class` is of the page; NULL: a short text. */
static void put_cell(const struct sheet *s, const char *text, const char *class)
{
	if (s->table) {
		table_text(s->table, text);
		return;
	}
	buf_printf(s->page, class ? "<td class=\"%s\">" : "<td>", class);
	write_escaped(text, s->page);
	buf_text(s->page, "</td>");
}

static void put_text(const struct sheet *s, const char *text)
{
	put_cell(s, text, NULL);
}

static void put_words(const struct sheet *s, const char *text)
{
	put_cell(s, text, "words");
}

static void put_number(const struct sheet *s, const char *text)
{
	put_cell(s, text, "number");
}

static void put_count(const struct sheet *s, int64_t n)
{
	put_number(s, human_count(n).text);
}

static void put_hours(const struct sheet *s, millis sum)
{
	put_number(s, human_decimal((double)sum / HOUR, 1).text);
}

static void put_share(const struct sheet *s, int64_t part, int64_t whole)
{
	put_number(s, whole > 0 ? human_share((double)part / (double)whole).text : "-");
}

static void put_gpus(const struct sheet *s, int64_t milli)
{
	CLEANUP(buf_release) struct buf text = { 0 };

	if (milli == ABSENT)
		buf_text(&text, "-");
	else
		fixed_format(milli, 3, &text);
	put_number(s, text.text);
}

/* Only on the page. */
static void put_meter(const struct sheet *s, double share, const char *class)
{
	if (s->page)
		buf_printf(s->page,
			   "<td><span class=\"meter\"><span class=\"%s\" style=\"width: %.1f%%\"></span></span></td>",
			   class, share * 100);
}

static void begin_row(const struct sheet *s)
{
	if (s->page)
		buf_text(s->page, "<tr>");
}

static void end_row(const struct sheet *s)
{
	if (s->page)
		buf_text(s->page, "</tr>\n");
}

/* GPU hours that cost nothing have no price. */
static bool is_priced(const struct cost_sums *s)
{
	return cost_micro_dollars(s) > 0 || !cost_billed_gpu_ms(s);
}

static void put_pool(const struct sheet *t, const char *name, const char *namespace, const struct cost_sums *s)
{
	begin_row(t);
	put_text(t, name);
	put_text(t, namespace);
	put_hours(t, cost_billed_gpu_ms(s));
	put_hours(t, s->gpu_ms[GPU_SERVING]);
	put_hours(t, s->gpu_ms[GPU_IDLE]);
	put_hours(t, s->gpu_ms[GPU_LENT]);
	put_hours(t, s->gpu_ms[GPU_STARTING]);
	put_share(t, s->gpu_ms[GPU_SERVING], cost_billed_gpu_ms(s));
	put_number(t, is_priced(s) ? human_dollars((double)cost_micro_dollars(s) / 1e6).text : "-");
	put_count(t, s->started);
	put_share(t, s->late, s->started);
	if (t->table) {
		put_hours(t, s->gpu_ms[GPU_STANDBY]);
		put_hours(t, s->blind_gpu_ms);
		put_count(t, s->prompt_tokens);
		put_count(t, s->output_tokens);
	}
	end_row(t);
}

static void put_pools(const struct sheet *t, const struct team_report *r)
{
	for (size_t i = 0; i < r->pool_count; i++)
		put_pool(t, r->pools[i].name, r->pools[i].namespace, &r->pools[i].sums);
	if (r->pool_count > 1)
		put_pool(t, "total", "", &r->total);
}

static void put_quotas(const struct sheet *t, const struct team_report *r)
{
	for (size_t i = 0; i < r->quota_count; i++) {
		const struct quota_hour *q = &r->quotas[i];

		begin_row(t);
		put_text(t, q->namespace);
		put_text(t, q->name);
		put_text(t, q->resource);
		put_count(t, q->hard);
		put_count(t, q->used_most);
		put_hours(t, q->hard_gpu_ms);
		put_hours(t, q->used_gpu_ms);
		put_hours(t, unheld_ms(q));
		put_share(t, unheld_ms(q), q->hard_gpu_ms);
		put_meter(t, q->hard_gpu_ms ? 1 - (double)unheld_ms(q) / (double)q->hard_gpu_ms : 0, "serving");
		end_row(t);
	}
}

static void put_holdings(const struct sheet *t, const struct team_report *r)
{
	for (size_t i = 0; i < r->holding_count; i++) {
		const struct holding *h = &r->holdings[i];

		begin_row(t);
		put_text(t, h->pod);
		put_text(t, h->namespace);
		put_gpus(t, h->gpus_milli);
		put_gpus(t, h->used_most_milli);
		put_text(t, r->holding_since[i]);
		put_number(t, human_duration(h->until - h->since).text);
		put_words(t, holding_text(h->kind));
		end_row(t);
	}
}

static void put_causes(const struct sheet *t, const struct team_report *r)
{
	for (int i = 0; i < LATE_CAUSE_COUNT; i++) {
		int64_t late = r->total.late_by[i];

		if (!late)
			continue;
		begin_row(t);
		put_text(t, late_cause_name((enum late_cause)i));
		put_count(t, late);
		put_share(t, late, r->total.late);
		put_meter(t, (double)late / (double)r->total.late, "idle");
		put_words(t, cause_text((enum late_cause)i));
		end_row(t);
	}
}

static const struct table_column pool_columns[] = {
	{ .name = "pool" },
	{ .name = "namespace" },
	{ .name = "hours", .title = "GPU HOURS", .is_right = true },
	{ .name = "used", .is_right = true, .is_wide = true },
	{ .name = "idle", .is_right = true },
	{ .name = "lent", .is_right = true, .is_wide = true },
	{ .name = "starting", .is_right = true, .is_wide = true },
	{ .name = "share", .title = "IN USE", .is_right = true },
	{ .name = "dollars", .is_right = true },
	{ .name = "requests", .is_right = true },
	{ .name = "late", .is_right = true },
	{ .name = "standby", .is_right = true, .is_wide = true },
	{ .name = "unread", .is_right = true, .is_wide = true },
	{ .name = "prompt", .title = "PROMPT TOKENS", .is_right = true, .is_wide = true },
	{ .name = "output", .title = "OUTPUT TOKENS", .is_right = true, .is_wide = true },
};
static const struct table_column quota_columns[] = {
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
static const struct table_column holding_columns[] = {
	{ .name = "pod" },
	{ .name = "namespace" },
	{ .name = "gpus", .is_right = true },
	{ .name = "used", .title = "MOST USED", .is_right = true },
	{ .name = "since" },
	{ .name = "for", .is_right = true },
	{ .name = "why" },
};
static const struct table_column cause_columns[] = {
	{ .name = "cause" },
	{ .name = "late", .is_right = true },
	{ .name = "share", .is_right = true },
	{ .name = "meaning" },
};

/* The four parts; on the page titles stand between |, and those that begin with # stand right. */
enum { PART_POOLS, PART_QUOTAS, PART_HOLDINGS, PART_CAUSES, PARTS };
#define COLUMNS(rows) .columns = (rows), .column_count = sizeof(rows) / sizeof *(rows)
static const struct report_part {
	void (*put)(const struct sheet *t, const struct team_report *r);
	const struct table_column *columns;
	size_t column_count;
	const char *heading, *titles, *nothing;
} parts[PARTS] = {
	[PART_POOLS] = { put_pools, COLUMNS(pool_columns), .heading = "Pools",
			 .titles = "Pool|Namespace|#GPU hours|#used|#idle|#lent|#starting|#in use|#Dollars|#Requests|"
				   "#late" },
	[PART_QUOTAS] = { put_quotas, COLUMNS(quota_columns), .heading = "Quota",
			  .titles = "Namespace|Quota|Resource|#hard|#most held|#GPU hours|#held|#not used|#not used, "
				    "share|Held",
			  .nothing = "No GPU quota was seen." },
	[PART_HOLDINGS] = { put_holdings, COLUMNS(holding_columns), .heading = "GPUs held for nothing",
			    .titles = "Pod|Namespace|#GPUs|#most used|Since|#for|Why", .nothing = "None was seen." },
	[PART_CAUSES] = { put_causes, COLUMNS(cause_columns), .heading = "Late requests",
			  .titles = "Cause|#late|#share||Meaning", .nothing = "None." },
};

static bool has_part(const struct team_report *r, int part)
{
	return part == PART_POOLS || (part == PART_QUOTAS && r->quota_count) ||
	       (part == PART_HOLDINGS && r->holding_count) || (part == PART_CAUSES && r->total.late);
}

/* --- on a terminal --- */

static void print_strong(const char *text, FILE *out)
{
	struct terminal t = terminal_of(out);

	fprintf(out, "%s%s%s", terminal_style(&t, STYLE_STRONG), text, terminal_style(&t, STYLE_PLAIN));
}

void team_report_print(const struct team_report *r, bool is_wide, FILE *out)
{
	print_strong(r->namespace ? r->namespace : "All namespaces", out);
	fprintf(out, ", %s\n\n", r->period);
	for (int i = 0; i < PARTS; i++) {
		if (!has_part(r, i))
			continue;
		struct table *t = table_new(parts[i].columns, parts[i].column_count);

		if (i != PART_POOLS) {
			fputs("\n", out);
			print_strong(parts[i].heading, out);
			fputs("\n", out);
		}
		parts[i].put(&(struct sheet){ .table = t }, r);
		table_print(t, is_wide && i == PART_POOLS ? TABLE_WIDE : TABLE_PLAIN, out);
		table_free(t);
	}
	for (size_t i = 0; i < r->note_count; i++)
		fprintf(out, "%s%s\n", i ? "" : "\n", r->notes[i]);
}

/* --- as JSON --- */

static const struct record_member head_members[] = {
	{ "program", RECORD_TEXT(team_report, program) },
	{ "namespace", RECORD_TEXT(team_report, namespace) },
	{ "from", RECORD_TEXT(team_report, from) },
	{ "to", RECORD_TEXT(team_report, to) },
};
static const struct record_shape head_shape = RECORD_SHAPE("TeamReport", team_report, head_members);

static const struct record_member served_members[] = {
	{ "requests", RECORD_COUNT(cost_sums, started) },
	{ "prompt_tokens", RECORD_COUNT(cost_sums, prompt_tokens) },
	{ "output_tokens", RECORD_COUNT(cost_sums, output_tokens) },
	{ "late", RECORD_COUNT(cost_sums, late) },
};
static const struct record_shape served_shape = RECORD_SHAPE("Served", cost_sums, served_members);

static const struct record_member quota_members[] = {
	{ "namespace", RECORD_TEXT(quota_hour, namespace) },  { "quota", RECORD_TEXT(quota_hour, name) },
	{ "resource", RECORD_TEXT(quota_hour, resource) },    { "hard", RECORD_COUNT(quota_hour, hard) },
	{ "most_held", RECORD_COUNT(quota_hour, used_most) },
};
static const struct record_shape quota_shape = RECORD_SHAPE("Quota", quota_hour, quota_members);

static const struct record_member holding_members[] = {
	{ "namespace", RECORD_TEXT(holding, namespace) },
	{ "pod", RECORD_TEXT(holding, pod) },
	{ "node", RECORD_TEXT(holding, node) },
	{ "gpus", RECORD_NUMBER(holding, gpus_milli, 3) },
	{ "gpus_used_most", RECORD_NUMBER(holding, used_most_milli, 3) },
	{ "since_s", RECORD_NUMBER(holding, since, 3) },
	{ "until_s", RECORD_NUMBER(holding, until, 3) },
};
static const struct record_shape holding_shape = RECORD_SHAPE("Holding", holding, holding_members);

/* A value / 10^6. */
static void write_millionths(const char *name, int64_t value, struct buf *out)
{
	json_member(name, out);
	fixed_format(value, 6, out);
}

static void write_hours(const char *name, millis sum, struct buf *out)
{
	write_millionths(name, (int64_t)((__int128)sum * 1000000 / HOUR), out);
}

static void write_sums(const struct cost_sums *s, struct buf *out)
{
	write_hours("gpu_hours", cost_billed_gpu_ms(s), out);
	buf_text(out, ",\"gpu_hours_by_state\":{");
	for (int i = 0; i < GPU_STATE_COUNT; i++)
		write_hours(gpu_state_name((enum gpu_state)i), s->gpu_ms[i], out);
	buf_text(out, "}");
	write_millionths("dollars", cost_micro_dollars(s), out);
	buf_text(out, ",\"dollars_by_state\":{");
	for (int i = 0; i < GPU_STATE_COUNT; i++)
		write_millionths(gpu_state_name((enum gpu_state)i), s->dollars[i], out);
	buf_text(out, "}");
	write_hours("unread_gpu_hours", s->blind_gpu_ms, out);
	write_hours("watched_hours", s->watched_ms, out);
	record_write_members(&served_shape, s, out);
	buf_text(out, ",\"late_by_cause\":{");
	for (int i = 0; i < LATE_CAUSE_COUNT; i++) {
		json_member(late_cause_name((enum late_cause)i), out);
		buf_printf(out, "%lld", (long long)s->late_by[i]);
	}
	buf_text(out, "}");
}

static void write_quota(const struct quota_hour *q, struct buf *out)
{
	json_write_comma(out);
	buf_text(out, "{");
	record_write_members(&quota_shape, q, out);
	write_hours("gpu_hours", q->hard_gpu_ms, out);
	write_hours("held_gpu_hours", q->used_gpu_ms, out);
	write_hours("not_used_gpu_hours", unheld_ms(q), out);
	buf_text(out, "}");
}

static void write_holding(const struct holding *h, struct buf *out)
{
	json_write_comma(out);
	buf_text(out, "{");
	json_member_text("kind", holding_kind_name(h->kind), out);
	record_write_members(&holding_shape, h, out);
	buf_text(out, "}");
}

void team_report_json(const struct team_report *r, struct buf *out)
{
	buf_text(out, "{");
	record_write_members(&head_shape, r, out);
	buf_text(out, ",\"pools\":[");
	for (size_t i = 0; i < r->pool_count; i++) {
		json_write_comma(out);
		buf_text(out, "\n{");
		json_member_text("pool", r->pools[i].name, out);
		json_member_text("namespace", r->pools[i].namespace, out);
		json_member_text("class", pool_class_name(r->pools[i].class), out);
		write_sums(&r->pools[i].sums, out);
		buf_text(out, "}");
	}
	buf_text(out, "],\n\"total\":{");
	write_sums(&r->total, out);
	buf_text(out, "},\n\"quotas\":[");
	for (size_t i = 0; i < r->quota_count; i++)
		write_quota(&r->quotas[i], out);
	buf_text(out, "],\n\"held_for_nothing\":[");
	for (size_t i = 0; i < r->holding_count; i++)
		write_holding(&r->holdings[i], out);
	buf_text(out, "],\n\"notes\":[");
	for (size_t i = 0; i < r->note_count; i++) {
		json_write_comma(out);
		json_write_text(r->notes[i], out);
	}
	buf_text(out, "]}\n");
}

/* --- as one page: no script, no other host, readable without colour --- */

/* In the order in which they stand on each other. */
static const enum gpu_state stacked[GPU_BILLED_STATES] = { GPU_SERVING, GPU_LENT, GPU_STARTING, GPU_IDLE };
static const char *const state_words[GPU_STATE_COUNT] = { "idle", "lent", "starting", "used", "stopped" };

enum { CHART_WIDTH = 1000, CHART_HEIGHT = 220, CHART_LEFT = 70, CHART_BOTTOM = 36 };

/* --- the head --- */

static void put_tile(const char *number, const char *words, struct buf *out)
{
	buf_text(out, "<li><strong>");
	write_escaped(number, out);
	buf_text(out, "</strong> ");
	write_escaped(words, out);
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
	put_tile(is_priced(s) ? human_dollars((double)cost_micro_dollars(s) / 1e6).text : "-", "dollars", out);
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
		".serving { fill: var(--hot); background: var(--hot); } .lent { fill: var(--lent); background: "
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
	write_escaped(r->namespace ? r->namespace : "all namespaces", out);
	buf_text(out, "</title>\n<style>\n");
	buf_append(out, asset_tiers_css.bytes, asset_tiers_css.size);
	buf_append(out, asset_page_css.bytes, asset_page_css.size);
	buf_text(out, style);
	buf_text(out, "</style>\n</head>\n<body>\n<header>\n<h1>GPUs of ");
	write_escaped(r->namespace ? r->namespace : "all namespaces", out);
	buf_text(out, "</h1>\n<p>");
	write_escaped(r->period, out);
	buf_text(out, "</p>\n");
	for (size_t i = 0; i < r->note_count; i++) {
		buf_text(out, "<p class=\"notes\">");
		write_escaped(r->notes[i], out);
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
	write_escaped(s->label, out);
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
	write_escaped(r->slices[0].label, out);
	buf_printf(out, "</text><text x=\"%d\" y=\"%d\" text-anchor=\"end\">", CHART_WIDTH,
		   CHART_HEIGHT + CHART_BOTTOM - 8);
	write_escaped(r->slices[r->slice_count - 1].label, out);
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

static void put_part(const struct team_report *r, int part, struct buf *out)
{
	const struct report_part *p = &parts[part];

	buf_printf(out, "<h2>%s</h2>\n", p->heading);
	if (!has_part(r, part)) {
		buf_printf(out, "<p>%s</p>\n", p->nothing);
		return;
	}
	buf_text(out, "<div class=\"scroll\" tabindex=\"0\"><table class=\"data\"><thead><tr>");
	for (const char *at = p->titles; *at;) {
		size_t len = strcspn(at, "|");
		bool is_number = *at == '#';

		buf_printf(out, "<th scope=\"col\"%s>%.*s</th>", is_number ? " class=\"number\"" : "",
			   (int)(len - is_number), at + is_number);
		at += len + (at[len] == '|');
	}
	buf_text(out, "</tr></thead><tbody>\n");
	p->put(&(struct sheet){ .page = out }, r);
	buf_text(out, "</tbody></table></div>\n");
	if (part == PART_POOLS)
		buf_text(out,
			 "<p class=\"hint\">Used: GPUs that running sequences keep busy. Idle: billed, and held by "
			 "nobody or by replicas beyond that need, headroom included. Lent: running others' work until "
			 "taken back. Starting: not serving yet.</p>\n");
}

void team_report_page(const struct team_report *r, struct buf *out)
{
	put_head(r, out);
	put_chart(r, out);
	for (int i = 0; i < PARTS; i++)
		put_part(r, i, out);
	buf_text(out, "</main>\n<footer><p>");
	write_escaped(r->program, out);
	buf_text(out, "</p></footer>\n</body>\n</html>\n");
}
