/*
 * What the API server holds of one resource, told as it changes: a list,
 * then a watch, for ever. Nothing is lost and nothing told twice over a
 * broken connection or an expired version: after a new list, objects that
 * are not in it any more are told gone, each exactly once.
 *
 * Of each object that its reader keeps, the watch remembers 16 bytes of uid
 * and the number of the list that last held it (24 bytes); of others nothing.
 *
 * A list comes by one of three ways. WHOLE is one answer from the server's
 * cache, but never of an older version than was seen before, whichever server
 * answers; where its cache does not come so far, pages are read from etcd.
 * PAGED costs as much. STREAMED (sendInitialEvents) takes two to three times
 * as long and a third more of our CPU at 50,000 pods, but the server does not
 * hold the whole answer; where it is not offered pages are read.
 */
#pragma once
#include "controller/cluster/api.h"

struct object_uid {
	uint64_t high, low;
};

/* Of "8c0f3a44-...": its 128 bits; of any other text: a hash of it. NULL: zero. */
struct object_uid object_uid_of(const char *text);

struct watch;

/* Beside the reader's own record; valid during the call. */
struct watch_seen {
	struct object_uid uid;
	const char *name_space, *name, *uid_text; /* name_space NULL: cluster-scoped */
	const char *resource_version;
	millis arrived;	   /* by the clock, when the bytes came */
	bool is_from_list; /* part of a list: may have been told before, and not new */
};

enum watch_way { WATCH_STREAMED, WATCH_PAGED, WATCH_WHOLE };

struct watch_spec {
	const char *name;			     /* "pods": for messages and metrics */
	const char *path;			     /* "/api/v1/pods" */
	const char *label_selector, *field_selector; /* may be NULL */
	const struct record_spec *object; /* fields of the object; at most 48 of them; must outlive the watch */
	enum watch_way way;		  /* of lists; a server that does not stream is read by pages */
	/* Returns whether the reader keeps the object: only then is it told gone. Told false after true: forgotten. */
	bool (*on_object)(void *user, const void *record, const struct watch_seen *seen);
	void (*on_gone)(void *user, struct object_uid uid, millis arrived);
	void (*on_synced)(void *user);	/* after each complete list; may be NULL */
	void (*on_stopped)(void *user); /* after watch_stop(), from the loop: the last that is told; may be NULL */
	void *user;
	millis silence; /* 0: WATCH_SILENCE */
	int page;	/* objects; 0: WATCH_PAGE */
};

enum watch_state {
	WATCH_STARTING, /* no complete list yet */
	WATCH_SYNCED,
	WATCH_BEHIND,  /* was in sync, and is between two connections; with `trouble` what is known may be old */
	WATCH_ABSENT,  /* the server knows no such resource */
	WATCH_REFUSED, /* 401, 403 */
	WATCH_STOPPED,
};

#define WATCH_PAGE 5000 /* a tenth slower than one answer, and bounded; pages of 500 take twice the time */
/*
 * A server that has just started refuses everybody for some seconds, and may not know of every resource yet. What it
 * refused or did not know is asked for again after 1, 2, 5 and 10 seconds and then every WATCH_SLOW, each with up to a
 * fifth on top. Of what was listed before, the state stays WATCH_BEHIND, with the trouble, until the fifth such answer
 * in a row.
 */
#define WATCH_REFUSALS 4
#define WATCH_SLOW     (30 * SECOND)
#define WATCH_FIRST    (200)	      /* the first back-off, at most */
#define WATCH_LONGEST  (10 * SECOND)  /* any later one: nothing shrinks meanwhile */
#define WATCH_TIMEOUT  300	      /* seconds of one watch, plus up to a fifth */
#define WATCH_ACCEPT   (15 * SECOND)  /* a watch that is not accepted by then is begun anew */
#define WATCH_SILENCE  (150 * SECOND) /* two bookmarks (each minute) and a half without a byte: dead */

struct watch_report {
	enum watch_state state;
	millis synced_at;     /* of the last complete list; 0: never */
	millis last_event;    /* arrival, bookmarks included */
	int64_t objects;      /* kept */
	int64_t lists;	      /* complete ones */
	int64_t relists;      /* because a version had expired */
	int64_t reconnects;   /* watches begun after the first */
	int64_t failures;     /* of calls */
	int64_t events;	      /* objects told, lists included */
	int64_t unreadable;   /* objects that could not be decoded, and were left out */
	struct error trouble; /* the last failure; ERROR_NONE since the last success */
};

struct watch *watch_start(struct api *api, const struct watch_spec *spec);
/* Nothing but on_stopped() is told afterwards; it frees itself once its call has completed. Takes NULL. */
void watch_stop(struct watch *w);
const char *watch_name(const struct watch *w);
bool watch_is_synced(
	const struct watch *w); /* in sync once, and not refused; an absent resource is in sync with nothing */
const struct watch_report *watch_report(const struct watch *w);
const char *watch_state_name(enum watch_state s);
