/*
 * A share: slots (one GPU, or several that are used together) on which the
 * engines of several pools stand, a few awake and the rest asleep, their
 * weights in host memory. share_decide() says what each slot does next and
 * which engines get requests: one step a slot, so that no GPU ever sleeps and
 * wakes at once. A function of its arguments, at every reading and event.
 *
 * The stock of slots is sized elsewhere, as a pool whose sequences are the
 * slots that the members need (loop/stock.h, simulation/share_trial.h).
 */
#pragma once
#include "base/arena.h"
#include "base/millis.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SHARE_NONE ((size_t)-1)
enum { SHARE_MEMBERS_MAX = 1024 };

enum engine_state {
	SHARE_ASLEEP,
	SHARE_WAKING,
	SHARE_AWAKE,
	SHARE_FALLING_ASLEEP,
	SHARE_BROKEN, /* a wake failed: its slot is being mended, and it holds the GPU memory of an engine awake */
};

struct share_engine {
	size_t member;
	enum engine_state state;
	millis since;	    /* in this state */
	int64_t running;    /* requests */
	millis idle_since;  /* nothing runs; not read while something does */
	bool is_in_routing; /* gets new requests */
};

struct share_slot {
	size_t type; /* row of `times` */
	int64_t gpu_mib, host_mib;
	struct share_engine *engines;
	size_t engine_count;
	size_t cleared_for; /* member for which engines are put to sleep here, SHARE_NONE: as the last plan said */
	bool is_leaving; /* is released once nothing runs: nothing wakes there, and nothing gets requests that another
			      slot can serve */
};

struct share_member {
	int64_t need;	   /* engines for what runs and waits now; one more than serve where requests find no room */
	int64_t need_held; /* the same, held as the rule says (share_hold()) */
	int64_t waiting;   /* requests */
	int64_t late, allowed_milli;	       /* requests: that were late; that could have been, in thousandths */
	int64_t gpu_awake_mib, gpu_asleep_mib; /* of one engine: loaded; what stays on the GPU when it sleeps */
	int64_t host_asleep_mib;	       /* its weights, while it sleeps */
	int64_t peak;			       /* engines needed at most: how many copies it is given (share_place()) */
};

/* Measured, of one member's engine on one type of slot. */
struct share_times {
	millis sleep, wake;
};

/* Who is put to sleep for another: what is idle longest, or an engine of the pool that can best afford one more late
 * request, and of such pools what is idle longest. */
enum victim_rule { VICTIM_LEAST_RECENT, VICTIM_AFFORDS };

struct share_rule {
	int64_t margin_permille; /* over what runs and waits, before it is rounded up to engines */
	millis hold;		 /* a need that is past is kept in mind so long */
	millis keep_alive;	 /* idle engines stay awake at least so long ... */
	int64_t spare_permille;	 /* ... and longer, unless fewer slots than this share stand with all asleep */
	enum victim_rule victim;
};

/* Rules that a share chooses among, beside which shadows run. */
const struct share_rule *share_rules(size_t *count);
/* What late requests weigh: over those that the objective allows of so many that were asked for, with one more. Of a
 * pool that is asked for little, or allows little, one weighs more. */
double share_strain(double late, double asked, int64_t late_ppm);
/* The one whose shadow was least strained so far; what is in force stays unless another has 5 % less. `present`
 * SHARE_NONE: nothing is yet. */
size_t share_rule_choose(const double *strain, size_t count, size_t present);

/* Engines for so many requests at `sequences` an engine, with the rule's margin; 0 for none. */
int64_t share_need(int64_t requests, int64_t sequences, const struct share_rule *r);

/* Slots for engines that shall be awake together and for their work, both in thousandths of one, with at most so many
 * awake on a slot: whichever asks for more. */
int64_t share_slots_for(int64_t engines, int64_t work, int64_t awake);

/* The largest need of the last `hold`, in steps: a need that is past goes when it was not met again for so long. */
struct share_hold {
	int64_t need, next; /* next: largest since `until` was set */
	millis until;
};
int64_t share_hold(struct share_hold *h, int64_t need, millis now, millis hold);

enum share_verb { SHARE_KEEP, SHARE_WAKE, SHARE_SLEEP };

enum share_reason {
	SHARE_AT_REST,
	SHARE_NO_ENGINE, /* requests wait, and no engine of the pool serves */
	SHARE_NEED,	 /* the pool needs more engines than serve */
	SHARE_SPARE,	 /* too few slots have room to wake at once */
	SHARE_CROWDED,	 /* more is awake, or starts, than the GPU holds */
};

/* What a slot does next. A swap is a sleep with `cleared_for`, and a wake in one of the next plans. */
struct share_order {
	enum share_verb verb;
	size_t engine;	    /* of the slot: the one to wake or to put to sleep */
	size_t cleared_for; /* member, SHARE_NONE: none; given back in the next view */
	millis lead;	    /* until the engine serves; 0 where none is to */
	enum share_reason reason;
};

struct share_view {
	millis now;
	const struct share_slot *slots;
	size_t slot_count;
	const struct share_member *members;
	size_t member_count;
	const struct share_times *times; /* [type * member_count + member] */
	const struct share_rule *rule;
};

struct share_plan {
	struct share_order *orders; /* one per slot */
	bool **is_in_routing;	    /* per slot and engine: whether it is to get new requests */
	/* Per member, where its requests wait and no engine of it is awake or about to be: another one, whose engine at
	 * work holds a slot where it could wake. Else SHARE_NONE. How long that lasts nobody knows. */
	size_t *waits_for;
};

/* Lives in the arena. */
struct share_plan share_decide(const struct share_view *v, struct arena *a);

/* GPU memory that is left on a slot; negative: more is awake than fits. */
int64_t share_gpu_left(const struct share_slot *s, const struct share_member *members);
/* The same of host memory. */
int64_t share_host_left(const struct share_slot *s, const struct share_member *members);

/* What a new slot of this size is to hold: members that have the fewest engines for their peak first, as long as all
 * of them asleep fit into host memory and each awake beside them on the GPU. `copies`: engines that each has,
 * increased. Fills `out` (room for member_count) and returns how many; none twice. */
struct share_size {
	int64_t gpu_mib, host_mib;
};
size_t share_place(const struct share_member *members, size_t member_count, struct share_size size, int64_t *copies,
		   size_t *out);

/* An engine that was put to sleep or woken, as the history keeps it (state/share_record.h). */
struct engine_move_record {
	const char *uid; /* of the pod; with the moment it tells one from others */
	millis asked_at;
	const char *pod, *pool, *share, *slot; /* NAMESPACE/NAME, three times; the node */
	bool is_wake;
	const char *why; /* a sentence */
	int64_t term;

	/* filled in by the history */
	int64_t tick;	     /* the last one decided before; -1 before the first */
	const char *outcome; /* NULL: under way. "done", or why not */
	millis took;	     /* of the engine itself, from the first call until it said so */
	millis ended_at;     /* 0: not yet; with an outcome: the slot is being mended */
};
