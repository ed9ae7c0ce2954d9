#include "base/schedule.h"

#include "base/arena.h"
#include "base/zone.h"

/* The floor depends on the weekday, so a change is at most a week away; a second week covers one that a jump of the
 * clock swallowed. */
enum { DAYS_BACK = 2, DAYS_AHEAD = 15, DAYS_SEEN = DAYS_BACK + DAYS_AHEAD + 1 };

struct opening {
	millis from, to;
	int64_t min;
};

static void window_openings(const struct schedule_window *w, millis now, struct opening *out)
{
	CLEANUP(zone_close) struct zone_scope scope = zone_open(w->time_zone);
	int64_t today = zone_day(now);

	(void)scope;
	for (int i = 0; i < DAYS_SEEN; i++) {
		int64_t day = today - DAYS_BACK + i;
		if (!(w->days >> weekday_of(day) & 1))
			continue;
		out[i].from = zone_instant(day, w->from);
		out[i].to = w->to > w->from ? zone_instant(day, w->to) : zone_instant(day + 1, w->to);
		out[i].min = w->min;
	}
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

bool schedule_zone_is_known(const char *time_zone)
{
	return zone_is_known(time_zone);
}
