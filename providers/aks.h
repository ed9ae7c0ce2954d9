/* What a node group on AKS is to the provider: the settings of its block. */
#pragma once
#include "base/arena.h"
#include "base/error.h"

struct aks_settings {
	const char *subscription, *resource_group, *cluster;
	const char *pool;	      /* NULL: named as the node group */
	const char *resource_manager; /* NULL: the environment's cloud */
};

/* Pure: whether the Resource Manager may be shown our token is asked of the environment at every call. */
bool aks_read_settings(const char *json, struct arena *a, struct aks_settings *out, struct error *e) MUST_USE;
