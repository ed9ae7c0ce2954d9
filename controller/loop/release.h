/* Which nodes go, and which are lent and taken back. */
#pragma once
#include "controller/policy/plan.h"

struct controller;
struct node;

/* Releases whole nodes of the pool's group: those with least in flight first, never a busy one of a pool whose pods are
 * the work. What finds no node is noted in the pool. */
void release(struct controller *c, size_t pool, size_t position, const struct group_decision *d);
/* Machines of the group that may end: with fewer left than our least, or the cloud's own, it would refuse to end any,
 * and they would have been emptied for nothing. */
int64_t release_room(const struct controller *c, size_t group);
/* Takes lent nodes back: the pool's pods may go there again, and pre-empt what runs. */
void reclaim(struct controller *c, size_t pool, size_t position, int64_t count);
/* Nodes of ours that nobody uses or waits for, for longer than IDLE_PATIENCE. */
void release_idle(struct controller *c);
#define IDLE_PATIENCE (3 * MINUTE)
/* Replicas' worth of the group's nodes that the pool has lent. */
int64_t lent_places(const struct controller *c, size_t pool, size_t group);
bool node_is_lent_by(const struct node *n, const char *pool);
