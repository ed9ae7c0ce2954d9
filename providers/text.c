#include "providers/text.h"

#include "base/buf.h"

#include <string.h>

static const struct field text_fields[] = { { .path = "", .type = FIELD_STRING } };
const struct record_spec text_record = RECORD(const char *, text_fields);

bool text_decode(const struct record_spec *spec, const char *text, size_t len, struct arena *a, void *out,
		 struct error *e)
{
	struct decode_plan *plan = decode_plan_new(spec);
	bool ok = decode_record(plan, text, len, a, out, e);

	decode_plan_free(plan);
	return ok;
}

void text_complete(const struct record_spec *spec, void *record)
{
	for (const struct field *f = spec->fields; f < spec->fields + spec->field_count; f++) {
		void *member = (char *)record + f->offset;
		const char **text = member;
		const struct decoded_list *list = member;
		if (f->type == FIELD_STRING && !*text)
			*text = "";
		for (size_t i = 0; f->type == FIELD_LIST && i < list->count; i++)
			text_complete(f->of, (char *)list->items + i * f->of->size);
	}
}

void text_show(const char *text, size_t len, char *room, size_t size)
{
	size_t n = 0;

	for (; text && n < len && text[n] && n + 1 < size; n++)
		room[n] = (unsigned char)text[n] < 0x20 || text[n] == 0x7f ? ' ' : text[n];
	room[n] = '\0';
}

const char *text_keep(struct arena *a, const char *text)
{
	return text ? arena_strdup(a, text, strlen(text)) : NULL;
}

char *text_printf(struct arena *a, const char *fmt, ...)
{
	CLEANUP(buf_release) struct buf text = { 0 };
	va_list ap;

	va_start(ap, fmt);
	buf_vprintf(&text, fmt, ap);
	va_end(ap);
	return arena_strdup(a, text.text, text.len);
}

bool text_is_among(const char *text, const char *const *list, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (strcmp(list[i], text) == 0)
			return true;
	return false;
}
