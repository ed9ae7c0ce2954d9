/* preheat history export: a history as flat files, a folder a day. */
#include "base/arena.h"
#include "base/table.h"
#include "base/file.h"
#include "base/json.h"
#include "controller/commands/print.h"
#include "controller/commands/command.h"
#include "controller/commands/history_args.h"
#include "controller/explain/explain.h"
#include "controller/manifest/manifest.h"
#include "providers/provider.h"
#include "state/cost.h"
#include "state/launch.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/*
 * A history as flat tables for other programs: names and types of columns
 * that stay, one row a thing. The lists here and the records of the policy
 * are all that there is to a table; writers know nothing of what is in them.
 *
 * Numbers are whole, with the unit in the name: _milli thousandths, _ppm
 * parts per million, _ms and _us, _micro millionths of a dollar.
 */

enum export_type { EXPORT_TEXT, EXPORT_INTEGER, EXPORT_TIME };

struct export_column {
	const char *name;
	enum export_type type;
	const char *help;
};

enum export_table { EXPORT_DECISIONS, EXPORT_GROUPS, EXPORT_COSTS, EXPORT_LAUNCHES, EXPORT_TABLES };

/* Times of rows, [from, to): when a decision was made, an hour began, a call was asked for. */
struct export_span {
	millis from, to;
};

/* Takes the values of a row from left to right. */
struct export_sink;

/* Rows as CSV (RFC 4180, with a header) or as JSON lines. */

struct export_sink {
	const struct export_column *columns;
	size_t count;
	bool is_json;
	struct output *output; /* borrowed */

	/* private */
	size_t at; /* the column that comes next */
	struct buf line;
	int64_t rows;
};

/*
 * A folder of days: FOLDER/day=2024-05-10/TABLE.csv, and beside them
 * day.json, which says whether the day is over. A day appears whole: it is
 * written under another name and renamed.
 */

struct export_format {
	bool is_json, is_compressed;
};

enum export_state {
	EXPORT_WRITTEN,
	EXPORT_THERE,	/* was there, over; left alone */
	EXPORT_THINNED, /* was there, and the history has less of it now; left alone */
	EXPORT_STATES
};

struct export_day {
	int64_t day;  /* since 1970-01-01, UTC */
	bool is_over; /* the history goes on after it */
	enum export_state state;
	int64_t rows[EXPORT_TABLES]; /* of what was written */
};

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

static const char *const table_names[EXPORT_TABLES] = { "decisions", "group_decisions", "costs", "launches" };
static const char *const table_helps[EXPORT_TABLES] = {
	"a row for every decision about a pool",
	"a row for every decision and node group of the pool",
	"a row for every hour, pool and class",
	"a row for every call that changed something at a provider",
};

/* "decisions" */
static const char *export_table_name(enum export_table table)
{
	return table_names[table];
}

static const char *export_table_help(enum export_table table)
{
	return table_helps[table];
}

/* "text", "bigint", "timestamp" */
static const char *export_type_name(enum export_type type)
{
	static const char *const types[] = { "text", "bigint", "timestamp" };

	return types[type];
}

/* --- table_names --- */

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

/* The columns in order, in the arena. */
static const struct export_column *export_columns(enum export_table table, struct arena *a, size_t *count)
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

/* Writes the header, where there is one. */
static void export_begin(struct export_sink *s)
{
	if (s->is_json)
		return;
	for (size_t i = 0; i < s->count; i++)
		buf_printf(&s->line, "%s%s", i ? "," : "", s->columns[i].name);
	buf_text(&s->line, "\n");
	output_bytes(s->output, s->line.text, s->line.len);
	buf_clear(&s->line);
}

static void export_end(struct export_sink *s)
{
	buf_release(&s->line);
}

static void open_cell(struct export_sink *s)
{
	if (!s->is_json) {
		buf_text(&s->line, s->at ? "," : "");
		return;
	}
	buf_text(&s->line, s->at ? "," : "{");
	json_write_text(s->columns[s->at].name, &s->line);
	buf_text(&s->line, ":");
}

static void close_cell(struct export_sink *s)
{
	if (++s->at < s->count)
		return;
	buf_text(&s->line, s->is_json ? "}\n" : "\n");
	output_bytes(s->output, s->line.text, s->line.len);
	buf_clear(&s->line);
	s->at = 0;
	s->rows++;
}

static void put_nothing(struct export_sink *s)
{
	open_cell(s);
	buf_text(&s->line, s->is_json ? "null" : "");
	close_cell(s);
}

/* NULL and "": not there */
static void export_text(struct export_sink *s, const char *text)
{
	if (!text || !*text) {
		put_nothing(s);
		return;
	}
	open_cell(s);
	if (s->is_json)
		json_write_text(text, &s->line);
	else
		csv_write_cell(text, &s->line);
	close_cell(s);
}

/* ABSENT: not there */
static void export_integer(struct export_sink *s, int64_t value)
{
	if (value == ABSENT) {
		put_nothing(s);
		return;
	}
	open_cell(s);
	buf_printf(&s->line, "%" PRId64, value);
	close_cell(s);
}

/* 0 and ABSENT: not there */
static void export_time(struct export_sink *s, millis at)
{
	if (!at || at == ABSENT) {
		put_nothing(s);
		return;
	}
	open_cell(s);
	buf_text(&s->line, s->is_json ? "\"" : "");
	explain_time_rfc3339(at, &s->line);
	buf_text(&s->line, s->is_json ? "\"" : "");
	close_cell(s);
}

/* --- what the tables hold --- */

static void put_record(struct export_sink *s, const struct pool_spec *pool, const struct record_info *info,
		       const void *record)
{
	const int64_t *values = record;

	for (size_t i = 0; i < info->count; i++) {
		const char *unit = info->fields[i].unit;

		if (!strncmp(unit, "enum:", 5))
			export_text(s, values[i] == ABSENT ? NULL : field_enum_name(unit + 5, values[i]));
		else if (!strcmp(unit, "time"))
			export_time(s, values[i]);
		else
			export_integer(s, explain_known(pool, &info->fields[i], values[i]));
	}
}

static void put_tick(struct export_sink *s, const struct history_pool *pool, const struct tick_record *r)
{
	export_time(s, r->now);
	export_integer(s, r->tick);
	export_text(s, pool->namespace);
	export_text(s, pool->name);
}

/* --- decisions --- */

struct decisions {
	struct history_args *args;
	enum export_table table;
	struct export_sink *sink;
	struct history_stretch stretch;
	struct manifest manifest; /* in force in the stretch */
	bool is_loaded;
	struct arena arena;
};

/* A group's number in a plan is its place in the manifest in force. */
static bool load_stretch(struct decisions *d, int64_t tick, struct error *e)
{
	struct history *h = d->args->history;

	arena_release(&d->arena);
	if (!history_stretch_at(h, tick, &d->arena, &d->stretch, e) ||
	    !history_args_manifest(h, tick, &d->arena, &d->manifest, e))
		return false;
	d->is_loaded = d->manifest.fleet.pool_count == d->stretch.pool_count;
	return d->is_loaded ||
	       error_set(e, ERROR_INVALID, "%s: damaged: its manifest is not that of its decisions", history_path(h));
}

static bool put_groups(struct decisions *d, size_t place, const struct tick_record *r, struct error *e)
{
	const struct fleet_spec *fleet = &d->manifest.fleet;
	const struct pool_spec *spec = &fleet->pools[place];
	size_t count;

	if (r->plan.group_count != spec->group_count)
		return error_set(e, ERROR_INVALID, "%s: damaged: its manifest is not that of its decisions",
				 history_path(d->args->history));
	for (size_t g = 0; g < r->plan.group_count; g++) {
		put_tick(d->sink, &history_pools(d->args->history, &count)[r->pool], r);
		export_text(d->sink, fleet->groups[spec->groups[g]].name);
		put_record(d->sink, spec, &group_decision_info, &r->plan.groups[g]);
	}
	return true;
}

static bool put_decision(struct decisions *d, size_t place, const struct tick_record *r, struct error *e)
{
	size_t count;

	if (d->table == EXPORT_GROUPS)
		return put_groups(d, place, r, e);
	put_tick(d->sink, &history_pools(d->args->history, &count)[r->pool], r);
	export_integer(d->sink, r->interval);
	put_record(d->sink, &d->manifest.fleet.pools[place], &pool_decision_info, &r->plan.decision);
	return true;
}

static bool put_all(struct decisions *d, int64_t tick, struct error *e)
{
	if ((tick > d->stretch.until || !d->is_loaded) && !load_stretch(d, tick, e))
		return false;
	for (size_t i = 0; i < d->stretch.pool_count; i++) {
		struct tick_record r;

		if (!history_read(d->args->history, tick, d->stretch.pools[i], &r, e) || !put_decision(d, i, &r, e))
			return false;
	}
	return true;
}

/* First and last tick of [from, to); last < first: none. */
static bool find_ticks(const struct history_args *q, const struct export_span *span, int64_t *first, int64_t *last,
		       struct error *e)
{
	if (!history_tick_at(q->history, span->from - 1, first, e) ||
	    !history_tick_at(q->history, span->to - 1, last, e))
		return false;
	*first += span->from - 1 >= q->span.from;
	*last -= span->to - 1 < q->span.from;
	return true;
}

static bool export_decisions(struct history_args *q, enum export_table table, const struct export_span *span,
			     struct export_sink *sink, struct error *e)
{
	struct decisions d = { .args = q, .table = table, .sink = sink };
	int64_t first, last;
	bool ok = find_ticks(q, span, &first, &last, e);

	for (int64_t tick = ok ? first : 1; ok && tick <= last; tick++)
		ok = put_all(&d, tick, e);
	arena_release(&d.arena);
	return ok;
}

/* --- costs --- */

static void put_costs(struct export_sink *s, const struct history_pool *pools, bool is_unpriced,
		      const struct cost_hour *h)
{
	const struct cost_sums *sums = &h->sums;
	const int64_t counts[] = { sums->watched_ms, sums->arrived,	  sums->started,       sums->late,
				   sums->completed,  sums->prompt_tokens, sums->output_tokens, sums->blind_gpu_ms };

	export_time(s, h->hour * HOUR);
	export_text(s, pools[h->pool].namespace);
	export_text(s, pools[h->pool].name);
	export_text(s, pool_class_name(h->class));
	for (size_t i = 0; i < sizeof counts / sizeof *counts; i++)
		export_integer(s, counts[i]);
	for (int i = 0; i < GPU_STATE_COUNT; i++)
		export_integer(s, sums->gpu_ms[i]);
	for (int i = 0; i < GPU_STATE_COUNT; i++)
		export_integer(s, is_unpriced ? ABSENT : sums->dollars[i]);
	for (int i = 0; i < LATE_CAUSE_COUNT; i++)
		export_integer(s, sums->late_by[i]);
}

static bool export_costs(struct history_args *q, const struct export_span *span, struct export_sink *sink,
			 struct error *e)
{
	CLEANUP(arena_release) struct arena a = { 0 };
	const struct hour_range range = { span->from / HOUR, (span->to + HOUR - 1) / HOUR - 1 };
	struct cost_hour *hours;
	size_t count, pool_count;

	if (!history_cost_hours(q->history, range, &a, &hours, &count, e))
		return false;
	const bool *is_unpriced = history_args_unpriced(q);
	for (size_t i = 0; i < count; i++)
		put_costs(sink, history_pools(q->history, &pool_count), is_unpriced[hours[i].pool], &hours[i]);
	return true;
}

/* --- launches --- */

static void put_launch(struct export_sink *s, const struct launch *l)
{
	CLEANUP(buf_release) struct buf machines = { 0 };

	for (size_t i = 0; i < l->machine_count; i++)
		buf_printf(&machines, i ? " %s" : "%s", l->machines[i]);
	export_time(s, l->asked_at);
	export_time(s, l->outcome ? l->ended_at : 0);
	export_integer(s, l->tick < 0 ? ABSENT : l->tick);
	export_text(s, l->group);
	export_text(s, l->verb >= 0 && l->verb < PROVIDER_VERB_COUNT ? provider_verb_name((enum provider_verb)l->verb)
								     : NULL);
	export_integer(s, l->machine_count ? ABSENT : l->target);
	export_text(s, machines.text);
	export_text(s, l->outcome);
	export_integer(s, l->term);
	export_text(s, l->token);
	export_text(s, l->operation);
}

static bool export_launches(struct history_args *q, const struct export_span *span, struct export_sink *sink,
			    struct error *e)
{
	CLEANUP(arena_release) struct arena a = { 0 };
	const struct launch_filter filter = { span->from, span->to - 1, NULL, INT64_MAX };
	struct launch *launches;
	size_t count;

	if (!launch_find(q->history, &filter, &a, &launches, &count, e))
		return false;
	for (size_t i = 0; i < count; i++)
		put_launch(sink, &launches[i]);
	return true;
}

/* Every row of the time into the sink, in order of time. */
static bool export_rows(struct history_args *q, enum export_table table, const struct export_span *span,
			struct export_sink *sink, struct error *e)
{
	switch (table) {
	case EXPORT_DECISIONS:
	case EXPORT_GROUPS:
		return export_decisions(q, table, span, sink, e);
	case EXPORT_COSTS:
		return export_costs(q, span, sink, e);
	case EXPORT_LAUNCHES:
		return export_launches(q, span, sink, e);
	case EXPORT_TABLES:
		break;
	}
	return true;
}

enum { NOTE_MAX = 16 * 1024 };

static const char over[] = "\"over\": true", first_key[] = "\"first_tick\": ";

/* "2024-05-10" */
static void export_day_name(int64_t day, struct buf *out)
{
	explain_time(day * DAY, 0, out);
	out->len -= strlen(" 00:00:00");
	out->text[out->len] = '\0';
}

static const char *export_state_name(enum export_state state)
{
	static const char *const names[EXPORT_STATES] = { "written", "there already", "kept: the history has less" };

	return names[state];
}

/* "decisions.csv.gz" */
static void export_file_name(enum export_table table, const struct export_format *format, struct buf *out)
{
	buf_printf(out, "%s.%s%s", export_table_name(table), format->is_json ? "jsonl" : "csv",
		   format->is_compressed ? ".gz" : "");
}

/* --- the schema --- */

static void export_write_schema(struct buf *out)
{
	CLEANUP(arena_release) struct arena a = { 0 };

	buf_text(out, "{\n\"version\": 1,\n\"tables\": [");
	for (int t = 0; t < EXPORT_TABLES; t++) {
		size_t count;
		const struct export_column *columns = export_columns((enum export_table)t, &a, &count);

		buf_printf(out, "%s\n{\"name\": \"%s\", \"help\": ", t ? "," : "",
			   export_table_name((enum export_table)t));
		json_write_text(export_table_help((enum export_table)t), out);
		buf_text(out, ", \"columns\": [");
		for (size_t i = 0; i < count; i++) {
			buf_printf(out, "%s\n {\"name\": \"%s\", \"type\": \"%s\", \"help\": ", i ? "," : "",
				   columns[i].name, export_type_name(columns[i].type));
			json_write_text(columns[i].help, out);
			buf_text(out, "}");
		}
		buf_text(out, "]}");
	}
	buf_text(out, "]}\n");
}

/* FOLDER/schema.json: tables, columns, types, meaning. */
static bool export_schema_write(const char *folder, struct error *e)
{
	CLEANUP(buf_release) struct buf path = { 0 }, text = { 0 };

	buf_printf(&path, "%s/schema.json", folder);
	export_write_schema(&text);
	return file_write(path.text, text.text, text.len, e);
}

/* --- folders --- */

static bool any_name(const char *name)
{
	return strcmp(name, ".") != 0 && strcmp(name, "..") != 0;
}

/* Of ours: nothing in it is a folder. */
static bool remove_folder(const char *path, struct error *e)
{
	CLEANUP(arena_release) struct arena a = { 0 };
	struct folder f;

	if (!folder_list(path, any_name, &a, &f, e))
		return false;
	for (size_t i = 0; i < f.count; i++)
		unlink(f.paths[i]);
	if (!f.is_folder || rmdir(path) == 0)
		return true;
	return error_set(e, file_error_kind(errno), "%s: cannot be removed: %s", path, strerror(errno));
}

static bool make_folder(const char *path, struct error *e)
{
	if (mkdir(path, 0777) == 0 || errno == EEXIST)
		return true;
	return error_set(e, file_error_kind(errno), "%s: cannot make this folder: %s; name one where you may write",
			 path, strerror(errno));
}

/* --- a day --- */

struct writing {
	struct history_args *args;
	const struct export_format *format;
	struct export_day *day;
	struct export_span span;
	struct buf place, partial; /* the folder, and what it is called until it is whole */
};

static bool write_table(struct writing *w, enum export_table table, struct error *e)
{
	CLEANUP(arena_release) struct arena a = { 0 };
	CLEANUP(buf_release) struct buf path = { 0 };
	struct export_sink sink = { .is_json = w->format->is_json };

	buf_printf(&path, "%s/", w->partial.text);
	export_file_name(table, w->format, &path);
	sink.columns = export_columns(table, &a, &sink.count);
	sink.output = output_open(path.text, e);
	if (!sink.output)
		return false;
	export_begin(&sink);
	bool ok = export_rows(w->args, table, &w->span, &sink, e);
	export_end(&sink);
	w->day->rows[table] = sink.rows;
	if (ok)
		return output_commit(sink.output, e);
	output_abandon(sink.output);
	return false;
}

static int64_t first_tick_of(const struct writing *w)
{
	struct error e;
	int64_t tick;

	if (w->span.from <= w->args->span.from || !history_tick_at(w->args->history, w->span.from - 1, &tick, &e))
		return w->args->span.first_tick;
	return tick + 1;
}

static bool write_note(const struct writing *w, struct error *e)
{
	CLEANUP(buf_release) struct buf path = { 0 }, text = { 0 };

	buf_text(&text, "{ \"day\": \"");
	export_day_name(w->day->day, &text);
	buf_printf(&text, "\", %s, %s%" PRId64 ",\n  \"program\": ", w->day->is_over ? over : "\"over\": false",
		   first_key, first_tick_of(w));
	json_write_text(command_version_text(), &text);
	buf_text(&text, ", \"rows\": {");
	for (int t = 0; t < EXPORT_TABLES; t++)
		buf_printf(&text, "%s \"%s\": %" PRId64, t ? "," : "", export_table_name((enum export_table)t),
			   w->day->rows[t]);
	buf_text(&text, " } }\n");
	buf_printf(&path, "%s/day.json", w->partial.text);
	return file_write(path.text, text.text, text.len, e);
}

/* What stands there is another one's or an earlier one of ours: the old name is free for a moment only. */
static bool put_in_place(const struct writing *w, struct error *e)
{
	CLEANUP(buf_release) struct buf old = { 0 };

	buf_printf(&old, "%s.old", w->partial.text);
	if (!remove_folder(old.text, e))
		return false;
	bool was_there = rename(w->place.text, old.text) == 0;
	if (rename(w->partial.text, w->place.text) < 0)
		return error_set(e, file_error_kind(errno), "%s: %s", w->place.text, strerror(errno));
	return !was_there || remove_folder(old.text, e);
}

/* What day.json says of a day that is there. */
struct found {
	bool is_there, is_over;
	int64_t first_tick;
};

static bool read_note(const struct writing *w, struct found *f, struct error *e)
{
	CLEANUP(buf_release) struct buf path = { 0 }, text = { 0 };
	struct error why;

	*f = (struct found){ .is_there = access(w->place.text, F_OK) == 0 };
	if (!f->is_there)
		return true;
	buf_printf(&path, "%s/day.json", w->place.text);
	if (!file_read(path.text, NOTE_MAX, &text, &why) || !strstr(text.text, first_key))
		return error_set(
			e, ERROR_CONFLICT,
			"%s: is there and was not written by an export; name another folder with --out, or add "
			"--force to replace it",
			w->place.text);
	f->is_over = strstr(text.text, over);
	const char *digits = strstr(text.text, first_key) + strlen(first_key);
	for (; *digits >= '0' && *digits <= '9' && f->first_tick < INT64_MAX / 20; digits++)
		f->first_tick = 10 * f->first_tick + (*digits - '0');
	return true;
}

static bool write_day(struct writing *w, struct error *e)
{
	if (!remove_folder(w->partial.text, e) || !make_folder(w->partial.text, e))
		return false;
	for (int t = 0; t < EXPORT_TABLES; t++)
		if (!write_table(w, (enum export_table)t, e))
			return false;
	return write_note(w, e) && put_in_place(w, e);
}

static bool write_unless_there(struct writing *w, bool replaces, struct error *e)
{
	struct found found = { 0 };

	if (!replaces && !read_note(w, &found, e))
		return false;
	w->day->state = EXPORT_WRITTEN;
	if (found.is_there && found.is_over)
		w->day->state = EXPORT_THERE;
	else if (found.is_there && found.first_tick < first_tick_of(w))
		w->day->state = EXPORT_THINNED;
	if (w->day->state != EXPORT_WRITTEN || write_day(w, e))
		return true;
	struct error ignored;
	(void)!remove_folder(w->partial.text, &ignored);
	return false;
}

/* Writes d->day unless it is there; `replaces`: in any case. */
static bool export_day_write(struct history_args *q, const char *folder, const struct export_format *format,
			     bool replaces, struct export_day *d, struct error *e)
{
	CLEANUP(buf_release) struct buf name = { 0 };
	struct writing w = { .args = q, .format = format, .day = d, .span = { d->day * DAY, (d->day + 1) * DAY } };

	export_day_name(d->day, &name);
	buf_printf(&w.place, "%s/day=%s", folder, name.text);
	buf_printf(&w.partial, "%s/.day=%s.partial", folder, name.text);
	d->is_over = q->span.to >= w.span.to;
	bool ok = write_unless_there(&w, replaces, e);
	buf_release(&w.place);
	buf_release(&w.partial);
	return ok;
}

extern const struct command history_command_export;

struct asked {
	struct history_args args;
	const char *from, *to, *out, *format, *table, *output;
	bool is_compressed, replaces, prints_schema;
	int64_t first_day, last_day; /* both included */
};

static int64_t day_of(millis at)
{
	return (at - (((at % DAY) + DAY) % DAY)) / DAY;
}

static bool find_days(struct asked *a, struct error *e)
{
	const struct history_args *q = &a->args;
	millis from = q->span.from, to = q->span.to;

	if ((a->from && !history_args_time(q, "from", a->from, &from, e)) ||
	    (a->to && !history_args_time(q, "to", a->to, &to, e)))
		return false;
	if (day_of(from) > day_of(to))
		return error_set(e, ERROR_INVALID, "--from %s is later than --to %s; swap them", a->from, a->to);
	a->first_day = day_of(from > q->span.from ? from : q->span.from);
	a->last_day = day_of(to < q->span.to ? to : q->span.to);
	if (a->first_day <= a->last_day)
		return true;
	CLEANUP(buf_release) struct buf first = { 0 }, last = { 0 };
	export_day_name(day_of(q->span.from), &first);
	export_day_name(day_of(q->span.to), &last);
	return error_set(e, ERROR_NOT_FOUND, "%s: no decision in these days; it goes from %s to %s (UTC)",
			 history_path(q->history), first.text, last.text);
}

static bool find_table(const char *name, enum export_table *table)
{
	for (int t = 0; t < EXPORT_TABLES; t++)
		if (!strcmp(export_table_name((enum export_table)t), name)) {
			*table = (enum export_table)t;
			return true;
		}
	return false;
}

/* All days of one table in one stream. */
static bool export_stream(struct asked *a, struct error *e)
{
	CLEANUP(arena_release) struct arena arena = { 0 };
	const struct export_span span = { a->first_day * DAY, (a->last_day + 1) * DAY };
	struct export_sink sink = { .is_json = !strcmp(a->format, "jsonl") };
	enum export_table table = EXPORT_DECISIONS;

	if (a->table && !find_table(a->table, &table))
		return error_set(e, ERROR_INTERNAL, "--table: no table %s", a->table);
	sink.columns = export_columns(table, &arena, &sink.count);
	sink.output = output_open("-", e);
	if (!sink.output)
		return false;
	export_begin(&sink);
	bool ok = export_rows(&a->args, table, &span, &sink, e);
	export_end(&sink);
	if (ok)
		return output_commit(sink.output, e);
	output_abandon(sink.output);
	return false;
}

static void add_day(struct table *t, const struct export_day *d)
{
	CLEANUP(buf_release) struct buf name = { 0 };

	export_day_name(d->day, &name);
	table_text(t, name.text);
	for (int i = 0; i < EXPORT_TABLES; i++) {
		if (d->state == EXPORT_WRITTEN)
			table_count(t, d->rows[i]);
		else
			table_absent(t);
	}
	table_value(t, d->is_over ? "yes" : "not yet", d->is_over ? "true" : "false");
	table_text(t, export_state_name(d->state));
}

static bool export_days(struct asked *a, struct error *e)
{
	static const struct table_column columns[] = {
		{ .name = "day" },
		{ .name = "decisions", .is_right = true },
		{ .name = "group_decisions", .title = "GROUP DECISIONS", .is_right = true },
		{ .name = "costs", .is_right = true },
		{ .name = "launches", .is_right = true },
		{ .name = "over" },
		{ .name = "state" },
	};
	const struct export_format format = { !strcmp(a->format, "jsonl"), a->is_compressed };
	struct table *t = table_new(columns, sizeof columns / sizeof *columns);
	bool ok = export_schema_write(a->out, e);

	for (int64_t day = a->first_day; ok && day <= a->last_day; day++) {
		struct export_day d = { .day = day };

		ok = export_day_write(&a->args, a->out, &format, a->replaces, &d, e);
		if (ok)
			add_day(t, &d);
	}
	if (table_rows(t))
		table_print(t, table_format_of(a->output), stdout);
	table_free(t);
	return ok;
}

static bool check(const struct asked *a, struct error *e)
{
	if (!a->out)
		return error_set(e, ERROR_INVALID, "--out is missing: a folder, or - for one table on standard output");
	bool is_stream = !strcmp(a->out, "-");
	if (is_stream && (a->replaces || a->is_compressed))
		return error_set(e, ERROR_INVALID, "--out - writes a stream; give it without --force and --gzip");
	if (!is_stream && a->table)
		return error_set(e, ERROR_INVALID, "--table chooses what --out - writes; a folder gets all tables");
	return true;
}

static bool export(struct asked *a, struct error *e)
{
	if (!check(a, e) || !history_args_open(&a->args, e) || !find_days(a, e))
		return false;
	if (!strcmp(a->out, "-"))
		return export_stream(a, e);
	if (mkdir(a->out, 0777) < 0 && errno != EEXIST)
		return error_set(e, errno == ENOENT ? ERROR_NOT_FOUND : ERROR_UNAVAILABLE,
				 "--out %s: cannot make this folder: %s; name one where you may write", a->out,
				 strerror(errno));
	return export_days(a, e);
}

static int run(int argc, char **argv)
{
	struct asked a = { .args = HISTORY_ARGS_DEFAULTS, .format = "csv", .output = "table" };
	const struct option_row rows[] = {
		{ "db", 0, OPTION_TEXT, "FILE", "the history to read, or the folder it is in (default: history.db)",
		  &a.args.db, NULL },
		{ "out", 0, OPTION_TEXT, "DIR", "where the days go; - is standard output, for one table", &a.out,
		  NULL },
		{ "from", 0, OPTION_TEXT, "TIME", "the first day, as 2024-05-10 (UTC)", &a.from, NULL },
		{ "to", 0, OPTION_TEXT, "TIME", "the last day, included", &a.to, NULL },
		{ "format", 0, OPTION_CHOICE, "FORMAT", "csv with a header, or a JSON object a line", &a.format,
		  "csv|jsonl" },
		{ "table", 0, OPTION_CHOICE, "NAME", "with --out -: which (default: decisions)", &a.table,
		  "decisions|group_decisions|costs|launches" },
		{ "gzip", 'z', OPTION_FLAG, NULL, "compress the files", &a.is_compressed, NULL },
		{ "force", 0, OPTION_FLAG, NULL, "write existing days again", &a.replaces, NULL },
		{ "print-schema", 0, OPTION_FLAG, NULL, "print tables, columns and types, and exit", &a.prints_schema,
		  NULL },
		PRINT_OPTION(&a.output),
	};
	struct error e;
	int rest, code;

	a.args.is_utc = true; /* a day is one of UTC */
	if (!command_options(&history_command_export, argc, argv, rows, sizeof rows / sizeof *rows, &rest, &code))
		return code;
	if (a.prints_schema)
		return command_print(export_write_schema);
	bool ok = history_args_are_options(argv[rest], &e) && export(&a, &e);
	return history_args_finish(&a.args, &history_command_export, ok, &e);
}

const struct command history_command_export = {
	.name = "history export",
	.usage = "history export [--db FILE] --out DIR|- [--from DAY] [--to DAY] [--format csv|jsonl]",
	.summary = "Write decisions, costs and launches as flat tables, a folder a day, for data frames and warehouses",
	.examples =
		"  preheat history export --db /var/lib/preheat/history.db --out /data/preheat --gzip\n"
		"  preheat history export --out - --table costs --from 2024-05-01 --to 2024-05-31 > may.csv\n"
		"  duckdb -c \"COPY (FROM read_csv('/data/preheat/day=*/decisions.csv.gz')) TO 'decisions.parquet'\"\n",
	.notes = "DIR/day=2024-05-10/ holds decisions, group_decisions, costs and launches of that day (UTC), and "
		 "day.json;\n"
		 "DIR/schema.json says names, types and meaning of all columns. A day appears whole. Run it again, "
		 "every night\n"
		 "say: finished days are left alone, an unfinished one is written again.\n",
	.run = run,
};
