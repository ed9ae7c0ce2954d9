#include "controller/report/team.h"

#include "base/json_write.h"
#include "base/quantity.h"

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
