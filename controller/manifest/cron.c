#include "controller/manifest/cron.h"

#include "base/schedule.h"

#include <string.h>

enum { FIELDS = 5, MINUTES = 60, HOURS = 24 };

struct part {
	const char *text;
	size_t len;
};

static bool split(const char *text, struct part parts[FIELDS])
{
	size_t n = 0;

	for (text += strspn(text, " \t"); *text; n++) {
		size_t len = strcspn(text, " \t");
		if (n == FIELDS)
			return false;
		parts[n] = (struct part){ text, len };
		text += len;
		text += strspn(text, " \t");
	}
	return n == FIELDS;
}

/* "8" or "8,20": a flag per number below `limit`. */
static bool parse_numbers(struct part p, int limit, bool *flags)
{
	int value = -1;

	for (size_t i = 0; i <= p.len; i++) {
		if (i == p.len || p.text[i] == ',') {
			if (value < 0 || value >= limit)
				return false;
			flags[value] = true;
			value = -1;
		} else if (p.text[i] >= '0' && p.text[i] <= '9' && value < limit) {
			value = (value < 0 ? 0 : value * 10) + (p.text[i] - '0');
		} else {
			return false;
		}
	}
	return true;
}

static bool is_star(struct part p)
{
	return p.len == 1 && *p.text == '*';
}

static bool parse_days(struct part p, int64_t *days)
{
	char text[64];

	if (is_star(p))
		return weekdays_parse("mon-sun", false, days);
	if (p.len >= sizeof text)
		return false;
	memcpy(text, p.text, p.len);
	text[p.len] = '\0';
	return weekdays_parse(text, true, days);
}

bool cron_parse(const char *text, struct cron *out)
{
	struct part parts[FIELDS];
	bool minutes[MINUTES] = { 0 }, hours[HOURS] = { 0 };
	struct cron c = { 0 };

	if (!split(text, parts) || !parse_numbers(parts[0], MINUTES, minutes) ||
	    !parse_numbers(parts[1], HOURS, hours) || !is_star(parts[2]) || !is_star(parts[3]) ||
	    !parse_days(parts[4], &c.days))
		return false;
	for (int at = 0; at < MINUTES * HOURS; at++) {
		if (!hours[at / MINUTES] || !minutes[at % MINUTES])
			continue;
		if (c.count == CRON_OPENINGS_MAX)
			return false;
		c.minutes[c.count++] = at;
	}
	*out = c;
	return true;
}
