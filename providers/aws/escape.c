#include "providers/aws/escape.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static bool is_unreserved(char c)
{
	return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') ||
	       (c && strchr("-._~", c) != NULL);
}

void aws_escape(const char *text, size_t len, const char *kept, struct buf *out)
{
	for (size_t i = 0; i < len; i++)
		if (is_unreserved(text[i]) || (text[i] && strchr(kept, text[i])))
			buf_append(out, text + i, 1);
		else
			buf_printf(out, "%%%02X", (unsigned char)text[i]);
}

void aws_form_begin(const char *action, const char *version, struct buf *out)
{
	buf_printf(out, "Action=%s&Version=%s", action, version);
}

void aws_form_text(const char *name, const char *value, struct buf *out)
{
	buf_printf(out, "&%s=", name);
	aws_escape(value, strlen(value), "", out);
}

void aws_form_int(const char *name, int64_t value, struct buf *out)
{
	buf_printf(out, "&%s=%" PRId64, name, value);
}

void aws_form_bool(const char *name, bool value, struct buf *out)
{
	buf_printf(out, "&%s=%s", name, value ? "true" : "false");
}

void aws_form_member(const char *list, size_t index, const char *value, struct buf *out)
{
	char name[96];

	snprintf(name, sizeof name, "%s.member.%zu", list, index + 1);
	aws_form_text(name, value, out);
}
