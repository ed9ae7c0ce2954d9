/* How fast a node group may grow: faster growth is a fault, not demand. */
#pragma once
#include "controller/loop/node_group.h"

/* Machines that may be bought now of so many: the whole of a group once in GROWTH_SPAN. */
int64_t growth_allow(struct node_group *g, int64_t machines);
/* What was allowed and not bought does not count. */
void growth_give_back(struct node_group *g, int64_t machines);
/* The size that may be asked for at the very last: by `most`, of the manifest in force and the cloud, and by the
 * budgets. What is not granted is told. */
int64_t growth_clamp(struct node_group *g, enum provider_verb verb, int64_t desired, int64_t most);
