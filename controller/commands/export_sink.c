#include "controller/commands/export_sink.h"

#include "base/table.h"
#include "base/json.h"
#include "controller/explain/explain.h"

#include <inttypes.h>
#include <string.h>

void export_begin(struct export_sink *s)
{
	if (s->is_json)
		return;
	for (size_t i = 0; i < s->count; i++)
		buf_printf(&s->line, "%s%s", i ? "," : "", s->columns[i].name);
	buf_text(&s->line, "\n");
	output_bytes(s->output, s->line.text, s->line.len);
	buf_clear(&s->line);
}

void export_end(struct export_sink *s)
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

void export_text(struct export_sink *s, const char *text)
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

void export_integer(struct export_sink *s, int64_t value)
{
	if (value == ABSENT) {
		put_nothing(s);
		return;
	}
	open_cell(s);
	buf_printf(&s->line, "%" PRId64, value);
	close_cell(s);
}

void export_time(struct export_sink *s, millis at)
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
