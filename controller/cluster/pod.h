/*
 * A pod as the model knows it. Fields are read by anyone and written by the
 * model alone; texts live as long as the pod. Times are milliseconds since
 * the epoch, 0 when it has not happened: as the event arrived, or, for what
 * was there when listed, as the object itself says in whole seconds.
 */
#pragma once
#include "base/millis.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct label_set;
struct node;
struct pod_shape;

/* What made the pod: its owner reference that is the controller. */
struct pod_owner {
	const char *kind, *name, *uid;
};

enum pod_state {
	POD_UNSCHEDULED, /* no node yet */
	POD_GATED,	 /* no node, and held back by its own scheduling gates: nobody shall serve it */
	POD_SCHEDULED,	 /* on a node, containers not started */
	POD_PULLING,	 /* the image does not come: see `trouble` */
	POD_STARTED,	 /* containers run, not ready */
	POD_CRASHING,	 /* a container keeps ending: see `trouble` */
	POD_READY,
	POD_TERMINATING, /* deletion asked, grace running */
	POD_FINISHED,	 /* succeeded or failed */
	POD_STATE_COUNT
};

enum pod_trouble {
	POD_FINE,
	POD_IMAGE_PULL,	   /* ErrImagePull, ImagePullBackOff */
	POD_IMAGE_NAME,	   /* InvalidImageName, ErrImageNeverPull, ImageInspectError */
	POD_CONFIG,	   /* CreateContainerConfigError, CreateContainerError, RunContainerError */
	POD_CRASH_LOOP,	   /* CrashLoopBackOff */
	POD_UNSCHEDULABLE, /* the scheduler found no node */
	POD_TROUBLE_COUNT
};

/* cluster-autoscaler.kubernetes.io/safe-to-evict */
enum pod_evict { POD_EVICT_UNSAID, POD_EVICT_SAFE, POD_EVICT_NEVER, POD_EVICT_ON_COMPLETION };

/* What stands behind the pod, as far as draining must know it. */
enum pod_kind {
	POD_BARE,	/* nobody makes a new one */
	POD_REPLICATED, /* a controller makes a new one */
	POD_DAEMON,	/* of a DaemonSet */
	POD_STATIC,	/* the API server's copy of a static pod */
	POD_KIND_COUNT
};

/*
 * What the engine in a pod does with its GPU. The kubelet finds one that sleeps healthy, so readiness does not tell:
 * labels of whoever puts it to sleep do, and its metrics. Only one that is awake takes requests. In engine_state_label,
 * "awake", "falling-asleep", "asleep" or "waking" count; FMA's dual-pods.llm-d.ai/sleeping and production-stack's
 * sleeping are "true" for an engine that sleeps.
 */
enum pod_engine { POD_ENGINE_AWAKE, POD_ENGINE_FALLING_ASLEEP, POD_ENGINE_ASLEEP, POD_ENGINE_WAKING, POD_ENGINE_COUNT };
/* vLLM's: 1 has its weights in host memory, 2 must load them again. */
enum pod_sleep { POD_SLEEP_NONE, POD_SLEEP_1, POD_SLEEP_2, POD_SLEEP_UNTOLD };
/* Names the pool whose images the pod pulls. */
#define PREFETCH_LABEL	   "preheat.dev/prefetch"
#define ENGINE_STATE_LABEL "preheat.dev/engine-state"
/* Of the engine's container, in seconds, when the label was written: of one that has started anew since it says
 * nothing, as that is awake. */
#define ENGINE_STARTED_ANNOTATION "preheat.dev/engine-started"
/* The same of one of several engines in a pod, before the name of its pool. */
#define ENGINE_STATE_PREFIX   "engine-state.preheat.dev/"
#define ENGINE_STARTED_PREFIX "engine-started.preheat.dev/"

struct pod {
	const char *namespace, *name;
	const char *image;	  /* of the container that asks for GPUs, else of the first */
	const char *trouble_text; /* what the API server says of it, cut; "" without */
	const struct node *node;  /* NULL without */
	const struct label_set *labels;
	const struct pod_shape *shape; /* what it asks of a node */
	const struct pod_owner *owner; /* its controller, NULL for none */
	uint64_t uid[2];	       /* its 128 bits, high half first */
	int64_t version;	       /* its resourceVersion, 0 where that is no number */
	int pool;		       /* index among the pools given, -1 for none */
	int priority;
	int deletion_cost;
	int grace_seconds;

	millis created_at, scheduled_at, started_at, ready_at;
	millis terminating_at;	  /* deletion was asked */
	millis undisturbed_until; /* do_not_disrupt_annotation: INT64_MAX for ever, 0 not at all */
	int64_t gpus_milli;	  /* asked for, thousandths of whole GPUs on its node (of whole devices without one) */

	enum pod_state state;
	enum pod_trouble trouble;
	enum pod_evict evict;
	enum pod_kind kind;
	/* What its labels say, unless they say awake and the engine itself tells that it sleeps. */
	enum pod_engine engine;
	enum pod_engine engine_label; /* awake without one */
	enum pod_sleep sleep;	      /* as the engine told */
	millis engine_since;	      /* when `engine` was first seen so */
	millis engine_started;	      /* its container, by the kubelet's clock; 0: it does not run */
	bool is_placeholder;	      /* label preheat.dev/placeholder, which names its pool */
	bool is_prefetch;	/* label preheat.dev/prefetch, which names a pool: it pulls an image, and is of none */
	bool has_local_storage; /* emptyDir or hostPath that nothing excuses */
	bool has_gpus;
	/* Claims of volumes or devices, pod affinity, topology spread or a scheduler of its own say where it may run:
	 * what they say is kept only while it has no node. */
	bool is_choosy;
	bool is_looked_at; /* its scheduler has said something of it, if only that it found no node */
	char ip[46];	   /* "" when none yet */
	/* Several pools of one share may each have an engine in a pod, on a port of its own. The pod is then once more
	 * in the list of each pool after its first, with that pool and the state of its engine, and holds no GPUs
	 * there: neither its node nor anybody who counts pods sees it twice. */
	struct pod *beside; /* the next of its engines, NULL: no more */
	bool is_beside;	    /* it is one of those after the first */

	/* private to the model */
	millis offered_at, given_up_until; /* it fits a node that there is, since; is not waited for, until */
	millis tried_at;		   /* given up before, and waited for again, since */
	int given_up_count;
	struct pod_refusals *refusals;	    /* NULL without */
	bool is_slow, was_silent;	    /* was_silent: its scheduler bound nobody while it was offered a node */
	bool has_machine;		    /* on its way, bought for it */
	int own_group;			    /* where that is */
	bool is_told;			    /* that it is on its way */
	struct pod *next, **link;	    /* among the pods of its node, or those that wait */
	struct pod *pool_next, **pool_link; /* among those of its pool */
	const char *
		engine_key; /* label of its engine beside others: ENGINE_STATE_PREFIX and the pool; NULL: in no share */
	const char *gang;   /* name of the pod group that it is of, NULL without */
	const char *nominated; /* name of the node where its scheduler makes room for it by preemption, NULL without */
	int gang_kind, gang_size;
	uint32_t hash;
};

/* The value of a label, NULL without. */
const char *pod_label(const struct pod *p, const char *key);
/* Several engines are in it. */
static inline bool pod_has_engines(const struct pod *p)
{
	return p->beside != NULL || p->is_beside;
}
/* Its engine has a label of its own. */
bool pod_is_labelled_apart(const struct pod *p);
/* Its engine's state as it is written: the label of that engine, else that of the pod; NULL without. */
const char *pod_engine_label(const struct pod *p);
/* A label of an engine in it says that it does not sleep, and no pool has that engine any more. */
bool pod_has_left_engine(const struct pod *p);
/* "9f1c...-...": into 37 bytes. */
void uid_text(const uint64_t uid[2], char text[37]);
void pod_uid_text(const struct pod *p, char text[37]);
/* Asks for GPUs or belongs to a pool. */
bool pod_is_ours(const struct pod *p);
/*
 * Its priority is below Cluster Autoscaler's cutoff, and no pool selects it: it asks for no machine and holds none.
 */
#define POD_EXPENDABLE_BELOW (-10)
bool pod_is_expendable(const struct pod *p);
/* Needs no other place when its node goes: a placeholder, an expendable pod, or one of the pool that gives the node up
 * (-1: none). */
bool pod_goes_with_node(const struct pod *p, int pool);
/* Its engine sleeps, or falls asleep. */
static inline bool pod_sleeps(const struct pod *p)
{
	return p->engine == POD_ENGINE_ASLEEP || p->engine == POD_ENGINE_FALLING_ASLEEP;
}
/* Holds GPUs or will: neither finished nor gated. */
bool pod_counts(const struct pod *p);
