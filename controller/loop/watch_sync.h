/* What may be concluded from what the watches show, and from the manifest about it. */
#pragma once
#include "controller/cluster/model.h"

struct controller;

bool cluster_is_fresh(const struct controller *c); /* the watches of nodes and pods are in sync now */
/* Both have told something, if only a bookmark, at that time (clock_now) or later: a watch that stands and is silent
 * shows what was, and nothing may be concluded from what it does not show. */
bool cluster_told_since(const struct controller *c, millis at);
bool cluster_pods_told_since(const struct controller *c, millis at); /* that of pods alone */
/* The machine under a node as its provider calls it; valid until the group is looked at again. */
const char *machine_of_node(const struct controller *c, const struct node *n);
/* GPU pods of others run on it, or replicas of the pool serve there. */
bool node_is_needed(const struct controller *c, const struct node *n, size_t pool);
/* Replicas of the pool that serve on the node: others than those that are ready are the first that a workload's
 * controller takes. */
int64_t replicas_serving(const struct controller *c, const struct node *n, size_t pool);
/* Of these, those whose engine is awake: its capacity. */
int64_t replicas_awake(const struct controller *c, const struct node *n, size_t pool);
/* Every pool of the group lets us change what it has. */
bool group_pools_act(const struct controller *c, size_t group);
/* And nobody else is at work there. */
bool group_may_change(const struct controller *c, size_t group);
