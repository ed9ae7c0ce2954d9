#include "base/json_write.h"

#include <string.h>

void json_write_text(const char *text, struct buf *out)
{
	buf_text(out, "\"");
	for (; *text; text++) {
		unsigned char c = (unsigned char)*text;
		if (c == '"' || c == '\\')
			buf_printf(out, "\\%c", c);
		else if (c == '\n')
			buf_text(out, "\\n");
		else if (c < 0x20 || c == 0x7f)
			buf_printf(out, "\\u%04x", c);
		else
			buf_append(out, text, 1);
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
