/* Work that must be done by a time, added up by due time. */
#pragma once
#include "controller/policy/snapshot.h"

enum { DEADLINE_BUCKETS = 64, DEADLINES_SHOWN = 16 };

/* In one bucket; more counts as so much. All of them together fit an int64_t. */
#define DEADLINE_WORK_MOST (INT64_MAX / 128)

struct deadline_book {
	millis width;			/* of a bucket; 0: no deadlines */
	int64_t first;			/* number of the oldest bucket kept: due time / width */
	int64_t work[DEADLINE_BUCKETS]; /* slot-milliseconds, by number modulo DEADLINE_BUCKETS */
};

void deadlines_open(struct deadline_book *b, millis deadline);
void deadlines_add(struct deadline_book *b, millis due, int64_t work);
/* Work was done, or given up: of the earliest due. */
void deadlines_take(struct deadline_book *b, int64_t work);
/* At most DEADLINES_SHOWN, earliest first; what is overdue is one. `slots` turns slot time into replica time and
 * `start` is added to the due times. Returns how many. */
size_t deadlines_show(const struct deadline_book *b, millis now, int64_t slots, millis start,
		      struct deadline_input *out);
