/*
 * Clocks on walls: offsets of IANA time zones, from the rules installed on
 * the machine (package tzdata; UTC needs none), and days of the calendar.
 */
#pragma once
#include "base/error.h"
#include "base/millis.h"

/* While one is open, zone_* functions speak of its zone. Not nested; changes TZ and puts it back. */
struct zone_scope {
	char *previous; /* of TZ, NULL when it was not set */
};

bool zone_is_known(const char *name);
/* What TZ names where this machine has no such zone, so that the C library silently takes UTC; else NULL. */
const char *zone_mistaken(void);
struct zone_scope zone_open(const char *name); /* a known one */
void zone_close(struct zone_scope *z);

int64_t zone_offset(millis at); /* milliseconds east of UTC at that instant */
/*
 * The instant of a time on the wall: `day` days after 1970-01-01 and
 * `minute` minutes after midnight. Of two such instants (clocks set back) the first one; for a time that
 * does not exist (clocks set forward) as many minutes after the jump, as RFC 5545 has it.
 */
millis zone_instant(int64_t day, int64_t minute);
int64_t zone_day(millis at);	  /* days from 1970-01-01 to the local date */
unsigned weekday_of(int64_t day); /* 0 = Monday */
