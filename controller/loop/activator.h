/*
 * Requests of pools that have nobody to serve them: where no replica of a pool is awake, its Service leads here, by an
 * EndpointSlice of ours beside those of the cluster. They are held (base/net/relay.h), count as waiting for the pool,
 * and are passed on once a replica serves; as soon as the Service knows one, the slice goes, and with it this program
 * from the way.
 *
 * A Service without a selector, of a pool in a share, is a route: its only slice is ours at all times, and leads here
 * or to the engines of the pool that serve. So go requests where engines of several pools are in one pod.
 *
 * Whatever takes the last replica from the Service asks activator_covers() first.
 */
#pragma once
#include "base/net/loop.h"
#include "controller/cluster/pod.h"
#include "controller/cluster/verbs.h"

#include <stdint.h>

struct actor;
struct controller;
struct door;
struct door_space;
struct history;

/* Ports of doors, for network policies: deploy/base/network.yaml, the chart's network.yaml. */
enum { ACTIVATOR_PORT_FIRST = 9500, ACTIVATOR_PORT_LAST = 9755 };

/* Slices of ours are looked for, and deleted, one call at a time. */
struct strays {
	struct controller *controller;
	struct door_space *first, *at;
	struct object_call call;
	bool is_calling;
	char namespace[64], name[254], body[160]; /* name "": all of the namespace are read */
};

struct activator {
	struct door *first;
	struct strays strays;
	struct timer timer;
	millis passes_until; /* loop_now, once we leave */
};

/* Requests of the pool that are held here; 0 where it has no activator. */
int64_t activator_waiting(const struct controller *c, size_t pool);
/* On becoming the leader, with pools or without: slices of ours that lead to a door that is no longer there go. The
 * history, which may be NULL, tells whose pools there were. */
void activator_adopt(struct controller *c, struct history *h);
/* The replica may leave the pool's Service: another stays, or the Service leads here too, or the pool has no activator.
 * Where it does not yet, that is brought about. */
bool activator_covers(struct controller *c, size_t pool, const struct pod *leaving);
enum activator_route {
	ROUTE_UNREAD,	  /* its Service and that one's slices were not read yet */
	ROUTE_NONE,	  /* it has no activator */
	ROUTE_SELECTS,	  /* its Service has a selector: the cluster writes slices of its pods */
	ROUTE_SHARED,	  /* a slice of somebody else leads to pods, too */
	ROUTE_WRONG_PORT, /* its Service has another port of pods than the pool */
	ROUTE_OURS,
	ROUTE_COUNT
};
enum activator_route activator_route(const struct controller *c, size_t pool);
/* The route is ours and does not lead to the engine; of an engine alone in its pod nothing but its label does. */
bool activator_leaves_out(const struct controller *c, size_t pool, const struct pod *p);
/* We stop acting for good; what a server has is still passed on, but not for ever. */
void activator_leave(struct controller *c);
bool activator_passes(const struct controller *c);
void activator_close(struct controller *c);

extern const struct actor activator_actor;
