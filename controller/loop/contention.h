/*
 * Somebody else who sizes a node group against us: Cluster Autoscaler, a
 * schedule, a pipeline. One change of theirs is adopted. Whoever undoes ours
 * again and again is met with a hold: nothing is bought or ended there until
 * they are quiet. Pure bookkeeping, in milliseconds of a clock that never
 * goes back.
 */
#pragma once
#include "base/millis.h"

#include <stdbool.h>
#include <stdint.h>

enum { CONTENTION_REVERSALS = 3 };
#define CONTENTION_SPAN HOUR /* so many within it are a fight */
/* Cluster Autoscaler ends an idle machine ten minutes after it came, which takes minutes. */
#define CONTENTION_SOON (20 * MINUTE) /* a change of theirs that comes so soon after one of ours undoes it */
/* Without a change of theirs the hold ends. Who only sets what is there already cannot be seen: if the next change of
 * ours, made within as long again, is undone, it lasts twice as long, up to the most. */
#define CONTENTION_QUIET      (10 * MINUTE)
#define CONTENTION_QUIET_MOST (4 * HOUR)

struct contention {
	int64_t own; /* our last change of the size that nobody undid; 0: none */
	millis own_at;
	millis undone_at[CONTENTION_REVERSALS]; /* the last ones, in turn */
	int64_t undone;
	int64_t machines; /* the most that one of these was about: bought and ended in turn */
	bool is_held;
	millis changed_at; /* by others, last */
	millis quiet;	   /* that the hold asks for, or the last one did; 0: there was none */
	millis ended_at;   /* of the last one */
};

/* We changed the size by so many machines. */
void contention_ours(struct contention *c, int64_t change, millis now);
/* A change of theirs within so long of one of ours, in the other direction. */
bool contention_undoes(const struct contention *c, int64_t change, millis within, millis now);
/* Others did. True when that is where the hold begins. */
bool contention_theirs(struct contention *c, int64_t change, millis now);
/* Ends a hold once they were quiet for long enough; true when it did. */
bool contention_ends(struct contention *c, millis now);
/* As it was before we led: held since then, or until then. */
void contention_resume(struct contention *c, bool is_held, millis quiet, int64_t machines, millis since);
