/*
 * A decision as an engineer would tell it: what was seen, expected, wished,
 * what held it, what it costs. Pure; computes nothing: every number in the
 * text stands in the record or the manifest, apart from its unit.
 */
#pragma once
#include "base/arena.h"
#include "base/buf.h"
#include "controller/policy/incident.h"
#include "controller/policy/plan.h"
#include "controller/policy/share.h"

struct explained {
	const struct fleet_spec *fleet;
	size_t pool;
	int64_t tick;
	millis now;
	const struct pool_plan *plan;
	millis utc_offset;			/* of the times in the text, east of UTC */
	const struct engine_move_record *moves; /* of its engines, in a share: what came of decisions between ticks */
	size_t move_count;
	const char *share_rule; /* share_choice_write(); NULL or "": the first, or none */
	millis share_rule_since;
	const char *waits_for; /* name of a pool whose engines at work let none of this one wake; NULL: none do */
};

struct explanation_part {
	const char *title, *text; /* "Seen", whole sentences */
};

enum { EXPLANATION_PARTS_MAX = 9 };

struct explanation {
	struct explanation_part parts[EXPLANATION_PARTS_MAX];
	size_t count;
};

/* Deadlines of waiting work size the pool; what rules would have done says nothing of it. */
bool explain_has_deadlines(const struct explained *x);

/* The texts live in the arena. */
struct explanation explain_decision(const struct explained *x, struct arena *a);
/* The first part alone, as one line: what was decided and what was asked for. */
const char *explain_headline(const struct explained *x, struct arena *a);

/* Why an incident was: "cold start of 6m40s in g5-od after a stock-out". */
void explain_incident(const struct incident *i, struct buf *out);

/* A value of a record with its unit, as in the texts: "6m20s", "0.74 %", "$14.52", "stock-out"; "none" when absent. */
void explain_value(const struct field_info *field, int64_t value, millis utc_offset, struct buf *out);
/* The value, or ABSENT for dollars of a pool without prices: nobody ever paid them. */
int64_t explain_known(const struct pool_spec *pool, const struct field_info *field, int64_t value);
/* "2024-05-10 14:32:15" */
void explain_time(millis at, millis utc_offset, struct buf *out);
/* "2024-05-10T14:32:15Z", for programs; milliseconds where there are any. */
void explain_time_rfc3339(millis at, struct buf *out);

/* All fields by name, with units and the texts, as one JSON object; `input` may be NULL. */
void explain_json(const struct explained *x, const struct pool_snapshot *input, struct buf *out);
/* The same without what names the decision: "decision", "groups", "prices", "input", "units" and "explanation". */
void explain_json_members(const struct explained *x, const struct pool_snapshot *input, struct buf *out);
