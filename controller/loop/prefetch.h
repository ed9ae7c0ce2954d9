/*
 * The images of a pool's workload, pulled to a node while its drivers and
 * devices still come up: a pod without a GPU, whose containers have nothing
 * to run, for each machine of a start whose node is registered and offers no
 * GPU yet. The kubelet pulls an image before it starts a container, so one
 * that fails to start has pulled, too.
 *
 * Nothing is kept: the pod itself, under a name made of pool and node, says
 * that its node was seen to. It goes when the node's GPUs are there and it
 * has ended, when a pod of the pool runs there, when it is too old, and with
 * its pool or the pool's mode.
 */
#pragma once
#include "controller/cluster/verbs.h"

struct arena;
struct controller;

enum { PREFETCH_NAME_MAX = 63 };

/* What a pool does about its pods, one call at a time. */
struct prefetch {
	struct object_call call;
	bool is_calling;
	struct buf template; /* what their spec takes of the workload's; empty: not read, or nothing to pull */
	struct buf body;
	millis read_at;			  /* loop_now */
	char name[PREFETCH_NAME_MAX + 1]; /* of the pod made last */
	millis seen_until;		  /* so long the watch is given to show it; loop_now */
	millis pause, quiet_until;	  /* after a failure; loop_now */
	char why[320];			  /* what failed last; "": nothing */
};

/* The pod that is being taken away. */
struct prefetch_end {
	struct controller *controller;
	struct object_call call;
	bool is_calling;
	char namespace[64], name[254], body[80];
	millis quiet_until; /* loop_now */
};

extern const struct actor prefetch_actor;

/* Why images of the pool do not come ahead, one sentence in the arena; NULL: they do, or are not to. */
const char *prefetch_problem(const struct controller *c, size_t pool, struct arena *a);
