#include "base/schedule.h"

#include "base/arena.h"
#include "base/buf.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <time.h>

#undef getenv /* the C library takes its zone from TZ and nowhere else */

enum { NAME_MAX_LENGTH = 64 };

static bool name_is_plain(const char *name)
{
	size_t len = strlen(name);
	static const char allowed[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_+-/";

	return len && len <= NAME_MAX_LENGTH && name[0] != '/' && strspn(name, allowed) == len;
}

static void close_file(FILE **f)
{
	if (*f)
		fclose(*f);
}

bool zone_is_known(const char *name)
{
	CLEANUP(buf_release) struct buf path = { 0 };
	const char *folder = getenv("TZDIR");
	char magic[4];

	if (!strcmp(name, "UTC"))
		return true;
	if (!name_is_plain(name))
		return false;
	buf_printf(&path, "%s/%s", folder ? folder : "/usr/share/zoneinfo", name);
	CLEANUP(close_file) FILE *f = fopen(path.text, "rbe");
	return f && fread(magic, 1, sizeof magic, f) == sizeof magic && !memcmp(magic, "TZif", sizeof magic);
}

const char *zone_mistaken(void)
{
	const char *tz = getenv("TZ"), *name = tz && *tz == ':' ? tz + 1 : tz;

	/* "CET-1CEST" is a rule in itself, "/etc/localtime" a file. */
	if (!name || !*name || *name == '/' || (!strchr(name, '/') && strpbrk(name, "0123456789")))
		return NULL;
	return zone_is_known(name) ? NULL : tz;
}

/* a known one */
static struct zone_scope zone_open(const char *name)
{
	const char *now = getenv("TZ");
	struct zone_scope z = { now ? strdup(now) : NULL };
	CLEANUP(buf_release) struct buf value = { 0 };

	/* "UTC0" is a rule of its own and needs no file. */
	buf_printf(&value, strcmp(name, "UTC") ? ":%s" : "%s0", name);
	setenv("TZ", value.text, 1);
	tzset();
	return z;
}

static void zone_close(struct zone_scope *z)
{
	if (z->previous)
		setenv("TZ", z->previous, 1);
	else
		unsetenv("TZ");
	tzset();
	free(z->previous);
	z->previous = NULL;
}

static int64_t floor_divide(int64_t value, int64_t by)
{
	return value / by - (value % by < 0);
}

int64_t zone_offset(millis at)
{
	time_t seconds = (time_t)floor_divide(at, SECOND);
	struct tm local;

	return localtime_r(&seconds, &local) ? local.tm_gmtoff * SECOND : 0;
}

/*
 * The instant of a time on the wall: `day` days after 1970-01-01 and
 * `minute` minutes after midnight. Of two such instants (clocks set back) the first one; for a time that
 * does not exist (clocks set forward) as many minutes after the jump, as RFC 5545 has it.
 */
static millis zone_instant(int64_t day, int64_t minute)
{
	millis wall = day * DAY + minute * MINUTE;
	int64_t before = zone_offset(wall - DAY), after = zone_offset(wall + DAY);

	if (before != after && zone_offset(wall - before) != before && zone_offset(wall - after) == after)
		return wall - after;
	return wall - before;
}

/* days from 1970-01-01 to the local date */
static int64_t zone_day(millis at)
{
	return floor_divide(at + zone_offset(at), DAY);
}

/* 0 = Monday */
static unsigned weekday_of(int64_t day)
{
	/* 1970-01-01 was a Thursday. */
	return (unsigned)(((day + 3) % 7 + 7) % 7);
}

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

/* The floor depends on the weekday, so a change is at most a week away; a second week covers one that a jump of the
 * clock swallowed. */
enum { DAYS_BACK = 2, DAYS_AHEAD = 15, DAYS_SEEN = DAYS_BACK + DAYS_AHEAD + 1 };

struct opening {
	millis from, to;
	int64_t min;
};

static void window_openings(const struct schedule_window *w, millis now, struct opening *out)
{
	struct zone_scope scope = zone_open(w->time_zone);
	int64_t today = zone_day(now);

	for (int i = 0; i < DAYS_SEEN; i++) {
		int64_t day = today - DAYS_BACK + i;
		if (!(w->days >> weekday_of(day) & 1))
			continue;
		out[i].from = zone_instant(day, w->from);
		out[i].to = w->to > w->from ? zone_instant(day, w->to) : zone_instant(day + 1, w->to);
		out[i].min = w->min;
	}
	zone_close(&scope);
}

static int64_t floor_at(const struct opening *openings, size_t count, millis at)
{
	int64_t floor = 0;

	for (size_t i = 0; i < count; i++)
		if (openings[i].from <= at && at < openings[i].to && openings[i].min > floor)
			floor = openings[i].min;
	return floor;
}

/* The first opening or closing after `at`, 0 when there is none. */
static millis next_edge(const struct opening *openings, size_t count, millis at)
{
	millis next = INT64_MAX;

	for (size_t i = 0; i < count; i++) {
		if (openings[i].from > at && openings[i].from < next)
			next = openings[i].from;
		if (openings[i].to > at && openings[i].to < next)
			next = openings[i].to;
	}
	return next == INT64_MAX ? 0 : next;
}

struct schedule_state schedule_at(const struct schedule_window *windows, size_t count, millis now)
{
	CLEANUP(arena_release) struct arena a = { 0 };
	size_t n = count * DAYS_SEEN;
	struct opening *openings = arena_array(&a, struct opening, n);

	/* A day on which a window does not open stays zeroed: it began and ended in 1970. */
	for (size_t i = 0; i < count; i++)
		window_openings(&windows[i], now, openings + i * DAYS_SEEN);
	struct schedule_state s = { .floor = floor_at(openings, n, now) };
	millis horizon = now + (DAYS_AHEAD - 1) * DAY;
	for (millis edge = next_edge(openings, n, now); edge && edge <= horizon; edge = next_edge(openings, n, edge)) {
		int64_t floor = floor_at(openings, n, edge);
		if (floor == s.floor)
			continue;
		s.next_floor = floor;
		s.next_at = edge;
		return s;
	}
	s.next_floor = s.floor;
	return s;
}
