#include "base/weekdays.h"

#include <string.h>
#include <strings.h>

enum { WEEK = 7 };

static const char *const names[WEEK] = { "monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday" };

/* 0 = Monday; -1 when it is no day. */
static int day_index(const char *text, size_t len, bool numbers)
{
	if (numbers && len == 1 && *text >= '0' && *text <= '7')
		return (*text - '0' + WEEK - 1) % WEEK;
	for (int i = 0; i < WEEK; i++)
		if ((len == 3 || len == strlen(names[i])) && !strncasecmp(text, names[i], len))
			return i;
	return -1;
}

/* One day or a range; cron's "0-7" and "1-7" run on to Sunday. */
static bool parse_range(const char *text, size_t len, bool numbers, int64_t *days)
{
	const char *dash = memchr(text, '-', len);
	size_t left = dash ? (size_t)(dash - text) : len;
	int first = day_index(text, left, numbers);
	int last = dash ? day_index(dash + 1, len - left - 1, numbers) : first;

	if (first < 0 || last < 0)
		return false;
	if (dash && numbers && *text == '0' && dash[1] == '7')
		first = 0;
	for (int i = first; i != last; i = (i + 1) % WEEK)
		*days |= INT64_C(1) << i;
	*days |= INT64_C(1) << last;
	return true;
}

bool weekdays_parse(const char *text, bool numbers, int64_t *days)
{
	int64_t bits = 0;

	for (;;) {
		text += strspn(text, " ");
		size_t part = strcspn(text, ","), len = part;
		while (len && text[len - 1] == ' ')
			len--;
		if (!parse_range(text, len, numbers, &bits))
			return false;
		if (!text[part])
			break;
		text += part + 1;
	}
	*days = bits;
	return true;
}
