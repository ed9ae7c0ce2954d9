/*
 * The model from within, for the modules that keep it and for tests: the
 * records that it is fed with, what it holds, and what its modules offer each
 * other.
 */
#pragma once
#include "base/decode.h"
#include "controller/cluster/fit.h"
#include "controller/cluster/intern.h"
#include "controller/cluster/model.h"
#include "controller/cluster/node.h"
#include "controller/cluster/watch.h"

/*
 * What is read of the API server's objects: the structs that base/decode.h
 * fills in, and their tables. Everything lives in the decoder's arena.
 */

struct taint_record {
	const char *key, *value, *effect;
};
struct condition_record {
	const char *type, *status, *reason, *message;
	millis changed_at;
};

struct node_record {
	const char *provider_id;
	bool is_unschedulable;
	millis created_at, deleted_at;
	struct decoded_map labels, annotations, allocatable, capacity;
	struct decoded_list taints;	/* of struct taint_record */
	struct decoded_list conditions; /* of struct condition_record */
};

/* An Event about a node. */
struct node_event_record {
	const char *node, *reason;
	millis first_at, last_at, at; /* 0: not told */
};

struct owner_record {
	const char *kind, *name, *uid;
	bool is_controller;
};
struct toleration_record {
	const char *key, *operation, *value, *effect;
};
struct text_record {
	const char *text;
};
struct expression_record {
	const char *key, *operation;
	struct decoded_list values; /* of struct text_record */
};
struct term_record {
	struct decoded_list expressions, fields; /* of struct expression_record */
};
struct port_record {
	const char *ip, *protocol;
	int64_t port; /* 0: none of the host's */
	int64_t own;  /* of the container */
};
struct container_record {
	const char *name, *image, *restart_policy;
	struct decoded_map requests, limits;
	struct decoded_list ports; /* of struct port_record */
};
struct volume_record {
	const char *name, *claim;
	struct decoded_text empty_dir, host_path, ephemeral;
};
struct selector_record {
	struct decoded_map labels;
	struct decoded_list expressions; /* of struct expression_record */
};
struct pod_term_record {
	const char *topology;
	struct decoded_text selector, of_namespaces; /* of struct selector_record; whether it is there counts */
	struct decoded_list namespaces;		     /* of struct text_record */
};
struct spread_record {
	const char *topology, *otherwise, *node_affinity, *node_taints;
	int64_t max_skew, min_domains;
	struct decoded_text selector;
	struct decoded_list keys; /* of struct text_record: labels of the pod that are selected by, too */
};
struct device_claim_record {
	const char *name, *claim; /* claim: that it names, or that was made for it; NULL: from a template */
};
struct container_status_record {
	const char *name, *waiting, *message;
	millis running_at;
};

struct pod_record {
	millis created_at, deleted_at; /* deleted_at: when the grace ends */
	int64_t deletion_grace, grace, priority;
	struct decoded_map labels, annotations, selector, overhead, requests, limits;
	struct decoded_list owners;			 /* of struct owner_record */
	struct decoded_list tolerations;		 /* of struct toleration_record */
	struct decoded_list terms;			 /* of struct term_record */
	struct decoded_list containers, init_containers; /* of struct container_record */
	struct decoded_list volumes;			 /* of struct volume_record */
	struct decoded_list gates;			 /* of struct text_record */
	struct decoded_list conditions;			 /* of struct condition_record */
	struct decoded_list statuses, init_statuses;	 /* of struct container_status_record */
	struct decoded_list near, apart;		 /* of struct pod_term_record */
	struct decoded_list spreads;			 /* of struct spread_record */
	struct decoded_list claims, made_claims;	 /* of struct device_claim_record */
	const char *node_name, *phase, *ip, *scheduler, *nominated, *group;
};

struct budget_record {
	struct decoded_map match_labels;
	struct decoded_list expressions; /* of struct expression_record */
	int64_t allowed, healthy, healthy_least;
	const char *unhealthy_policy;
};

struct quota_record {
	struct decoded_map hard, used;
};

/* Jobs, JobSets, PodGroups and Kueue's Workloads: whatever says how many pods belong together. */
struct part_record {
	int64_t count, replicas, parallelism;
	struct decoded_list after; /* of struct text_record: parts that are begun before it */
};
struct workload_record {
	struct decoded_list owners; /* of struct owner_record */
	struct decoded_map annotations;
	int64_t parallelism, completions, least;
	const char *completion_mode, *order;
	bool is_suspended;
	struct decoded_list parts;	/* of struct part_record: replicatedJobs, podSets */
	struct decoded_list conditions; /* of struct condition_record */
};

/* What volumes and devices a waiting pod may have, and where. */
struct volume_claim_record {
	const char *volume, *storage_class, *phase;
	struct decoded_map annotations, requests;
	millis deleted_at;
};
struct volume_known_record {
	const char *storage_class, *phase, *claim_namespace, *claim_name;
	struct decoded_map labels, capacity;
	struct decoded_list terms; /* of struct term_record */
};
struct storage_class_record {
	const char *provisioner, *mode;
	struct decoded_list terms; /* of struct term_record, without operators */
};
struct namespace_record {
	struct decoded_map labels;
};

/* Devices by claim (resource.k8s.io/v1). */
struct device_record {
	const char *name;
	const char *type, *profile; /* attributes of NVIDIA's driver: "gpu" or "mig", "1g.10gb"; NULL: not told */
	struct decoded_list taints; /* of struct taint_record */
};
struct resource_slice_record {
	const char *driver, *node, *pool; /* node: NULL where they are of no one node */
	int64_t generation, slice_count;
	struct decoded_list owners;  /* of struct owner_record */
	struct decoded_list devices; /* of struct device_record */
};
struct device_class_record {
	const char *extended;	       /* the extended resource that it offers, too */
	struct decoded_list selectors; /* of struct text_record: expressions in CEL */
};
struct device_request_record {
	const char *class, *mode;
	int64_t count;
	bool is_for_admin;
	struct decoded_list selectors;	  /* of struct text_record */
	struct decoded_list alternatives; /* of struct device_request_record, the best first */
};
struct device_result_record {
	const char *driver, *device;
	bool is_for_admin;
};
struct resource_claim_record {
	struct decoded_text asks;	 /* all that it asks for, as it stands */
	struct decoded_list owners;	 /* of struct owner_record */
	struct decoded_list requests;	 /* of struct device_request_record */
	struct decoded_list constraints; /* of struct text_record: how many there are counts */
	struct decoded_list results;	 /* of struct device_result_record */
	struct decoded_list terms;	 /* of struct term_record: where the devices are */
	struct decoded_list consumers;	 /* of struct owner_record: name and uid */
};

extern const struct record_spec node_spec, pod_spec, budget_spec, quota_spec, job_spec, job_set_spec, pod_group_spec,
	native_pod_group_spec, kueue_workload_spec, node_event_spec, volume_claim_spec, volume_spec, storage_class_spec,
	namespace_spec, resource_slice_spec, device_class_spec, resource_claim_spec, selector_spec;

/* The text of a key, NULL without. */
const char *decoded_get(const struct decoded_map *map, const char *key);
/* The condition of a type, NULL without. */
const struct condition_record *condition_of(const struct decoded_list *conditions, const char *type);

/* All return whether the object is kept: only then need its end be told. */
bool cluster_node_seen(struct cluster *c, const struct node_record *r, const struct watch_seen *seen);
bool cluster_pod_seen(struct cluster *c, const struct pod_record *r, const struct watch_seen *seen);
bool cluster_budget_seen(struct cluster *c, const struct budget_record *r, const struct watch_seen *seen);
bool cluster_quota_seen(struct cluster *c, const struct quota_record *r, const struct watch_seen *seen);
/* `kind` is CLUSTER_JOBS, CLUSTER_JOB_SETS, CLUSTER_KUEUE_WORKLOADS or one of PodGroups. */
bool cluster_workload_seen(struct cluster *c, enum cluster_kind kind, const struct workload_record *r,
			   const struct watch_seen *seen);

/* An Event about a node: never kept. */
bool cluster_node_event_seen(struct cluster *c, const struct node_event_record *r, const struct watch_seen *seen);

/* Nothing when it is not there. */
void cluster_node_gone(struct cluster *c, struct object_uid uid, millis at);
void cluster_pod_gone(struct cluster *c, struct object_uid uid, millis at);
void cluster_budget_gone(struct cluster *c, struct object_uid uid);
void cluster_quota_gone(struct cluster *c, struct object_uid uid);
void cluster_workload_gone(struct cluster *c, struct object_uid uid);

/* Volumes, their classes and namespaces (storage.c). `kind` is one of those that are watched on demand. */
bool cluster_needed_seen(struct cluster *c, enum cluster_kind kind, const void *record, const struct watch_seen *seen);
void cluster_needed_gone(struct cluster *c, enum cluster_kind kind, struct object_uid uid);

/* Devices by claim (devices.c). */
bool cluster_slice_seen(struct cluster *c, const struct resource_slice_record *r, const struct watch_seen *seen);
bool cluster_device_class_seen(struct cluster *c, const struct device_class_record *r, const struct watch_seen *seen);
bool cluster_device_claim_seen(struct cluster *c, const struct resource_claim_record *r, const struct watch_seen *seen);
void cluster_slice_gone(struct cluster *c, struct object_uid uid, millis at);
void cluster_device_class_gone(struct cluster *c, struct object_uid uid, millis at);
void cluster_device_claim_gone(struct cluster *c, struct object_uid uid, millis at);

struct pool_known {
	const char *name, *name_space;
	struct cluster_label *selector;
	size_t selector_count;
	int64_t gpus_per_replica;
	const char *gpu_resource; /* NULL: any */
	int *groups;
	size_t group_count;
	const char *share; /* NULL: none */
	int64_t port;
	bool is_unpriced, takes_any;
	struct pod *pods;
};

enum { ZONES_MOST = 8 };

/* What runs on every node of a group whoever else is there, of DaemonSets and static pods: the most that one had. */
struct residents {
	const struct resources *requests; /* the pods themselves are counted as "pods" */
	const struct host_port_set *ports;
};

/* What a new node of the group will be (template.c). */
struct template
{
	const struct label_set *labels; /* of the node that spoke last */
	const struct taint_set *taints;
	const struct taint_set *told_taints, *cloud_taints; /* of any node; those that only its cloud tells */
	const struct taint_set *doubted;		    /* that the last node got after it came; NULL: none */
	millis doubted_until;				    /* no node came since it left; 0: one did */
	const struct resources *allocatable;
	struct residents residents;
	bool has_residents_less; /* some went since they were counted */
	bool is_learned; /* from a node that was there; else from what was told, and what is not told is not known */
	/* Where its nodes were, by the labels of the last one in each zone; who spoke last is last. */
	struct zone_seen {
		const struct label_set *labels;
		int elsewhere; /* machines that came in other zones since */
	} zones[ZONES_MOST];
	size_t zone_count;
};
/* Of a group that is told anew: as its nodes taught it, else as the manifest and its cloud tell. */
struct template template_of(struct cluster *c, const struct cluster_group *g);
void template_drop(struct cluster *c, const struct template *t);
void template_learn(struct cluster *c, struct node *n); /* the node is of a group */
bool pod_is_resident(const struct pod *p);
void template_resident_came(struct cluster *c, const struct node *n);
/* It, or the node itself. */
void template_resident_left(struct cluster *c, const struct node *n);
void template_follow(struct cluster *c); /* counts them again where some left; doubts end */
/* Of what the last one got that none of those that stay has: it was its own. */
void template_node_left(struct cluster *c, const struct node *gone, millis at);

struct group_known {
	const char *name, *provider;
	struct cluster_label label;
	const char *provider_id_prefix; /* NULL: not looked at */
	int64_t gpus_per_node, max, price;
	const char *gpu_resource;
	bool drives_marked_nodes;
	const struct cluster_taint *startup_taints;
	size_t startup_taint_count;
	struct template template;
	int64_t expected; /* machines on their way, as the loop told */
	int64_t offered;  /* machines that may be bought for pods of the pool that takes any, likewise */
};

/* Begins what is kept by its uid. */
struct uid_key {
	struct object_uid uid;
	uint32_t hash;
};
struct uid_key model_uid_key(struct object_uid uid);
void *model_find_uid(const struct store *s, struct object_uid uid); /* NULL without */

struct budget {
	struct uid_key id; /* first */
	const char *name_space, *name;
	const struct label_set *labels;
	const struct requirement_set *expressions;
	int64_t allowed;
	bool lets_unready_go; /* pods that are not ready, whatever is allowed */
};

struct quota_known {
	struct uid_key id; /* first */
	const char *name_space, *name;
	const struct resources *hard, *used; /* of GPUs, names without "requests." */
};

struct workload {
	struct uid_key id; /* first */
	uint32_t name_hash, owner_hash;
	enum cluster_kind kind;
	const char *name_space, *name;
	const char *owner; /* uid of its controller, NULL without */
	int64_t size;	   /* pods that it needs at once */
	bool is_gang, is_suspended;
};

/* What is watched while a pod that waits needs it. */
struct volume_claim {
	struct uid_key id; /* first, as below */
	const char *name_space, *name;
	const char *volume, *storage_class; /* NULL without */
	const char *chosen_node;	    /* where its volume will be made; NULL: not chosen */
	int64_t milli;			    /* of storage */
	bool is_bound, is_lost, is_leaving;
};
struct volume {
	struct uid_key id;
	const char *name, *storage_class;
	const char *claim_namespace, *claim_name; /* NULL: of nobody */
	const struct label_set *labels;
	const struct requirement_set *affinity;
	int64_t milli;
	bool is_free; /* Available: the scheduler takes no others */
};
struct storage_class {
	struct uid_key id;
	const char *name;
	const struct requirement_set *topologies;
	bool waits; /* for the pod, before a volume is bound or made */
	bool makes; /* volumes: else they must be there */
};
struct namespace_known {
	struct uid_key id;
	const char *name;
	const struct label_set *labels;
};
const struct volume_claim *volume_claim_find(const struct cluster *c, const char *name_space, const char *name);
const struct volume *volume_find(const struct cluster *c, const char *name);
const struct storage_class *storage_class_find(const struct cluster *c, const char *name);
const struct namespace_known *namespace_find(const struct cluster *c, const char *name);
/* Whether what is known of the kind can be gone by: listed whole. */
/* Labels of a volume that say where it is. */
extern const char *const volume_zone_labels[];
enum needed_state { NEEDED_KNOWN, NEEDED_COMING, NEEDED_REFUSED };
enum needed_state cluster_needed(const struct cluster *c, enum cluster_kind kind);
void cluster_needed_forget(struct cluster *c, enum cluster_kind kind);
void cluster_storage_release(struct cluster *c);

/*
 * Devices that drivers publish count like an extended resource of their node with the name of the driver, which has no
 * '/' ("gpu.nvidia.com"), and what a pod's claims ask for or hold like its requests. So whoever counts, fits or learns
 * from nodes does the same for both. Of other drivers than those of GPUs nothing is kept.
 */
struct device_slice {
	struct uid_key id;		   /* first, as below */
	struct device_slice *next, **link; /* of its node */
	struct node *node;
	struct object_uid owner; /* of the Node; 0: not told */
	const char *driver, *pool;
	int64_t generation,
		slice_count; /* the slices of one generation of a pool, once all are there, are what it has */
	int64_t milli;	     /* of whole GPUs */
	int64_t parts;	     /* of GPUs, that could be given at once */
	bool has_barred;     /* devices are tainted */
};
struct device_class {
	struct uid_key id;
	const char *name, *driver; /* driver: NULL where it does not say one */
	const char *extended,
		*implicit; /* a pod that requests one of these is given such devices; extended: NULL without */
	bool is_whole;	   /* any whole GPU of the driver will do */
	bool counts;	   /* each of its devices is a GPU */
};
struct device_claim {
	struct uid_key id;
	uint32_t name_hash;
	const char *name_space, *name;
	const struct requirement_set *nodes; /* where its devices are */
	const struct resources *asked;	     /* by class, until it is allocated; then by driver what it has */
	struct object_uid *consumers;	     /* pods for which it is reserved */
	size_t consumer_count;
	struct object_uid owner; /* the pod that it was made for; 0 without */
	uint64_t spec;		 /* hash of all that it asks for: of those from one template it is the same */
	bool is_allocated;
	bool is_plain;	 /* so many whole devices of a class, and nothing else is asked of them */
	bool is_counted; /* so many devices, that need not go together */
};
/* NULL without; texts by their interned addresses. */
const struct device_claim *device_claim_find(const struct cluster *c, const char *name_space, const char *name);
/* Whether nothing but the number of free devices decides on which nodes it may be allocated. */
bool device_claim_is_plain(const struct cluster *c, const struct device_claim *k);
/* Whether it asks for so many whole GPUs, whatever else it asks of them. */
bool device_claim_is_counted(const struct cluster *c, const struct device_claim *k);
/* Whether there are devices of each driver that it asks for, however many. */
bool device_claim_has_drivers(const struct cluster *c, const struct device_claim *k, const struct resources *there);
bool device_claims_gpus(const struct cluster *c, const struct pod *p);
enum { DEVICE_DRIVERS_MOST = 8, DEVICE_ROWS_MOST = 4 * DEVICE_DRIVERS_MOST };
/* What the pod's claims ask for or hold by driver, a shared claim in equal parts; returns how many rows. Drivers are
 * interned. */
size_t device_claims_rows(const struct cluster *c, const struct pod *p, struct resource rows[DEVICE_DRIVERS_MOST]);
/* What is published of the node, likewise, and under the extended resources by which it is offered, unless a plugin
 * offers these there. */
size_t device_slices_rows(const struct cluster *c, const struct node *n, struct resource rows[DEVICE_ROWS_MOST]);
/* It names a claim that was not read: it may hold GPUs. */
bool device_claims_unread(const struct cluster *c, const struct pod *p);
/* Of all that it asks for: that of pods whose own claims differ in nothing but their names is the same. */
uint64_t device_claims_mark(const struct cluster *c, const struct pod *p);
/* No device of the node is tainted. */
bool device_slices_are_whole(const struct node *n);
/* The pod has come or gone: others that wait for a claim of its have another part of it. */
void device_claims_shared(struct cluster *c, const struct pod *p, millis at);
void cluster_devices_release(struct cluster *c);

struct cluster {
	struct intern intern;
	struct store nodes;	/* by name */
	struct store providers; /* of the same: by provider id, those that have one */
	struct store pods;	/* by uid, as all below */
	struct store budgets, quotas, workloads;
	/* Of the same workloads: by kind, namespace and name; those that have an owner by kind and its uid. */
	struct store workload_names, workload_owners;
	struct store device_slices, device_classes, device_claims;
	struct store device_claim_names;	   /* of the same claims, by namespace and name */
	struct store needed[CLUSTER_NEEDED_COUNT]; /* what is watched on demand */
	struct pod *waiting;			   /* pods without a node */
	struct decode_plan *selector_plan;

	struct arena fleet;
	struct pool_known *pools;
	struct group_known *groups;
	size_t pool_count, group_count;

	struct arena scratch;		     /* of one input */
	uint64_t generation;		     /* counts what is told */
	struct placement *placement;	     /* of one generation */
	struct nodes_by_use *by_use;	     /* likewise */
	size_t apart_count, apart_by_labels; /* pods with anti-affinity; of these, that select namespaces by labels */
	size_t prefetch_count;		     /* pods that pull an image, or have */
	int64_t budget, money;		     /* as told by cluster_offer_money() */
	bool knows_owners;		     /* of the machines on their way; false until the first decision */
	bool heeds_schedulers;		     /* pods that no scheduler has looked at are not served */
	millis bound_at;		     /* when a pod last got its node, as it was seen to */
	millis followed_at;		     /* see cluster_follow_waiting() */

	cluster_change_fn *on_change;
	void *on_change_user;
	bool ignores_stamps;

	struct cluster_watches *watches;
};

/* Sets out of records; the caller drops them. */
const struct label_set *model_labels(struct cluster *c, const struct decoded_map *map);
const struct resources *model_resources(struct cluster *c, struct resource *rows, size_t count);
/* Rows of what counts in a map (processors, memory, devices), names as they stand; in the scratch arena. */
struct resource *model_amounts(struct cluster *c, const struct decoded_map *map, size_t *count);
const struct taint_set *model_taints(struct cluster *c, const struct decoded_list *taints);
const struct toleration_set *model_tolerations(struct cluster *c, const struct decoded_list *tolerations);
/* `terms`, or the expressions of one selector as a term. */
const struct requirement_set *model_requirements(struct cluster *c, const struct decoded_list *terms,
						 const struct decoded_list *expressions);

/* Of a selector as it stands in an object; NULL: it selects all. */
const struct requirement_set *model_selector(struct cluster *c, const struct decoded_map *labels,
					     const struct decoded_list *expressions);
const struct pod_shape *model_shape(struct cluster *c, const struct pod_record *r, const char *pod);
/* The same with other rows of devices by claim; in place of one reference to it. */
const struct pod_shape *model_shape_with(struct cluster *c, const struct pod_shape *shape, const struct resource *rows,
					 size_t count);
/* The set with other rows of drivers' devices; `set` is left as it is. */
const struct resources *model_with_devices(struct cluster *c, const struct resources *set, const struct resource *rows,
					   size_t count);
bool model_is_choosy(const struct pod_record *r); /* see struct pod */

/* When something happened: by the object's own time where it was listed, else by its arrival. */
millis model_moment(const struct cluster *c, const struct watch_seen *seen, millis told);

const char *node_zone_of(const struct label_set *labels); /* "" without */
/* Those of its taints that do not come and go; the caller drops them. */
const struct taint_set *node_lasting_taints(struct cluster *c, const struct node *n);
struct node *node_find(const struct cluster *c, const char *name);
/* As node_find; a node that was not seen yet is made. */
struct node *node_expect(struct cluster *c, const char *name);
/* Frees a node that nobody knows and nobody is on. */
void node_forget_unknown(struct cluster *c, struct node *n);
void node_place(struct cluster *c, struct node *n);				 /* sets the group, and teaches it */
void node_reweigh(struct cluster *c, struct node *n, millis at, bool is_listed); /* other devices are published */
void node_release(struct cluster *c, struct node *n);
const char *group_gpu_resource(const struct cluster_group *g);
/* Of a taint that comes and goes on a node, and says nothing of the next one of its group. */
bool node_taint_passes(const char *key);
/* By key and effect, and by the value where one was told. */
bool node_taint_is_told(const struct taint *t, const struct cluster_taint *told, size_t count);

void pod_weigh(struct pod *p); /* its GPUs by what its node is; only while detached */
struct pod *pod_find(const struct cluster *c, struct object_uid uid); /* NULL without */
/* Its claims ask for something else, or hold it. */
void pod_reweigh(struct cluster *c, struct pod *p, millis at, bool is_listed);
void pod_place(struct cluster *c, struct pod *p); /* among the pods of its pool, if it is of one */
void pod_leave_pool(struct pod *p);
void pod_release(struct cluster *c, struct pod *p);

/* Where those that wait would sit, were they served in turn: made once for each state of the model. */
enum placing {
	/* Nobody can say: its scheduler has not looked at it, or what it names is not read yet. Or it is expendable. */
	PLACING_NOT_YET,
	PLACING_INCOMPLETE, /* of a gang that is not whole */
	PLACING_THERE,	    /* on a node that there is */
	PLACING_COMING,	    /* on a machine that is on its way */
	PLACING_NEW,	    /* on a machine that nobody has bought yet */
	PLACING_STRANDED,   /* of the pool that takes any: on a machine that may not be bought now */
	PLACING_NOWHERE
};
/* Pods that ask for the same. */
struct kind {
	const struct pod_shape *asks;
	const char *name_space;
	int pool;
	bool is_placeholder;
	uint32_t hash;
	const int *groups, *fitting; /* that may be asked; that could hold it, as it was when the first of them came */
	size_t group_count, fitting_count;
	size_t sure_count; /* of groups: the first, all labels that it selects by are told of; the rest comes after */
	bool is_any;	   /* of the pool that takes any: the cheapest machine will do */
	bool is_refused;   /* by the nodes to come */
	/* The nodes before this one have no room for one of them; and before a gang took some in thought. */
	size_t there_from, was_from;
	/* What became of a gang of them, none of which differs from another. */
	struct failed_gang {
		bool is_known;
		size_t seats, added; /* as they were */
		int64_t placed;	     /* of it, before one found no place */
		enum placing placing;
	} failed;
	bool lacks_money; /* a machine that one of them would use is beyond the budget */
	const char *why;
	size_t notes; /* given out so far */
};
struct placed {
	const struct pod *pod;
	const struct gang *gang; /* NULL without; lives in the arena of the placement */
	struct kind *kind;
	enum placing placing;
	int group;	  /* of the node that is meant, -1 for none */
	const char *why;  /* PLACING_NOWHERE: a sentence */
	const char *slow; /* NULL, or a sentence: it should have been placed long ago */
	const char *full;
	bool is_done;
};
/* Node groups whose machines did not help a pod, the youngest of them: no more are bought for it, until. What one
 * learned counts for all that ask for the same, and one of them is tried again at a time. */
enum { REFUSALS_MOST = 8 };
struct pod_refusals {
	uint64_t asks; /* what they ask for in common; 0: not looked at yet */
	struct refusal {
		uint64_t group;	     /* hash of its name */
		millis since, until; /* since: it has been so at each look; 0: it is not so now */
		int count;
		bool is_others_turn;
	} items[REFUSALS_MOST];
};
struct placement {
	struct arena arena;
	struct placed *items; /* in the order of the scheduler */
	size_t count;
	/* Per group: machines to be bought for pods of the pool that takes any; on their way where nobody sits. */
	int64_t *lacking, *needless;
	uint64_t generation;
	bool is_made;
};
bool pod_is_refused_by(const struct cluster *c, const struct pod *p, int group);
/* It got its node, and asked so before: if it was on trial, those like it whose time has come are tried again, too. */
void given_up_one_helped(struct cluster *c, const struct pod *helped, const struct pod_shape *asked, millis now);
const struct placement *cluster_placement(const struct cluster *c);

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
