#include "base/quantity.h"

#include <string.h>

enum { FRACTION_DIGITS = 9, DURATION_DIGITS = 6, SHARE_DIGITS = 4 };

static const int64_t powers[] = { 1, 10, 100, 1000, 10000, 100000, 1000000, 10000000, 100000000, 1000000000 };

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

bool whole_parse(const char *text, size_t len, int64_t *out)
{
	bool is_negative = len && *text == '-';
	int64_t value = 0;

	if (len == is_negative)
		return false;
	for (size_t i = is_negative; i < len; i++)
		if (!is_digit(text[i]) || __builtin_mul_overflow(value, 10, &value) ||
		    __builtin_sub_overflow(value, text[i] - '0', &value))
			return false;
	if (!is_negative && __builtin_sub_overflow(0, value, &value))
		return false;
	*out = value;
	return true;
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
	int64_t whole, part, base = powers[n.places];

	if (__builtin_mul_overflow(n.whole, unit, &whole) || __builtin_mul_overflow(n.fraction, unit, &part) ||
	    part % base || __builtin_add_overflow(whole, part / base, &whole))
		return false;
	*out = whole;
	return true;
}

bool fixed_parse(const char *text, size_t len, int digits, int64_t *out)
{
	struct number n;

	return number_cut(text, len, &n) && n.length == len && number_times(n, powers[digits], out);
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
	int64_t base = powers[digits], rest = value % base;

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

/* The common form of a trace: a few digits and a short fraction. False: take the slow road. */
static bool parse_short(const char *p, const char *end, int places, int64_t *out)
{
	int64_t whole = 0, part = 0;
	int part_digits = 0;

	if (end - p > 15 || p == end || !is_digit(*p))
		return false;
	for (; p < end && is_digit(*p); p++)
		whole = whole * 10 + (*p - '0');
	if (p < end && *p == '.')
		for (p++; p < end && is_digit(*p); p++, part_digits++)
			part = part * 10 + (*p - '0');
	if (p < end || part_digits > places || places > 3)
		return false;
	*out = whole * powers[places] + part * powers[places - part_digits];
	return true;
}

struct digits {
	int64_t value;	  /* the leading 18 significant digits */
	int64_t exponent; /* value * 10^exponent */
	bool is_rest;	  /* digits other than 0 were cut off */
	bool is_any;
};

static const char *scan_digits(const char *p, const char *end, bool is_fraction, struct digits *d)
{
	for (; p < end && is_digit(*p); p++) {
		d->is_any = true;
		if (d->value < INT64_C(100000000000000000)) {
			d->value = d->value * 10 + (*p - '0');
			d->exponent -= is_fraction;
		} else {
			d->is_rest |= *p != '0';
			d->exponent += !is_fraction;
		}
	}
	return p;
}

static const char *scan_exponent(const char *p, const char *end, struct digits *d)
{
	int64_t n = 0;
	bool is_minus = false;

	if (p == end || (*p != 'e' && *p != 'E'))
		return p;
	p++;
	if (p < end && (*p == '+' || *p == '-'))
		is_minus = *p++ == '-';
	if (p == end)
		return NULL;
	for (; p < end && is_digit(*p); p++)
		if (n < 1000000)
			n = n * 10 + (*p - '0');
	d->exponent += is_minus ? -n : n;
	return p;
}

/* value * 10^exponent to whole units. */
static enum decimal_result settle(struct digits d, bool is_exact, int64_t *out)
{
	const int64_t most = INT64_C(100000000000000000);
	int last = 0;

	if (!d.value) {
		*out = 0;
		return DECIMAL_OK;
	}
	for (; d.exponent > 0; d.exponent--) {
		if (d.value > most / 10)
			return DECIMAL_HUGE;
		d.value *= 10;
	}
	for (; d.exponent < 0 && (d.value || last); d.exponent++) {
		d.is_rest |= last != 0;
		last = (int)(d.value % 10);
		d.value /= 10;
	}
	if (is_exact && (d.is_rest || last))
		return DECIMAL_FRACTION;
	d.value += last >= 5;
	if (d.value > most)
		return DECIMAL_HUGE;
	*out = d.value;
	return DECIMAL_OK;
}

enum decimal_result decimal_parse(const char *text, size_t len, int places, int64_t *out)
{
	const char *p = text, *end = text + len;
	struct digits d = { 0 };

	if (parse_short(p, end, places, out))
		return DECIMAL_OK;
	bool is_negative = p < end && *p == '-';
	p = scan_digits(p + is_negative, end, false, &d);
	if (p < end && *p == '.')
		p = scan_digits(p + 1, end, true, &d);
	p = scan_exponent(p, end, &d);
	if (!d.is_any || p != end)
		return DECIMAL_MALFORMED;
	if (is_negative && d.value)
		return DECIMAL_NEGATIVE;
	d.exponent += places;
	return settle(d, places == 0, out);
}

/* Exactly `count` digits. */
static bool take(const char **p, const char *end, int count, int64_t *out)
{
	*out = 0;
	for (int i = 0; i < count; i++, ++*p) {
		if (*p == end || !is_digit(**p))
			return false;
		*out = *out * 10 + (**p - '0');
	}
	return true;
}

static bool take_char(const char **p, const char *end, const char *allowed)
{
	if (*p == end)
		return false;
	for (; *allowed; allowed++)
		if (**p == *allowed) {
			++*p;
			return true;
		}
	return false;
}

static bool take_date(const char **p, const char *end, int64_t *days)
{
	static const int lengths[] = { 31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31 };
	int64_t y, m, d;

	if (!take(p, end, 4, &y) || !take_char(p, end, "-/") || !take(p, end, 2, &m) || !take_char(p, end, "-/") ||
	    !take(p, end, 2, &d) || y < 1 || m < 1 || m > 12)
		return false;
	bool is_leap = (y % 4 == 0 && y % 100 != 0) || y % 400 == 0;
	if (d < 1 || d > lengths[m - 1] + (m == 2 && is_leap))
		return false;
	int64_t past = y - 1;
	*days = past * 365 + past / 4 - past / 100 + past / 400 - 719162 + d - 1;
	for (int64_t i = 0; i < m - 1; i++)
		*days += lengths[i] + (i == 1 && is_leap);
	return true;
}

static bool take_clock(const char **p, const char *end, int64_t *micros)
{
	int64_t h, m, s, part = 0, unit = 100000;

	if (!take(p, end, 2, &h) || !take_char(p, end, ":") || !take(p, end, 2, &m) || !take_char(p, end, ":") ||
	    !take(p, end, 2, &s) || h > 23 || m > 59 || s > 60)
		return false;
	if (take_char(p, end, ".,")) {
		if (*p == end || !is_digit(**p))
			return false;
		for (; *p < end && is_digit(**p); ++*p, unit /= 10)
			part += (**p - '0') * unit;
	}
	*micros = ((h * 60 + m) * 60 + s) * 1000000 + part;
	return true;
}

static bool take_zone(const char **p, const char *end, int64_t *micros)
{
	int64_t h, m = 0;

	*micros = 0;
	if (*p == end || take_char(p, end, "Zz"))
		return true;
	bool is_west = **p == '-';
	if (!take_char(p, end, "+-") || !take(p, end, 2, &h))
		return false;
	if (*p < end) {
		take_char(p, end, ":");
		if (!take(p, end, 2, &m))
			return false;
	}
	*micros = (h * 60 + m) * 60000000 * (is_west ? -1 : 1);
	return h <= 23 && m <= 59;
}

bool decimal_parse_time(const char *text, size_t len, int64_t *micros)
{
	const char *p = text, *end = text + len;
	int64_t days, clock, zone;

	if (!take_date(&p, end, &days) || !take_char(&p, end, " Tt") || !take_clock(&p, end, &clock))
		return false;
	take_char(&p, end, " ");
	if (!take_zone(&p, end, &zone) || p != end)
		return false;
	*micros = days * INT64_C(86400000000) + clock - zone;
	return true;
}

bool time_parse(const char *text, size_t len, millis *out)
{
	int64_t micros;

	if (!decimal_parse_time(text, len, &micros))
		return false;
	*out = micros / 1000 - (micros % 1000 < 0);
	return true;
}

bool time_parse_exact(const char *text, millis *out)
{
	size_t len = strlen(text), zone = len && strchr("Zz", text[len - 1]) ? 1 : 6;

	if (len < strlen("2024-05-10T08:00:00") + zone || text[4] != '-' || text[7] != '-' || strpbrk(text, ",/"))
		return false;
	const char *end = text + len - zone;
	return end[-1] != ' ' && (zone == 1 || (strchr("+-", *end) && end[3] == ':')) && time_parse(text, len, out);
}
