#include "base/schedule.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <cmocka.h>

enum { MON_FRI = 0x1f, SUNDAY = 0x40, EVERY_DAY = 0x7f };

/* Days from 1970-01-01 (civil calendar, proleptic Gregorian). */
static int64_t days_from(int year, int month, int day)
{
	int y = year - (month <= 2), era = y / 400, yoe = y - era * 400;
	int doy = (153 * (month + (month > 2 ? -3 : 9)) + 2) / 5 + day - 1;

	return (int64_t)era * 146097 + yoe * 365 + yoe / 4 - yoe / 100 + doy - 719468;
}

static millis utc(int year, int month, int day, int hour, int minute)
{
	return days_from(year, month, day) * DAY + hour * HOUR + minute * MINUTE;
}

static int at(int hour, int minute)
{
	return hour * 60 + minute;
}

struct moment {
	millis now;
	int64_t floor, next_floor;
	millis next_at;
};

static void expect(const struct schedule_window *w, size_t count, const struct moment *moments, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		struct schedule_state s = schedule_at(w, count, moments[i].now);
		assert_int_equal(s.floor, moments[i].floor);
		assert_int_equal(s.next_floor, moments[i].next_floor);
		assert_int_equal(s.next_at, moments[i].next_at);
	}
}

#define EXPECT(windows, moments) \
	expect(windows, sizeof(windows) / sizeof *(windows), moments, sizeof(moments) / sizeof *(moments))

static void office_hours_in_berlin(void **state)
{
	const struct schedule_window w[] = { { MON_FRI, at(8, 0), at(19, 0), "Europe/Berlin", 4 } };
	const struct moment m[] = {
		/* Winter: 08:00 is 07:00 UTC. Friday 2026-01-09. */
		{ utc(2026, 1, 9, 6, 59), 0, 4, utc(2026, 1, 9, 7, 0) },
		{ utc(2026, 1, 9, 7, 0), 4, 0, utc(2026, 1, 9, 18, 0) },
		{ utc(2026, 1, 9, 17, 59), 4, 0, utc(2026, 1, 9, 18, 0) },
		{ utc(2026, 1, 9, 18, 0), 0, 4, utc(2026, 1, 12, 7, 0) },
		/* Summer: 06:00 UTC. Wednesday. */
		{ utc(2026, 7, 1, 5, 59), 0, 4, utc(2026, 7, 1, 6, 0) },
		{ utc(2026, 7, 1, 12, 0), 4, 0, utc(2026, 7, 1, 17, 0) },
		/* The Friday before clocks go forward (2026-03-29): Monday opens an hour of UTC earlier. */
		{ utc(2026, 3, 27, 18, 0), 0, 4, utc(2026, 3, 30, 6, 0) },
		/* And before they go back (2026-10-25). */
		{ utc(2026, 10, 23, 17, 0), 0, 4, utc(2026, 10, 26, 7, 0) },
	};

	(void)state;
	EXPECT(w, m);
}

static void over_midnight_in_new_york(void **state)
{
	const struct schedule_window w[] = { { MON_FRI, at(22, 0), at(2, 0), "America/New_York", 2 } };
	const struct moment m[] = {
		/* Friday's window runs into Saturday; EST is UTC-5. 2026-01-09 is a Friday. */
		{ utc(2026, 1, 10, 6, 59), 2, 0, utc(2026, 1, 10, 7, 0) },
		{ utc(2026, 1, 10, 7, 0), 0, 2, utc(2026, 1, 13, 3, 0) },
		/* Clocks go forward on Sunday 2026-03-08, after which EDT is UTC-4. */
		{ utc(2026, 3, 7, 12, 0), 0, 2, utc(2026, 3, 10, 2, 0) },
		{ utc(2026, 3, 10, 2, 0), 2, 0, utc(2026, 3, 10, 6, 0) },
	};

	(void)state;
	EXPECT(w, m);
}

/* On 2026-03-29 Berlin has no 02:30, on 2026-10-25 it has two. */
static void hours_that_jump(void **state)
{
	const struct schedule_window spans[] = { { SUNDAY, at(1, 0), at(4, 0), "Europe/Berlin", 3 } };
	const struct moment both[] = {
		{ utc(2026, 3, 28, 23, 0), 0, 3, utc(2026, 3, 29, 0, 0) },
		{ utc(2026, 3, 29, 0, 0), 3, 0, utc(2026, 3, 29, 2, 0) },    /* two hours long */
		{ utc(2026, 10, 24, 23, 0), 3, 0, utc(2026, 10, 25, 3, 0) }, /* four hours long */
	};
	const struct schedule_window edge[] = { { SUNDAY, at(2, 30), at(5, 0), "Europe/Berlin", 3 } };
	const struct moment at_edge[] = {
		{ utc(2026, 3, 29, 0, 0), 0, 3, utc(2026, 3, 29, 1, 30) },   /* 03:30 summer time */
		{ utc(2026, 10, 25, 0, 0), 0, 3, utc(2026, 10, 25, 0, 30) }, /* the first 02:30 */
	};
	const struct schedule_window swallowed[] = { { SUNDAY, at(2, 30), at(3, 0), "Europe/Berlin", 3 } };
	const struct moment later[] = {
		{ utc(2026, 3, 28, 12, 0), 0, 3, utc(2026, 4, 5, 0, 30) }, /* that Sunday's is empty */
	};

	(void)state;
	EXPECT(spans, both);
	EXPECT(edge, at_edge);
	EXPECT(swallowed, later);
}

static void jumps_in_new_york(void **state)
{
	const struct schedule_window w[] = { { SUNDAY, at(1, 30), at(2, 30), "America/New_York", 5 } };
	const struct moment m[] = {
		/* 2026-03-08: 02:30 does not exist, so the window closes at 03:30 EDT, one hour after it opened. */
		{ utc(2026, 3, 8, 6, 0), 0, 5, utc(2026, 3, 8, 6, 30) },
		{ utc(2026, 3, 8, 6, 30), 5, 0, utc(2026, 3, 8, 7, 30) },
		/* 2026-11-01: 01:30 comes twice; it opens at the first (EDT) and closes at 02:30 EST. */
		{ utc(2026, 11, 1, 5, 0), 0, 5, utc(2026, 11, 1, 5, 30) },
		{ utc(2026, 11, 1, 5, 30), 5, 0, utc(2026, 11, 1, 7, 30) },
	};

	(void)state;
	EXPECT(w, m);
}

static void the_largest_floor_counts(void **state)
{
	const struct schedule_window w[] = {
		{ EVERY_DAY, at(0, 0), at(0, 0), "UTC", 1 }, /* all day */
		{ EVERY_DAY, at(8, 0), at(18, 0), "UTC", 3 },
		{ EVERY_DAY, at(12, 0), at(13, 0), "UTC", 2 }, /* hidden under the one above */
	};
	const struct moment m[] = {
		{ utc(2026, 1, 1, 7, 0), 1, 3, utc(2026, 1, 1, 8, 0) },
		{ utc(2026, 1, 1, 8, 0), 3, 1, utc(2026, 1, 1, 18, 0) },
		{ utc(2026, 1, 1, 23, 59), 1, 3, utc(2026, 1, 2, 8, 0) },
	};

	(void)state;
	EXPECT(w, m);
}

static void what_never_changes(void **state)
{
	const struct schedule_window all[] = { { EVERY_DAY, 0, 0, "UTC", 2 } };
	struct schedule_state none = schedule_at(NULL, 0, utc(2026, 1, 1, 0, 0));
	struct schedule_state always = schedule_at(all, 1, utc(2026, 1, 1, 0, 0));

	(void)state;
	assert_int_equal(none.floor, 0);
	assert_int_equal(none.next_at, 0);
	assert_int_equal(always.floor, 2);
	assert_int_equal(always.next_floor, 2);
	assert_int_equal(always.next_at, 0);
}

/* Following next_at from change to change never meets a change that was not announced. */
static void nothing_changes_in_between(void **state)
{
	const struct schedule_window w[] = {
		{ MON_FRI, at(8, 0), at(19, 0), "Europe/Berlin", 4 },
		{ EVERY_DAY, at(20, 15), at(3, 45), "America/New_York", 2 },
		{ SUNDAY, at(1, 30), at(2, 30), "Europe/Berlin", 7 },
	};
	millis now = utc(2026, 3, 1, 0, 0), end = utc(2026, 4, 10, 0, 0);
	struct schedule_state s = schedule_at(w, 3, now);

	(void)state;
	for (; now < end; now += 15 * MINUTE) {
		struct schedule_state here = schedule_at(w, 3, now);
		if (now >= s.next_at) {
			assert_int_equal(now, s.next_at);
			assert_int_equal(here.floor, s.next_floor);
			s = here;
		}
		assert_int_equal(here.floor, s.floor);
		assert_int_equal(here.next_at, s.next_at);
	}
}

static void zones(void **state)
{
	(void)state;
	assert_true(zone_is_known("UTC"));
	assert_true(zone_is_known("Europe/Berlin"));
	assert_true(zone_is_known("America/Argentina/Buenos_Aires"));
	assert_false(zone_is_known("Europe/Berln"));
	assert_false(zone_is_known("Europe"));
	assert_false(zone_is_known(""));
	assert_false(zone_is_known("/etc/localtime"));
	assert_false(zone_is_known("../zoneinfo/UTC"));
	assert_false(zone_is_known("zone.tab"));
	assert_false(zone_is_known("CET-1CEST"));
}

static void the_zone_of_the_process_is_put_back(void **state)
{
	const struct schedule_window w[] = { { EVERY_DAY, at(8, 0), at(9, 0), "Asia/Tokyo", 1 } };

	(void)state;
	setenv("TZ", "America/New_York", 1);
	schedule_at(w, 1, utc(2026, 1, 1, 0, 0));
	assert_int_equal(zone_offset(utc(2026, 1, 1, 0, 0)), -5 * HOUR);
	unsetenv("TZ");
}

static void weekdays(void **state)
{
	static const struct {
		const char *text;
		bool numbers, ok;
		int64_t days;
	} cases[] = {
		{ "mon-fri", false, true, 0x1f },
		{ "sat,sun", false, true, 0x60 },
		{ "Mon", false, true, 1 },
		{ "fri-mon", false, true, 0x71 },
		{ "monday-sunday", false, true, 0x7f },
		{ "mon, wed", false, true, 5 },
		{ "mon-fri,sun", false, true, 0x5f },
		{ "1-5", true, true, 0x1f },
		{ "0", true, true, 0x40 },
		{ "7", true, true, 0x40 },
		{ "0-6", true, true, 0x7f },
		{ "0-7", true, true, 0x7f },
		{ "1-7", true, true, 0x7f },
		{ "1-5", false, false, 0 },
		{ "mon-", false, false, 0 },
		{ "", false, false, 0 },
		{ ",", false, false, 0 },
		{ "mon,,tue", false, false, 0 },
		{ "mo", false, false, 0 },
		{ "8", true, false, 0 },
		{ "mon-tue-wed", false, false, 0 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		int64_t days = 0;
		assert_int_equal(weekdays_parse(cases[i].text, cases[i].numbers, &days), cases[i].ok);
		assert_int_equal(days, cases[i].days);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(office_hours_in_berlin),
		cmocka_unit_test(over_midnight_in_new_york),
		cmocka_unit_test(hours_that_jump),
		cmocka_unit_test(jumps_in_new_york),
		cmocka_unit_test(the_largest_floor_counts),
		cmocka_unit_test(what_never_changes),
		cmocka_unit_test(nothing_changes_in_between),
		cmocka_unit_test(zones),
		cmocka_unit_test(the_zone_of_the_process_is_put_back),
		cmocka_unit_test(weekdays),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
