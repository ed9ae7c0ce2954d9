/* What the files of a node group share; nobody else includes this. */
#pragma once
#include "controller/loop/node_group.h"

enum { ATTEMPTS_MOST = 5 };

/* Position of a fleet's group among a pool's; -1 when the pool does not name it. */
int64_t pool_position(const struct fleet_spec *fleet, size_t pool, size_t group);
/* The first pool that names the group. */
size_t first_pool(const struct fleet_spec *fleet, size_t group);
/* Runs, or will: counts against the size asked for. */
bool machine_counts(const struct machine *m);
/* Stands by, or will. */
bool machine_stands_by(const struct machine *m);
int64_t machines_alive(const struct node_group *g);

static inline const struct group_spec *group_spec_of(const struct node_group *g)
{
	return &g->context->fleet->groups[g->index];
}

/* node_group_machines.c: what a look shows of machines, told to the starts. */
void machines_compare(struct node_group *g, const struct group_description *before);
/* Places on so many machines that we know only from the size asked for. */
void machines_adopt_unlisted(struct node_group *g, int64_t machines, enum start_kind kind);

/* node_group_size.c */
/* Takes over what others made of the sizes, and what failed. Nothing of ours is under way. */
void sizes_take_over(struct node_group *g);
/* Ends the starts that no machine can come for any more. */
void sizes_fit_starts(struct node_group *g);
/* Ends as many starts without a machine as wait for so many machines; ERROR_CANCELLED without telling. */
void sizes_refuse(struct node_group *g, bool is_standby, int64_t machines, enum error_kind why);
/* Never above max, unless others asked for more; never fewer stand by than are on their way there by a removal. */
void sizes_wish(struct node_group *g, int64_t machines);
void sizes_wish_standby(struct node_group *g, int64_t machines);
/* Machines that stand by and are still to come. */
int64_t standby_missing(const struct node_group *g);
/* The most that may be asked for. */
int64_t sizes_most(const struct node_group *g);
int64_t sizes_most_standby(const struct node_group *g);

/* node_group_change.c */
/* After a look: the operation under way is over, or its answer was lost and it is sent again. */
void operation_settle(struct node_group *g);
void operation_forget(struct node_group *g);
/* Notes the failure, and when to try again. */
void group_call_failed(struct node_group *g, const struct provider_call *c);
/* Looks after so long, in the world's time. */
void node_group_plan_look(struct node_group *g, millis after);

/* node_group_gate.c: what stands between any wish and the cloud */
/* Machines that may be bought now of so many. */
int64_t gate_growth(struct node_group *g, int64_t machines);
/* The size that may be asked for at the very last: by the manifest in force, the cloud's own bounds, and the budgets.
 */
int64_t gate_clamp(struct node_group *g, enum provider_verb verb, int64_t desired);

/* node_group_ongoing.c */
/* The change under way was answered, and goes on under that name. */
void ongoing_begin(struct node_group *g, const char *name);
/* After a look: over when the group is not busy any more, or when it has lasted for too long. */
void ongoing_settle(struct node_group *g);
void ongoing_forget(struct node_group *g);
/* Ends the intent of an operation, if there is a history. */
void intent_end(struct node_group *g, const char *token, const char *outcome);

/* node_group.c */
/* Which machines' nodes are not ready, with a call that is about to start; the arena is kept until its done(). */
void group_tell_unready(struct node_group *g, struct provider_call *c, struct arena *a);

/* node_group_failure.c */
/* What a look tells of launches that failed: the starts that waited are refused, and what is out of stock is noted. */
void failures_read(struct node_group *g);
/* Tells the pools whether the group has a standby tier, when that is news. */
/* Says once in the log that the cloud, or the manifest, lets us change nothing there. */
void refusal_tell(struct node_group *g);
void standby_tell(struct node_group *g);

/* node_group_removal.c */
/* The removals that have come to pass, or never will, are none any more. */
void removals_settle(struct node_group *g);
/* Those that the operation named and that the cloud left alone: once more, or, `for_good`, never. */
void removals_left_alone(struct node_group *g, bool for_good);
/* Which kind is due; false when none is. */
bool removals_due(const struct node_group *g, enum provider_verb *verb);
/* Fills in the operation; returns how many of its machines the cloud counts in its size. */
int64_t removals_take(struct node_group *g, enum provider_verb verb);
/* Where the size falls before those named are seen to go (AKS tells of a stop by the node alone), it is seen as it was
 * until they go: the fall is ours, and nobody else's. */
void removals_hold_size(struct node_group *g);
/* Machines that the cloud still counts in its size and ours does not. */
int64_t removals_counted(const struct node_group *g);
/* Of them, on their way to standby: counted there already. */
int64_t removals_to_standby(const struct node_group *g);
