/* What the files of draining share; nobody else includes this. */
#pragma once
#include "controller/loop/parts.h"

enum drain_step {
	DRAIN_MARK,   /* cordon and taint */
	DRAIN_EVICT,  /* until nothing is left that counts */
	DRAIN_REMOVE, /* the cloud was asked */
	DRAIN_UNMARK, /* abandoned: back to work */
	DRAIN_OVER
};

enum { EVICTIONS_AT_ONCE = 8 };

struct pod_eviction {
	struct eviction call;
	struct mark_call mark;
	struct verb_pair cost;
	struct drain *drain; /* NULL: one pod alone */
	struct controller *controller;
	struct pod_eviction *next; /* of lone ones */
	char namespace[64], pod[254], uid[37];
	bool is_busy, is_marked;
};

struct drain {
	struct controller *controller;
	struct drain *next;
	char node[254], machine[MACHINE_ID_MAX + 1];
	size_t pool;
	int group;
	enum drain_fate fate;
	enum drain_step step;
	millis since;		       /* clock_mono */
	millis quiet_until, marked_at; /* loop_now */
	struct node_change change;
	struct verb_pair annotation, label;
	bool is_marking;
	struct pod_eviction evictions[EVICTIONS_AT_ONCE];
	int in_flight;
	int last_reason; /* enum drain_reason that was told */
	bool has_complained;
};

/* The drain of a node that is not over; NULL without. */
struct drain *drain_of(const struct controller *c, const char *node);
/* Asks what may go to go. True when the node is empty of all that counts. */
bool drain_evict(struct drain *d, const struct node *n);
/* The pool whose pods stand there, for a node that was found marked. */
size_t drain_pool(const struct controller *c, const struct node *n);
/* Runs, or will. */
bool machine_is_wanted(const struct machine *m);
