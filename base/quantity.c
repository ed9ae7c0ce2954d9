#include "base/quantity.h"

#include <string.h>

enum { FRACTION_DIGITS = 9, DURATION_DIGITS = 6, SHARE_DIGITS = 4 };

/* A number cut off the front of a text: whole part, fraction as an integer of `places` digits. */
struct number {
	int64_t whole, fraction;
	int places;
	size_t length;
};

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

static int64_t power_of_ten(int n)
{
	int64_t p = 1;

	while (n-- > 0)
		p *= 10;
	return p;
}

static bool number_cut(const char *text, size_t len, struct number *out)
{
	struct number n = { 0 };
	size_t i = 0;

	for (; i < len && is_digit(text[i]); i++)
		if (__builtin_mul_overflow(n.whole, 10, &n.whole) ||
		    __builtin_add_overflow(n.whole, text[i] - '0', &n.whole))
			return false;
	if (!i)
		return false;
	if (i < len && text[i] == '.') {
		size_t point = i++, used = i;
		for (; i < len && is_digit(text[i]); i++)
			if (text[i] != '0')
				used = i + 1;
		if (i == point + 1 || used - point - 1 > FRACTION_DIGITS)
			return false;
		for (size_t k = point + 1; k < used; k++, n.places++)
			n.fraction = n.fraction * 10 + (text[k] - '0');
	}
	n.length = i;
	*out = n;
	return true;
}

/* number * unit, when that is a whole number that fits; unit <= 1e12 and at most six places, or unit a power of 10. */
static bool number_times(struct number n, int64_t unit, int64_t *out)
{
	int64_t whole, part, base = power_of_ten(n.places);

	if (__builtin_mul_overflow(n.whole, unit, &whole) || __builtin_mul_overflow(n.fraction, unit, &part) ||
	    part % base || __builtin_add_overflow(whole, part / base, &whole))
		return false;
	*out = whole;
	return true;
}

bool fixed_parse(const char *text, size_t len, int digits, int64_t *out)
{
	struct number n;

	return number_cut(text, len, &n) && n.length == len && number_times(n, power_of_ten(digits), out);
}

struct unit {
	const char *name;
	int64_t size;
};

/* In microseconds, largest first; a name that starts with another's name stands before it. */
static const struct unit duration_units[] = {
	{ "w", 7 * DAY * 1000 }, { "d", DAY * 1000 },	 { "h", HOUR * 1000 }, { "ms", 1000 },
	{ "m", MINUTE * 1000 },	 { "s", SECOND * 1000 }, { "us", 1 },
};

enum { DURATION_UNITS = sizeof duration_units / sizeof duration_units[0] };

static const struct unit *unit_at(const struct unit *units, size_t count, const char *text, size_t len)
{
	for (size_t i = 0; i < count; i++)
		if (strlen(units[i].name) <= len && !memcmp(units[i].name, text, strlen(units[i].name)))
			return &units[i];
	return NULL;
}

bool duration_parse_us(const char *text, size_t len, int64_t *microseconds)
{
	int64_t sum = 0, last = INT64_MAX;

	if (!len)
		return false;
	while (len) {
		struct number n;
		int64_t part;
		if (!number_cut(text, len, &n) || n.places > DURATION_DIGITS)
			return false;
		const struct unit *u = unit_at(duration_units, DURATION_UNITS, text + n.length, len - n.length);
		if (!u || u->size >= last || !number_times(n, u->size, &part) ||
		    __builtin_add_overflow(sum, part, &sum))
			return false;
		last = u->size;
		text += n.length + strlen(u->name);
		len -= n.length + strlen(u->name);
	}
	*microseconds = sum;
	return true;
}

bool duration_parse(const char *text, size_t len, millis *out)
{
	int64_t us;

	if (!duration_parse_us(text, len, &us) || us % 1000)
		return false;
	*out = us / 1000;
	return true;
}

bool share_parse(const char *text, size_t len, int64_t *ppm)
{
	return len > 1 && text[len - 1] == '%' && fixed_parse(text, len - 1, SHARE_DIGITS, ppm);
}

bool quantity_parse(const char *text, size_t len, int64_t *out)
{
	static const struct unit units[] = {
		{ "Ki", INT64_C(1) << 10 },
		{ "Mi", INT64_C(1) << 20 },
		{ "Gi", INT64_C(1) << 30 },
		{ "Ti", INT64_C(1) << 40 },
		{ "k", 1000 },
		{ "M", 1000000 },
		{ "G", 1000000000 },
		{ "T", INT64_C(1000000000000) },
	};
	struct number n;

	if (!number_cut(text, len, &n))
		return false;
	if (n.length == len)
		return number_times(n, 1, out);
	const struct unit *u = unit_at(units, sizeof units / sizeof units[0], text + n.length, len - n.length);
	return u && n.length + strlen(u->name) == len && number_times(n, u->size, out);
}

void fixed_format(int64_t value, int digits, struct buf *out)
{
	int64_t base = power_of_ten(digits), rest = value % base;

	buf_printf(out, "%lld", (long long)(value / base));
	if (!rest)
		return;
	for (; rest % 10 == 0; digits--)
		rest /= 10;
	buf_printf(out, ".%0*lld", digits, (long long)rest);
}

void duration_format_us(int64_t microseconds, struct buf *out)
{
	static const struct unit shown[] = { { "d", DAY * 1000 },    { "h", HOUR * 1000 }, { "m", MINUTE * 1000 },
					     { "s", SECOND * 1000 }, { "ms", 1000 },	   { "us", 1 } };

	if (!microseconds)
		buf_text(out, "0s");
	for (size_t i = 0; i < sizeof shown / sizeof shown[0]; i++) {
		if (microseconds >= shown[i].size)
			buf_printf(out, "%lld%s", (long long)(microseconds / shown[i].size), shown[i].name);
		microseconds %= shown[i].size;
	}
}

void duration_format(millis value, struct buf *out)
{
	duration_format_us(value * 1000, out);
}

void share_format(int64_t ppm, struct buf *out)
{
	fixed_format(ppm, SHARE_DIGITS, out);
	buf_text(out, "%");
}
