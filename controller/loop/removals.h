/*
 * The machines of a node group that shall go, from the wish to what the cloud made of it: whose turn it is, what one
 * call names together, which are left alone after all. The size wanted falls with the wish, the size asked for with the
 * machine.
 */
#pragma once
#include "controller/loop/starts.h"
#include "providers/provider.h"

struct node_group;

/* A machine that shall go: PROVIDER_REMOVE, PROVIDER_STOP or PROVIDER_CANCEL. */
struct removal {
	char id[MACHINE_ID_MAX + 1];
	enum provider_verb verb;
	bool was_counted; /* the size wanted fell by it */
	int tries;	  /* asked for, and left alone */
	millis since;	  /* clock_mono; wished */
	millis named_at;  /* clock_mono; to the cloud, last */
};

/* Asks for the end of a machine; false when it was asked for already. What finds no room in standby is removed. */
bool node_group_remove(struct node_group *g, const char *machine, enum provider_verb how);
/* A machine that was to be cancelled stays, if no call has named it yet: of those the last; false when there is none.
 */
bool node_group_call_off(struct node_group *g, char machine[MACHINE_ID_MAX + 1]);
bool node_group_is_removing(const struct node_group *g, const char *machine);
/* The operation would end a machine whose node has joined since it was planned. */
bool node_group_names_joined(const struct node_group *g);

/* For node_group.c. */

/* Machines that the cloud still counts in its size and ours does not. */
int64_t removals_counted(const struct node_group *g);
/* Of them, on their way to standby: counted there already. */
int64_t removals_to_standby(const struct node_group *g);
/* Which kind is due; false when none is. A cancel goes before all others. */
bool removals_due(const struct node_group *g, enum provider_verb *verb);
/* Where one slow operation follows another, machines whose turn comes within a moment of each other share one. */
bool removals_gather(const struct node_group *g);
/* Fills in the operation that names those of a kind; true. */
bool removals_plan(struct node_group *g, enum provider_verb verb);
bool removal_is_over(const struct node_group *g, const struct removal *r);
/* Those that have come to pass, or never will, are none any more. */
void removals_settle(struct node_group *g);
/* A machine whose node joined while its turn was long in coming stays. */
void removals_keep_joined(struct node_group *g);
/* Those that the operation named and that the cloud left alone: once more, or, `for_good`, never. */
void removals_left_alone(struct node_group *g, bool for_good);
/* Where the size falls before those named are seen to go, it is seen as it was until they go. */
void removals_hold_size(struct node_group *g);
