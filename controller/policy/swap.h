/*
 * A machine that was woken in a dear node group only bridges a start in a
 * cheaper one: it serves until it has cost as much as that start, then the
 * start is asked for, and once it serves, the dear machine is stopped again.
 * Dear is a group that keeps standby while a group preferred to it has
 * replicas for less; what its smallest size keeps stays whatever it costs.
 */
#pragma once
#include "controller/policy/recommend.h"

/* Does a replica cost less in the pool's group `k`, preferred to `i`, so that what is woken in `i` only bridges? */
bool swap_is_cheaper(const struct fleet_spec *fleet, const struct pool_spec *p, size_t i, size_t k);
/* Replicas that serve in the pool's dear group `i` and may move; 0 where the group is not dear. */
int64_t swap_dear(const struct snapshot *s, size_t pool, size_t i);
/* What a wake costs beyond its time where it only bridges a start of `cold` seconds and `start_charge`, in seconds of a
 * replica of the cheaper group; 0 where it does not. */
double swap_charge(const struct fleet_spec *fleet, const struct pool_spec *p, double cold, double start_charge);
/* Of the starts on their way, those that will free a dear replica count as `swap` alone; what there is no dear one for
 * is a start as any. Asked for as new machines; a cloud with a warm pool takes stopped ones. */
void swap_set_apart(const struct pool_policy_state *m, const struct snapshot *s, size_t pool, struct fleet *f);
/* Takes the tick's events in: which of these starts serve. */
void swap_follow(struct pool_policy_state *m, const struct snapshot *s, size_t pool);
/* Adds to a wish what is to start in a cheaper group, and the dear ones that are free to go. */
void swap_recommend(struct pool_policy_state *m, const struct snapshot *s, size_t pool, const struct estimates *l,
		    struct recommendation *w);
