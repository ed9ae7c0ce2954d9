/*
 * Incidents of a pool: stretches in which more requests were late than its
 * objective allows. Pure: folds ticks in the order of time; ticks in which
 * nothing was late may be left out.
 */
#pragma once
#include "controller/policy/cost.h"

#define INCIDENT_CALM (5 * MINUTE) /* late requests no further apart are one incident */

enum { INCIDENT_GROUP = 64 }; /* bytes of a node group's name that are kept */

/* The tick to look at: the longest wait of all with late requests for one cause, not the most that started late. Those
   are of the recovery, when what waited starts at once. */
struct incident_tick {
	int64_t tick, late;
	millis at, wait;	   /* INT64_MAX: without end, because nothing was hot */
	int64_t ready, on_its_way; /* replicas then */
};

struct incident {
	millis from, to; /* begin of the first tick with late requests, end of the last */
	int64_t late, started, allowed_ppm;
	int64_t late_by[LATE_CAUSE_COUNT], late_at_limit[LIMIT_COUNT];
	millis longest_wait; /* that a queue would have had at the hot replicas of its time */

	struct incident_tick worst[LATE_CAUSE_COUNT]; /* late 0: none of that cause */

	/* of the starts that came in a tick with late requests the longest, else that which was longest on its way in
	   one; "" and 0: none */
	char group[INCIDENT_GROUP];
	millis start_age;
	enum start_kind start_kind;
	bool start_has_come;

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
/* Where that shows best. */
const struct incident_tick *incident_worst(const struct incident *i);
/* What held the pool while most were late; LIMIT_NONE: nothing. */
enum limit incident_limit(const struct incident *i);
