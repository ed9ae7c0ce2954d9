#include "controller/web/api_write.h"

#include "base/json.h"
#include "base/quantity.h"
#include "controller/policy/fields.h"

#include <time.h>

void member_key(struct buf *out, const char *name)
{
	json_write_comma(out);
	buf_printf(out, "\"%s\":", name);
}

void member_text(struct buf *out, const char *name, const char *text)
{
	member_key(out, name);
	if (text)
		json_write_text(text, out);
	else
		buf_text(out, "null");
}

void member_flag(struct buf *out, const char *name, bool value)
{
	member_key(out, name);
	buf_text(out, value ? "true" : "false");
}

void value_number(struct buf *out, int64_t value, int digits)
{
	if (value == ABSENT) {
		buf_text(out, "null");
		return;
	}
	if (value < 0)
		buf_text(out, "-");
	fixed_format(value < 0 ? -value : value, digits, out);
}

void member_count(struct buf *out, const char *name, int64_t value)
{
	member_scaled(out, name, value, 0);
}

void member_scaled(struct buf *out, const char *name, int64_t value, int digits)
{
	member_key(out, name);
	value_number(out, value, digits);
}

void value_time(struct buf *out, millis at)
{
	static const millis EARLIEST = 1, LATEST = INT64_C(253402300799999); /* the year 9999 */
	char text[40];
	struct tm tm;
	time_t seconds = (time_t)(at / SECOND);

	if (at < EARLIEST || at > LATEST || !gmtime_r(&seconds, &tm) ||
	    !strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%S", &tm)) {
		buf_text(out, "null");
		return;
	}
	buf_printf(out, "\"%s", text);
	if (at % SECOND)
		buf_printf(out, ".%03d", (int)(at % SECOND));
	buf_text(out, "Z\"");
}

void member_time(struct buf *out, const char *name, millis at)
{
	member_key(out, name);
	value_time(out, at);
}

void member_object(struct buf *out, const char *name)
{
	member_key(out, name);
	buf_text(out, "{");
}

void member_list(struct buf *out, const char *name)
{
	member_key(out, name);
	buf_text(out, "[");
}

void item_begin(struct buf *out)
{
	json_write_comma(out);
	buf_text(out, "{");
}

void bracket_end(struct buf *out, char bracket)
{
	buf_append(out, &bracket, 1);
}
