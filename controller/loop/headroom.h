/*
 * Warm capacity that the cluster holds for a pool beyond its replicas, as an
 * object of ours. Either placeholders: a Deployment whose low-priority pods
 * hold warm GPUs and have the serving image on disk, where the workload's
 * pods may run; real replicas pre-empt them. Those of a pool that is not
 * warmed so any more go, also of one that is no more; those of one that is
 * only watched, or paused, stay as they are. Or, for clusters whose nodes
 * another autoscaler brings, a CapacityBuffer (autoscaling.x-k8s.io) of the
 * workload, in the newest version that the server knows.
 */
#pragma once
#include "controller/cluster/verbs.h"

struct controller;

enum { HEADROOM_NAME_MAX = 219 };

/* Whose pods they are: a label on those that we make, its value after our Lease. */
#define KEEPER_LABEL "preheat.dev/keeper"
enum { KEEPER_MAX = 63 };
void keeper_label(const struct controller *c, char value[KEEPER_MAX + 1]);

struct placeholder {
	struct object_call call;
	bool is_calling;
	struct buf pod, body; /* the pod's spec without its number; the object on its way */
	char name[HEADROOM_NAME_MAX + 1];
	int64_t wanted, asked, is;   /* ABSENT: not known */
	millis read_at, quiet_until; /* loop_now */
	bool is_stale;		     /* what there is may differ from what was applied */
};

/* The Deployment of placeholders of a pool that is no more, one at a time. */
struct left_placeholders {
	struct controller *controller;
	struct object_call call;
	char namespace[64], name[HEADROOM_NAME_MAX + 1];
	bool is_calling, has_complained;
	millis quiet_until; /* loop_now */
};

struct buffer {
	struct plural_call lookup;
	struct object_call call;
	struct buf body;
	char name[HEADROOM_NAME_MAX + 1];
	size_t version; /* of those that we know, the one asked for */
	bool is_found, is_calling;
	int64_t wanted, asked, is;   /* chunks; ABSENT: not known */
	millis told_at, quiet_until; /* loop_now */
};

/* Wants what is decided and does not serve yet, of pools that are warmed so. */
extern const struct actor headroom_actor;
