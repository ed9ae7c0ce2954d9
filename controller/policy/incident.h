/*
 * Incidents of a pool: stretches in which more requests were late than its
 * objective allows. Pure: folds ticks in the order of time; ticks in which
 * nothing was late may be left out.
 */
#pragma once
#include "controller/policy/cost.h"

#define INCIDENT_CALM (5 * MINUTE) /* late requests no further apart are one incident */

enum { INCIDENT_GROUP = 64 }; /* bytes of a node group's name that are kept */

struct incident {
	millis from, to; /* begin of the first tick with late requests, end of the last */
	int64_t late, started, allowed_ppm;
	int64_t late_by[LATE_CAUSE_COUNT], late_at_limit[LIMIT_COUNT];
	millis longest_wait; /* that a queue would have had at the hot replicas of its time */

	/* the tick with the most late requests */
	int64_t worst_tick, worst_late;
	millis worst_at;
	int64_t ready, on_its_way; /* replicas then */

	/* the start that was longest on its way in a tick with late requests; "" and 0: none was */
	char group[INCIDENT_GROUP];
	millis start_age;

	/* the first group that had no machines to give in a tick with late requests, and why, as limit_is_refusal()
	   has it; "" and LIMIT_NONE: all had some */
	char refused_group[INCIDENT_GROUP];
	enum limit refused_by;

	int64_t given_up; /* starts that passed their deadline in ticks with late requests, in replicas */
	char given_up_group[INCIDENT_GROUP];
};

/* Between ticks of one pool; begins as { 0 }. */
struct incident_fold {
	struct incident open; /* late 0: none */
};

/* Takes a tick. True with what ended before it. */
bool incident_add_tick(struct incident_fold *f, const struct snapshot *s, size_t pool, const struct pool_plan *plan,
		       struct incident *ended) MUST_USE;
/* After the last tick. True with what was open. */
bool incident_end(struct incident_fold *f, struct incident *ended) MUST_USE;

/* What most of its requests were late by. */
enum late_cause incident_cause(const struct incident *i);
/* What held the pool while most were late; LIMIT_NONE: nothing. */
enum limit incident_limit(const struct incident *i);
