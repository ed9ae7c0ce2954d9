/* What cost and report have in common: a period in whole hours, and what the history says it came to. */
#pragma once
#include "controller/commands/history_args.h"
#include "state/cost.h"

struct cost_period {
	/* options */
	const char *from_text, *to_text;
	millis last; /* 0: not given */

	/* after costs_read(): what is told of, in whole hours of UTC */
	millis from, to;
};

#define COST_PERIOD_OPTIONS(p)                                                                                      \
	{ "from",	   0,	OPTION_TEXT, "TIME", "from this time on, in whole hours; -2d counts from the end",  \
	  &(p)->from_text, NULL },                                                                                  \
		{ "to", 0, OPTION_TEXT, "TIME", "up to this time, in whole hours", &(p)->to_text, NULL },           \
	{                                                                                                           \
		"last", 0, OPTION_PERIOD, "DURATION", "instead: this long before the end of the history, as in 7d", \
			&(p)->last, NULL                                                                            \
	}

struct costs {
	struct cost_hour *hours; /* of the period, one per hour, pool and class */
	size_t count;
	millis from, to;	 /* of the whole history, ticks and sums */
	millis estimated_until;	 /* hours before this are worked out from decisions; 0: none */
	millis dropped_until;	 /* ticks before this went without a sum of costs; 0: none */
	bool is_simulated;	 /* no pods, and so no labels, quotas and holders */
	const char *period;	 /* "2024-05-10 08:00 to 2024-05-17 08:00", in the arena of the arguments */
	const bool *is_unpriced; /* by index of history_pools(): its dollars are 0 here; NULL: none is */
	millis missing_until;	 /* hours before this had decisions that this program cannot read; 0: none */
};

/* Of the pool asked for, or of all. ERROR_NOT_FOUND, naming what there is, when the period has nothing. */
bool costs_read(struct history_args *q, struct cost_period *p, struct costs *out, struct error *e) MUST_USE;
/* What a person should know of these figures, a sentence each, in the arena of the arguments; returns how many. */
enum { COST_NOTES = 12 };
size_t costs_notes(struct history_args *q, const struct costs *c, const char *notes[COST_NOTES]);

/* "2024-05-10 08:00" */
void cost_print_minute(const struct history_args *q, millis at, struct buf *out);
