#include "controller/commands/history_rows.h"

#include "controller/explain/explain.h"

#include <string.h>

/* A column shows one field of a decision; those without a field are filled by name. */
static const struct column {
	struct table_column table;
	const char *field;
} columns[] = {
	{ { .name = "time" }, NULL },
	{ { .name = "tick", .is_right = true, .is_wide = true }, NULL },
	{ { .name = "pool" }, NULL },
	{ { .name = "namespace", .is_wide = true }, NULL },
	{ { .name = "demand_milli", .title = "DEMAND", .is_right = true }, "demand_milli" },
	{ { .name = "running_milli", .title = "RUNNING", .is_right = true, .is_wide = true }, "running_milli" },
	{ { .name = "waiting_now", .title = "WAITING", .is_right = true }, "waiting_now" },
	{ { .name = "ready", .title = "HOT", .is_right = true }, "ready" },
	{ { .name = "on_the_way", .title = "ON THE WAY", .is_right = true }, "on_the_way" },
	{ { .name = "standby", .title = "STANDBY", .is_right = true, .is_wide = true }, "standby" },
	{ { .name = "lent", .title = "LENT", .is_right = true, .is_wide = true }, "lent" },
	{ { .name = "wished", .title = "WISHED", .is_right = true }, "wished" },
	{ { .name = "decided", .title = "DECIDED", .is_right = true }, "decided" },
	{ { .name = "held_by", .title = "HELD BY" }, "held_by" },
	{ { .name = "rule", .title = "RULE", .is_right = true, .is_wide = true }, "rule" },
	{ { .name = "dollars_per_hour_micro", .title = "COST/H", .is_right = true }, "dollars_per_hour" },
	{ { .name = "started", .title = "STARTED", .is_right = true, .is_wide = true }, "started" },
	{ { .name = "late", .title = "LATE", .is_right = true }, "late" },
	{ { .name = "self_test", .title = "SELF-TEST", .is_wide = true }, "self_test" },
};

enum { COLUMN_COUNT = sizeof columns / sizeof *columns };

static const struct field_info *field_of(const char *name, size_t *index)
{
	for (*index = 0; *index < pool_decision_info.count; ++*index)
		if (!strcmp(pool_decision_info.fields[*index].name, name))
			return &pool_decision_info.fields[*index];
	return NULL;
}

static void add_field(struct table *t, const char *name, const struct pool_decision *d)
{
	CLEANUP(buf_release) struct buf shown = { 0 }, raw = { 0 };
	size_t index;
	const struct field_info *f = field_of(name, &index);
	int64_t value = ((const int64_t *)d)[index];

	if (value == ABSENT) {
		table_absent(t);
		return;
	}
	explain_value(f, value, 0, &shown);
	if (!strncmp(f->unit, "enum:", 5)) {
		table_text(t, shown.text);
		return;
	}
	buf_printf(&raw, "%lld", (long long)value);
	table_value(t, shown.text, raw.text);
}

static void add_row(struct table *t, const struct question *q, const struct tick_record *r, bool for_programs)
{
	CLEANUP(buf_release) struct buf time = { 0 };
	size_t count;
	const struct history_pool *pools = history_pools(q->history, &count);

	question_print_time(q, r->now, for_programs, &time);
	table_text(t, time.text);
	table_count(t, r->tick);
	table_text(t, pools[r->pool].name);
	table_text(t, pools[r->pool].namespace);
	for (size_t i = 0; i < COLUMN_COUNT; i++)
		if (columns[i].field)
			add_field(t, columns[i].field, &r->plan.decision);
	if (r->plan.decision.held_by != LIMIT_NONE)
		table_style(t, STYLE_WARN);
}

struct table *history_rows(struct question *q, const struct history_filter *f, bool for_programs, struct error *e)
{
	struct table_column *shown = arena_array(&q->arena, struct table_column, COLUMN_COUNT);
	struct history_hit *hits;
	size_t count;

	if (!history_find(q->history, f, &q->arena, &hits, &count, e))
		return NULL;
	for (size_t i = 0; i < COLUMN_COUNT; i++)
		shown[i] = columns[i].table;
	struct table *t = table_new(shown, COLUMN_COUNT);
	for (size_t i = count; i-- > 0;) { /* the newest last */
		struct tick_record r;

		if (!history_read(q->history, hits[i].tick, hits[i].pool, &r, e)) {
			table_free(t);
			return NULL;
		}
		add_row(t, q, &r, for_programs);
	}
	return t;
}
