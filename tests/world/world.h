/*
 * A world for the whole controller, in one process and without a socket: an API server, a cloud, kubelets, a scheduler,
 * model servers with traffic, and replicas of the controller as the verb `run` opens them. One second after the other,
 * from a seed; after each the laws are looked at (laws.h).
 */
#pragma once
#include "tests/world/apiserver.h"
#include "tests/world/cloud.h"

enum {
	WORLD_APPS = 4,
	WORLD_REPLICAS = 2,
	WORLD_JOBS = 8,
	LOAD_SECONDS = 120,
	SERVER_SLOTS = 16,
	SERVER_WAITING = 4096,
	WAIT_EDGES = 12
};

/* A model server in a pod. */
struct model_server {
	int running;
	millis ends[SERVER_SLOTS];
	int waiting;
	millis arrived[SERVER_WAITING];
	int64_t started, completed, waits[WAIT_EDGES + 1];
	double waited_s;
};

/* What is played of a pod beside its object. */
struct pod_life {
	millis bound, image, loaded; /* when each was or will be; 0: not yet */
	bool is_up, is_ready, is_engine;
	millis ready_since, ends; /* ends: when it is gone; 0: it was not told to go */
	int ip;
	struct model_server engine, page_before; /* before: as its page said when it was last true */
};

/* Of a node; beside its object. */
struct node_life {
	const struct cloud_machine *machine;
	millis cordoned_since; /* 0: it is not */
};

enum metrics_lie { LIE_NONE, LIE_NAN, LIE_NEGATIVE, LIE_RESET, LIE_REPLAY, LIE_ENDLESS, LIE_ZERO_RUNNING };

struct world_app {
	const char *name;
	int gpus;
	int slots;
	double service_s;  /* of one request */
	double rate;	   /* requests a second, from now on */
	bool is_mute;	   /* its metrics answer 500 */
	millis mute_since; /* replicas serve, and tell nothing; 0: not so */
	int64_t waiting;   /* nowhere to go yet */
	int64_t requests;
	bool no_image; /* it cannot be pulled */
	bool is_idle;  /* its pods are the work: no requests, nothing scraped */
	/* What its replicas' pages say beside the truth. */
	enum metrics_lie lie;
	const char *on; /* the pool on whose machines it runs, too; NULL: of its own name */
	int64_t loads[LOAD_SECONDS];
	bool holds_pods; /* a finalizer that nobody takes away: pods that have ended stay */
};

struct replica;

void world_begin(uint64_t seed);
void world_end(void);
/* A Deployment of that name in namespace llm, its budget (maxUnavailable, "": none), and traffic. */
struct world_app *world_app(const char *name, int64_t replicas, int gpus, const char *max_unavailable);
struct world_app *world_app_at(size_t i); /* NULL beyond the last */
/* A Job in namespace llm whose pods run together, so long, with the app's label. */
void world_job(const char *name, const char *app, int64_t pods, int gpus, millis runs);
struct cloud_group *world_group(const char *name, const char *pool, int gpus, int64_t min, int64_t max,
				int64_t initial);

struct replica_settings {
	const char *manifest; /* as text; NULL: none */
	bool elects, is_dry_run, watches_objects;
	const char *lease; /* NULL: "preheat" */
};
/* A process begins, goes on where one of that number was, or begins anew; is killed; is asked to stop. */
void replica_start(int who, const struct replica_settings *s);
void replica_kill(int who);
void replica_stop(int who);
bool replica_is_up(int who);
void replica_pause(int who, bool is_paused);	    /* as with SIGSTOP and SIGCONT */
const struct published *replica_published(int who); /* NULL: it is not up */
int replica_leader(void);			    /* by the lease; -1: nobody */
const char *replica_lease(int who);		    /* its name */
/* By its own lease; false: another does, or nobody. */
bool replica_leads(int who);
/* It dies now, inside whatever it does, with its disk as it is: at the latest when the next thing happens. */
void replica_die(int who);
void replica_bury(int who); /* if it died */

void world_run(millis duration);
void world_events(int64_t count); /* so many timers fire */
/* Until it is so; false: not within that time. */
bool world_until(bool (*is_so)(void), millis most);

int64_t world_ready(const char *app);
int64_t world_replicas(const char *app); /* of the Deployment's spec */
void world_set_replicas(const char *app, int64_t replicas);
int64_t world_desired(const char *pool); /* machines, of all its groups */
struct object *world_node_of(const char *machine);
bool world_is_at_rest(void);	/* no machine and no pod is on its way, no node is marked */
const char *world_unrest(void); /* a machine that is marked, or serves nobody; NULL: there is none */
int64_t world_least_load(const struct world_app *a); /* requests in it at every moment of the last LOAD_SECONDS */
bool world_event_told(const char *reason);
const char *pod_node(const struct object *pod); /* "": it waits */
bool pod_is_going(const struct object *pod);
