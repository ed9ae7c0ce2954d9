#include "base/decimal.h"

static const int64_t powers[] = { 1, 10, 100, 1000, 10000, 100000, 1000000, 10000000, 100000000, 1000000000 };

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
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
	return h <= 15 && m <= 59;
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
