/* Values of records with their units, as people read them. */
#include "controller/explain/value.h"

#include "base/terminal.h"
#include "controller/explain/explain.h"

#include <string.h>

/* Days since 1970-01-01 to a date, by Hinnant's civil_from_days. */
static void date_of(int64_t days, int64_t *year, int64_t *month, int64_t *day)
{
	int64_t z = days + 719468, era = (z >= 0 ? z : z - 146096) / 146097, doe = z - era * 146097;
	int64_t yoe = (doe - doe / 1460 + doe / 36524 - doe / 146096) / 365;
	int64_t doy = doe - (365 * yoe + yoe / 4 - yoe / 100), mp = (5 * doy + 2) / 153;

	*day = doy - (153 * mp + 2) / 5 + 1;
	*month = mp < 10 ? mp + 3 : mp - 9;
	*year = yoe + era * 400 + (*month <= 2);
}

void explain_time(millis at, millis utc_offset, struct buf *out)
{
	millis local = at + utc_offset, of_day = ((local % DAY) + DAY) % DAY;
	int64_t year, month, day;

	date_of((local - of_day) / DAY, &year, &month, &day);
	buf_printf(out, "%04lld-%02lld-%02lld %02lld:%02lld:%02lld", (long long)year, (long long)month, (long long)day,
		   (long long)(of_day / HOUR), (long long)(of_day / MINUTE % 60), (long long)(of_day / SECOND % 60));
}

void explain_time_rfc3339(millis at, struct buf *out)
{
	millis part = ((at % SECOND) + SECOND) % SECOND;
	size_t start = out->len;

	explain_time(at, 0, out);
	if (out->len > start)
		out->text[start + strcspn(out->text + start, " ")] = 'T';
	if (part)
		buf_printf(out, ".%03d", (int)part);
	buf_text(out, "Z");
}

/* Without zeros at the end that say nothing. */
static void put_decimal(double value, int places, struct buf *out)
{
	struct human h = human_decimal(value, places);
	size_t len = strlen(h.text);

	if (strchr(h.text, '.')) {
		while (h.text[len - 1] == '0')
			len--;
		if (h.text[len - 1] == '.')
			len--;
	}
	buf_append(out, h.text, len);
}

static void put_milli(int64_t value, millis utc_offset, struct buf *out)
{
	(void)utc_offset;
	put_decimal((double)value / 1000, value > -10000 && value < 10000 ? 2 : 1, out);
}

static void put_count(int64_t value, millis utc_offset, struct buf *out)
{
	(void)utc_offset;
	buf_text(out, human_count(value).text);
}

static void put_share(int64_t value, millis utc_offset, struct buf *out)
{
	(void)utc_offset;
	put_decimal((double)value / 1e4, value > -1000 && value < 1000 ? 4 : 2, out);
	buf_text(out, " %");
}

static void put_duration(int64_t value, millis utc_offset, struct buf *out)
{
	(void)utc_offset;
	buf_text(out, human_duration(value).text);
}

static void put_micros(int64_t value, millis utc_offset, struct buf *out)
{
	(void)utc_offset;
	put_decimal((double)value / 1000, 2, out);
	buf_text(out, "ms");
}

static void put_dollars(int64_t value, millis utc_offset, struct buf *out)
{
	(void)utc_offset;
	buf_text(out, human_dollars((double)value / 1e6).text);
}

static const struct printer {
	const char *unit;
	void (*put)(int64_t value, millis utc_offset, struct buf *out);
} printers[] = {
	{ "count", put_count }, { "milli", put_milli },	  { "ppm", put_share },	     { "ms", put_duration },
	{ "us", put_micros },	{ "time", explain_time }, { "micro$", put_dollars },
};

void explain_value(const struct field_info *field, int64_t value, millis utc_offset, struct buf *out)
{
	if (value == ABSENT) {
		buf_text(out, "none");
		return;
	}
	if (!strncmp(field->unit, "enum:", 5)) {
		const char *name = field_enum_name(field->unit + 5, value);

		buf_text(out, name ? name : "?");
		return;
	}
	for (size_t i = 0; i < sizeof printers / sizeof *printers; i++)
		if (!strcmp(field->unit, printers[i].unit))
			printers[i].put(value, utc_offset, out);
}

const struct field_info *record_find(const struct record_view *r, const char *name, size_t len, int64_t *value)
{
	for (size_t i = 0; i < r->info->count; i++) {
		const struct field_info *f = &r->info->fields[i];

		if (strlen(f->name) == len && !memcmp(f->name, name, len)) {
			*value = r->values[i];
			return f;
		}
	}
	return NULL;
}

/* One placeholder, without its braces: "name", "name|one|many" or "name:%". */
static void put_field(const struct record_view *r, const char *text, size_t len, struct buf *out)
{
	const char *bar = memchr(text, '|', len), *colon = memchr(text, ':', len);
	size_t name = bar ? (size_t)(bar - text) : colon ? (size_t)(colon - text) : len;
	int64_t value = 0;
	const struct field_info *f = record_find(r, text, name, &value);

	if (!f)
		return;
	if (colon && value != ABSENT) {
		put_decimal((double)value / 10, 1, out);
		buf_text(out, " %");
		return;
	}
	explain_value(f, value, r->utc_offset, out);
	if (!bar)
		return;
	const char *second = memchr(bar + 1, '|', len - name - 1);
	size_t one = second ? (size_t)(second - bar) - 1 : len - name - 1;
	buf_text(out, " ");
	/* "1 replica", "1.5 replicas" */
	if (!second || value == (!strcmp(f->unit, "milli") ? 1000 : 1))
		buf_append(out, bar + 1, one);
	else
		buf_append(out, second + 1, len - name - 2 - one);
}

void record_fill(const struct record_view *r, const char *text, struct buf *out)
{
	for (const char *open; (open = strchr(text, '{'));) {
		const char *close = strchr(open, '}');

		if (!close)
			break;
		buf_append(out, text, (size_t)(open - text));
		put_field(r, open + 1, (size_t)(close - open) - 1, out);
		text = close + 1;
	}
	buf_text(out, text);
}
