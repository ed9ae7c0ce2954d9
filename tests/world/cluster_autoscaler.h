/*
 * A Cluster Autoscaler on a node group, as its code acts with the documented defaults: it scans each 10 s; it launches
 * what pending pods need beyond machines on their way; it ends a machine that no pod has used for 10 minutes, none
 * within 10 minutes of a launch, lowering the size with it, down to its own minimum. Machines whose pods could move
 * it leaves alone here.
 */
#pragma once
#include "tests/world/world.h"

/* From now on, on that group; NULL: it is uninstalled. Call it with NULL before world_end(). */
void cluster_autoscaler_on(struct cloud_group *g, int64_t min, int64_t max);
