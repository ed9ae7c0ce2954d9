/*
 * Brings a node group's cloud to what is wanted of it (node_group.h), by one
 * operation at a time, and looks at it. Each operation is on disk before it
 * is sent. A lost answer is never guessed: the group is looked at, and what
 * is missing is asked for again with the same token.
 */
#pragma once
#include "controller/loop/node_group.h"

/* How a group's cloud is reached; what is pointed to outlives the group. */
struct group_access {
	const struct provider_ops *ops;
	struct provider *provider;
	int64_t (*calls)[ERROR_INTERNAL + 1]; /* a provider_counts */
	struct throttle *throttle;	      /* of the account */
	bool lacks_standby;		      /* as the policy remembers it */
	const char *settings;		      /* JSON; outlives the group */
};

void node_group_open(struct node_group *g, const struct group_context *context, size_t index,
		     const struct group_access *access);
/* An operation that was begun in an earlier life goes on: `began` is when it was asked for, by the wall. */
void node_group_resume(struct node_group *g, const char *token, const char *operation, millis began);
/* Looks again unless a look is under way. */
void node_group_look(struct node_group *g);
/* Something happened there: what a look that is under way shows may be from before. */
void node_group_look_anew(struct node_group *g);
/* Sends what is wanted, if nothing stands in the way. */
void node_group_drive(struct node_group *g);
/* The change under way goes no further; it may have been done. What is wanted of it by the next plan is asked for
 * again. */
void node_group_cut(struct node_group *g);
/* Cancels what is under way; node_group_is_idle() then becomes true from the loop. */
void node_group_stop(struct node_group *g);
/* The same for a group that is not ours any more. If we may still act, its cloud may choose among all of its machines
 * again before it is idle, so that what others do there is not held up by us. */
void node_group_hand_over(struct node_group *g);
bool node_group_is_idle(const struct node_group *g);
/* Records that nothing is protected there by us any more, where that could not be recorded at once. To be repeated
 * while it fails: a next life would take what others protect for ours. */
bool node_group_forget_guard(struct node_group *g, struct error *e) MUST_USE;
void node_group_close(struct node_group *g);
