/* What the files of the contract share: objects as values, and the court. Nobody else includes this. */
#pragma once
#include "controller/contract/contract.h"

enum { UNSAID = -1 }; /* a number that is not written */

struct toleration {
	const char *key, *relation, *value, *effect; /* "" where not written; relation (the operator) "Equal" then */
	const struct yaml_node *at;
};

struct taint {
	const char *key, *value, *effect;
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
	int64_t requested, limit; /* UNSAID: not written, or no whole number */
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
	bool is_init, stays; /* stays: an init container that runs on */
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

	/* Settled before judging. */
	int pool;		  /* of the manifest, -1: none */
	const char *gpu_resource; /* NULL: asks for none */
	int64_t gpus;		  /* whole devices of that resource */
	int64_t cpu_milli, memory_milli;
};

/* A node, or what makes nodes. */
struct machine {
	struct object object;
	struct schema_labels labels;
	struct taint *taints;
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
	const struct yaml_node *at;
};

struct scaler {
	struct object object;
	const char *target_kind, *target;
	const struct yaml_node *at;
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

/* What is known of the machines of a node group. */
struct group_facts {
	const struct group_spec *spec;
	struct schema_label *labels;
	size_t label_count;
	bool has_all_labels; /* a node was seen: what it lacks is not there */
	const struct taint *taints;
	size_t taint_count;
	bool has_taints;		 /* seen; else what is usual */
	int64_t cpu_milli, memory_milli; /* UNSAID */
	const char *gpu;		 /* "A10G"; NULL: unknown */
	int64_t gpu_memory_mib;		 /* UNSAID */
	const char *source;		 /* "node gpu-1", "instance type g5.xlarge"; NULL: nothing is known */
};

struct contract {
	struct arena *arena;
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
	struct priority *priorities;
	size_t priority_count;
	struct quota *quotas;
	size_t quota_count;

	struct group_facts *groups; /* one per fleet.groups */
	struct object *pools;	    /* one per fleet.pools */
};

struct court {
	struct contract *contract;
	const struct contract_rule *rule;
	struct contract_violation *items;
	size_t count;
};

/* Room for one more record at the end of a list, doubled at powers of two. */
void *contract_grow(struct arena *a, void *items, size_t count, size_t size);
#define ADD(a, items, count, type) \
	(*(((items) = contract_grow((a), (items), (count), sizeof(type))), &(items)[(count)++]))

/* object.c: values out of trees; what is absent or of another form is "", UNSAID, NULL. */
const struct yaml_node *tree_at(const struct yaml_node *n, const char *path); /* "spec>template" */
const char *tree_text(const struct yaml_node *n, const char *path);
int64_t tree_count(const struct yaml_node *n, const char *path);
bool tree_truth(const struct yaml_node *n, const char *path);
struct schema_labels tree_labels(const struct yaml_node *n, const char *path, struct arena *a);
int64_t tree_amount(const struct yaml_node *n, const char *path); /* milli */
struct object object_read(const struct yaml_node *root, struct arena *a);
const char *label_of(const struct schema_labels *l, const char *key); /* NULL without */
bool labels_match(const struct schema_labels *selector, const struct schema_labels *labels);
bool same_namespace(const struct object *a, const struct object *b); /* where one is not said: yes */

/* workload.c */
void workload_read(struct contract *c, const struct object *o, const struct yaml_node *template, const char *part,
		   const struct yaml_node *job);
/* settle.c: what follows from all objects together. */
void contract_settle(struct contract *c);
const struct pool_spec *pool_of(const struct contract *c, const struct workload *w); /* NULL without */
/* Serves requests: of a pool whose class is interactive or embedding, and no job. */
bool is_serving(const struct contract *c, const struct workload *w);
/* The groups that a pool names; all of them where it is of none. */
size_t groups_of(const struct contract *c, const struct workload *w, const struct group_facts **out, size_t room);
enum { GROUPS_MOST = 64 };

/* fit.c */
enum fit { FIT_NO, FIT_MAYBE, FIT_YES };
/* Whether the node selector and affinity allow the group; `why` (may be NULL) gets the requirement that does not. */
enum fit fit_group(const struct workload *w, const struct group_facts *g, const struct requirement **why);
bool tolerates(const struct toleration *t, const struct taint *taint);
bool workload_tolerates(const struct workload *w, const struct taint *taint);
bool taint_bars(const struct taint *t); /* NoSchedule or NoExecute */
bool taint_is_of_gpus(const char *key);
extern const struct taint usual_taint; /* nvidia.com/gpu:NoSchedule */

/* instances.c: what is known of common GPU machines. */
struct instance_type {
	const char *name;
	int64_t vcpus, memory_gib, gpus;
	const char *gpu;
	int64_t gpu_memory_gib;
};
const struct instance_type *instance_find(const char *name); /* NULL: not in the table */
const struct instance_type *instances(size_t *count);
int64_t instance_cpu_milli(const struct instance_type *t);    /* about what pods may have */
int64_t instance_memory_milli(const struct instance_type *t); /* bytes * 1000 */

/* labels.c: labels that say what a machine is. */
struct known_label {
	const char *theme, *key, *meaning;
	const char *instead; /* what takes its place; NULL: it stands */
};
const struct known_label *known_labels(size_t *count);

/* court.c */
struct breach {
	const struct object *object;
	const struct yaml_node *at; /* NULL: the object */
	const char *remedy;	    /* NULL: the rule's */
};
void violate(struct court *c, const struct breach *b, const char *found, ...) PRINTF(3, 4);
const char *say(struct court *c, const char *fmt, ...) PRINTF(2, 3); /* a text for a breach */

/* "cost-center": the keys that a workload's pool, or the first, names. */
enum { COST_LABELS = 4 };
void cost_label_keys(const struct contract *c, const struct workload *w, const char *out[COST_LABELS]);

#define JUDGE(name) void judge_##name(struct court *c);
#include "controller/contract/judges.def"
#undef JUDGE
