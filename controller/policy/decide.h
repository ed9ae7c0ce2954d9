/*
 * The decision: (snapshot, memory) -> (plan, memory). No clock, no I/O, no
 * state besides the memory, no allocation outside the arena. Equal arguments
 * give equal results, bit for bit, on any machine. Controller, simulator
 * and replay all call it.
 *
 * The memory is advanced in place, because it holds some hundred shadow
 * fleets and copying it would cost more than deciding. It belongs to the
 * caller, contains no pointers into anything else, and can be stored and
 * read back (checkpoints).
 */
#pragma once
#include "base/buf.h"
#include "controller/policy/plan.h"

struct policy_state;

struct policy_state *policy_state_new(const struct fleet_spec *fleet);
void policy_state_free(struct policy_state *m); /* takes NULL */
void policy_state_encode(const struct policy_state *m, struct buf *out);
/* NULL with an error when the bytes are damaged, of another layout, or of another fleet. */
struct policy_state *policy_state_decode(const void *bytes, size_t len, const struct fleet_spec *fleet,
					 struct error *e);

/*
 * What `old` is worth under another manifest. Pools are the same by namespace and name, node groups by name and
 * provider; new ones begin with nothing. Equal fleets give an equal memory. What is carried over is taken out of `old`,
 * which is good for policy_state_free() only.
 */
struct policy_state *policy_state_migrate(struct policy_state *old, const struct fleet_spec *was,
					  const struct fleet_spec *now);

/* Changes whenever stored memories of older programs cannot be read any more. */
uint64_t policy_state_layout(void);

/*
 * The plan and what it points to live in the arena. Of a snapshot between two ticks (interval 0) it buys for waiting
 * pods and does nothing else, and the memory stays as it was.
 */
struct plan policy_decide(const struct snapshot *s, struct policy_state *m, struct arena *a);

/* What the pool is billed for an hour, by what its node groups tell. */
int64_t policy_billed(const struct fleet_spec *fleet, size_t pool, const struct group_input *groups);

/* The group's cloud was found to have no standby tier (EVENT_STANDBY). */
bool policy_lacks_standby(const struct policy_state *m, size_t group);

/* Fixes the rule of a pool instead of choosing; for measuring a rule. `rule` < rule_count(m, pool). */
void policy_state_fix_rule(struct policy_state *m, size_t pool, int64_t rule);
size_t rule_count(const struct policy_state *m, size_t pool);

/* A rule as people read it: "10 % over demand, hold 812 s, chase 0.25, standby 0.2". */
void rule_describe(const struct policy_state *m, size_t pool, int64_t rule, struct buf *out);
/* A start on a machine that is so old is counted on no more, by what was believed at that decision. */
bool policy_start_is_overdue(const struct pool_decision *d, enum start_kind kind, millis age);
