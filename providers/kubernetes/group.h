/*
 * Groups whose machines are objects of the cluster, made and deleted by
 * another controller there: what karpenter.c, cluster_api.c and external.c
 * have in common. Each call is a few requests one after another through the
 * cluster's door; a repeated token lowers a size once.
 */
#pragma once
#include "providers/exchange.h"

/* The object whose replicas are the machines asked for. */
struct owner_object {
	bool has_replicas;
	int64_t replicas, min, max; /* max 0: not told */
	const char *resource_version;
	const char *operation;	/* the token of our last change of the size; "" without */
	bool is_paused;		/* its own controller leaves it alone */
	bool is_rolling;	/* its own controller replaces machines, or has not seen its last change yet */
	bool is_bounded;	/* for Cluster Autoscaler, which finds it by that */
	const char *topology;	/* its name in the topology of a Cluster; "": in none */
	const char *resized_by; /* by whom it has its size, as a phrase; "": by us, or not told */
};

/* How one kind is read: its fields, by kind. */
enum object_kind { OBJECT_NODE_POOL, OBJECT_MACHINE_DEPLOYMENT, OBJECT_NODE, OBJECT_KIND_COUNT };

/* Where the objects of one group are; texts live in the call's arena. */
struct object_group {
	const char *owner, *owner_plural; /* "/apis/karpenter.sh/v1/nodepools/gpu"; "NodePool", for messages */
	const char *list;		  /* "/apis/karpenter.sh/v1/nodeclaims" */
	const char *selector;		  /* of labels: "karpenter.sh/nodepool=gpu" */
	const char *name, *name_space;	  /* of the owner; "" without */
	const char *probe;		  /* an API group whose version is asked for first; NULL: none */
};

/* What the API server must let us do, as its roles name it. */
struct object_right {
	const char *api_group, *resource, *subresource, *verb, *purpose;
	bool is_of_owner; /* bound to the owner by name */
};

struct object_provider {
	enum object_kind kind;
	unsigned abilities;
	/* Of the settings; `version` is what the probe told, NULL before. False with ERROR_INVALID. */
	bool (*find)(struct provider_call *c, const char *version, struct object_group *out, struct error *e);
	/* What is wrong with an owner that is there: dynamic, paused. NULL: nothing is checked. */
	bool (*accepts)(const struct owner_object *o, struct error *e);
	const char *victim_annotation; /* put on a machine before the size falls, so that it is the one; NULL: none */
	bool deletes_victims;	       /* each is deleted by name once the size is lower */
	bool has_owner;		       /* false: nobody here is asked for a size */
	const struct object_right *rights;
	size_t right_count;
};

struct provider *object_provider_open(const struct object_provider *kind, const struct provider_setup *s,
				      struct error *e);
void object_provider_close(struct provider *p);

/* A name of an object, safe in a path. */
bool is_object_name(const char *name);
/* The same of a setting; `allowed`: what it names. ERROR_INVALID as provider_block.read has it. */
bool object_name_check(const char *key, const char *name, const char *allowed, struct error *e);

/* Settings of the blocks; each is read by its provider's file. Pure. */
struct karpenter_settings {
	const char *node_pool;
};
bool karpenter_read_settings(const char *json, struct arena *a, struct karpenter_settings *out,
			     struct error *e) MUST_USE;

struct cluster_api_settings {
	const char *deployment, *name_space;
};
bool cluster_api_read_settings(const char *json, struct arena *a, struct cluster_api_settings *out,
			       struct error *e) MUST_USE;

struct external_settings {
	const char *key, *value; /* of the label */
};
bool external_read_settings(const char *json, struct arena *a, struct external_settings *out, struct error *e) MUST_USE;
