/* The keys of a node group on EKS. Pure. */
#pragma once
#include "base/arena.h"
#include "base/error.h"

enum eks_launch { EKS_LAUNCH_CAPACITY, EKS_LAUNCH_INSTANCES };
enum eks_warm_pool { EKS_POOL_EXISTING, EKS_POOL_NODEGROUP, EKS_POOL_GROUP };

enum { EKS_TAGS = 10 };

struct eks_tag {
	const char *key, *value; /* value NULL: any */
};

struct eks_settings {
	const char *cluster, *nodegroup, *region;
	const char *auto_scaling_group; /* NULL: found by the node group, or by tags */
	const char *endpoint;		/* NULL: as the environment says, else public */
	struct eks_tag tags[EKS_TAGS];
	size_t tag_count;
	enum eks_launch launch;
	enum eks_warm_pool warm_pool;
	bool takes_tagged; /* also what is tagged for Cluster Autoscaler */
};

bool eks_read_settings(const char *json, struct arena *a, struct eks_settings *out, struct error *e) MUST_USE;
