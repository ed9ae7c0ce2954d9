/*
 * Objects of a live cluster, by lists in pages, read only: each as the tree
 * that a file of it would give, with the parts that verbs read and no others
 * (managed fields, images of nodes and most of status are never kept).
 */
#pragma once
#include "base/yaml.h"
#include "controller/commands/cluster_args.h"

struct object_kind {
	const char *api_version, *kind, *plural;
	bool is_namespaced, is_optional; /* optional: a kind that not every cluster has, or that may be forbidden */
};

/* The place, in a list of kinds, of the templates of nodes that providers name. */
#define OBJECT_KIND_TEMPLATES                 \
	{                                     \
		NULL, NULL, NULL, false, true \
	}

struct object_reader {
	const struct object_kind *kinds; /* nodes before pods, which are taken by where they stand */
	size_t count;
	struct arena *arena; /* of the trees */
	/* Pods that a workload made only where they ask for GPUs, or stand on a node that has them. `times`: as many
	 * objects that differ in nothing but what makes each its own (name, node, token) where pods are joined, else 1.
	 */
	void (*take)(void *user, const struct yaml_node *object, size_t times);
	bool joins_pods; /* what 50,000 pods cost is then what their templates cost; without times and conditions */
	/* A kind that is there could not be read, or may not be. True: it is left out; else the reading ends with that
	 * error. */
	bool (*leaves_out)(void *user, const struct object_kind *kind, const struct error *why);
	void *user;
};

bool cluster_objects_read(const struct object_reader *r, const struct cluster_args *o, struct error *e) MUST_USE;
