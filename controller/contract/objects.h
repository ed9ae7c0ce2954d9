/* Objects of a cluster as values, read out of their trees; what is absent or of another form is "", UNSAID, NULL. */
#pragma once
#include "controller/contract/contract.h"

#include <string.h>

enum { UNSAID = -1 }; /* a number that is not written */

struct toleration {
	const char *key, *relation, *value, *effect; /* "" where not written; relation (the operator) "Equal" then */
	const struct yaml_node *at;
};

struct requirement {
	const char *key, *relation; /* the operator */
	const char *const *values;
	size_t count;
	const struct yaml_node *at;
};

/* All requirements of a term must hold, one of the terms must. */
struct term {
	struct requirement *items;
	size_t count;
};

struct gpu_ask {
	const char *resource;
	int64_t requested, limit; /* UNSAID: not written, or no whole number; requests not written are the limits */
	const char *no_number;	  /* what is written in place of a whole number; NULL */
};

struct probe {
	const struct yaml_node *at; /* NULL: none */
	int64_t allows_s;	    /* until it gives up */
};

struct container {
	const char *name;
	const struct yaml_node *at, *resources;
	struct gpu_ask *gpus;
	size_t gpu_count;
	int64_t cpu_milli, memory_milli; /* requested; UNSAID */
	struct probe readiness, liveness, startup;
	const struct yaml_node *args; /* command and args, of what is served; NULL */
	const struct yaml_node *command;
	const struct yaml_node *claims; /* the first of those it uses; NULL: none */
	bool is_init, stays;		/* stays: an init container that runs on */
	bool has_gpus;			/* it asks for some, or uses a claim of some */
};

struct object {
	struct contract_object ref; /* first: a report points to it */
	struct schema_labels labels, annotations;
};

/* A pod template, or a pod. */
struct workload {
	struct object object;
	const char *part; /* "worker" of a JobSet; "" */
	struct schema_labels labels, annotations;
	const struct yaml_node *spec, *job; /* of the pod; of the job around it, NULL without */
	const struct yaml_node *claims;	    /* the first of resourceClaims; NULL: none */
	struct container *containers;
	size_t container_count;
	struct toleration *tolerations;
	size_t toleration_count;
	struct schema_labels node_selector;
	const struct yaml_node *selector_at;
	struct term *terms;
	size_t term_count;
	bool spreads_zones;
	const char *priority_class, *node;	   /* "" */
	int64_t grace_s, replicas, ttl_s, backoff; /* UNSAID */
	bool is_daemon, is_job, is_owned;	   /* owned: made by something that is judged itself */

	/* What follows from all objects together: resolve.h. */
	int pool;		   /* of the manifest, -1: none */
	const char *gpu_resource;  /* or the DeviceClass of what it claims; NULL: asks for none */
	const char *claim_absent;  /* it claims what is not among the objects; NULL: nothing */
	const char *class_unknown; /* it claims devices that may be no GPUs; NULL: none */
	int64_t gpus;		   /* whole devices of that resource */
	int64_t cpu_milli, memory_milli;
};

/* A node, or what makes nodes. */
struct machine {
	struct object object;
	struct schema_labels labels;
	struct block_taint *taints;
	size_t taint_count;
	const struct yaml_node *taints_at;
	int64_t cpu_milli, memory_milli, gpus; /* allocatable; UNSAID */
	bool is_template;		       /* a NodePool */
};

/* Something that chooses how many or how few: a PodDisruptionBudget. */
struct budget {
	struct object object;
	struct schema_labels selector;
	bool selects_by_labels;			     /* by matchLabels alone */
	const char *min_available, *max_unavailable; /* "" */
	int64_t kept;				     /* min_available as a number; UNSAID */
	const struct yaml_node *at;
};

/* What chooses pods by labels: a Service or InferencePool for requests, a NetworkPolicy for traffic. */
struct choice {
	struct object object;
	struct schema_labels selector;
	bool selects_by_labels; /* by labels alone */
	bool is_open;		/* a NetworkPolicy that bars nobody who comes */
	const struct yaml_node *at;
};

struct scaler {
	struct object object;
	const char *maker_kind, *maker; /* its controller; "": none */
	const char *target_kind, *target;
	const struct yaml_node *at;
};

/* An InferenceService or LLMInferenceService, and the workload that KServe makes for it. */
struct service {
	struct object object;
	const char *workload_kind, *workload;
};

/* A ResourceClaim, or the template of some: devices by Dynamic Resource Allocation. */
struct device_claim {
	struct object object;
	const char *gpu_class; /* the DeviceClass of its GPUs; NULL: it asks for none, or of a class without the name */
	const char *other_class; /* one without the name; NULL: none */
	int64_t gpus;
	bool is_uncounted; /* it takes all of a machine, or a number that cannot be */
};

struct priority {
	struct object object;
	int64_t value;
};

struct quota {
	struct object object;
	const char *resource;
	int64_t gpus;
	const struct yaml_node *at;
};

/* An object in which what it is judged by cannot be found. */
struct shapeless {
	struct object object;
	const char *path, *allowed; /* where that would be: "spec.template.spec"; and what */
	const struct yaml_node *at; /* what is there; NULL: nothing */
};

struct contract {
	struct arena *arena;
	millis now;
	const struct manifest *manifest;
	bool is_whole, has_broken_pools;
	size_t objects;
	struct workload *workloads;
	size_t workload_count;
	struct machine *machines;
	size_t machine_count;
	struct budget *budgets;
	size_t budget_count;
	struct scaler *scalers;
	size_t scaler_count;
	struct service *services;
	size_t service_count;
	struct choice *routes, *barriers; /* of requests; of traffic */
	size_t route_count, barrier_count;
	struct device_claim *claims;
	size_t claim_count;
	struct priority *priorities;
	size_t priority_count;
	struct quota *quotas;
	size_t quota_count;
	struct shapeless *shapeless;
	size_t shapeless_count;

	struct group_facts *groups; /* one per fleet.groups */
	struct object *pools;	    /* one per fleet.pools */
};

/* Room for one more record at the end of a list, doubled at powers of two. */
static inline void *contract_grow(struct arena *a, void *items, size_t count, size_t size)
{
	if (count & (count - 1))
		return items;
	void *grown = arena_alloc(a, count ? 2 * count : 1, size);
	if (count)
		memcpy(grown, items, count * size);
	return grown;
}
#define ADD(a, items, count, type) \
	(*(((items) = contract_grow((a), (items), (count), sizeof(type))), &(items)[(count)++]))

const char *label_of(const struct schema_labels *l, const char *key); /* NULL without */
bool labels_match(const struct schema_labels *selector, const struct schema_labels *labels);
bool same_namespace(const struct object *a, const struct object *b); /* where one is not said: yes */
/* For messages: what objects call themselves may hold anything, escapes of a terminal too. */
const char *text_visible(const char *text, struct arena *a);
