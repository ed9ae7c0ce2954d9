/*
 * What a user asks for: pools and the node groups that serve them, as plain
 * values. Filled from the manifest; never changed by a decision.
 *
 * Units are in the names: _ppm parts per million, _permille, _gpus, _nodes;
 * money is micro-dollars (1e-6 $), time is millis. A pointer is never NULL
 * unless the comment says so.
 */
#pragma once
#include "base/arena.h"
#include "base/millis.h"
#include "base/schedule.h"

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

/* CLASS_ANY: the GPU pods that no other pool owns. A replica of such a pool is a GPU. */
enum pool_class {
	CLASS_INTERACTIVE,
	CLASS_BATCH,
	CLASS_EMBEDDING,
	CLASS_EXPERIMENT,
	CLASS_TRAINING,
	CLASS_ANY,
	CLASS_COUNT
};
/* MODE_SHARE: a pool in a share that acts. Its engines are moved; replicas and nodes stay as others set them. */
enum pool_mode { MODE_ACT, MODE_OBSERVE, MODE_PAUSED, MODE_SHARE, MODE_COUNT };
enum capacity_type { CAPACITY_ON_DEMAND, CAPACITY_SPOT, CAPACITY_RESERVED };

/* Stages from asking to serving, in order. */
enum stage { STAGE_PROVISION, STAGE_REGISTER, STAGE_DEVICE, STAGE_IMAGE, STAGE_LOAD, STAGE_COUNT };

/* Median and 95th percentile of a duration; both 0 when not given. */
struct quantiles {
	millis p50, p95;
};

/* A node group: equal machines that a cloud resizes. Shared by the pools that name it. */
struct group_spec {
	const char *name;
	const char *provider;	   /* by its name in the manifest */
	const char *settings;	   /* the provider's own keys as JSON, "{}" when none */
	const char *zone;	   /* "" when not given */
	const char *instance_type; /* "" when not given */
	enum capacity_type capacity_type;
	int64_t gpus_per_node;
	int64_t price_per_hour; /* micro-dollars per node and hour */
	int64_t min_nodes, max_nodes;
	millis ends_at;			    /* the reservation of its machines; 0: never, or only the cloud knows */
	int64_t standby_max_nodes;	    /* 0: no standby tier */
	int64_t standby_price_ppm;	    /* share of the price while stopped */
	struct quantiles standby_lead_time; /* from waking to serving: prior */
	struct quantiles standby_first_lead_time; /* the same of machines bought for standby that never ran */
};

struct pool_spec {
	const char *name;
	const char *namespace;
	enum pool_class class;
	enum pool_mode mode;

	millis objective_wait;	    /* a request that waits longer is late */
	int64_t objective_late_ppm; /* allowed share of late requests: 1 - attainment */
	int64_t violation_cost;	    /* micro-dollars a late request; 0: the objective rules */

	bool is_unpriced; /* no group of it has a price: one GPU costs $1 an hour, so that dollars are GPU hours */
	int64_t gpus_per_replica;
	int64_t max_sequences;	   /* slots of a replica: prior */
	int64_t tokens_per_second; /* output, of a full replica: prior */
	int64_t prefill_tokens_per_second;
	int64_t inter_token_latency_us; /* prior */

	const size_t *groups; /* indices into fleet_spec.groups, in order of preference */
	size_t group_count;

	struct quantiles lead_time; /* total: prior; 0 when only stages are given */
	struct quantiles stage[STAGE_COUNT];

	int64_t headroom_min, headroom_max; /* hot replicas beyond present demand; max 0: no cap */
	const struct schedule_window *schedule;
	size_t schedule_count;
	millis scale_down_after; /* 0: auto, the rule in force decides */

	unsigned lend_to;	 /* bit per pool_class that may borrow idle nodes */
	millis yield_within;	 /* a borrower gives a node back within this */
	int64_t shrink_priority; /* larger gives nodes back first when a budget binds */
	int64_t budget_per_hour; /* micro-dollars; 0: none */
	const char *budget_name; /* pools with equal names share one budget; "" when own */

	const char *share;	  /* pools of one namespace with equal names use one stock of slots; NULL or "": none */
	int64_t share_level;	  /* on which its engines sleep: 1 or 2 */
	int64_t awake_gib;	  /* GPU memory of an engine awake; 0: all of a slot */
	int64_t asleep_gib;	  /* what stays with one asleep */
	millis share_wake_within; /* a sleep or a wake that takes longer has failed */
	bool is_stock;		  /* its replicas are the slots of the share that has its name */
};

/* A pool that names a node group, and the group's place in its list. */
struct group_user {
	size_t pool, position;
};

struct group_users {
	const struct group_user *items; /* in the order of the pools */
	size_t count;
};

struct fleet_spec {
	const struct group_spec *groups;
	size_t group_count;
	const struct pool_spec *pools;
	size_t pool_count;
	const struct group_users *users; /* one per group: fleet_users(); NULL where nobody asks for them */
};

/* Who names each group, in the arena. A pool whose engines we move is left out where the stock of its share names the
 * group, too: the nodes are the stock's. */
bool pool_uses_group(const struct fleet_spec *fleet, size_t pool, size_t group);
const struct group_users *fleet_users(const struct fleet_spec *fleet, struct arena *a);

static inline bool group_is_used_by(const struct group_users *users, size_t pool)
{
	for (size_t i = 0; i < users->count; i++)
		if (users->items[i].pool == pool)
			return true;
	return false;
}

static inline int64_t replicas_per_node(const struct group_spec *g, const struct pool_spec *p)
{
	int64_t n = g->gpus_per_node / (p->gpus_per_replica > 0 ? p->gpus_per_replica : 1);

	return n > 0 ? n : 0;
}

static inline bool pool_is_in_share(const struct pool_spec *p)
{
	return p->share && *p->share;
}

/* Both are in the same share. */
static inline bool pools_share(const struct pool_spec *a, const struct pool_spec *b)
{
	return pool_is_in_share(a) && pool_is_in_share(b) && !strcmp(a->share, b->share) &&
	       !strcmp(a->namespace, b->namespace);
}

/* The pool's share uses the slots of this stock. */
static inline bool pool_is_stock_of(const struct pool_spec *stock, const struct pool_spec *pool)
{
	return stock->is_stock && pool_is_in_share(pool) && !strcmp(stock->name, pool->share) &&
	       !strcmp(stock->namespace, pool->namespace);
}

const char *pool_class_name(enum pool_class class); /* "interactive" ... */
const char *pool_mode_name(enum pool_mode mode);
const char *capacity_type_name(enum capacity_type type);
const char *stage_name(enum stage stage); /* "provision" ... "load" */
