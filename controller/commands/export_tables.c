#include "controller/commands/export_sink.h"

#include "controller/explain/explain.h"
#include "providers/provider.h"
#include "state/cost.h"
#include "state/launch.h"

#include <string.h>

static const struct export_column tick_columns[] = {
	{ "time", EXPORT_TIME, "when it was decided: the end of the tick" },
	{ "tick", EXPORT_INTEGER, "number of the tick" },
	{ "namespace", EXPORT_TEXT, "of the pool" },
	{ "pool", EXPORT_TEXT, "name of the pool" },
};

static const struct export_column decision_columns[] = {
	{ "interval_ms", EXPORT_INTEGER, "length of the tick" },
};

static const struct export_column group_columns[] = {
	{ "node_group", EXPORT_TEXT, "name of the node group" },
};

/* Followed by a column for each state and each cause. */
static const struct export_column cost_columns[] = {
	{ "hour", EXPORT_TIME, "when the hour began" },
	{ "namespace", EXPORT_TEXT, "of the pool" },
	{ "pool", EXPORT_TEXT, "name of the pool" },
	{ "class", EXPORT_TEXT, "of the pool in that hour" },
	{ "watched_ms", EXPORT_INTEGER, "how much of the hour is accounted for" },
	{ "arrived", EXPORT_INTEGER, "requests that arrived" },
	{ "started", EXPORT_INTEGER, "requests that started" },
	{ "late", EXPORT_INTEGER, "of those: later than the objective" },
	{ "completed", EXPORT_INTEGER, "requests that were done" },
	{ "prompt_tokens", EXPORT_INTEGER, "of the requests that were done" },
	{ "output_tokens", EXPORT_INTEGER, "of the requests that were done" },
	{ "blind_gpu_ms", EXPORT_INTEGER, "GPU-milliseconds that nothing told how busy they were" },
};

static const struct export_column launch_columns[] = {
	{ "asked_at", EXPORT_TIME, "when the provider was asked" },
	{ "ended_at", EXPORT_TIME, "when the outcome was known; nothing while it is open" },
	{ "tick", EXPORT_INTEGER, "the last one decided before" },
	{ "node_group", EXPORT_TEXT, "name of the node group" },
	{ "verb", EXPORT_TEXT, "what was asked for" },
	{ "target", EXPORT_INTEGER, "size asked for, in machines; nothing where machines are named" },
	{ "machines", EXPORT_TEXT, "machines that are named, blanks between them" },
	{ "outcome", EXPORT_TEXT, "done, or the kind of failure; nothing while it is open" },
	{ "term", EXPORT_INTEGER, "of the lease under which it was asked" },
	{ "token", EXPORT_TEXT, "what the provider was told, unique" },
	{ "operation", EXPORT_TEXT, "what the provider calls what went on" },
};

static const char *const names[EXPORT_TABLES] = { "decisions", "group_decisions", "costs", "launches" };
static const char *const helps[EXPORT_TABLES] = {
	"a row for every decision about a pool",
	"a row for every decision and node group of the pool",
	"a row for every hour, pool and class",
	"a row for every call that changed something at a provider",
};

const char *export_table_name(enum export_table table)
{
	return names[table];
}

const char *export_table_help(enum export_table table)
{
	return helps[table];
}

const char *export_type_name(enum export_type type)
{
	static const char *const types[] = { "text", "bigint", "timestamp" };

	return types[type];
}

/* --- names --- */

struct list {
	struct arena *arena;
	struct export_column *items;
	size_t count;
};

enum { COLUMNS_MAX = 160 };

static void add(struct list *l, const struct export_column *columns, size_t count)
{
	memcpy(l->items + l->count, columns, count * sizeof *columns);
	l->count += count;
}

/* The unit stands in the name, unless the name says it already. */
static const char *suffix_of(const struct field_info *f)
{
	static const struct {
		const char *unit, *suffix, *other;
	} units[] = {
		{ "milli", "_milli", "_permille" },
		{ "ppm", "_ppm", "_ppm" },
		{ "ms", "_ms", "_ms" },
		{ "us", "_us", "_us" },
		{ "micro$", "_micro", "_micro" },
	};

	for (size_t i = 0; i < sizeof units / sizeof *units; i++) {
		size_t len = strlen(f->name), s = strlen(units[i].suffix), o = strlen(units[i].other);
		bool is_said = (len > s && !strcmp(f->name + len - s, units[i].suffix)) ||
			       (len > o && !strcmp(f->name + len - o, units[i].other));
		if (!strcmp(units[i].unit, f->unit))
			return is_said ? "" : units[i].suffix;
	}
	return "";
}

static void add_record(struct list *l, const struct record_info *info)
{
	for (size_t i = 0; i < info->count; i++) {
		CLEANUP(buf_release) struct buf name = { 0 };
		const struct field_info *f = &info->fields[i];

		buf_printf(&name, "%s%s", f->name, suffix_of(f));
		l->items[l->count++] = (struct export_column){ arena_strdup(l->arena, name.text, name.len),
							       !strcmp(f->unit, "time")		   ? EXPORT_TIME
							       : strncmp(f->unit, "enum:", 5) == 0 ? EXPORT_TEXT
												   : EXPORT_INTEGER,
							       f->help };
	}
}

/* "stock-out" is no name of a column. */
static void add_named(struct list *l, const char *before, const char *name, const char *after, const char *help)
{
	CLEANUP(buf_release) struct buf text = { 0 };

	buf_printf(&text, "%s%s%s", before, name, after);
	for (size_t i = 0; i < text.len; i++)
		if (text.text[i] == '-')
			text.text[i] = '_';
	l->items[l->count++] =
		(struct export_column){ arena_strdup(l->arena, text.text, text.len), EXPORT_INTEGER, help };
}

static void add_costs(struct list *l)
{
	add(l, cost_columns, sizeof cost_columns / sizeof *cost_columns);
	for (int i = 0; i < GPU_STATE_COUNT; i++)
		add_named(l, "", gpu_state_name((enum gpu_state)i), "_gpu_ms", "GPU-milliseconds in this state");
	for (int i = 0; i < GPU_STATE_COUNT; i++)
		add_named(l, "", gpu_state_name((enum gpu_state)i), "_dollars_micro", "their price");
	for (int i = 0; i < LATE_CAUSE_COUNT; i++)
		add_named(l, "late_by_", late_cause_name((enum late_cause)i), "", "late requests by cause");
}

const struct export_column *export_columns(enum export_table table, struct arena *a, size_t *count)
{
	struct list l = { a, arena_array(a, struct export_column, COLUMNS_MAX), 0 };

	switch (table) {
	case EXPORT_DECISIONS:
		add(&l, tick_columns, sizeof tick_columns / sizeof *tick_columns);
		add(&l, decision_columns, sizeof decision_columns / sizeof *decision_columns);
		add_record(&l, &pool_decision_info);
		break;
	case EXPORT_GROUPS:
		add(&l, tick_columns, sizeof tick_columns / sizeof *tick_columns);
		add(&l, group_columns, sizeof group_columns / sizeof *group_columns);
		add_record(&l, &group_decision_info);
		break;
	case EXPORT_COSTS:
		add_costs(&l);
		break;
	case EXPORT_LAUNCHES:
		add(&l, launch_columns, sizeof launch_columns / sizeof *launch_columns);
		break;
	case EXPORT_TABLES:
		break;
	}
	*count = l.count;
	return l.items;
}
