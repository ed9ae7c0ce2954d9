/* The report as one page: no script, no other host, readable without colour. */
#include "controller/report/team.h"

#include "base/human.h"
#include "base/quantity.h"
#include "controller/report/assets.h"

#include <string.h>

/* In the order in which they stand on each other. */
static const enum gpu_state stacked[GPU_BILLED_STATES] = { GPU_SERVING, GPU_LENT, GPU_STARTING, GPU_IDLE };
static const char *const state_words[GPU_STATE_COUNT] = { "idle", "lent", "starting", "used", "stopped" };

enum { CHART_WIDTH = 1000, CHART_HEIGHT = 220, CHART_LEFT = 70, CHART_BOTTOM = 36 };

static void put_text(const char *text, struct buf *out)
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
	put_text(text, out);
	buf_text(out, "</td>");
}

static void put_words(const char *text, struct buf *out)
{
	buf_text(out, "<td class=\"words\">");
	put_text(text, out);
	buf_text(out, "</td>");
}

static void put_hours(millis sum, struct buf *out)
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
	put_text(number, out);
	buf_text(out, "</strong> ");
	put_text(words, out);
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
	put_text(r->namespace ? r->namespace : "all namespaces", out);
	buf_text(out, "</title>\n<style>\n");
	buf_append(out, asset_page_css.bytes, asset_page_css.size);
	buf_text(out, style);
	buf_text(out, "</style>\n</head>\n<body>\n<header>\n<h1>GPUs of ");
	put_text(r->namespace ? r->namespace : "all namespaces", out);
	buf_text(out, "</h1>\n<p>");
	put_text(r->period, out);
	buf_text(out, "</p>\n");
	for (size_t i = 0; i < r->note_count; i++) {
		buf_text(out, "<p class=\"notes\">");
		put_text(r->notes[i], out);
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
	put_text(s->label, out);
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
	put_text(r->slices[0].label, out);
	buf_printf(out, "</text><text x=\"%d\" y=\"%d\" text-anchor=\"end\">", CHART_WIDTH,
		   CHART_HEIGHT + CHART_BOTTOM - 8);
	put_text(r->slices[r->slice_count - 1].label, out);
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

static void put_sums(const char *name, const char *namespace, const struct cost_sums *s, struct buf *out)
{
	buf_text(out, "<tr>");
	put_cell(name, false, out);
	put_cell(namespace, false, out);
	put_hours(cost_billed_gpu_ms(s), out);
	put_hours(s->gpu_ms[GPU_SERVING], out);
	put_hours(s->gpu_ms[GPU_IDLE], out);
	put_hours(s->gpu_ms[GPU_LENT], out);
	put_hours(s->gpu_ms[GPU_STARTING], out);
	put_share(s->gpu_ms[GPU_SERVING], cost_billed_gpu_ms(s), out);
	put_cell(human_dollars((double)cost_micro_dollars(s) / 1e6).text, true, out);
	put_cell(human_count(s->started).text, true, out);
	put_share(s->late, s->started, out);
	buf_text(out, "</tr>\n");
}

static void put_pools(const struct team_report *r, struct buf *out)
{
	buf_text(out, "<h2>Pools</h2>\n");
	put_table("Pool|Namespace|#GPU hours|#used|#idle|#lent|#starting|#in use|#Dollars|#Requests|#late", out);
	for (size_t i = 0; i < r->pool_count; i++)
		put_sums(r->pools[i].name, r->pools[i].namespace, &r->pools[i].sums, out);
	if (r->pool_count > 1)
		put_sums("total", "", &r->total, out);
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
		put_hours(q->hard_gpu_ms, out);
		put_hours(q->used_gpu_ms, out);
		put_hours(team_unheld_ms(q), out);
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
	put_pools(r, out);
	put_quotas(r, out);
	put_holdings(r, out);
	put_late(r, out);
	buf_text(out, "</main>\n<footer><p>");
	put_text(r->program, out);
	buf_text(out, "</p></footer>\n</body>\n</html>\n");
}
