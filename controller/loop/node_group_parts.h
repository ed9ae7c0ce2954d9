/* What the files of a node group share; nobody else includes this. */
#pragma once
#include "controller/loop/node_group.h"

/* Position of a fleet's group among a pool's; -1 when the pool does not name it. */
int64_t pool_position(const struct fleet_spec *fleet, size_t pool, size_t group);
/* The first pool that names the group. */
size_t first_pool(const struct fleet_spec *fleet, size_t group);
/* Runs, or will: counts against the size asked for. */
bool machine_counts(const struct machine *m);
int64_t machines_alive(const struct node_group *g);

/* After a look: the operation under way is over, or its answer was lost and it is sent again. */
void operation_settle(struct node_group *g);
void operation_forget(struct node_group *g);
/* Notes the failure, and when to try again. */
void group_call_failed(struct node_group *g, const struct provider_call *c);
/* Looks after so long, in the world's time. */
void node_group_plan_look(struct node_group *g, millis after);
