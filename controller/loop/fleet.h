/*
 * The pools and node groups of the manifest in force, opened when we lead
 * and closed when we do not any more; and the clouds that they are reached
 * through.
 */
#pragma once
#include "base/arena.h"
#include "controller/loop/group_operations.h"
#include "controller/manifest/warm_pool.h"

struct api;
struct controller;
struct live_pool;

struct fleet {
	struct arena manifest_arena;
	struct live_pool *former_pools; /* until others are there: what they told is carried over */
	size_t former_count;
	int64_t former_term;
	struct provider *providers[PROVIDER_COUNT]; /* opened on first use */
	provider_counts calls[PROVIDER_COUNT];
	struct throttle throttles[PROVIDER_COUNT];
	struct cluster_door client; /* for providers whose groups are objects of the cluster */
};

/* The API server as providers may ask it: through the same client, gate and limits as the rest of the controller. */
struct cluster_door cluster_client_open(struct api *a);

/* Tells the model of the cluster which pools and groups there are. */
void fleet_tell_cluster(struct controller *c);
bool fleet_open(struct controller *c, struct error *e) MUST_USE;
/* Nothing may be under way. What pools told is kept for fleet_open(), unless the controller is stopping and this is
 * called once more. */
void fleet_close(struct controller *c);
