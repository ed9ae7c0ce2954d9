/*
 * Who leads: a Lease as client-go keeps it. Whether another's lease ran out
 * is judged by our own clock, which also runs while the machine sleeps, from
 * when its record last changed.
 * We stop leading at our own renew deadline, before anyone else may begin.
 */
#pragma once
#include "controller/cluster/api.h"

#define LEASE_ADDRESS "preheat.dev/address" /* annotation: where the leader's API is */

struct lease;

struct lease_setup {
	struct api *api;
	const char *name_space, *name;
	const char *identity;  /* of this replica, unlike any other's; all texts are copied */
	const char *address;   /* told to followers; may be NULL */
	millis duration;       /* 0: 15 s; others wait so long after the last change, and so do we where none is told */
	millis renew_deadline; /* 0: 10 s; must be below `duration` */
	millis retry;	       /* 0: 2 s; must be below the deadline */
	/* Whether we may take one that is free or ran out; asked each time. NULL: always. */
	bool (*may_take)(void *user);
	void (*on_won)(void *user);
	void (*on_lost)(void *user, const char *why); /* at once, before anything else is called */
	void (*on_holder)(void *user);		      /* someone else holds it now, or nobody; may be NULL */
	void *user;
};

/* NULL with ERROR_INVALID for times that cannot work. Starts at once. */
struct lease *lease_open(const struct lease_setup *s, struct error *e) MUST_USE;
/*
 * Stops, and gives the lease back where we hold it, so that the next need not wait. on_lost comes first. `closed` comes
 * exactly once, from the loop; the lease is freed then.
 */
void lease_close(struct lease *l, void (*closed)(void *user), void *user);

bool lease_is_held(const struct lease *l);
const char *lease_holder(const struct lease *l);	 /* "" when nobody */
const char *lease_holder_address(const struct lease *l); /* "" when it told none */
int64_t lease_transitions(const struct lease *l);
/* When its record was last seen to change, as loop_now(); 0: not yet. */
millis lease_changed_at(const struct lease *l);
const struct error *lease_trouble(const struct lease *l); /* of the last try; ERROR_NONE when it went well */
