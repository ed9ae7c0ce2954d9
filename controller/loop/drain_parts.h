/* What the files of draining share; nobody else includes this. */
#pragma once
#include "controller/loop/parts.h"

enum drain_step {
	DRAIN_MARK,   /* cordon and taint */
	DRAIN_EVICT,  /* until nothing is left that counts */
	DRAIN_REMOVE, /* the cloud was asked */
	DRAIN_LEND,   /* empty of the pool's pods: open to those that borrow */
	DRAIN_UNMARK, /* abandoned: back to work */
	DRAIN_SHOWN,  /* written; until the watch shows it */
	DRAIN_OVER
};

/* What is written on a node: that it goes, that it is lent, neither. */
enum drain_mark { MARK_ON, MARK_LENT, MARK_OFF };

enum { EVICTIONS_AT_ONCE = 8, DRAIN_IS_BLIND = -1 };

struct pod_eviction {
	struct eviction call;
	struct drain *drain; /* NULL: one pod alone */
	struct controller *controller;
	struct pod_eviction *next; /* of lone ones */
	char namespace[64], pod[254], uid[37];
	bool is_busy;
	millis quiet_until; /* loop_now; the pod was told to go */
};

struct drain {
	struct controller *controller;
	struct drain *next;
	char node[254], machine[MACHINE_ID_MAX + 1];
	size_t pool;
	int group;
	enum drain_fate fate;
	enum drain_step step;
	millis since;		       /* clock_mono; of the step that waits */
	millis quiet_until, marked_at; /* loop_now */
	enum drain_mark mark;	       /* the last that was sent */
	struct node_change change;
	struct node_taint taint;
	struct verb_pair annotation, labels[2];
	bool is_marking, was_marked;
	struct pod_eviction evictions[EVICTIONS_AT_ONCE];
	int in_flight;
	int last_reason; /* enum drain_reason that was told, or DRAIN_IS_BLIND */
	bool has_complained;
	bool is_stray; /* a mark that was left over, no drain of ours */
};

/* The drain of a node that is not over; NULL without. */
struct drain *drain_of(const struct controller *c, const char *node);
/* A new one; its step is DRAIN_MARK. */
struct drain *drain_add(struct controller *c, const struct node *n);

/* drain_mark.c: begins the write; the drain's step goes on when it is answered. */
void drain_mark(struct drain *d, enum drain_mark mark);
const char *drain_fate_name(enum drain_fate fate);
/* As the mark on the node says. */
enum drain_fate drain_fate_of(const struct node *n);

/* drain_evict.c: asks what may go to go. True when the node is empty of all that counts. */
bool drain_evict(struct drain *d, const struct node *n);
void drain_evictions_cancel(struct drain *d);
void drain_evict_pods_cancel(struct controller *c); /* those outside of any drain */
/* Replicas of the drain's pool that serve on the node. */
int64_t drain_serving(const struct drain *d, const struct node *n);
/* The pool whose pods stand there, for a node that was found marked. */
size_t drain_pool(const struct controller *c, const struct node *n);
/* Runs, or will. */
bool machine_is_wanted(const struct machine *m);

/* drain_adopt.c: marks of ours on nodes that nobody drains any more are taken off. */
void drains_unmark_strays(struct controller *c);
