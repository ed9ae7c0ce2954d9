#include "base/findings.h"

#include <stdlib.h>
#include <string.h>

enum { TEXT_MAX = 400 };

/* Never cuts a UTF-8 sequence in two. */
static size_t cut_at(const char *text, size_t len, size_t most)
{
	if (len <= most)
		return len;
	while (most && ((unsigned char)text[most] & 0xc0) == 0x80)
		most--;
	return most;
}

static const char *keep(struct findings *f, const char *text)
{
	CLEANUP(buf_release) struct buf visible = { 0 };
	if (!text)
		text = "";
	size_t len = strlen(text), shown = cut_at(text, len, TEXT_MAX);
	for (size_t i = 0; i < shown; i++) {
		unsigned char c = (unsigned char)text[i];
		buf_printf(&visible, c < 0x20 || c == 0x7f ? "\\x%02x" : "%c", c);
	}
	buf_text(&visible, shown < len ? "..." : "");
	return arena_strdup(&f->arena, visible.text, visible.len);
}

void findings_add(struct findings *f, const struct finding *item)
{
	if (f->count == FINDINGS_MAX) {
		f->more++;
		return;
	}
	f->items[f->count++] = (struct finding){
		.file = keep(f, item->file),
		.line = item->line,
		.column = item->column,
		.path = keep(f, item->path),
		.found = keep(f, item->found),
		.allowed = keep(f, item->allowed),
		.remedy = keep(f, item->remedy),
	};
}

static int compare(const void *left, const void *right)
{
	const struct finding *a = left, *b = right;
	int order = strcmp(a->file, b->file);

	if (!order)
		order = (a->line > b->line) - (a->line < b->line);
	if (!order)
		order = (a->column > b->column) - (a->column < b->column);
	return order ? order : strcmp(a->path, b->path);
}

void findings_sort(struct findings *f)
{
	qsort(f->items, f->count, sizeof f->items[0], compare);
}

void findings_release(struct findings *f)
{
	arena_release(&f->arena);
	f->count = f->more = 0;
	f->is_incomplete = false;
}

void finding_print(const struct finding *item, struct buf *out)
{
	buf_text(out, item->file);
	if (item->line)
		buf_printf(out, ":%zu:%zu", item->line, item->column);
	if (*item->path)
		buf_printf(out, ": %s", item->path);
	buf_printf(out, ": found %s", item->found);
	if (*item->allowed)
		buf_printf(out, "; allowed: %s", item->allowed);
	if (*item->remedy)
		buf_printf(out, "; do: %s", item->remedy);
}

bool findings_error(const struct findings *f, struct error *e)
{
	CLEANUP(buf_release) struct buf line = { 0 };
	size_t more = f->count - 1 + f->more;

	finding_print(&f->items[0], &line);
	if (!more)
		return error_set(e, ERROR_INVALID, "%s", line.text);
	return error_set(e, ERROR_INVALID, "%.*s (and %zu more: 'preheat check' lists all)",
			 (int)cut_at(line.text, line.len, TEXT_MAX), line.text, more);
}
