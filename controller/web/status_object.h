/*
 * The status of a WarmPool as the body of a merge patch. Pure: what is said
 * comes from the published value, and when a condition changed from `kept`,
 * which the caller keeps from tick to tick. The schema of what is written
 * stands in deploy/base/crd.yaml.
 */
#pragma once
#include "base/buf.h"
#include "controller/web/published.h"

enum condition_type {
	CONDITION_READY,	 /* the pool is decided on */
	CONDITION_SIGNALS_FRESH, /* its signals can be trusted */
	CONDITION_LIMITED,	 /* something holds it below or above what is wished */
	CONDITION_OBJECTIVE_MET, /* on an average with a half-life of three days */
	CONDITION_CAPACITY,	 /* CapacityAvailable: a node group that is not blocked by a refusal */
	CONDITION_NODE_STUCK,	 /* a start was given up lately */
	CONDITION_PROBLEM,	 /* from here on by enum pool_problem */
	CONDITION_COUNT = CONDITION_PROBLEM + PROBLEM_COUNT
};

enum condition_status { CONDITION_UNTOLD, CONDITION_FALSE, CONDITION_TRUE, CONDITION_UNKNOWN };

struct condition {
	enum condition_status status;
	millis since; /* when it became that */
};

/* Of one WarmPool; zeroed at first. */
struct conditions {
	struct condition items[CONDITION_COUNT];
};

const char *condition_type_name(enum condition_type type); /* "SignalsFresh" */
/* Takes over what the object says already (after a restart), so that `since` survives; unknown types are passed over.
 */
void condition_adopt(struct conditions *kept, const char *type, const char *status, millis since);
/* {"status":{...}} of a pool that was decided on. Needs published.fleet, plan, snapshot and pools. */
void status_object_write(const struct published *p, size_t pool, struct conditions *kept, struct buf *out);
/* The same for a WarmPool that cannot be used: `why` in one sentence. */
void status_refused_write(const char *why, int64_t generation, millis now, struct conditions *kept, struct buf *out);
