/*
 * The time that is recorded and decided in: the API server's, where it tells
 * it and the machine's clock is more than a minute away, and never before
 * what the history has. While we lead it goes on as it did, whatever the
 * machine's clock does; where it turns out to be another than the server's,
 * leading begins anew with that.
 */
#pragma once
#include "base/clock.h"

struct arena;
struct controller;

struct clock_skew {
	struct clock clock;   /* the settings', less what it is wrong by */
	millis at, mono;      /* by both of its hands, when it was compared last */
	millis machine_ahead; /* of the API server's clock; 0 when that is not known */
	millis ahead;	      /* of it, what we live by */
	millis wrong_since;   /* clock_mono; 0: it is not */
	millis right_since;   /* what was seen before that has the times of another clock; 0: nothing has */
};

/*
 * Before the history is opened: takes the server's time. Ticks that end later than it is are set aside
 * (state/future.h), as a start with the clock ahead leaves them; what was learned from them goes with them.
 */
void clock_skew_check(struct controller *c);
/* While another leads: what is heard meanwhile is stamped with the server's time. */
void clock_skew_keep(struct controller *c);
/* With the history: without the server's word its end is believed, and time goes on from there. */
void clock_skew_begin(struct controller *c);
/* Before whatever takes the time: ticks, decisions between them, and what acts on a plan. As often as one likes. */
void clock_skew_follow(struct controller *c);
/* The server has told another time for a while. */
bool clock_skew_is_wrong(const struct controller *c);
/* A sentence with its remedy when the machine's clock, or what we live by, is wrong; else NULL. */
const char *clock_skew_trouble(const struct controller *c, struct arena *a);
