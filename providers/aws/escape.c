#include "providers/aws/escape.h"

#include "base/uri.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

void aws_form_begin(const char *action, const char *version, struct buf *out)
{
	buf_printf(out, "Action=%s&Version=%s", action, version);
}

void aws_form_text(const char *name, const char *value, struct buf *out)
{
	buf_printf(out, "&%s=", name);
	uri_escape(value, strlen(value), "", out);
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
