/*
 * Node groups that others size against us: how long they are left alone, so that a next process or leader does not
 * begin the fight anew. One line of a group, the last.
 */
#pragma once
#include "state/history.h"

struct contention_record {
	bool is_held;
	millis quiet;	     /* that the hold asks for, or the last one did */
	int64_t machines;    /* that the fight is about */
	millis at;	     /* it began, or ended */
	millis yields_until; /* of the clock; others lowered the size */
	millis raised_until; /* likewise; others raised it */
};

/* On disk when it returns true. */
bool contention_record_save(struct history *h, const char *group, const struct contention_record *r,
			    struct error *e) MUST_USE;
/* False without one: nothing was saved of the group, or it cannot be read. */
bool contention_record_find(struct history *h, const char *group, struct contention_record *r) MUST_USE;
