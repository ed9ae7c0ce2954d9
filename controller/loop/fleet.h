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
struct manifest;

/* One that another took the place of while we led. */
struct former_manifest {
	struct former_manifest *next;
	struct arena arena;
	millis since; /* loop_now */
};

struct fleet {
	struct arena manifest_arena;
	struct live_pool **former_pools; /* until others are there: what they told is carried over */
	size_t former_count;
	int64_t former_term;
	struct former_manifest *former_manifests;   /* newest first: calls under way may still point there */
	struct provider *providers[PROVIDER_COUNT]; /* opened on first use */
	provider_counts calls[PROVIDER_COUNT];
	struct throttle throttles[PROVIDER_COUNT];
	uint64_t promises; /* of what clouds say of new nodes, as the model of the cluster was told last: a hash */
	struct cluster_door client; /* for providers whose groups are objects of the cluster */
};

/* The API server as providers may ask it: through the same client, gate and limits as the rest of the controller. */
struct cluster_door cluster_client_open(struct api *a);

/* Tells the model of the cluster which pools and groups there are. */
void fleet_tell_cluster(struct controller *c);
/* Again, where clouds say something else of new nodes since. */
void fleet_follow_promises(struct controller *c);
bool fleet_open(struct controller *c, struct error *e) MUST_USE;
/* Logs a group of before that nobody looks after now, though machines there may still be protected. */
void fleet_tell_left(const struct group_spec *left, const char *why);
/* Tells the groups that were ours when the history was written last, and that no manifest names any more. After
 * fleet_open(). */
void fleet_leave_former(struct controller *c);
/* One pool, or group, of the fleet in force; `former`: what it goes on from, NULL for nothing. */
void fleet_open_pool(struct controller *c, size_t pool, const struct live_pool *former, bool is_same_term);
bool fleet_open_group(struct controller *c, size_t group, struct error *e) MUST_USE;
/* Tokens of calls are of another life from now on: a group that is opened counts its own anew. */
void fleet_begin_life(struct controller *c);
void fleet_close_pool(struct controller *c, struct live_pool *p); /* nothing of it may be under way */
/* Purchases of groups that were not looked at yet, which were under way when somebody else, or we, stopped: what still
 * goes on is waited for. */
bool fleet_adopt_operations(struct controller *c, struct error *e) MUST_USE;
/* What a group's provider is told of it, in the arena or the manifest. */
const char *fleet_group_settings(const struct controller *c, const struct manifest *m, size_t group, struct arena *a);
/* Frees the manifests of before that time, loop_now. */
void fleet_forget_manifests(struct controller *c, millis before);
/* Nothing may be under way. What pools told is kept for fleet_open(), unless the controller is stopping and this is
 * called once more. */
void fleet_close(struct controller *c);
