/*
 * More replicas: what a decision asks of a group is granted as far as its
 * cloud and the budgets allow, and starts. What one group refuses between
 * two ticks is asked of the next at once; how many there shall be stays as
 * it was decided.
 */
#pragma once
#include "controller/policy/plan.h"
#include "controller/loop/starts.h"

struct controller;
struct node;

/* Since the last tick: replicas that were refused and shall start elsewhere, what they would have cost an hour, and a
 * bit per position that refused. */
struct fallback {
	int64_t replicas, price;
	uint64_t refused;
};

/* Replicas' worth of the group's nodes that the pool has lent. */
int64_t lent_places(const struct controller *c, size_t pool, size_t group);
/* What the pool's decision wants more of the group at this position. */
void scale_up(struct controller *c, size_t pool, size_t position, const struct group_decision *d);
/* After that for all pools: what was to go where there is room goes onto machines that were bought for others. */
void scale_up_rest(struct controller *c, size_t pool);
/* As many starts of the kind on machines more as the group's cloud may be asked for. */
void scale_up_buy(struct controller *c, size_t pool, size_t position, enum start_kind kind, int64_t count);
/* Tells the policy which groups, refused before because their cloud had told nothing, are known now. */
void scale_up_tell_described(struct controller *c);
/* Replicas' worth of nodes of the group, rounded up. */
int64_t nodes_for(const struct controller *c, size_t pool, size_t group, int64_t replicas);

/* A start was refused (group_context.refused). */
void fallback_note(void *user, const struct start *s, enum error_kind why);
/* The ready replicas on a node are lost, or will be: the policy is told, and others may start without waiting for the
 * next tick. Returns how many pods there are on the node. */
size_t fallback_lost(struct controller *c, const struct node *n, bool starts_elsewhere);
/* Asks the next offerings for what was refused since the last tick. */
extern const struct actor fallback_actor;

/* Do both pools pay from one budget? */
bool cost_is_one_budget(const struct pool_spec *a, const struct pool_spec *b);
/* Machines more of the group, negative when there are too many, that the budgets of the manifest in force leave beside
 * what is asked of the clouds; INT64_MAX without a budget. */
int64_t cost_budget_affordable(void *user, size_t group);
