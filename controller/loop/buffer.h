/*
 * Headroom as a CapacityBuffer (autoscaling.x-k8s.io) of the serving
 * workload, for clusters whose nodes another autoscaler brings: it keeps room
 * for so many more of its pods. In the newest version that the server knows.
 */
#pragma once
#include "controller/cluster/verbs.h"

struct controller;

enum { BUFFER_NAME_MAX = 219 };

struct buffer {
	struct plural_call lookup;
	struct object_call call;
	struct buf body;
	char name[BUFFER_NAME_MAX + 1];
	size_t version; /* of those that we know, the one asked for */
	bool is_found, is_calling;
	int64_t wanted, asked, is;   /* chunks; ABSENT: not known */
	millis told_at, quiet_until; /* loop_now */
};

/* Replicas that room is kept for; nothing for pools that are warmed otherwise. */
void buffer_want(struct controller *c, size_t pool, int64_t replicas);
void buffer_drive(struct controller *c);
void buffer_stop(struct controller *c); /* cancels the calls under way */
bool buffers_are_idle(const struct controller *c);
