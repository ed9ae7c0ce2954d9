#include "controller/commands/export_days.h"

#include "base/file.h"
#include "base/json.h"
#include "controller/commands/command.h"
#include "controller/commands/export_sink.h"
#include "controller/explain/explain.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { NOTE_MAX = 16 * 1024 };

static const char over[] = "\"over\": true", first_key[] = "\"first_tick\": ";

void export_day_name(int64_t day, struct buf *out)
{
	explain_time(day * DAY, 0, out);
	out->len -= strlen(" 00:00:00");
	out->text[out->len] = '\0';
}

const char *export_state_name(enum export_state state)
{
	static const char *const names[EXPORT_STATES] = { "written", "there already", "kept: the history has less" };

	return names[state];
}

void export_file_name(enum export_table table, const struct export_format *format, struct buf *out)
{
	buf_printf(out, "%s.%s%s", export_table_name(table), format->is_json ? "jsonl" : "csv",
		   format->is_compressed ? ".gz" : "");
}

/* --- the schema --- */

void export_write_schema(struct buf *out)
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

bool export_schema_write(const char *folder, struct error *e)
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
	struct question *question;
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
	bool ok = export_rows(w->question, table, &w->span, &sink, e);
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

	if (w->span.from <= w->question->span.from ||
	    !history_tick_at(w->question->history, w->span.from - 1, &tick, &e))
		return w->question->span.first_tick;
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

bool export_day_write(struct question *q, const char *folder, const struct export_format *format, bool replaces,
		      struct export_day *d, struct error *e)
{
	CLEANUP(buf_release) struct buf name = { 0 };
	struct writing w = { .question = q, .format = format, .day = d, .span = { d->day * DAY, (d->day + 1) * DAY } };

	export_day_name(d->day, &name);
	buf_printf(&w.place, "%s/day=%s", folder, name.text);
	buf_printf(&w.partial, "%s/.day=%s.partial", folder, name.text);
	d->is_over = q->span.to >= w.span.to;
	bool ok = write_unless_there(&w, replaces, e);
	buf_release(&w.place);
	buf_release(&w.partial);
	return ok;
}
