/*
 * Who acts: one of several replicas holds the Lease and leads. Leading
 * begins with the history and the fleet, and ends once nothing of ours is
 * under way; another manifest is taken up in between.
 */
#pragma once
#include "base/error.h"
#include "base/net/loop.h"
#include "controller/cluster/lease.h"
#include "controller/manifest/manifest.h"

struct controller;

enum role_state {
	STATE_FOLLOWING, /* somebody else leads, or nobody yet */
	STATE_LEADING,
	STATE_SETTLING, /* stopped acting; goes on once nothing is under way */
};

struct leader {
	struct lease *lease; /* NULL: none is needed, or it is closed */
	enum role_state state;
	bool may_lead; /* we hold the lease, or need none */
	int64_t term;
	millis since;	    /* loop_now */
	struct timer timer; /* until all is quiet, or the cluster is seen */
	struct timer awake; /* without a lease: moves `until` on while the process does not stand still */
	millis until;	    /* loop_now; writes leave before */
	bool has_next;
	struct manifest next; /* to be used with the next tick, or once all is quiet */
	struct arena next_arena;
};

bool leader_open(struct controller *c, struct error *e) MUST_USE;
/* Stops acting at once: no writing call is begun, those in flight are cancelled. */
void leader_stop_acting(struct controller *c, const char *why);
/* Leads, if it may and is ready to. */
void leader_go_on(struct controller *c);
/* The manifest in force from the next tick on. */
const struct manifest *leader_manifest(const struct controller *c);
/* Another manifest, in an arena that is taken over: in force with the next tick (fleet_change.h), or once what is under
 * way has stopped when it has no pools. NULL: the same goes on. */
void leader_use_manifest(struct controller *c, const struct manifest *m, struct arena *held);
