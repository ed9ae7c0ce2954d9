/*
 * What pools were like over time, in rows of five minutes and of an hour:
 * kept beside the ticks, in their transaction, so that a chart of a year
 * reads some thousand rows and no records. A mean is a sum over `ticks`,
 * `heard` or `waited`, whichever counts it.
 */
#pragma once
#include "state/history.h"

struct level_sums {
#define SUM(name)  int64_t name;
#define MOST(name) int64_t name;
#include "state/level.def"
#undef SUM
#undef MOST
};
enum { LEVEL_FIELDS = sizeof(struct level_sums) / sizeof(int64_t) };

enum level_width { LEVEL_FIVE_MINUTES, LEVEL_HOUR, LEVEL_WIDTH_COUNT };
millis level_millis(enum level_width width);

/* Adds one tick of one pool; GPU time and dollars by what the decision says, where no meter is (history_cost()). */
void level_add_tick(struct level_sums *sums, const struct pool_snapshot *s, const struct pool_plan *p, millis interval);
void level_add(struct level_sums *to, const struct level_sums *more);

struct level_row {
	millis from; /* what ends after `from` and not after `from` + level_millis() is in it */
	struct level_sums sums;
};

struct level_question {
	size_t pool; /* index of history_pools() */
	enum level_width width;
	millis from, to; /* rows that have a part in this time */
};
/* In order of time, in the arena; none where nothing was kept: of a program before it, or dropped (those of five
 * minutes go with their ticks, those of an hour stay). ERROR_INVALID for sums that cannot be. */
bool level_read(struct history *h, const struct level_question *q, struct arena *a, struct level_row **rows,
		size_t *count, struct error *e) MUST_USE;
/* Where the first row of that width begins; ABSENT when there is none. */
bool level_first(struct history *h, size_t pool, enum level_width width, millis *from, struct error *e) MUST_USE;
