/* The report on a terminal, and its words. */
#include "controller/report/team.h"

#include "base/human.h"
#include "base/quantity.h"
#include "base/table.h"

const char *team_cause_text(enum late_cause cause)
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

const char *team_holding_text(enum holding_kind kind)
{
	static const char *const texts[HOLDING_KIND_COUNT] = {
		[HOLDING_UNUSED] = "runs, and does nothing with its GPUs",
		[HOLDING_FINISHED] = "has ended, and still stands there with its request; delete it",
		[HOLDING_OVERSIZED] = "never used as many GPUs at once as it asked for",
	};

	return texts[kind];
}

millis team_unheld_ms(const struct quota_hour *q)
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
