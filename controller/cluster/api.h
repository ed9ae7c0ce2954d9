/*
 * Calls to the Kubernetes API server. A call completes exactly once, always
 * from the loop, never inside api_start(); its memory, and all that it
 * points to, belongs to the caller until then. Every call has a deadline and
 * a cap. Reads, and what the caller says may be sent twice, are tried again
 * within the deadline with jitter, as the server's Retry-After asks.
 *
 * Writing calls pass one gate. While it is closed they complete with
 * ERROR_CANCELLED, "not sent: WHY", without touching the network; those in
 * flight when it closes are cancelled, and send nothing more.
 */
#pragma once
#include "base/buf.h"
#include "base/clock.h"
#include "base/decode.h"
#include "base/millis.h"
#include "base/net/http.h"
#include "base/net/retry.h"
#include "controller/cluster/kubeconfig.h"

/*
 * As whom we speak: a token that stands, one in a file that is read again,
 * or one that an exec plug-in hands out until it expires. Nobody but the API
 * client asks; no secret leaves through an error or a log line.
 */

struct clock;
struct credential;

/* What to show the server. Counted: stays as it is until everyone who holds it let go. */
struct credential_shown {
	const char *token; /* NULL: none */
	struct http_tls tls;
	unsigned holders; /* private */
	struct arena arena;
};

/* What the API server says when it refuses: a Status object, and the error that it means to us. */

struct api_cause {
	const char *reason; /* "DisruptionBudget", "FieldValueInvalid" */
	const char *field, *message;
};

struct api_status {
	const char *reason; /* "Expired", "Forbidden", "AlreadyExists"; NULL when the answer was no Status */
	const char *message;
	const char *kind, *name; /* of the object it is about */
	int64_t code;
	int64_t retry_after_seconds;
	struct decoded_list causes; /* of struct api_cause */
};

extern const struct record_spec status_record;

/* JSON or Protobuf. Texts live in the arena. An answer that is no Status leaves `out` empty. */
void status_read(const char *text, size_t len, struct arena *a, struct api_status *out);
bool status_has_cause(const struct api_status *s, const char *reason);
/*
 * 401 403 AUTH, 404 NOT_FOUND, 409 CONFLICT, 410 NOT_FOUND, 422 and other 4xx INVALID, 429 THROTTLED, 504 TIMEOUT,
 * 5xx UNAVAILABLE. The message is the server's own, with method and path before it.
 */
bool status_error(const struct api_status *s, long code, const char *call, struct error *e);

enum api_effect {
	API_READ,
	API_WRITE, /* passes only an open gate */
	API_LEASE, /* the leader's lease: passes while we may not act, never in a dry run */
};

enum api_gate {
	API_GATE_OPEN,
	API_GATE_LEASE_ONLY, /* not the leader (yet) */
	API_GATE_SHUT,	     /* dry run */
};

struct api;

struct api_setup {
	struct loop *loop;
	struct http *http;
	const struct clock *clock;	 /* the wall's; durations of calls are counted in the machine's time */
	const struct kubeconfig *access; /* must outlive it */
	uint64_t seed;			 /* of the jitter */
};

struct api_call {
	/* Filled in by the caller. */
	const char *method;	  /* "GET"; NULL: GET */
	const char *path;	  /* from the root, query included: "/api/v1/nodes?limit=500" */
	const char *body;	  /* may be NULL */
	size_t body_len;	  /* 0 with a body: strlen */
	const char *content_type; /* NULL: application/json */
	enum api_effect effect;
	bool is_repeatable;  /* a write that may be sent twice */
	bool is_single;	     /* a read that is not tried again */
	bool needs_server;   /* a read that is tried again only after an answer: who refuses connections is told at once
			      */
	bool takes_protobuf; /* rather than JSON, from a server that writes it */
	millis timeout;	     /* of all attempts together; 0: API_TIMEOUT, or none where `silence` is given */
	millis silence;	     /* no byte for so long: the connection is dead; 0: not watched */
	size_t cap;	     /* of `response`; 0: API_RESPONSE_CAP */
	bool (*on_chunk)(struct api_call *c, const char *bytes,
			 size_t len);		 /* takes 2xx bodies as they come; may be NULL */
	void (*on_accepted)(struct api_call *c); /* once the header of a 2xx answer is there; may be NULL */
	void (*done)(struct api_call *c);
	void *user;

	/* Valid inside done(), and no longer. Any status but 2xx is an error here. */
	struct error error;
	long status;	      /* 0: no answer */
	const char *response; /* NUL-terminated, never NULL */
	size_t response_len;
	struct api_status answer; /* what a refusal said */
	bool is_expired;	  /* 410: the resource version is too old */
	bool is_barred;		  /* the gate kept it back, or stopped it */
	bool is_protobuf;	  /* what comes: known to on_accepted() and from then on */
	millis retry_after;	  /* what the server asked for; 0: nothing */
	int attempts;

	/* Private; zeroed at first. */
	struct api *api;
	struct api_call *next, *previous;
	struct api_request *request; /* while it is under way */
	struct credential_shown *shown;
	struct timer timer;
	struct retry retry;
	struct arena arena;
	millis deadline;
	int state;
	bool is_cancelled, was_refused, has_chunks;
};

#define API_TIMEOUT	 (30 * SECOND)
#define API_RESPONSE_CAP ((size_t)4 << 20)

struct api *api_open(const struct api_setup *s);
void api_close(struct api *a); /* every call must have completed; takes NULL */
void api_start(struct api *a, struct api_call *c);
void api_cancel(struct api_call *c); /* completes as ERROR_CANCELLED; nothing when it is not under way */
void api_cancel_all(struct api *a);
size_t api_active(const struct api *a);

/* `why_not` is copied, and shown in what is not sent: "dry run", "this replica does not lead". Open at first. */
void api_set_gate(struct api *a, enum api_gate gate, const char *why_not);

/*
 * By loop_now(): from then on writing calls are kept back too, whatever else fires first, and so is every request of
 * the HTTP client that writes, a provider's too (http_write_until). 0: no such time.
 */
void api_set_until(struct api *a, millis until);

const char *api_server(const struct api *a);

struct loop *api_loop(const struct api *a);
/* By which what arrives is stamped: the machine's, until told another. */
const struct clock *api_clock(const struct api *a);
/* Of who found the machine's wrong; outlives `a`, or is taken back with NULL. */
void api_stamp_by(struct api *a, const struct clock *clock);
/* A random stream of its own for whoever needs jitter. */
struct random api_random(struct api *a, const char *purpose);

/*
 * How far the machine's wall clock is ahead of the server's, by the Date of its answers: true once several in a row
 * have told the same, to within as long as they took (API_TIMEOUT).
 */
bool api_clock_ahead(const struct api *a, millis *ahead);

struct api_counts {
	int64_t calls, failures, retries, throttled, barred;
};
struct api_counts api_counts(const struct api *a);

/* Kinds that were looked up, for verbs.h. */
struct api_kind {
	const char *api_version, *kind, *plural;
	bool is_namespaced, has_scale;
	struct api_kind *next;
};
const struct api_kind *api_kind_known(const struct api *a, const char *api_version, const char *kind);
const struct api_kind *api_kind_learn(struct api *a, const struct api_kind *k); /* copied */

/*
 * "/api/v1/namespaces/NS/PLURAL/NAME/SUB" or "/apis/GROUP/VERSION/...": parts may be NULL and are escaped.
 */
struct api_object {
	const char *api_version; /* "v1", "apps/v1" */
	const char *plural;	 /* "deployments" */
	const char *name_space, *name, *subresource;
};
void api_object_path(const struct api_object *o, struct buf *out);
/* "2026-01-02T15:04:05.250000Z", as MicroTime is written. */
void api_time(millis at, struct buf *out);
/* "key":"value", behind a comma where one is due; nothing for a NULL value. */
void api_member(const char *key, const char *value, struct buf *out);
/* "?name=value" or "&name=value", escaped; nothing for a NULL value. */
void api_query(struct buf *url, const char *name, const char *value);
