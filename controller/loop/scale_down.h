/*
 * Fewer replicas: starts that are cancelled, nodes that go or are lent,
 * nodes that nobody uses, and those whose machine the cloud will take.
 */
#pragma once
#include "controller/loop/starts.h"
#include "controller/policy/plan.h"

struct controller;
struct node;
struct node_group;

#define IDLE_PATIENCE (3 * MINUTE)

/* Nodes that nobody uses, or hardly. */
struct idle_nodes {
	struct idle_node {
		char machine[MACHINE_ID_MAX + 1];
		millis since; /* clock_mono */
		bool is_idle; /* in the sweep under way */
	} * items;
	size_t count, room;
};

/* The machine is so now; since when is remembered as long as it is noted again before each idle_nodes_forget_others().
 */
struct idle_node *idle_nodes_note(struct idle_nodes *list, const char *machine, millis now);
/* What was not noted since the last call begins anew when it is noted again. */
void idle_nodes_forget_others(struct idle_nodes *list);

struct interruptions {
	bool may_be;   /* a node that the cloud will take was seen, or a tick passed */
	int64_t count; /* machines that the cloud said it would take */
};

/* What the pool's decision wants less of the group at this position. */
void scale_down(struct controller *c, size_t pool, size_t position, const struct group_decision *d);
/* Releases whole nodes of the pool's group: those with least in flight first, never a busy one of a pool whose pods are
 * the work. What finds no node is noted in the pool. */
void scale_down_release(struct controller *c, size_t pool, size_t position, const struct group_decision *d);
/* Nodes of the pool's group that could go now, where its replicas are alone and all of them sleep. */
int64_t scale_down_sleepers(const struct controller *c, size_t pool, size_t group, struct arena *a);
/* Nodes of the group that no GPU pod has used for scaleDown.after and that may be drained; of the pool that takes any.
 */
int64_t scale_down_idle(struct controller *c, size_t pool, size_t group, struct arena *a);
/* A GPU there is of another pool's pods; those that every node has do not count. */
bool scale_down_serves_others(const struct controller *c, const struct node *n, size_t pool, struct arena *a);
/* Machines of the group that may end: with fewer left than our least, or the cloud's own, it would refuse to end any,
 * and they would have been emptied for nothing. */
int64_t scale_down_room(const struct controller *c, size_t group);

/* No GPU pod is there, no start waits for it, and no drain is on it; it may lack GPUs itself, and serves nobody then.
 */
bool node_is_idle(const struct controller *c, const struct node *n);
/* Nodes that nobody uses or waits for, for longer than IDLE_PATIENCE and scaleDown.after, go. */
void idle_nodes_release(struct controller *c);
/* Nobody looked for so long: who was idle before may have been used meanwhile. */
void idle_nodes_unwatched(struct controller *c, millis duration);
/* Nodes whose machine the cloud will take are emptied while the notice lasts, and what served there is replaced. */
extern const struct actor interruptions_actor;
/* The group's cloud told which of its machines end: their nodes are capacity no more. */
void interruptions_note(void *user, const struct node_group *g);
/* Fewer replicas serve elsewhere than shall, in a pool that the node serves, or nothing was decided since then. */
bool interruption_waits(const struct controller *c, const struct node *n, millis since);

/* Nodes of a group whose reservation ends are cordoned from group_decision.leaves_at on, so that what serves there is
 * replaced; they are emptied once it is, at the latest RESERVATION_EMPTY_BEFORE the end. */
void reservations_leave(struct controller *c);
/* Of a group of the fleet: it is left, what drains there waits for its replacement, the cloud will take it in any case.
 */
bool reservation_leaves(const struct controller *c, int group);
bool reservation_waits(const struct controller *c, int group);
bool reservation_is_due(const struct controller *c, int group);
