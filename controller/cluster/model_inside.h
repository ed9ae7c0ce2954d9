/* What the files of the model share; nobody else includes this. */
#pragma once
#include "controller/cluster/intern.h"
#include "controller/cluster/model_inputs.h"
#include "controller/cluster/node.h"

struct pool_known {
	const char *name, *name_space;
	struct cluster_label *selector;
	size_t selector_count;
	int64_t gpus_per_replica;
	const char *gpu_resource; /* NULL: any */
	int *groups;
	size_t group_count;
	struct pod *pods;
};

/* What a new node of the group will be. */
struct template
{
	const struct label_set *labels;
	const struct taint_set *taints;
	const struct resources *allocatable;
	bool is_learned; /* from a node that was there; else from what was told, and what is not told is not known */
};

struct group_known {
	const char *name, *provider;
	struct cluster_label label;
	const char *provider_id_prefix; /* NULL: not looked at */
	int64_t gpus_per_node, max;
	const char *gpu_resource;
	bool is_of_karpenter;
	struct template template;
};

struct budget {
	const char *name_space, *name;
	const struct label_set *labels;
	const struct requirement_set *expressions;
	int64_t allowed;
	uint64_t uid[2];
	uint32_t hash;
};

struct quota_known {
	const char *name_space, *name;
	const struct resources *hard, *used; /* of GPUs, names without "requests." */
	uint64_t uid[2];
	uint32_t hash;
};

struct workload {
	enum cluster_kind kind;
	const char *name_space, *name;
	const char *owner; /* uid of its controller, NULL without */
	int64_t size;	   /* pods that it needs at once */
	bool is_gang, is_suspended;
	uint64_t uid[2];
	uint32_t hash;
};

struct cluster {
	struct intern intern;
	struct store nodes;	/* by name */
	struct store providers; /* of the same: by provider id, those that have one */
	struct store pods;	/* by uid, as all below */
	struct store budgets, quotas, workloads;
	struct pod *waiting; /* pods without a node */

	struct arena fleet;
	struct pool_known *pools;
	struct group_known *groups;
	size_t pool_count, group_count;

	struct arena scratch; /* of one input */
	cluster_change_fn *on_change;
	void *on_change_user;
	bool ignores_stamps;

	struct cluster_watches *watches;
};

/* model_intern.c: sets out of records; the caller drops them. */
const struct label_set *model_labels(struct cluster *c, const struct decoded_map *map);
const struct resources *model_resources(struct cluster *c, struct resource *rows, size_t count);
/* Rows of what counts in a map (processors, memory, devices), names as they stand; in the scratch arena. */
struct resource *model_amounts(struct cluster *c, const struct decoded_map *map, size_t *count);
const struct taint_set *model_taints(struct cluster *c, const struct decoded_list *taints);
const struct toleration_set *model_tolerations(struct cluster *c, const struct decoded_list *tolerations);
const struct requirement_set *model_requirements(struct cluster *c, const struct decoded_list *terms);
/* The expressions of one selector as a term. */
const struct requirement_set *model_expressions(struct cluster *c, const struct decoded_list *expressions);

/* model_tell.c */
/* When something happened: by the object's own time where it was listed, else by its arrival. */
millis model_moment(const struct cluster *c, const struct watch_seen *seen, millis told);
void model_tell_node(struct cluster *c, enum cluster_change what, const struct node *n, millis at, bool is_listed);
void model_tell_pod(struct cluster *c, enum cluster_change what, const struct pod *p, millis at, bool is_listed);

/* node.c */
struct node *node_find(const struct cluster *c, const char *name);
/* As node_find; a node that was not seen yet is made. */
struct node *node_expect(struct cluster *c, const char *name);
/* Frees a node that nobody knows and nobody is on. */
void node_forget_unknown(struct cluster *c, struct node *n);
void node_place(struct cluster *c, struct node *n); /* sets the group, and teaches it */
void node_release(struct cluster *c, struct node *n);

/* pod.c */
void pod_attach(struct cluster *c, struct pod *p, struct node *n); /* n may be NULL: it waits */
void pod_detach(struct pod *p);
void pod_weigh(struct pod *p);			  /* its GPUs by what its node is; only while detached */
void pod_place(struct cluster *c, struct pod *p); /* among the pods of its pool, if it is of one */
void pod_leave_pool(struct pod *p);
void pod_release(struct cluster *c, struct pod *p);

/* pod_shape.c */
const struct pod_shape *pod_shape_of(struct cluster *c, const struct pod_record *r);
/* pod_read.c; fills in what the object says */
void pod_read(struct cluster *c, struct pod *p, const struct pod_record *r, const struct watch_seen *seen);
/* pod_progress.c */
void pod_read_progress(struct cluster *c, struct pod *p, const struct pod_record *r, const struct watch_seen *seen);

/* pending_fit.c */
struct fit_node {
	const char *name, *hostname; /* NULL: not known */
	const struct label_set *labels;
	const struct taint_set *taints;
	const struct resources *allocatable;
	bool is_guess; /* labels that are not told may be there all the same */
};
/* Whether a pod of the shape may run on an empty node like this; else `why` (size bytes) says what stands against it.
 */
bool fit_shape(const struct pod_shape *s, const struct fit_node *n, char *why, size_t size);
bool fit_requirements(const struct requirement_set *set, const struct fit_node *n);

/* gang.c */
struct gang_of_pod {
	enum gang_kind kind;
	const char *name;
	int64_t size;
	bool is_suspended;
};
/* kind GANG_NONE: the pod stands for itself. */
struct gang_of_pod gang_of(const struct cluster *c, const struct pod *p);

/* All gangs at one instant. Entries live in the arena, the table until released. */
struct gang_entry {
	struct gang gang;
	uint32_t hash;
};
struct gang_table {
	struct store store;
};
struct gang_table gang_table_make(const struct cluster *c, struct arena *a);
void gang_table_release(struct gang_table *t);
const struct gang *gang_table_find(const struct gang_table *t, const struct cluster *c, const struct pod *p);
/* All of its pods are there, and none is held back: it may be served. */
bool gang_is_whole(const struct gang *g);

/* workload.c */
const struct workload *workload_by_uid(const struct cluster *c, const char *uid);
const struct workload *workload_named(const struct cluster *c, enum cluster_kind kind, const char *name_space,
				      const char *name);
const struct workload *workload_owned_by(const struct cluster *c, enum cluster_kind kind, const char *uid);

/* budget.c */
bool budget_selects(const struct budget *b, const struct pod *p);

void *model_alloc(size_t size); /* zeroed; ends the process when there is no memory */
const struct pod **model_sorted_pods(const struct pod **pods, size_t count);
