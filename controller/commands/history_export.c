/* preheat history export: a history as flat files, a folder a day. */
#include "controller/commands/answer.h"
#include "controller/commands/command.h"
#include "controller/commands/export_days.h"
#include "controller/commands/export_sink.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

extern const struct command history_command_export;

struct asked {
	struct question question;
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
	const struct question *q = &a->question;
	millis from = q->span.from, to = q->span.to;

	if ((a->from && !question_time(q, "from", a->from, &from, e)) ||
	    (a->to && !question_time(q, "to", a->to, &to, e)))
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
	bool ok = export_rows(&a->question, table, &span, &sink, e);
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

		ok = export_day_write(&a->question, a->out, &format, a->replaces, &d, e);
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
	if (!check(a, e) || !question_open(&a->question, e) || !find_days(a, e))
		return false;
	if (!strcmp(a->out, "-"))
		return export_stream(a, e);
	if (mkdir(a->out, 0777) < 0 && errno != EEXIST)
		return error_set(e, errno == ENOENT ? ERROR_NOT_FOUND : ERROR_UNAVAILABLE,
				 "--out %s: cannot make this folder: %s; name one where you may write", a->out,
				 strerror(errno));
	return export_days(a, e);
}

static int print_schema(void)
{
	CLEANUP(buf_release) struct buf text = { 0 };

	export_write_schema(&text);
	fwrite(text.text, 1, text.len, stdout);
	return EXIT_DONE;
}

static int run(int argc, char **argv)
{
	struct asked a = { .question = QUESTION_DEFAULTS, .format = "csv", .output = "table" };
	const struct option_row rows[] = {
		{ "db", 0, OPTION_TEXT, "FILE", "the history to read, or the folder it is in (default: history.db)",
		  &a.question.db, NULL },
		{ "out", 0, OPTION_TEXT, "DIR", "where the days go; - is standard output, for one table", &a.out,
		  NULL },
		{ "from", 0, OPTION_TEXT, "TIME", "the first day, as 2024-05-10 (UTC)", &a.from, NULL },
		{ "to", 0, OPTION_TEXT, "TIME", "the last day, included", &a.to, NULL },
		{ "format", 0, OPTION_CHOICE, "FORMAT", "csv with a header, or a JSON object a line", &a.format,
		  "csv|jsonl" },
		{ "table", 't', OPTION_CHOICE, "NAME", "with --out -: which (default: decisions)", &a.table,
		  "decisions|group_decisions|costs|launches" },
		{ "gzip", 'z', OPTION_FLAG, NULL, "compress the files", &a.is_compressed, NULL },
		{ "force", 0, OPTION_FLAG, NULL, "write days again that are there", &a.replaces, NULL },
		{ "print-schema", 0, OPTION_FLAG, NULL, "print tables, columns and types, and do nothing",
		  &a.prints_schema, NULL },
		ANSWER_OPTION(&a.output),
	};
	struct error e;
	int rest, code;

	a.question.is_utc = true; /* a day is one of UTC */
	if (!command_options(&history_command_export, argc, argv, rows, sizeof rows / sizeof *rows, &rest, &code))
		return code;
	if (a.prints_schema)
		return print_schema();
	code = EXIT_DONE;
	if (rest < argc) {
		error_set(&e, ERROR_INVALID, "found '%.60s'; allowed: options only, a history is named by --db FILE",
			  argv[rest]);
		code = command_failed(&history_command_export, &e);
	} else if (!export(&a, &e)) {
		code = command_failed(&history_command_export, &e);
	}
	question_close(&a.question);
	return code;
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
		 "say: days that were over are left alone, and one that was not is written anew.\n",
	.run = run,
};
