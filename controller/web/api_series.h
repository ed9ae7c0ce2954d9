/* What a pool was like over a time, in rows of equal length, from whatever tells it with the least reading. */
#pragma once
#include "controller/web/api_parts.h"
#include "state/level.h"

enum { SERIES_POINTS_MAX = 2000 };

enum resolution {
	RESOLUTION_TICK,
	RESOLUTION_FIVE_MINUTES,
	RESOLUTION_HOUR,
	RESOLUTION_DAY,	   /* of hours */
	RESOLUTION_SAMPLE, /* single ticks: nothing was kept that could be added up */
};

struct series_question {
	size_t pool;
	millis from, to;
	int64_t points; /* 1 to SERIES_POINTS_MAX */
};

struct series_row {
	millis at; /* of a single tick: its end; else where the row begins */
	struct level_sums sums;
};

struct series {
	enum resolution resolution;
	millis step;
	struct series_row
		*rows; /* in order of time, in the arena of the call; without those of which nothing is known */
	size_t count;
};

bool series_read(struct api_call *c, const struct series_question *q, struct series *out, struct error *e) MUST_USE;
