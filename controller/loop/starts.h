/*
 * Replicas on their way, from asking to serving, and what became of them.
 * Pure bookkeeping: machines, nodes and pods tell how far they are, and the
 * stages that end become events for the policy, in milliseconds of their
 * arrival. Nothing here survives a restart: it is found again from the
 * cloud, the nodes and the pods.
 */
#pragma once
#include "base/arena.h"
#include "controller/policy/snapshot.h"

enum { MACHINE_ID_MAX = 127, POD_UID_MAX = 39 };

struct start {
	size_t pool;   /* of the fleet */
	int64_t group; /* position among the pool's groups */
	enum start_kind kind;
	enum stage stage;
	millis asked_at, stage_since;
	char machine[MACHINE_ID_MAX + 1]; /* "": none known yet */
	millis bound_at;		  /* since when it is known */
	char pod[POD_UID_MAX + 1];	  /* "": none yet */
	bool ends_at_device;		  /* a place for work pods, not a replica that loads a model */
	bool is_first;			  /* its machine stood by and has never run */
	bool is_swap;			  /* for one that serves in a dearer group: it is not missed where it fails */
	bool is_found;			  /* its machine was asked for by others, for all that is known */
	bool is_adopted;		  /* found, not asked for by us: stages before it was found tell nothing */
	bool has_served;		  /* its pod was ready, and is not any more */
};

struct start_event {
	size_t pool;
	struct event_input event;
};

struct starts {
	struct start *items; /* oldest first */
	size_t count, room;
	struct start_event *events; /* since starts_events_taken */
	size_t event_count, event_room;
	/* Told each of its events when it comes; at: its end, 0 for a refusal. May be NULL. */
	void (*heard)(void *user, const struct start *s, const struct event_input *event, millis at);
	void *user;
};

/* When a machine's node passed its stages, 0 where it has not. */
struct node_stages {
	millis registered, ready, device;
};

/* When a serving pod passed its stages, 0 where it has not. */
struct pod_stages {
	const char *uid;
	millis scheduled, started, ready;
};

void starts_release(struct starts *s);
/* The time of day jumped: what is on its way is as old as before. */
void starts_shift(struct starts *s, millis by);

/* `count` more, in the stage that their kind begins with. Returns the first; pointers last until the next call. */
struct start *starts_ask(struct starts *s, const struct start *like, int64_t count);

/*
 * Gives like->machine to the oldest starts of `kind` in like's pool and group that have none, at most `places`, and
 * makes them like->kind: a place that was asked for cold and is woken starts as one that wakes. With like->is_found
 * those asked for since like->asked_at, when the machine was launched, are found. Returns how many.
 */
int64_t starts_bind_machine(struct starts *s, const struct start *like, enum start_kind kind, int64_t places);
/* The start waits for another machine, from now on. */
void starts_unbind_machine(struct starts *s, size_t index, millis now);
bool starts_know_machine(const struct starts *s, const char *machine);
/* The start that waits for a pod on this machine, else a placement of the group; NULL when none does. */
struct start *starts_bind_pod(struct starts *s, size_t pool, int64_t group, const char *machine, const char *uid);
struct start *starts_of_pod(struct starts *s, const char *uid);

/* Moves every start on the machine to the stage that its node has reached. */
void starts_follow_node(struct starts *s, const char *machine, const struct node_stages *n);
/* The same for the start of one pod; a ready pod ends it. */
void starts_follow_pod(struct starts *s, const struct pod_stages *p);
/* A machine that was to be stopped is stopped: its refills end. */
void starts_machine_stopped(struct starts *s, const char *machine, millis at);

/* Ends starts with an event: EVENT_REFUSED with the kind of error, or EVENT_STUCK. ERROR_NONE: EVENT_MISSED, others of
 * the group may have what it did not get. */
void starts_refuse(struct starts *s, size_t index, enum error_kind why);
void starts_stuck(struct starts *s, size_t index, millis at);
/* Ends it without an event: we cancelled it, or never asked. */
void starts_drop(struct starts *s, size_t index);
/* Index of the youngest below `below` of the pool, group and kind of `like`, of those with is_found only such as were
 * asked for before; `count` when there is none. */
size_t starts_youngest(const struct starts *s, size_t below, const struct start *like, millis found_before);

void starts_add_event(struct starts *s, size_t pool, const struct event_input *event);
void starts_events_taken(struct starts *s);

/* Those of one pool as the policy sees them, alike ones as one row, in the arena. `without_fallen`: but for those whose
 * pods were ready before. */
struct start_input *starts_show(const struct starts *s, size_t pool, bool without_fallen, struct arena *a,
				size_t *count);
