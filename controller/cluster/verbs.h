/*
 * What Preheat does to a cluster's objects, one call a verb. Each completes
 * exactly once, from the loop; its memory and what it points to belongs to
 * the caller until then. All but the reads are API_WRITE and pass the gate.
 */
#pragma once
#include "controller/cluster/api.h"

struct verb_pair {
	const char *key, *value; /* value NULL: taken away */
};

struct node_taint {
	const char *key, *value; /* value may be NULL */
	const char *effect;	 /* "NoSchedule" */
};

/* CORDON_OFF: where a taint of `remove` is found, or an annotation that is taken away. What others cordoned stays so.
 */
enum cordon { CORDON_KEEP, CORDON_ON, CORDON_OFF };

/*
 * Cordon, taints, labels and annotations of a node in one write. The list of taints is one value to the server: it is
 * read, changed and written with its resource version, and once more after a conflict. Nothing to change: no write.
 */
struct node_change {
	const char *node;
	enum cordon cordon;
	const struct node_taint *add; /* the same key and effect with another value is replaced */
	size_t add_count;
	const struct node_taint *remove; /* by key and effect */
	size_t remove_count;
	const struct verb_pair *annotations, *labels;
	size_t annotation_count, label_count;
	const char *owner; /* NAMESPACE/NAME: nothing is written while the first annotation names another; or NULL */
	void (*done)(struct node_change *c);
	void *user;

	struct error error; /* valid inside done() */
	bool is_changed;    /* a write was needed */
	bool is_others;	    /* another's, and left alone; with ERROR_CONFLICT */

	struct api_call call; /* private from here; zeroed at first */
	struct api *api;
	struct buf path, body;
	int rounds;
};
void node_change_start(struct api *a, struct node_change *c);

enum eviction_result {
	EVICTION_DONE,		/* the pod is going */
	EVICTION_GONE,		/* there is no such pod any more, or another of its name */
	EVICTION_CHANGED,	/* it is not as it was at `version` */
	EVICTION_BUDGET,	/* a disruption budget holds it: ask again after retry_after */
	EVICTION_THROTTLED,	/* the server is busy */
	EVICTION_MISCONFIGURED, /* for ever, until a person acts: two budgets on one pod */
	EVICTION_REFUSED,	/* we may not */
	EVICTION_FAILED,	/* anything else, see error */
};
const char *eviction_result_name(enum eviction_result r);

struct eviction {
	const char *name_space, *pod;
	const char *uid;       /* of that very pod; may be NULL */
	int64_t version;       /* only while it is as it was then; 0: however it is */
	int64_t grace_seconds; /* -1: the pod's own */
	bool is_dry_run;       /* asks whether it would be let go; still a writing call */
	void (*done)(struct eviction *v);
	void *user;

	enum eviction_result result; /* valid inside done() */
	struct error error;	     /* ERROR_NONE for DONE and GONE */
	millis retry_after;

	struct api_call call;
	struct buf path, body;
};
void eviction_start(struct api *a, struct eviction *v);

/* The plural under which the server serves a kind, from /apis/GROUP/VERSION; kept once found. */
struct plural_call {
	const char *api_version, *kind;
	void (*done)(struct plural_call *c);
	void *user;

	struct error error;
	const char *plural; /* lives as long as the api */
	bool is_namespaced, has_scale;

	struct api_call call;
	struct api *api;
	struct buf path;
	struct timer timer;
};
void plural_start(struct api *a, struct plural_call *c);

/*
 * The scale of any object that has one; kinds are looked up once. Fewer are set only where no more are ready by the
 * status of the object, in the version that the write carries: a server changes it with the status.
 */
struct scale_call {
	const char *api_version, *kind; /* "apps/v1", "Deployment" */
	const char *name_space, *name;
	bool is_write;	    /* false: only read */
	int64_t replicas;   /* to set; nothing is written when it is so already */
	int64_t kept_above; /* a larger number than this is somebody else's wish and stays; 0: none does */
	bool expects;	    /* nothing is written where another number stands than `expected` */
	int64_t expected;
	int64_t alive; /* pods that are taken for its own: more are not set where it has fewer; 0: not counted */
	void (*done)(struct scale_call *c);
	void *user;

	struct error error;   /* valid inside done(), as what follows. ERROR_NOT_FOUND: no such object, or kind */
	bool is_found;	      /* what stands was read, whatever failed then */
	int64_t wanted;	      /* spec.replicas as it is now */
	int64_t running;      /* status.replicas */
	int64_t before;	      /* spec.replicas as found */
	bool has_others;      /* more were to be set, and not all of `alive` are its own: nothing was written */
	bool is_overtaken;    /* fewer were to be set, and more are ready, or the object changed: nothing was written */
	const char *selector; /* of its pods; may be NULL */

	struct api_call call;
	struct plural_call lookup;
	struct api *api;
	struct buf path, body;
	struct arena arena;
	const char *version; /* as read */
	int rounds;
};
void scale_start(struct api *a, struct scale_call *c);

/* Create, replace, patch or delete by object and body. */
enum object_verb { OBJECT_GET, OBJECT_CREATE, OBJECT_PUT, OBJECT_PATCH /* merge */, OBJECT_APPLY, OBJECT_DELETE };

struct object_call {
	enum object_verb verb;
	struct api_object object; /* CREATE, and a list: without a name */
	const char *body;	  /* JSON; may be NULL for GET and DELETE */
	const char *selector;	  /* GET without a name: a list of those with such labels; may be NULL */
	void (*done)(struct object_call *c);
	void *user;

	struct error error; /* valid inside done(); ERROR_CONFLICT: it exists already, or was changed */
	long status;
	const char *response;
	size_t response_len;

	struct api_call call;
	struct buf path;
};
void object_start(struct api *a, struct object_call *c);

#define MERGE_PATCH "application/merge-patch+json"

/*
 * Asking the API server who a user is, and what that user may do. Nothing is
 * stored by it: both pass the gate as reads do.
 */

#define REVIEW_TIMEOUT (10 * SECOND) /* of all attempts */

struct token_review {
	const char *token; /* need not outlive the start */
	void (*done)(struct token_review *t);
	void *user;

	struct error error; /* valid inside done(), as what follows. ERROR_AUTH: we may not ask */
	bool is_known;
	const char *name; /* of the user; NULL when not known */
	const char *who;  /* all that is known of the user, JSON, for access_review */
	const char *why;  /* the server's word on a token that it does not take; NULL: none */

	struct api_call call; /* private from here; zeroed at first */
	struct buf body;
	struct arena arena;
};
void token_review_start(struct api *a, struct token_review *t);

struct access_review {
	const char *who;	 /* as a token_review told it; need not outlive the start, as the next two */
	const char *verb, *path; /* "get", "/api/v1/pools": nothing of the API server's own */
	void (*done)(struct access_review *r);
	void *user;

	struct error error;
	bool is_allowed;
	const char *why; /* the server's reason; NULL: none */

	struct api_call call;
	struct buf body;
	struct arena arena;
};
/* False when `who` is no user: then done() does not come. */
bool access_review_start(struct api *a, struct access_review *r, struct error *e) MUST_USE;
