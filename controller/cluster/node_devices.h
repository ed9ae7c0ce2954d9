/*
 * How much of a whole GPU a unit of a resource is: MIG profiles and shared
 * (time-sliced) devices as NVIDIA's device plugin and its labels show them.
 */
#pragma once
#include "base/resource.h"
#include "controller/cluster/intern.h"

/*
 * All GPUs of a set, in thousandths of whole ones. The labels are those of the node; NULL: unknown, units are taken as
 * whole devices, MIG profiles by their name.
 */
int64_t devices_whole_milli(const struct label_set *labels, const struct resources *set);
