/*
 * Which resources are GPUs, and how much of a whole one a unit is: MIG
 * profiles and shared (time-sliced) devices as NVIDIA's device plugin and
 * its labels show them.
 */
#pragma once
#include "controller/cluster/intern.h"

bool device_is_gpu(const char *resource);
/*
 * All GPUs of a set, in thousandths of whole ones. The labels are those of the node; NULL: unknown, units are taken as
 * whole devices, MIG profiles by their name.
 */
int64_t devices_whole_milli(const struct label_set *labels, const struct resources *set);

/* A quantity of Kubernetes in thousandths: "191690m" is 191690, "2Ki" 2048000. False, out untouched, when it is none.
 */
bool amount_milli(const char *text, int64_t *out);
