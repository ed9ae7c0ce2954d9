#include "base/csv_write.h"

#include "base/arena.h"
#include "base/json.h"

#include <string.h>

struct cell {
	struct buf text;
	bool is_set;
};

struct row {
	struct row *next;
	struct cell *cells;
	size_t room;
};

struct sheet {
	struct arena arena;
	const char *rows, *key;
	bool is_map;
	int depth; /* of the rows; 0: not there yet */
	size_t mark;
	const char **columns;
	size_t count, room;
	struct row *first, **end, *now;
};

/* "sees>machines[]>state" is "sees.machines.state". */
static const char *column_name(struct arena *a, const char *path)
{
	char *name = arena_alloc(a, strlen(path) + 1, 1), *end = name;

	for (; *path; path++) {
		if (*path == '>')
			*end++ = '.';
		else if (strncmp(path, "[]", 2) != 0)
			*end++ = *path;
		else
			path++;
	}
	return name;
}

static size_t column_of(struct sheet *s, const char *path)
{
	const char *name = column_name(&s->arena, path);
	size_t i = 0;

	while (i < s->count && strcmp(s->columns[i], name) != 0)
		i++;
	if (i < s->count)
		return i;
	if (s->count == s->room) {
		size_t room = s->room ? 2 * s->room : 32;
		const char **grown = arena_array(&s->arena, const char *, room);
		if (s->count)
			memcpy(grown, s->columns, s->count * sizeof *grown);
		s->columns = grown;
		s->room = room;
	}
	s->columns[s->count++] = name;
	return i;
}

static struct cell *cell_of(struct sheet *s, size_t column)
{
	struct row *r = s->now;

	if (column >= r->room) {
		size_t room = s->room;
		struct cell *grown = arena_array(&s->arena, struct cell, room);
		if (r->room)
			memcpy(grown, r->cells, r->room * sizeof *grown);
		r->cells = grown;
		r->room = room;
	}
	return &r->cells[column];
}

static void put_value(struct sheet *s, const char *path, const char *text, size_t len)
{
	struct cell *c = cell_of(s, column_of(s, path));

	if (c->is_set)
		buf_text(&c->text, "; ");
	buf_append(&c->text, text, len);
	c->is_set = true;
}

static void begin_row(struct sheet *s, const struct json_event *event)
{
	s->now = arena_new(&s->arena, struct row);
	*s->end = s->now;
	s->end = &s->now->next;
	s->mark = strlen(event->path);
	if (s->is_map && s->key) {
		const char *name = event->path + strlen(s->rows) + (*s->rows ? 1 : 0);
		put_value(s, s->key, name, strlen(name));
	}
}

static bool on_event(void *user, const struct json_event *event, struct error *e)
{
	struct sheet *s = user;

	(void)e;
	if (!s->depth && event->type == JSON_OPEN && !strcmp(event->path, s->rows)) {
		s->depth = event->depth + 1;
		s->is_map = !event->is_array;
		return true;
	}
	if (!s->depth || (event->type == JSON_CLOSE && event->depth > s->depth))
		return true;
	if (event->type == JSON_CLOSE) {
		s->now = NULL;
		s->depth = event->depth < s->depth ? -1 : s->depth;
		return true;
	}
	if (event->depth == s->depth && event->type == JSON_OPEN && !event->is_array)
		begin_row(s, event);
	else if (s->now && event->type == JSON_NULL)
		column_of(s, event->path + s->mark + 1);
	else if (s->now && event->type != JSON_OPEN)
		put_value(s, event->path + s->mark + 1, event->text, event->len);
	return true;
}

void csv_write_cell(const char *text, struct buf *out)
{
	if (!text[strcspn(text, ",\"\r\n")]) {
		buf_text(out, text);
		return;
	}
	buf_text(out, "\"");
	for (; *text; text++) {
		if (*text == '"')
			buf_text(out, "\"");
		buf_append(out, text, 1);
	}
	buf_text(out, "\"");
}

static void write_sheet(struct sheet *s, struct buf *out)
{
	for (size_t i = 0; i < s->count; i++) {
		buf_text(out, i ? "," : "");
		csv_write_cell(s->columns[i], out);
	}
	buf_text(out, s->count ? "\n" : "");
	for (struct row *r = s->first; r; r = r->next) {
		for (size_t i = 0; i < s->count; i++) {
			buf_text(out, i ? "," : "");
			if (i < r->room && r->cells[i].text.text)
				csv_write_cell(r->cells[i].text.text, out);
		}
		buf_text(out, "\n");
	}
}

static void release_cells(struct sheet *s)
{
	for (struct row *r = s->first; r; r = r->next)
		for (size_t i = 0; i < r->room; i++)
			buf_release(&r->cells[i].text);
}

bool csv_write_json(const struct buf *json, const char *rows, const char *key, struct buf *out, struct error *e)
{
	struct sheet s = { .rows = rows ? rows : "", .key = key };
	s.end = &s.first;
	struct json *j = json_open("answer", on_event, &s);
	bool ok = (rows || json_feed(j, "[", 1, e)) && json_feed(j, json->text, json->len, e) &&
		  (rows || json_feed(j, "]", 1, e)) && json_finish(j, e);

	json_close(j);
	if (ok)
		write_sheet(&s, out);
	release_cells(&s);
	arena_release(&s.arena);
	return ok;
}
