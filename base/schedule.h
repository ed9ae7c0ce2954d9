/*
 * A floor that changes with the clock on the wall: "at least 4 from Monday
 * to Friday, 08:00 to 19:00 in Berlin". Windows may cross midnight. Reads
 * the zone rules of the machine, so callers at the edge evaluate it and
 * hand the result on as a number.
 */
#pragma once
#include "base/error.h"
#include "base/millis.h"

#include <stddef.h>
#include <stdint.h>

struct schedule_window {
	unsigned days;	       /* bit 0 = Monday ... bit 6 = Sunday; the day on which the window opens */
	int from, to;	       /* minutes after midnight; to <= from means the next day */
	const char *time_zone; /* IANA name, "UTC" when not given */
	int64_t min;	       /* the floor while the window is open */
};

struct schedule_state {
	int64_t floor;	    /* now: the largest floor among open windows, else 0 */
	int64_t next_floor; /* after the next change */
	millis next_at;	    /* when the floor changes next, 0 when it never does */
};

/* Costs some 0.1 ms a window; the answer holds until next_at, so ask again then and not every tick. At the end of the
 * two weeks that are looked at, a floor that did not change counts as one that never does. */
struct schedule_state schedule_at(const struct schedule_window *windows, size_t count, millis now);

/*
 * Clocks on walls: offsets of IANA time zones, from the rules installed on
 * the machine (package tzdata; UTC needs none), and days of the calendar.
 */

/* While one is open, zone_* functions speak of its zone. Not nested; changes TZ and puts it back. */
struct zone_scope {
	char *previous; /* of TZ, NULL when it was not set */
};

bool zone_is_known(const char *name);
/* What TZ names where this machine has no such zone, so that the C library silently takes UTC; else NULL. */
const char *zone_mistaken(void);

int64_t zone_offset(millis at); /* milliseconds east of UTC at that instant */

/*
 * Days of the week as bits, bit 0 = Monday: "mon-fri", "sat,sun", "fri-mon" (over the weekend), short or full names,
 * any case. With `numbers` also cron's 0 to 7, where 0 and 7 are Sunday.
 */
bool weekdays_parse(const char *text, bool numbers, int64_t *days) MUST_USE;
