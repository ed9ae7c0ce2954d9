/*
 * What is known of the cluster: nodes, pods, and what governs them, kept
 * from watch events in as little memory as can be. It only knows; it never
 * calls out but to `on_change`, and it decides nothing.
 *
 * The fleet (pools and node groups) is told by the loop and may be told
 * anew at any time; everything is then sorted again without asking the
 * server. Answers come in an order that does not depend on the order in
 * which things were seen: by name.
 *
 * Pointers to nodes and pods are valid until the next input; results in an
 * arena as long as that, texts in them copied.
 */
#pragma once
#include "base/arena.h"
#include "base/error.h"
#include "base/millis.h"
#include "controller/cluster/node.h"
#include "controller/cluster/pod.h"
#include "providers/node_promise.h"

struct cluster;

struct cluster_label {
	const char *key, *value;
};

struct cluster_taint {
	const char *key, *value, *effect;
};

struct cluster_device {
	const char *resource; /* "nvidia.com/mig-1g.10gb" */
	int64_t count;
};

/* A pool as far as the cluster is concerned. Copied. */
struct cluster_pool {
	const char *name, *namespace;
	const struct cluster_label *selector; /* all must match */
	size_t selector_count;
	int64_t gpus_per_replica;
	const char *gpu_resource; /* "nvidia.com/gpu"; NULL: any kind of GPU */
	const int *groups;	  /* its node groups, by index among the groups given, in order of preference */
	size_t group_count;
	const char *share; /* whose pools of this namespace may have engines in one pod, each on its port; NULL: none */
	int64_t port;	   /* of its engines */
	bool is_unpriced;  /* its money counts GPU hours */
	bool takes_any; /* that ask for GPUs, are of no other pool and not expendable: one pool's, the last of several
			 */
};

/* A node group as far as the cluster is concerned. Copied. */
struct cluster_group {
	const char *name, *provider;
	struct cluster_label label;	/* marks its nodes */
	const char *provider_id_prefix; /* and their providerID begins so; NULL: not looked at */
	int64_t gpus_per_node;
	const char *gpu_resource;	 /* "nvidia.com/gpu"; NULL: that */
	int64_t max;			 /* nodes */
	int64_t price;			 /* of a node: for pods that any of several groups would do for */
	int64_t cpu_milli, memory_milli; /* at most, of a node; 0: not known */
	bool drives_marked_nodes; /* told to be driven all the same: a provisioner's label on its nodes is no bar */
	/* Of a new node, until one was seen: what the manifest or the provider knows. */
	const struct cluster_label *labels;
	size_t label_count;
	const struct cluster_taint *taints;
	size_t taint_count;
	/* That its nodes may have until their start is over; value NULL or "": any. */
	const struct cluster_taint *startup_taints;
	size_t startup_taint_count;
	const struct cluster_device *devices; /* in place of gpus_per_node of gpu_resource */
	size_t device_count;
	const struct node_promise *promise; /* what its cloud says of a new node; NULL: nothing */
};

enum cluster_change {
	CLUSTER_NODE_ADDED,
	CLUSTER_NODE_READY, /* became ready */
	CLUSTER_NODE_UNREADY,
	CLUSTER_NODE_GPU,     /* the first GPU became allocatable */
	CLUSTER_NODE_CHANGED, /* anything else of struct node */
	CLUSTER_NODE_GONE,    /* still valid inside the callback */
	CLUSTER_POD_ADDED,
	CLUSTER_POD_SCHEDULED, /* got its node */
	CLUSTER_POD_STARTED,   /* its containers run: the image is there */
	CLUSTER_POD_READY,
	CLUSTER_POD_CHANGED,
	CLUSTER_POD_GONE,    /* still valid inside the callback */
	CLUSTER_NEEDED_READ, /* what a pod that waits names was listed: volumes, their classes, namespaces */
	CLUSTER_CHANGE_COUNT
};

struct cluster_event {
	enum cluster_change what;
	const struct node *node; /* NULL where it is of none */
	const struct pod *pod;	 /* likewise */
	millis at;		 /* arrival, or the object's time when it was listed */
	bool is_listed;
};

/* Of nodes in our groups and of pods that ask for GPUs or belong to a pool. One object may bring several. The model may
 * be read inside, not changed. */
typedef void cluster_change_fn(void *user, const struct cluster_event *event);

struct cluster *cluster_new(void);
void cluster_free(struct cluster *c); /* takes NULL */
void cluster_on_change(struct cluster *c, cluster_change_fn *fn, void *user);
/* Where our clock is not the server's (recorded time, simulated time): times in objects are not looked at. */
void cluster_ignore_stamps(struct cluster *c, bool ignore);

/*
 * The fleet, in place of the one before. Nodes belong to the first group that matches, pods to the first pool,
 * those of shares before others, and their further engines to pools of its share (struct pod). What was learned of a
 * group (labels, zones, taints, devices, DaemonSets of its nodes) stays while a group of that name and provider stays.
 */
void cluster_set_fleet(struct cluster *c, const struct cluster_pool *pools, size_t pool_count,
		       const struct cluster_group *groups, size_t group_count);

/* So many machines of a group are on their way: bought, and without a GPU that pods may use yet. Pods that wait sit
 * down there before a machine more is thought of. */
void cluster_expect(struct cluster *c, size_t group, int64_t machines);

/* So many machines more may be bought in a group for pods of the pool that takes any; 0 until told. */
void cluster_offer(struct cluster *c, size_t group, int64_t machines);

/* What all of these together may cost an hour: what its budget, in micro-dollars, leaves. Budget 0: none, as until
 * told. Returns whether that is new. */
bool cluster_offer_money(struct cluster *c, int64_t budget, int64_t left);

/* Watching. The kinds that the model lives on; optional ones may be absent from the server. */
enum cluster_kind {
	CLUSTER_NODES,
	CLUSTER_PODS,
	CLUSTER_BUDGETS,
	CLUSTER_QUOTAS,
	CLUSTER_JOBS,
	CLUSTER_JOB_SETS,	   /* optional */
	CLUSTER_POD_GROUPS,	   /* optional, as the three below: of the coscheduling plugin of kube-scheduler */
	CLUSTER_NATIVE_POD_GROUPS, /* Kubernetes' own */
	CLUSTER_VOLCANO_POD_GROUPS,
	CLUSTER_KAI_POD_GROUPS,
	CLUSTER_KUEUE_WORKLOADS,     /* optional */
	CLUSTER_KUEUE_WORKLOADS_OLD, /* the same by the version before; both may be there */
	CLUSTER_NODE_EVENTS,	     /* Events about nodes: machines that will be taken */
	CLUSTER_RESOURCE_SLICES,     /* optional, as the two below: devices that drivers publish (DRA) */
	CLUSTER_DEVICE_CLASSES,
	CLUSTER_RESOURCE_CLAIMS,
	/* Only while a pod that waits for us names one: see cluster_watch_needed(). */
	CLUSTER_VOLUME_CLAIMS,
	CLUSTER_VOLUMES,
	CLUSTER_STORAGE_CLASSES,
	CLUSTER_NAMESPACES,
	CLUSTER_KIND_COUNT
};
enum { CLUSTER_NEEDED_COUNT = CLUSTER_KIND_COUNT - CLUSTER_VOLUME_CLAIMS };

struct api;
struct watch;
/* Starts all watches; they go on until stopped. */
void cluster_watch_start(struct cluster *c, struct api *api);
/* Nothing when not started. Calls under way complete later: see watch_stop(). What is known stays. */
void cluster_watch_stop(struct cluster *c);
/*
 * Begins to watch what pods of ours that wait name and the filters must know (claims, volumes, storage classes,
 * namespaces), and stops what none has named for ten minutes. To be called at each tick.
 */
void cluster_watch_needed(struct cluster *c, millis now);
/* For /readyz and metrics; NULL before the start, and of what is not needed. */
const struct watch *cluster_watch_of(const struct cluster *c, enum cluster_kind kind);
/*
 * Nodes and pods have been listed whole at least once, and all else too unless the server does not have it or does not
 * let us see it.
 */
bool cluster_is_synced(const struct cluster *c);

/* Looking things up; NULL without. */
const struct node *cluster_node(const struct cluster *c, const char *name);
const struct node *cluster_node_by_machine(const struct cluster *c, const char *provider_id); /* whatever the case */
const struct pod *cluster_pod(const struct cluster *c, const char *uid);
/* Whether its machine ends, as the cloud tells: while it does it counts as interrupted. */
void cluster_node_ends(struct cluster *c, const struct node *n, bool ends, millis at);
size_t cluster_node_count(const struct cluster *c);
size_t cluster_pod_count(const struct cluster *c);
/* Nodes of a group (-1: all known), by name. */
const struct node **cluster_nodes(const struct cluster *c, int group, struct arena *a, size_t *count);
/* Pods of a pool (-1: all that belong to one, one with several engines once for each), by namespace and name. */
const struct pod **cluster_pods(const struct cluster *c, int pool, struct arena *a, size_t *count);
/* Pods that pull an image, or have, by namespace and name: the rest of the model takes them for anybody's. */
const struct pod **cluster_prefetches(const struct cluster *c, struct arena *a, size_t *count);
/* Pods on a node, by namespace and name. */
const struct pod **cluster_node_pods(const struct cluster *c, const struct node *n, struct arena *a, size_t *count);

/* The ResourceClaim by which the pod has one whole GPU with whoever else names it, as it is interned; NULL: it has
 * none, or several, or one of its own. */
const char *cluster_shared_gpu(const struct cluster *c, const struct pod *p);

/* What the engine of its pool in the pod told of its sleep; it stands until it tells otherwise. May call on_change. */
void cluster_engine_told(struct cluster *c, const struct pod *p, enum pod_sleep sleep, millis at);

/* A pool in one of its groups. Replicas are pods of the pool that count; placeholders are told apart. */
struct pool_group_view {
	int group;
	int64_t ready;	  /* replicas that may start requests */
	int64_t starting; /* on a node, not ready yet; those that wake included */
	int64_t asleep;	  /* replicas whose engine sleeps or falls asleep: neither ready nor starting */
	int64_t fallen;	  /* were ready, run on, and are not ready now: among `starting` or, see all_fell, `ready` */
	int64_t draining; /* terminating, or on a node that is drained or will be taken */
	int64_t placeholders;	    /* of this pool, running or starting */
	int64_t placeholder_places; /* replicas that fit where those are */
	int64_t free_places;	    /* replicas that fit on free GPUs of usable nodes */
	int64_t expendable_places;  /* replicas more that fit where expendable pods are; 0 while pods of it wait for
				       machines: they do not make room, or not yet */
	int64_t joining;	    /* of its pods that wait: those that fit machines on their way */
	int64_t lacking;	    /* of its pods that wait: those that need a machine more */
	/* Of the pool that takes any: machines more that its pods need, and machines on their way that none sits on. */
	int64_t lacking_nodes, needless_nodes;
	int64_t least_on_node; /* of the nodes that could go (only this pool's, all ready), the fewest; else 0.
				   Sleepers are not counted, and do not keep a node */
	int64_t nodes;	       /* of the whole group: known, not leaving */
	int64_t usable_nodes;
	int64_t gpus_milli; /* held by this pool's pods, placeholders included */
};

struct pool_view {
	int64_t ready, starting, draining, fallen;
	int64_t asleep, falling_asleep, discarded; /* of `asleep`: falling asleep yet; on level 2 */
	int64_t waking;				   /* of `starting` */
	/* None is ready, and some that were run on: a probe that is broken or a server too busy to answer it looks like
	 * that, and nothing says that they are gone. They count as ready. */
	bool all_fell;
	int64_t pending;	/* without a node, and some group of the pool could hold it; whole gangs only */
	int64_t placed;		/* of these, that fit nodes that there are: the scheduler's to place */
	int64_t stranded_milli; /* GPUs of those of `pending` that fit new nodes of groups that may not grow */
	int64_t unsatisfiable;	/* without a node, and none ever could */
	int64_t elsewhere;	/* counted above, on nodes of no group of the pool */
	int64_t placeholders, pending_placeholders;
	int64_t work;			/* finished by themselves some day: pods of Jobs among `ready` */
	int64_t largest_gang;		/* pods of the largest whole gang that is pending; 0 without */
	struct pool_group_view *groups; /* one per group of the pool, in its order */
	size_t group_count;
};

struct pool_view cluster_pool_view(const struct cluster *c, size_t pool, struct arena *a);

/* Can the node be emptied now, and if not, whose fault it is: in the order and with the words of Cluster Autoscaler. */
enum drain_reason {
	DRAIN_POSSIBLE,
	DRAIN_NODE_PROTECTED,	     /* ScaleDownDisabledAnnotation */
	DRAIN_NODE_FOREIGN,	     /* NotAutoscaled: somebody else's */
	DRAIN_NOT_REPLICATED,	     /* NotReplicated: nobody makes a new one */
	DRAIN_SYSTEM_POD,	     /* UnmovableKubeSystemPod */
	DRAIN_NOT_SAFE,		     /* NotSafeToEvictAnnotation, or do-not-disrupt */
	DRAIN_ON_COMPLETION,	     /* BlockedByOnCompletionPod: wait for its end */
	DRAIN_LOCAL_STORAGE,	     /* LocalStorageRequested */
	DRAIN_BUDGET,		     /* NotEnoughPdb */
	DRAIN_BUDGETS_MISCONFIGURED, /* several budgets for one pod: the server refuses for ever */
	DRAIN_REASON_COUNT
};

struct drain_verdict {
	enum drain_reason reason;
	const struct pod *blocker; /* NULL where the node itself blocks */
	const char *text;	   /* one sentence, in the arena */
	const struct pod **evict;  /* what must go, in the order to ask: by priority, least first, then by name */
	size_t evict_count;
};

/* `evicts_pool`: pods of this pool are ours to move (their controller and its drain are ours): only budgets and
 * their own annotations can keep them; -1 for none. */
struct drain_verdict cluster_drain(const struct cluster *c, const struct node *n, int evicts_pool, millis now,
				   struct arena *a);
const char *drain_reason_name(enum drain_reason reason); /* "NotEnoughPdb" */

/*
 * Whether all that a drain of the node would evict may run on other nodes instead, by the scheduler's filters, each
 * beside those that wait and those moved before it. Only what a controller makes anew moves, as cluster_drain() with no
 * pool says, and nothing that must end by itself: pods of Jobs and of gangs (unless they are marked safe to evict), of
 * other pools than the one that takes any, on their way, or choosy (struct pod).
 */
struct move_verdict {
	bool is_possible;
	const char *text; /* "its 2 pods fit on y"; else a sentence why not */
	size_t pods;	  /* that would move */
};

/* Nodes that may take them, those to be filled first come first. */
struct node_places {
	const struct node **nodes;
	size_t count;
};
/* All known: without GPUs first, for pods that need none, then the fullest, then by name. Until the model changes. */
struct node_places cluster_nodes_by_use(const struct cluster *c);
/* Expendable pods go without a place. */
struct move_verdict cluster_move(const struct cluster *c, const struct node *n, struct node_places to, millis now,
				 struct arena *a);
/*
 * The same of a node that goes because the pool gives it up (-1: nobody's), and only of those that need another place
 * (pod_goes_with_node()): whether they may be evicted at all is for cluster_drain(). Of what is choosy only that is
 * asked which is known while it runs.
 */
struct move_verdict cluster_displace(const struct cluster *c, const struct node *n, int pool, struct node_places to,
				     millis now, struct arena *a);

/* Pods that wait for a node, deduplicated by what they ask. */
struct pending_shape {
	const char *namespace;
	const struct pod *example; /* the oldest */
	int pool;		   /* of the pods, -1 for none */
	int64_t count;
	int64_t gpus_milli; /* of one */
	millis since;	    /* creation of the oldest */
	const int *groups;  /* which could hold it on a new node, in the order given */
	size_t group_count;
	int64_t placed; /* of them, that fit nodes that there are: for these nothing is bought */
	const char *
		why; /* NULL, or a sentence why nothing holds it, no node group either: "wants 8 nvidia.com/gpu; ..." */
	const char
		*stray;	  /* NULL, or a sentence: of no pool, and a new node of a group could hold it: nobody buys it */
	bool is_stranded; /* of the pool that takes any: its groups that could hold it may not grow now; see `full` */
	const char *full; /* NULL, or a sentence: who could hold it has its most nodes already */
	const char *slow; /* NULL, or a sentence: it should long have a node, as far as we can see */
	bool is_undecided; /* its scheduler has not looked at it, or what it names is being read: not demand yet; or it
			      is expendable, and never is */
	bool is_incomplete_gang; /* not all of its gang exist yet, or it is suspended: not demand */
};

/*
 * At each tick. From the first time on pods count only once their scheduler has looked at them; and one that fits a
 * node that there is, and is not placed there, is told after WAITING_IS_SLOW and given up after WAITING_GIVES_UP: it
 * counts as one that fits nowhere for WAITING_AGAIN, twice as long each time, or until a scheduler that had bound
 * nobody meanwhile binds somebody again. So what was bought for it is let go. Of those that ask for the same
 * resources, whatever else they ask for, one is tried again at a time, and of the gangs of a namespace one; the others
 * whose time has come follow once it got its node, or when nothing came for it within an hour. So it is with those that
 * machines of a group did not help, as their claims ask for more than a number of devices, and whose claims differ by
 * name only.
 */
#define WAITING_IS_SLOW	 (MINUTE)
#define WAITING_GIVES_UP (10 * MINUTE)
#define WAITING_AGAIN	 (HOUR)
void cluster_follow_waiting(struct cluster *c, millis now);
/* Who is given up and for how long, and whom the machines of which group did not help, as text for a later life: ""
 * without, else in the arena. Of the first 200 pods in the order of the scheduler. */
const char *cluster_given_up(const struct cluster *c, struct arena *a);
/* Its text, which is taken apart, of pods that are here by now; what cannot be read is left out. */
void cluster_recall_given_up(struct cluster *c, char *text, millis now);

/* Only pods that ask for GPUs or belong to a pool. */
struct pending_shape *cluster_pending(const struct cluster *c, struct arena *a, size_t *count);

/* A pod that waits and gets nothing. */
struct pod_note {
	const struct pod *pod;
	const char *text; /* why, until the model changes */
	size_t turn;	  /* how many older ones ask for the same */
};
/* The oldest of each kind first, then the second of each, and so on. */
struct pod_note *cluster_pod_notes(const struct cluster *c, struct arena *a, size_t *count);

/* A pod that waits, and has a place on a machine that is on its way. */
struct pod_order {
	const struct pod *pod;
	int group; /* of the machine */
};
/* In the order of the scheduler, but for those that were told so since they last needed a machine that nobody had
 * bought. Each of them, told or not, stays there from now on, as long as the machine comes. To be called at each
 * decision, before it is acted on, and whenever machines were told to be on their way. */
struct pod_order *cluster_pod_orders(struct cluster *c, struct arena *a, size_t *count);
void cluster_order_is_told(struct cluster *c, const struct pod_order *o);
/* Another one bought meanwhile: until the next decision what is on its way is for whoever waits and may use it. */
void cluster_forget_owners(struct cluster *c);

enum gang_kind {
	GANG_NONE,
	GANG_JOB,
	GANG_JOB_SET,
	GANG_KUEUE,
	GANG_POD_GROUP,
	GANG_NATIVE, /* of Kubernetes' own PodGroup */
	GANG_VOLCANO,
	GANG_KAI,
	GANG_LEADER_WORKER_SET,
	GANG_KIND_COUNT
};

struct gang {
	const char *namespace, *name;
	enum gang_kind kind;
	int pool; /* of its pods, -1 for none or several */
	bool is_suspended;
	bool is_looked_at; /* its scheduler has said something of a pod of it that waits */
	int64_t size;	   /* pods that it needs at once */
	int64_t exist, pending, running, finished;
	int64_t gpus_milli; /* of all pods that exist */
	millis since;
};

/* By namespace and name; gangs of size 1 are none. */
struct gang *cluster_gangs(const struct cluster *c, struct arena *a, size_t *count);

struct quota {
	const char *namespace, *name;
	const char *resource; /* "requests.nvidia.com/gpu" */
	int64_t hard, used;
};
/* GPU quotas, by namespace and name. */
struct quota *cluster_quotas(const struct cluster *c, struct arena *a, size_t *count);

/* The sum of the GPUs of all known nodes and of what the pods there ask for. */
struct cluster_gpus {
	int64_t allocatable_milli, used_milli, finished_milli; /* finished: asked for by pods that ended and remain */
};
struct cluster_gpus cluster_gpus(const struct cluster *c);
