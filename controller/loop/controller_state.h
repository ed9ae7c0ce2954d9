/*
 * A running controller: the parts that its modules keep, each in a struct of
 * its module's header. A module writes its own; others read plain fields and
 * change them through its functions. For the files of this room.
 */
#pragma once
#include "base/log.h"
#include "controller/cluster/event.h"
#include "controller/cluster/model.h"
#include "controller/cluster/verbs.h"
#include "controller/loop/activator.h"
#include "controller/loop/clock_skew.h"
#include "controller/loop/consolidation.h"
#include "controller/loop/controller.h"
#include "controller/loop/drain.h"
#include "controller/loop/engine_moves.h"
#include "controller/loop/events.h"
#include "controller/loop/fleet.h"
#include "controller/loop/follower.h"
#include "controller/loop/group_operations.h"
#include "controller/loop/headroom.h"
#include "controller/loop/leader.h"
#include "controller/loop/machine_cancel.h"
#include "controller/loop/marks.h"
#include "controller/loop/pool_signals.h"
#include "controller/loop/prefetch.h"
#include "controller/loop/publish.h"
#include "controller/loop/scale_down.h"
#include "controller/loop/scale_up.h"
#include "controller/loop/slots.h"
#include "controller/loop/start_progress.h"
#include "controller/loop/tick.h"
#include "controller/loop/waiting.h"
#include "controller/loop/workload_scale.h"
#include "controller/policy/decide.h"
#include "state/history.h"

struct metering;
struct objects;
struct status_target;

/* One pool of the fleet while we run it. */
struct live_pool {
	char key[130]; /* NAMESPACE/NAME */
	size_t index;
	struct controller *controller;
	struct pool_signals signals;
	struct pool_view view; /* of the last look, in the tick's arena */
	struct schedule_state schedule;
	millis schedule_asked;
	int64_t finished; /* work pods that ended since the last tick; start_progress.c counts them */
	struct workload_scale scale;
	struct placeholder placeholder;
	struct buffer buffer;
	struct prefetch prefetch;
	struct fallback fallback;
	int64_t unplaced;  /* of the plan that is carried out: replicas for free GPUs that have none yet */
	int64_t starving;  /* replicas whose release found no node; scale_down.c writes it */
	char blocked[320]; /* why, with a remedy, where a budget holds them, or a pod that has no other place; "" else
			    */
	bool was_blocked;  /* at the plan before */
	struct start_timeouts timeouts;
	struct stage_times stages[STAGE_COUNT];
	struct stage_times sleep_times, wake_times; /* of its engines, in a share */
	struct share_hold share_hold;
	struct share_wait share_wait;
	struct size_change change;
	struct request_counts requests;
	bool is_blind; /* its signals are stale, or nothing was decided yet */
	/* clock_mono: they were too few, or did not add up, a moment ago: too little to shrink by. */
	millis unsure_until;
	bool has_queue;	 /* as much waited at the last decision as a replica runs at once */
	millis seen_at;	 /* when that was; wall time, 0: nothing was decided yet */
	bool is_new;	 /* what there is of its pods and marked nodes was not looked at yet */
	bool is_leaving; /* the next manifest ends it, or lets it act no more: it does not act already */
	struct pool_told told;
	size_t account; /* where metering.c found its account last */
};

struct controller {
	struct controller_settings settings;
	struct loop *loop;
	struct api *api;
	const struct clock *clock; /* the settings', less what it jumped */
	struct clock_skew skew;
	struct cluster *cluster;
	struct events *events;
	struct objects *objects;
	struct follower follower;
	struct status_target *statuses; /* of WarmPools, in no order */
	struct leader leader;

	/* The fleet in force: fleet.c opens and closes it. */
	struct manifest manifest;
	struct live_pool **pools;   /* in the order of the fleet */
	struct node_group **groups; /* likewise */
	struct group_context context;
	struct fleet fleet;

	struct starts starts;
	struct drains drains;
	struct marks marks;
	struct machine_cancels cancels;
	struct left_placeholders left;
	struct prefetch_end prefetch_end;
	struct slots slots;
	struct engine_moves moves;
	struct activator activator;
	struct idle_nodes idle;
	struct consolidation consolidation; /* of the pool that takes any */
	struct interruptions interruptions;
	struct watch_gap gap;
	struct recording recording;
	bool targets_changed; /* pods came or went since the sources were told */
	bool has_orders;      /* a cloud took some, and pods were not told yet */

	/* What was decided last: tick.c writes it. */
	struct history *history; /* NULL unless we lead */
	struct policy_state *memory;
	struct snapshot snapshot;
	struct plan plan;
	bool has_decided;
	struct tick_state tick;
	struct waiting waiting;
	int64_t spans; /* of starts so far */

	struct metering *metering;
	struct published published;
	struct publishing publishing;

	bool is_stopping;
	void (*closed)(void *user);
	void *closed_user;
	struct timer closing;
};

static inline const struct fleet_spec *fleet_of(const struct controller *c)
{
	return &c->manifest.fleet;
}

static inline int64_t replicas_on_node(const struct controller *c, size_t pool, size_t group)
{
	return replicas_per_node(&fleet_of(c)->groups[group], &fleet_of(c)->pools[pool]);
}

/* We lead, by our own clock, at this moment. */
static inline bool leader_may_act(const struct controller *c)
{
	return c->leader.state == STATE_LEADING && !c->is_stopping &&
	       (!c->leader.lease || lease_is_held(c->leader.lease));
}

/* Its manifest, and the next one, let us change what the pool has. */
static inline bool pool_may_act(const struct controller *c, size_t pool)
{
	return fleet_of(c)->pools[pool].mode == MODE_ACT && !c->pools[pool]->is_leaving;
}

/* Groups, drains and workloads are driven from the loop, once for all that asked; `user` is the controller. */
static inline void act_soon(void *user)
{
	struct controller *c = user;

	if (c->tick.is_drive_due || c->leader.state != STATE_LEADING || c->is_stopping)
		return;
	c->tick.is_drive_due = true;
	timer_start(c->loop, &c->tick.drive, 0, c->tick.drive_now);
}

/* Placeholders hold what is warm; somebody else scales the workload. */
static inline bool is_held(const struct controller *c, size_t pool)
{
	return c->manifest.pools[pool].spec.workload.warm == WARM_PLACEHOLDERS;
}

/* Another autoscaler keeps warm nodes free; somebody else scales the workload. */
static inline bool is_buffered(const struct controller *c, size_t pool)
{
	return c->manifest.pools[pool].spec.workload.warm == WARM_BUFFER;
}

/* It serves the GPU pods that no other pool owns. */
static inline bool takes_any(const struct controller *c, size_t pool)
{
	return fleet_of(c)->pools[pool].class == CLASS_ANY;
}

/* The pods themselves are the work: nothing is scraped, places are bought for them. */
static inline bool runs_work(const struct controller *c, size_t pool)
{
	return c->manifest.pools[pool].spec.signals.engine == SOURCE_PODS;
}
