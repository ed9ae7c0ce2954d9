#include "base/json_write.h"

#include <string.h>

/* Bytes of the character of UTF-8 that stands there; 0: none does. Neither overlong, nor a surrogate, nor beyond. */
static size_t utf8_length(const unsigned char *c)
{
	size_t len = *c < 0x80 ? 1 : *c < 0xc2 ? 0 : *c < 0xe0 ? 2 : *c < 0xf0 ? 3 : *c < 0xf5 ? 4 : 0;

	for (size_t i = 1; i < len; i++)
		if ((c[i] & 0xc0) != 0x80) /* nor does the end of the text fit */
			return 0;
	if ((*c == 0xe0 && c[1] < 0xa0) || (*c == 0xed && c[1] > 0x9f) || (*c == 0xf0 && c[1] < 0x90) ||
	    (*c == 0xf4 && c[1] > 0x8f))
		return 0;
	return len;
}

static void write_ascii(unsigned char c, struct buf *out)
{
	if (c == '"' || c == '\\')
		buf_printf(out, "\\%c", c);
	else if (c == '\n')
		buf_text(out, "\\n");
	else if (c < 0x20 || c == 0x7f)
		buf_printf(out, "\\u%04x", c);
	else
		buf_append(out, &c, 1);
}

void json_write_text(const char *text, struct buf *out)
{
	buf_text(out, "\"");
	while (*text) {
		size_t len = utf8_length((const unsigned char *)text);

		if (len == 1)
			write_ascii((unsigned char)*text, out);
		else if (len)
			buf_append(out, text, len);
		else
			buf_text(out, "\\ufffd");
		text += len ? len : 1;
	}
	buf_text(out, "\"");
}

void json_write_comma(struct buf *out)
{
	size_t end = out->len;

	while (end && strchr(" \n\t", out->text[end - 1]))
		end--;
	if (end && !strchr("{[,:", out->text[end - 1]))
		buf_text(out, ",");
}
