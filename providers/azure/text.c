#include "providers/azure/text.h"

bool azure_decode(const struct record_spec *spec, const char *text, size_t len, struct arena *a, void *out,
		  struct error *e)
{
	struct decode_plan *plan = decode_plan_new(spec);
	bool ok = decode_record(plan, text, len, a, out, e);

	decode_plan_free(plan);
	return ok;
}

void azure_write_json(const char *text, size_t len, struct buf *out)
{
	buf_text(out, "\"");
	for (size_t i = 0; i < len; i++) {
		unsigned char c = (unsigned char)text[i];
		if (c == '"' || c == '\\')
			buf_printf(out, "\\%c", c);
		else if (c < 0x20 || c == 0x7f)
			buf_printf(out, "\\u%04x", c);
		else
			buf_append(out, text + i, 1);
	}
	buf_text(out, "\"");
}

void azure_show(const char *text, char *room, size_t size)
{
	size_t n = 0;

	for (; *text && n + 1 < size; text++)
		room[n++] = (unsigned char)*text < 0x20 || *text == 0x7f ? ' ' : *text;
	room[n] = '\0';
}
