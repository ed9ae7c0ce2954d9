/*
 * A world for the whole controller, in one process and without a socket: an API server, a cloud, kubelets, a scheduler,
 * model servers with traffic, and replicas of the controller as the verb `run` opens them. One second after the other,
 * from a seed; after each the laws are looked at (laws.h).
 */
#pragma once
#include "tests/world/apiserver.h"
#include "tests/world/cloud.h"
#include "tests/world/engines.h"
#include "tests/world/replica.h"

enum { WORLD_APPS = 16, WORLD_JOBS = 8 };

/* What is played of a pod beside its object. */
struct pod_life {
	struct world_app *app; /* NULL: none, or nobody asked yet; worlds would spend a tenth of their time on asking */
	millis bound, image, loaded; /* when each was or will be; 0: not yet */
	bool is_up, is_ready, is_engine;
	bool is_end_seen;	  /* by the controller that made it */
	millis ready_since, ends; /* ends: when it is gone; 0: it was not told to go */
	int ip;
	struct model_server engine, page_before; /* before: as its page said when it was last true */
	struct model_server beside;		 /* of the app that has its engines in these pods, too */
};

/* Of a node; beside its object. What its disk holds of images goes with the node. */
struct node_life {
	const struct cloud_machine *machine;
	millis cordoned_since; /* 0: it is not */
	char marked_by[64];    /* as the last write left it; "": nobody */
	struct {
		char name[64];
		millis there; /* pulled by then */
	} images[4];
	size_t image_count;
};

/* What the model servers of an app tell instead of the truth; NAN to ENDLESS: as their pages. LOW_LEVELS: a share of
 * it; OLD_LEVELS: of when it began to lie. The counters of both are true. */
enum server_lie {
	LIE_NONE,
	LIE_ZERO_LEVELS,
	LIE_LOW_LEVELS,
	LIE_OLD_LEVELS,
	LIE_HUNG,
	LIE_NAN,
	LIE_NEGATIVE,
	LIE_RESET,
	LIE_REPLAY,
	LIE_ENDLESS
};

struct world_app {
	const char *name;
	struct random random; /* its own: what other apps do moves none of its traffic */
	int gpus;
	int slots;
	double service_s;  /* of one request */
	double rate;	   /* requests a second, from now on */
	bool is_mute;	   /* its metrics answer 500 */
	millis mute_since; /* replicas serve, and tell nothing; 0: not so */
	int64_t waiting;   /* nowhere to go yet */
	int64_t requests;
	bool no_image;	     /* it cannot be pulled */
	int64_t gone_unseen; /* pods that its controller still counts: no watch told it that they went */
	enum server_lie lie;
	int shows_permille;  /* of its levels, with LIE_LOW_LEVELS */
	bool counts_at_ends; /* tokens are counted as requests end */
	bool is_unready;     /* its readiness probes fail */
	bool is_idle;	     /* its pods are the work: no requests, nothing scraped */
	bool holds_pods;     /* a finalizer that nobody takes away: pods that have ended stay */
	int64_t loads[LOAD_SECONDS];
	bool is_shared;		 /* its engines sleep and wake, one a GPU; requests go by their labels */
	bool is_daemon;		 /* no drain asks its pods to go */
	bool has_claims;	 /* its pods claim a GPU each, with those of other apps: several may be on a node */
	bool has_no_completions; /* it embeds: there is no such endpoint */
	bool is_sglang; /* its engines do not tell that they sleep, and crash where they are told what is so already */
	struct world_app *host; /* its engines are beside this one's, in the same pods; NULL: it has pods itself */
	bool is_host;		/* of such an app */
	bool are_two_awake;	/* its GPUs hold that */
	millis sleep_ms, wake_ms;
	int wakes_fail, wakes_hang; /* so many of the next */
};

void world_begin(uint64_t seed);
void world_end(void);
/* A Deployment of that name in namespace llm, its budget (maxUnavailable, "": none), and traffic. */
struct world_app *world_app(const char *name, int64_t replicas, int gpus, const char *max_unavailable);
struct world_app *world_app_at(size_t i); /* NULL beyond the last */
/* One whose engines share the nodes with that label: one on each, as their Deployment's template has them, asleep or
 * awake by the label that their pods begin with. */
struct world_app *world_shared_app(const char *name, const char *nodes, int64_t replicas);
/* One whose engines are in the pods of another, on port 8001. Both are routed to by slices. */
struct world_app *world_app_beside(const char *name, struct world_app *host);
/* A Job of pods. */
struct world_job {
	const char *name, *pool;
	int64_t pods;
	bool is_loose;	  /* pods without an index: no gang */
	int cpus;	  /* that each requests */
	const char *spec; /* NULL, or further members of their spec, each with a comma before it, with ' for " */
	int gpus;	  /* that each asks for; 0: one */
};
void world_job(const struct world_job *j);
void world_job_for(const struct world_job *j, millis runs); /* all together so long, and is cleared away then */
void world_job_ends(const char *name);			    /* its pods have succeeded */
int64_t world_job_running(const char *name);
void world_scheduler(bool is_there); /* who is away looks at no pod */
void world_keeps_images(void);	  /* a node pulls each once, in a time of its own; else each replica does in its own */
void world_scheduler_looks(void); /* at all that wait, between two seconds */
struct cloud_group *world_group(const char *name, const char *pool, int gpus, int64_t min, int64_t max,
				int64_t initial);

void world_run(millis duration);
void world_events(int64_t count); /* so many timers fire */
/* Until it is so; false: not within that time. */
bool world_until(bool (*is_so)(void), millis most);

int64_t world_ready(const char *app);
int64_t world_replicas(const char *app); /* of the Deployment's spec */
void world_set_replicas(const char *app, int64_t replicas);
int64_t world_ended_serving(void);	 /* pods that served, and were ended for a lower number of replicas */
int64_t world_desired(const char *pool); /* machines, of all its groups */
/* A machine without GPUs, of no group, with so many CPUs. */
void world_plain_node(const char *name, int cpus);
/* A pod of a ReplicaSet, in the namespace llm, that asks for so many CPUs; `more`: members of its metadata. */
void world_plain_pod(const struct object *node, const char *name, int cpus, const char *more);
struct object *world_node_of(const char *machine);
bool world_is_at_rest(void);	/* no machine and no pod is on its way, no node is marked */
const char *world_unrest(void); /* a machine that is marked, or serves nobody; NULL: there is none */
bool world_event_told(const char *reason);
bool world_event_says(const char *reason, const char *part); /* of its note */
struct pod_life *pod_life(const struct object *pod);
struct world_app *pod_app(const struct object *pod); /* by its label; NULL: none */
const char *pod_node(const struct object *pod);	     /* "": it waits */
bool pod_is_going(const struct object *pod);
