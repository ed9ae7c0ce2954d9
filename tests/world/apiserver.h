/*
 * The API server as a world plays it: objects with versions, lists and
 * watches, patches that conflict, scales, evictions under budgets. Who is
 * inside the world (schedulers, kubelets, people) edits objects and says so.
 */
#pragma once
#include "tests/world/value.h"
#include "tests/world/wire.h"

#define APISERVER "https://kubernetes.world"

enum kind {
	KIND_NODE,
	KIND_POD,
	KIND_BUDGET,
	KIND_QUOTA,
	KIND_JOB,
	KIND_EVENT,
	KIND_DEPLOYMENT,
	KIND_LEASE,
	KIND_WARM_POOL,
	KIND_VOLUME_CLAIM,
	KIND_VOLUME,
	KIND_STORAGE_CLASS,
	KIND_NAMESPACE,
	KIND_DEVICE_CLAIM,
	KIND_AUTOSCALER,
	KIND_SERVICE,
	KIND_SLICE,
	KIND_COUNT
};

struct object {
	enum kind kind;
	struct object *next; /* of its kind, in the order of creation */
	struct value *value;
	const char *space, *name, *uid; /* in `value`; "" without a namespace */
	void *extra;			/* of whoever plays it; freed with it */
};

struct apiserver_write {
	int from;
	const char *verb, *resource, *sub; /* "patch", "nodes", "" */
	const char *space, *name;
	long status;
	bool is_again; /* the network delivered it twice */
};

struct apiserver_faults {
	bool is_away;	       /* nobody listens */
	int refuse_permille;   /* of calls: 500 */
	int throttle_permille; /* 429 */
	bool refuses_slices;   /* writes of EndpointSlices: 500 */
	bool hides_scalers;    /* somebody took the right to list autoscalers away */
	bool holds_events;     /* watches fall behind: nothing is told until it is over */
};

void apiserver_begin(void);
void apiserver_end(void);
struct apiserver_faults *apiserver_faults(void);
void apiserver_serve(struct wire_call *c);
/* Told each write that came over the wire, before its answer. */
void apiserver_on_write(void (*written)(const struct apiserver_write *w));

struct object *apiserver_first(enum kind k);
struct object *apiserver_find(enum kind k, const char *space, const char *name); /* NULL: there is none */
struct object *apiserver_create(enum kind k, struct value *v);			 /* takes v, of a new name */
void apiserver_changed(struct object *o); /* another version; whoever watches is told */
void apiserver_delete(struct object *o);
/* As whoever has that name in managedFields: "kubectl". */
void apiserver_scale(struct object *o, const char *manager, int64_t replicas);
void apiserver_evict(struct object *pod); /* somebody does, where its budgets allow it */
void apiserver_cut_watches(void);
void apiserver_forget_versions(void); /* watches from before have expired */
void apiserver_catch_up(void);	      /* what holds_events kept back */
bool apiserver_selects(const struct value *labels, const struct value *object);
void apiserver_time(millis wall, char text[32]);
/* Pods of a budget that may go now. */
int64_t apiserver_allowed(const struct object *budget);
