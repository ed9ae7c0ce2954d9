/*
 * What a cloud must be able to do for us. One file in this folder implements
 * it, one line in providers/list.def names it.
 *
 * Sizes asked for are absolute, so that a repeated call changes nothing; the
 * group's description is the truth after a crash or a lost answer.
 *
 * Every started call ends in exactly one done(), from the event loop, never
 * inside the call. The call stays the caller's and must live until then.
 */
#pragma once
#include "base/arena.h"
#include "base/error.h"
#include "base/millis.h"
#include "providers/node_promise.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct http;
struct loop;
struct provider;

/* Reads of clouds catch up within seconds as a rule (docs/providers.md); none was heard of that took longer. */
#define LAG_MOST (2 * MINUTE)

enum machine_state {
	MACHINE_PENDING, /* bought, not running yet */
	MACHINE_RUNNING,
	MACHINE_STOPPING, /* on its way to standby */
	MACHINE_STOPPED,  /* standby */
	MACHINE_WAKING,	  /* standby on its way back */
	MACHINE_TERMINATING,
	MACHINE_STATE_COUNT
};

struct machine {
	const char *id;		   /* what remove and stop name */
	const char *provider_id;   /* as Node.spec.providerID will say */
	const char *zone;	   /* "" when not told */
	const char *instance_type; /* "" when not told */
	enum machine_state state;
	bool never_ran;			 /* it stands by, and its disk has nothing of an earlier run */
	bool is_guarded;		 /* in service, and kept from being chosen to end, by whomever */
	bool is_standby;		 /* it shall end stopped, or is: counts towards standby, not towards desired */
	millis launched_at, state_since; /* 0 when not told */
	/* Where a stop takes some machines for certain and no others: the highest goes first. 0: all are alike. */
	int64_t stop_rank;
};

/* A launch that the cloud tried and gave up; told again until it is forgotten by the cloud. */
struct launch_failure {
	int64_t id;	      /* grows; what was seen before is known by it */
	millis at;	      /* 0 when not told */
	enum error_kind kind; /* ERROR_STOCKOUT, ERROR_QUOTA, ... */
	const char *message;
	int64_t count;			  /* machines */
	const char *zone, *instance_type; /* what could not be had; "": not told, so all of the group */
	millis back_off;		  /* how long that lasts for this code, as the field knows; 0: not told */
};

/* What the cloud keeps of a machine that is new: whether it may choose it to end. */
enum new_machines {
	NEW_MACHINES_THEIRS,  /* as somebody else has set it, or never */
	NEW_MACHINES_EXPOSED, /* it may, until PROVIDER_PROTECT sets the group otherwise */
	NEW_MACHINES_GUARDED  /* it may not, as we have set the group */
};

/* What the cloud says of a group. Texts and lists live in the call's arena. */
struct group_description {
	millis present;		  /* the cloud's clock as it answered, by which all times here are; 0: not told */
	int64_t min, max;	  /* the cloud's own bounds */
	int64_t desired;	  /* machines asked to run */
	int64_t standby;	  /* machines asked to stand by */
	struct machine *machines; /* oldest first, terminating ones too */
	size_t machine_count;
	struct launch_failure *failures; /* oldest first */
	size_t failure_count;
	bool is_busy; /* an operation is in flight there: ask again later */
	/* Of an operation that somebody else began, as a sentence with whose and where to see it; NULL or "": it is
	 * ours, or there is none. Until it is over nothing is changed there. */
	const char *busy_with;
	/* A schedule of its owner set the size to 0, as a sentence with where to see it; NULL or "": none did, or the
	 * size was raised since. Until its owner raises it nothing is bought there. */
	const char *emptied_by;
	/* Who else gave the group the size it has, or lately had, as a phrase ("a user request"); NULL or "": nobody,
	 * or it is not told. Whether it was others is the caller's to know: what we asked for is a user's request, too.
	 */
	const char *resized_by;
	struct node_promise promise; /* of a machine that is new; empty where its cloud does not tell */
	const char *ailment;	     /* what the cloud itself says is wrong with the group; NULL or "": nothing */
	millis ends_at;		     /* of the reservation that all its machines stand in; 0: none, or not told */
	/* A machine that ends runs on for so long, as the cloud's hooks say; 0: not told, END_UNHELD: it does not. */
	millis end_hold;
	unsigned abilities;  /* of enum provider_ability: what this group can, never more than its provider */
	const char *lacks;   /* a sentence on what it cannot and its provider could, with the remedy; "" when nothing */
	bool is_refused;     /* changes are, as things are there; `lacks` says why */
	bool forgets_images; /* a stop empties the disk that they lie on: what stands by wakes as if it never ran */
	bool keeps_standby;  /* a machine that stands by cannot be ended; one that is removed may stand by after it */
	bool takes_turns;    /* operations are slow, and one waits for the other: few large ones are better than many */
	bool replaces_lost;  /* a machine that is lost does not lower the size: whoever lowers it is somebody */
	bool only_grows; /* its owner replaces machines one by one, by some beyond the size: no node there is emptied */
	bool ends_one_by_one; /* each machine that is named is ended by a call of its own, so that all go */
	bool grows_by_count;  /* a growth launches what is missing from what a read shows, instead of setting a size */
	/* What the next change does there beside what it is asked for: "protect 3 machines from scale-in". */
	const char *const *besides;
	size_t beside_count;
	/* What there ends or replaces machines by itself, each with its remedy. */
	const char *const *cautions;
	size_t caution_count;
	/* Machines in service that the cloud may choose to end, and that PROVIDER_PROTECT keeps from that; those that
	 * are kept from it by us. */
	int64_t exposed, guarded;
	enum new_machines new_machines;
};

#define END_UNHELD (-1)

enum permission_state { PERMISSION_GRANTED, PERMISSION_DENIED, PERMISSION_UNKNOWN };
enum permission_need {
	PERMISSION_ALWAYS,
	PERMISSION_FOR_STANDBY, /* only where machines shall stand by */
	PERMISSION_HELPS,	/* all works without it, less well: the purpose says how */
};

/* What our credentials may do there. Found without changing anything. */
struct permission {
	const char *action;  /* as the cloud's policies name it: "autoscaling:SetDesiredCapacity" */
	const char *purpose; /* what we need it for, and which ability goes without it */
	enum permission_state state;
	enum permission_need need;
	const char *message; /* what the cloud said, or why it cannot be known without acting */
};

enum provider_verb {
	PROVIDER_DESCRIBE, /* -> description */
	PROVIDER_GROW,	   /* desired: machines that shall run; stopped ones are woken first. Never shrinks. */
	PROVIDER_REMOVE,   /* ids: terminated, and desired lowered by them; unknown ids are gone already */
	PROVIDER_STOP,	   /* ids: to standby, the size lowered by them; desired: with `size`, the most that is left */
	PROVIDER_STANDBY,  /* desired: machines that shall stand by */
	/* ids (may be none): as remove, for those that do not run yet; running ones are left alone. Then what the
	 * size asks for beyond `desired` and beyond the machines that exist is given up. */
	PROVIDER_CANCEL,
	PROVIDER_CHECK, /* -> identity, permissions */
	/* desired 1: machines that run end by being named only, as far as the size has room for them. 0: the cloud may
	 * choose among all again. ids (may be none): machines that stay kept from that in any case. No size changes. */
	PROVIDER_PROTECT,
	PROVIDER_VERB_COUNT
};

/* What not every cloud can; the policy is told. */
enum provider_ability {
	PROVIDER_NAMES_VICTIMS = 1 << 0,
	PROVIDER_HAS_STANDBY = 1 << 1,
	PROVIDER_STOPS_NAMED = 1 << 2,
	PROVIDER_CANCELS = 1 << 3,
	PROVIDER_BUYS_STANDBY = 1 << 4, /* standby can be raised; without it only PROVIDER_STOP fills it */
	PROVIDER_PROTECTS = 1 << 5,
};

struct provider_call {
	/* filled in by the caller */
	enum provider_verb verb;
	const char *group;    /* name in the manifest */
	const char *settings; /* the provider's own keys as JSON */
	const char *token;    /* of what changes something: a repeat has no second effect */
	int64_t desired;
	int64_t change;	  /* of a growth: never more than so many are launched, whatever a read shows; 0: not told */
	bool is_absolute; /* of a growth: sets the size where others can; who led before may have launched unseen */
	/* Of remove, stop, cancel: the size that it was decided on; 0: not told. Where a cloud lowers the size by what
	 * goes, nothing does below it: others lowered it, and what they want gone is not gone yet. Of standby, too,
	 * always told: from it the pool's size is counted. */
	int64_t size;
	const char *const *ids;
	size_t id_count;
	/* Of describe: the operation that the last accepted change began, as that call told it; "" or NULL: none. While
	 * it runs the group is busy; what became of it shows in the failures. Of cancel: that this one shall end, also
	 * where nothing is too many. */
	const char *pending;
	bool in_full; /* of describe: also what only cautions tell */
	/* Ids of the group's machines whose nodes the cluster shows as not ready, longest first; NULL: nobody looked.
	 * For clouds that do not tell which machines stand by. Of any verb. */
	const char *const *unready;
	size_t unready_count;
	const char *const *nodeless; /* machines that have no node at all */
	size_t nodeless_count;
	millis timeout; /* of all of it; 0: the provider's own */
	void (*done)(struct provider_call *);
	void *user;

	/* Valid from done() on; the description until provider_call_release. */
	struct error error; /* ERROR_NONE: done; the kind tells stock-out, quota, throttled, auth ... apart */
	struct group_description description; /* of describe */
	millis retry_after;		      /* not again for so long, when throttled; 0 when not told */
	int64_t launched;		      /* of a growth that failed: machines that came of it all the same */
	bool was_taken; /* of a growth that failed: the cloud had taken the size by then, and machines may come */
	/* Of a removal or cancel that failed: machines that the cloud was asked to end one by one, and did not refuse
	 * to: it said yes, or its answer was lost. Until provider_call_release. */
	const char *const *ended;
	size_t ended_count;
	/* The size is below the one that was decided on, or of a stop above it, so nothing was sent, or nothing was
	 * taken, as somebody wrote since the read that it was made from. Others did, or the read was old: a look tells.
	 */
	bool is_outdated;
	/* Of a change: what the cloud calls the operation that goes on after the answer (a URL, say), to be kept across
	 * restarts and given to describe; NULL or "": over with the answer. */
	const char *operation;
	const char *identity; /* of check: who we are to the cloud; no secret */
	struct permission *permissions;
	size_t permission_count;

	/* private to the provider */
	struct arena arena;
	void *exchange;
};

/*
 * A call to the cluster's own API server, for groups that are objects there. It completes exactly once, from the loop.
 * Reads are tried again within the deadline; what changes something passes the same gate as all that we write there.
 */
struct cluster_call {
	const char *method, *path; /* path: from the root, query included */
	const char *body;	   /* may be NULL */
	const char *content_type;  /* NULL: application/json */
	bool changes;
	millis timeout;
	void (*done)(struct cluster_call *c);
	void *user;

	/* valid inside done(), and no longer; any status but 2xx is an error */
	struct error error;
	const char *response;
	size_t response_len;
	millis retry_after;

	void *exchange; /* private to the door */
};

/* How that is done, by whoever opens the provider. */
struct cluster_door {
	void (*start)(void *user, struct cluster_call *c);
	void (*cancel)(void *user, struct cluster_call *c); /* done() comes soon, as ERROR_CANCELLED */
	void *user;
};

struct provider_setup {
	struct loop *loop;
	struct http *http;
	const struct cluster_door *cluster; /* NULL: there is no cluster to ask */
};

/* What only a real account can tell of a provider, for a person who has one (`preheat provider prove`). */
struct provider_question {
	const char *id, *asks, *why;
	const char *command; /* lines of a shell; {key}: that key of the node group's settings */
	const char *answers; /* words, with a space between */
	/* Keys of the group's settings, with a space between: asked where each is given, those behind a '-' where it is
	 * not. "": of every group. */
	const char *when;
};

struct provider_ops {
	const char *name;
	unsigned abilities; /* of enum provider_ability */
	bool asks_cluster;  /* cannot be opened without a cluster door */
	struct provider *(*open)(const struct provider_setup *s, struct error *e);
	void (*close)(struct provider *p); /* no call may be in flight */
	/* Cannot fail: a wrong setting, id or token is ERROR_INVALID in done(). A call of no ability of this provider
	 * too. */
	void (*start)(struct provider *p, struct provider_call *c);
	void (*cancel)(struct provider *p, struct provider_call *c); /* done() comes soon, as ERROR_CANCELLED */
	const struct provider_question *questions;		     /* up to one without an id; NULL: there are none */
	const char *unprotect; /* how a person lifts the protection of PROVIDER_PROTECTS: a command; NULL: without it */
};

/* NULL when there is none of this name. */
const struct provider_ops *provider_find(const char *name);
const struct provider_ops *provider_at(size_t index); /* NULL after the last */
/* Frees what is in the arena; error and retry_after stay until the next start, and so does the caller's part. Not while
 * it runs. */
void provider_call_release(struct provider_call *c);
/* A growth that would raise the size by more than `change`, from the size that a read just told: e says what to do. */
bool provider_is_outdated(const struct provider_call *c, int64_t size, struct error *e);
/* A removal that would lower a size that others lowered since; `gone` of its machines went before this read. */
bool provider_was_lowered(const struct provider_call *c, int64_t size, int64_t gone, struct error *e);
const char *provider_verb_name(enum provider_verb verb);
const char *machine_state_name(enum machine_state state);
