/*
 * Nodes on their way out, one state machine each: cordoned, emptied through
 * eviction, then the machine is removed or stopped. One that is lent is
 * emptied of the pool that lends alone, and opened again. A budget or a pod
 * that may not be disturbed holds it; it is told, never overruled, and after
 * DRAIN_BLOCKED_PATIENCE without progress the node is put back to work and
 * left alone for a while. Each drain is a row of the history
 * (state/drain_record.h) from before its first mark. While nothing is known of the
 * pool none of its replicas is asked to go. Neither holds for a machine that
 * the cloud will take.
 */
#pragma once
#include "base/arena.h"
#include "base/millis.h"
#include "controller/loop/starts.h"
#include "state/drain_record.h"

struct controller;
struct drain;
struct pod_eviction;
struct drain_back_off;
struct node;
struct pod;

#define DRAIN_PATIENCE	       (30 * MINUTE)
#define DRAIN_BLOCKED_PATIENCE (5 * MINUTE)

/* Taint (its value: what for) and annotation (its value: marks_owner()) of a node that is drained. */
#define DRAIN_MARK_KEY "preheat.dev/draining"

enum drain_fate { FATE_REMOVE, FATE_STOP, FATE_LEND };

struct drains {
	struct drain *first;
	int64_t evictions[8]; /* by enum eviction_result */
	int64_t removed, stopped, abandoned;
	int64_t blocked; /* of those abandoned, or not even begun */
	struct drain_back_off *back_offs;
	size_t back_off_count, back_off_room;
	struct pod_eviction *lone; /* outside of any drain */
};

/* The node is released for a pool (index) for a reason ("3 replicas beyond demand"); false when it is already on its
 * way, not ours to take, no machine that its group's cloud tells of, or could not be emptied a while ago. */
bool drain_begin(struct controller *c, const struct node *n, size_t pool, enum drain_fate fate, const char *why);
/* The same, of a node whose pods have a place elsewhere: each is asked once those before it are there
 * (consolidation_step()). It is given up where what is left has none any more. */
bool drain_begin_move(struct controller *c, const struct node *n, size_t pool, const char *why);
/* The same, of a node that is no good: also where its group is left with fewer than its least. */
bool drain_begin_replacing(struct controller *c, const struct node *n, size_t pool, const char *why);
/* It could not be emptied a while ago, and is left alone. */
bool drain_is_backed_off(const struct controller *c, const char *node);
bool drain_is_under_way(const struct controller *c, const char *node);
/* The pool that gives the node up, while its pods are asked to go and nothing holds them; else -1. */
int drain_asks_for(const struct controller *c, const char *node);
/* Keeps one node of the pool that has not been asked to leave yet and on which replicas serve, or nothing is; NULL:
 * there is none. */
const struct node *drains_call_off(struct controller *c, size_t pool);
/* Replicas that serve on nodes of the group that are kept, and that watches still show as draining, less those on nodes
 * that go, which watches do not show yet. */
int64_t drains_unshown(const struct controller *c, size_t pool, size_t group);
/* Replicas of the pool on nodes that drain, that have not been told to go yet. */
int64_t drain_replicas_left(const struct controller *c, size_t pool);
/* Nodes of the group that will leave it and have not been asked to yet. */
int64_t drains_in_group(const struct controller *c, int group);
/* The pool's drain that a budget or a pod holds, as a sentence; NULL: none. */
const char *drain_blocked(const struct controller *c, size_t pool, struct arena *a);
extern const struct actor drains_actor;
/* Nodes that could not be emptied of late, as the history tells, are left alone as long as before. We lead from now on.
 */
void drains_recall(struct controller *c);
/* Another fleet is in force: the new index of each pool and group, SIZE_MAX for those that are no more. */
void drains_renumber(struct controller *c, const size_t *pools, const size_t *groups);
/* Goes on with a drain that the node's mark tells of; row: NULL: it has none. */
void drain_resume(struct controller *c, const struct node *n, size_t pool, const struct drain_record *row);
/* Takes our marks off the node, after so long. */
void drain_sweep(struct controller *c, const struct node *n, millis after);
/* The node is lent no longer. */
void drain_take_back(struct controller *c, const struct node *n);
/* It shall be lent after all. */
void drain_give_back(struct controller *c, const struct node *n, size_t pool);
/* Asks one pod to go, outside of a drain: as it is seen, it will never serve where it is. */
void drain_evict_pod(struct controller *c, const struct pod *p);
