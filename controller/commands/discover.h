/*
 * What serves on GPUs in a cluster, out of its objects, and the WarmPools
 * that would look after it: workloads whose pods ask for GPUs and run a model
 * server that is known by its image, the nodes that they stand on, what these
 * cost by list, how long starts took, and who scales them today. What is
 * guessed is said to be, in a comment at its line.
 */
#pragma once
#include "base/arena.h"
#include "base/buf.h"
#include "base/yaml.h"

struct discovery;

/* Objects in any order; their trees must outlive it. It lives in the arena. */
struct discovery *discovery_new(struct arena *a);
void discovery_add(struct discovery *d, const struct yaml_node *object);
/* After the last object; what follows wants it. The number of services found. */
size_t discovery_finish(struct discovery *d);

/* Where nothing was found: the first thing on the way to a service that is not there, "no node has GPUs", and what to
 * do about it. */
struct discovery_lack {
	const char *lack, *remedy;
};
struct discovery_lack discovery_lacks(const struct discovery *d);

/* What was found, and what was left out and why: lines for people. */
void discovery_print(const struct discovery *d, struct buf *out);
/* pools.yaml, in mode observe. `prometheus`: its URL, or NULL: the pods are read. `from`: what was looked at. */
void discovery_write_pools(const struct discovery *d, const char *prometheus, const char *from, struct buf *out);
/* A WarmPool of class any for GPU pods that are no service, in mode observe; false: there are none. */
bool discovery_write_default(const struct discovery *d, struct buf *out);
/* The autoscalers of nodes and of what was found, for `simulate --autoscalers`; how many of the latter. */
size_t discovery_write_autoscalers(const struct discovery *d, struct buf *out);
