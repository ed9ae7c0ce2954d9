/*
 * One node group of the cloud: the one place that knows its size and its
 * machines. What the cloud told last, what it is believed to have been asked
 * for, what is wanted, which machines shall go, and the starts that wait for
 * machines. Nothing here calls a cloud: group_operations.h brings it to what
 * is wanted.
 */
#pragma once
#include "base/clock.h"
#include "base/net/loop.h"
#include "base/net/retry.h"
#include "controller/loop/accepted.h"
#include "controller/loop/contention.h"
#include "controller/loop/provider_backoff.h"
#include "controller/loop/removals.h"
#include "controller/loop/starts.h"
#include "providers/provider.h"

struct history;
struct node_group;

enum { TOKEN_MAX = 95 };

/* Machines bought of late: a level that runs out within GROWTH_SPAN. */
#define GROWTH_SPAN  (5 * MINUTE)
#define GROWTH_LEAST 8
struct growth {
	int64_t level_milli;
	millis at;	   /* clock_mono */
	int64_t held;	   /* machines that were not bought for it or at the last clamp, since the process started */
	millis held_until; /* clock_mono; after that it is no news any more */
};

/* What all groups of one controller share. */
struct group_context {
	struct loop *loop;
	const struct clock *clock;
	struct history *history; /* where intents are kept; NULL while following */
	const struct fleet_spec *fleet;
	struct starts *starts;
	int64_t term;	/* of our leadership; part of every token */
	char life[17];	/* part of every token: nobody else's, nor ours at another time */
	bool is_barred; /* nothing that changes the cloud may be sent */
	/* Where a machine's node is: all 0 without one. */
	struct node_stages (*node_stages)(void *user, const char *machine);
	/* Ids of a group's machines whose nodes are not ready, longest first, into the arena; returns how many. May be
	 * NULL. */
	size_t (*unready)(void *user, size_t group, struct arena *a, const char *const **ids);
	/* Whether a machine's node is there, and no drain of ours on it. May be NULL. */
	bool (*has_joined)(void *user, const char *provider_id);
	/* Whether a node joined of late whose machine no look has shown: the cloud's list is older. May be NULL. */
	bool (*list_lags)(void *user, size_t group);
	/* Whether a pool's pods are the work: a start of its ends when the GPU is there. */
	bool (*runs_work)(void *user, size_t pool);
	/* A machine on its way that nobody waits for, to be ended unless its node has joined. May
	 * be NULL. */
	void (*unwanted)(void *user, size_t group, const char *machine);
	/* Asked before each call that changes the cloud. */
	bool (*may_act)(void *user);
	/* The cloud told of a group, machine by machine. May be NULL. */
	void (*seen)(void *user, const struct node_group *g);
	/* Something changed that the loop wants to act on soon. */
	void (*changed)(void *user);
	/* A call that changes the cloud is over; it was begun at `from`. May be NULL. */
	void (*called)(void *user, const struct node_group *g, const struct provider_call *c, millis from);
	/* Machines more that the budgets in force allow for the group beside what is asked for everywhere. */
	int64_t (*affordable)(void *user, size_t group);
	/* A start was refused for want of machines: other groups may have some, and with ERROR_NONE this one, too. */
	void (*refused)(void *user, const struct start *s, enum error_kind why);
	void *user;
};

struct operation {
	enum provider_verb verb;
	char token[TOKEN_MAX + 1];
	int64_t desired, change; /* change: of the size (of standby), as it was asked for */
	int64_t size;		 /* as seen when it was decided */
	struct removal *removals;
	const char **ids;
	size_t id_count;
	int attempts;
	millis begun_at, sent_at; /* clock_now; sent: last */
	bool is_sent, is_uncertain;
	bool may_be_taken;    /* an attempt was accepted, at least in part, or its answer was lost */
	struct error trouble; /* of its last attempt */
};

/* What a change began at the cloud that goes on after its answer; its intent stays open until that is over. */
struct ongoing {
	char *name; /* the cloud's; NULL: nothing goes on */
	char token[TOKEN_MAX + 1];
	millis began;		/* wall time of the asking */
	millis since;		/* clock_mono */
	enum error_kind failed; /* of a launch since then */
	int ends;		/* times that its end was asked for */
	millis end_asked;	/* clock_mono */
};
/* So often the end of what goes on is asked for; after that it is forgotten. */
enum { ENDS_MOST = 3 };

/* Machines that a cloud accepted to launch and that no read showed by the time they should have. */
struct unseen_launch {
	char token[TOKEN_MAX + 1]; /* of the call; "": none */
	int64_t machines, total;   /* total: since the process started */
	millis told_until;	   /* clock_mono; after that it is no news any more */
};
#define UNSEEN_TOLD (30 * MINUTE)

/* Calls of one provider by verb and outcome, for /metrics. */
typedef int64_t provider_counts[PROVIDER_VERB_COUNT][ERROR_INTERNAL + 1];

/*
 * What the cloud is believed to be asked for: what it told when nothing of
 * ours was under way last, and what our operations made of that. What a look
 * shows beyond it was made by others, by launches that failed, or by
 * machines that were lost.
 */
struct believed_size {
	int64_t desired, standby;
	int64_t failed, lost, released; /* machines, since that look; released: by us */
};

struct node_group {
	const struct group_context *context;
	size_t index; /* of the fleet */
	const struct provider_ops *ops;

	/* The truth about the group: node_group.c writes it. */
	struct group_description seen; /* as told last; its times are of our clock */
	millis cloud_ahead;	       /* the cloud's clock, of ours, as its answers tell */
	struct arena arena;	       /* of seen */
	millis opened_at;	       /* clock_mono: of what was asked for before nothing may be known */
	millis described_at;	       /* clock_mono */
	int64_t held_size;	       /* machines by which that is seen larger than it was told */
	bool is_known;		       /* described at least once since we lead */
	bool was_missed;	       /* refused to a pool because it was not described yet, or was held */
	struct believed_size believed;
	struct accepted accepted; /* what reads must show by now */
	struct contention contention;
	struct unseen_launch unseen;
	int64_t wanted, standby_wanted; /* sizes that we wish; our operations bring the cloud there */
	struct removal *removals;
	size_t removal_count, removal_room;
	struct offerings offerings;
	struct growth growth;
	int64_t last_failure;	    /* id of the launch failure read last */
	int64_t retried;	    /* launches that ended by themselves, in place of which the cloud launches others */
	int64_t resized;	    /* times that others changed the size, since the process started */
	millis raised_until;	    /* clock_mono; others raised it, or launched beyond it, ten minutes before that */
	int64_t recalled_size;	    /* that an earlier life asked for last, of late; ABSENT: none did */
	int64_t recalled_first;	    /* until the first look: machines that stood by and had never run */
	bool lacks_standby;	    /* as the policy knows it */
	bool is_refused;	    /* changes are, and it was told */
	millis yields_until;	    /* clock_mono; others lowered the size */
	bool is_yielding;	    /* and it is not that late yet */
	char put_off[256];	    /* why changes are: the cloud refused them for an operation that no look shows */
	millis put_off_until;	    /* clock_mono */
	bool is_put_off;	    /* and it is not that late yet */
	bool was_owners;	    /* node_group_is_owners(), as it was told */
	uint64_t unread;	    /* of what made no sense of new nodes there, as it was told last: a hash */
	bool was_emptied;	    /* node_group_is_emptied(), likewise */
	struct operation operation; /* token "": none is under way */
	struct ongoing ongoing;

	/* The calls that are made for it: group_operations.c writes them. */
	struct provider *provider;
	const char *settings;
	struct throttle *throttle;
	int64_t (*calls)[ERROR_INTERNAL + 1];
	struct provider_call look, change;
	struct arena look_arena, change_arena; /* of what was told with them */
	millis look_began, change_began;       /* loop time */
	millis look_since;		       /* the look began; clock_mono */
	bool is_looking, is_changing, is_stopped;
	char guard_token[TOKEN_MAX + 1];
	const char **spared; /* machines that somebody had protected before we did, and that stay so; in spared_arena */
	size_t spared_count;
	bool are_spared_known;
	struct arena spared_arena;
	bool must_hand_over; /* once nothing is under way */
	bool must_unguard;   /* what we protected in an earlier life is to be lifted, or could not be lifted */
	bool must_forget;    /* nothing is protected there by us any more, and the record does not say so yet */
	bool must_look;	     /* described before the last operation, or the last look was not believed */
	bool is_look_stale;  /* an operation was sent or ended while it was under way */
	struct retry retry;
	millis quiet_until;   /* loop time; after a failure */
	millis guard_after;   /* clock_mono; machines are protected then at the earliest */
	int64_t exposed_then; /* machines, when others were protected last */
	int outdated;	      /* refusals in a row of what was made from an older read */
	millis guarded_until; /* clock_mono; until then who is exposed by a look may be protected since */
	struct timer timer;
	int64_t serial;
	struct error trouble; /* of the last call; ERROR_NONE when it went well */
};

static inline const struct group_spec *group_spec_of(const struct node_group *g)
{
	return &g->context->fleet->groups[g->index];
}

/* Position of a fleet's group among a pool's; -1 when the pool does not name it. */
int64_t pool_position(const struct fleet_spec *fleet, size_t pool, size_t group);
/* The first pool that names the group. */
size_t first_pool(const struct fleet_spec *fleet, size_t group);

/* Runs, or will: counts against the size asked for. */
static inline bool machine_counts(const struct machine *m)
{
	return !m->is_standby && m->state != MACHINE_TERMINATING;
}

/* Stands by, or will. */
static inline bool machine_stands_by(const struct machine *m)
{
	return m->is_standby && m->state != MACHINE_TERMINATING;
}

/* NULL when the cloud did not tell of it. */
const struct machine *node_group_machine(const struct node_group *g, const char *machine);
int64_t node_group_count(const struct node_group *g, enum machine_state state);
/* Machines that run, or will. */
int64_t node_group_alive(const struct node_group *g);
/* Machines that stand by and have never run. */
int64_t node_group_standby_first(const struct node_group *g);
/* The most that may stand by. */
int64_t node_group_standby_most(const struct node_group *g);
/* Machines that run and shall stay, and those that are still to come. */
int64_t node_group_size(const struct node_group *g);
/* Machines that are asked for and not listed yet; the same of standby. */
int64_t node_group_missing(const struct node_group *g);
int64_t node_group_standby_missing(const struct node_group *g);
/* GPUs of machines that are asked for and not listed yet that no start waits for. */
int64_t node_group_unclaimed_gpus(const struct node_group *g);
/* Of enum provider_ability; as far as is known, what its provider can. */
bool node_group_can(const struct node_group *g, unsigned abilities);

/* Machines more than are asked for (never above the manifest's and the cloud's max); returns how many it will be. */
int64_t node_group_grow(struct node_group *g, int64_t machines);
/* Somebody else began an operation there that goes on: an update, say. Which; NULL: none. */
static inline const char *node_group_busy_with(const struct node_group *g)
{
	if (g->seen.is_busy && g->seen.busy_with && *g->seen.busy_with)
		return g->seen.busy_with;
	return g->is_put_off ? g->put_off : NULL;
}
static inline bool node_group_is_owners(const struct node_group *g)
{
	return node_group_busy_with(g);
}
/* Its owner's schedule switched it off. */
static inline bool node_group_is_emptied(const struct node_group *g)
{
	return !g->seen.desired && g->seen.emptied_by && *g->seen.emptied_by;
}
/* Once others did: who that was, as a phrase; "" where the cloud does not tell. */
static inline const char *node_group_resized_by(const struct node_group *g)
{
	return g->seen.resized_by ? g->seen.resized_by : "";
}
/* One of those, or others fight with us over the group, or lowered its size lately: nothing is bought or ended there.
 */
static inline bool node_group_is_held(const struct node_group *g)
{
	return g->contention.is_held || g->is_yielding || node_group_is_owners(g) || node_group_is_emptied(g);
}
/* Others raised its size a moment ago, or launched beyond it, as who replaces machines does: what comes may be theirs,
 * and is not called off. */
static inline bool node_group_is_raised(const struct node_group *g)
{
	return clock_mono(g->context->clock) < g->raised_until;
}
/* More are wanted than the size, and the cloud's list is older than the nodes that are there: it is looked at first. */
bool node_group_waits_for_list(const struct node_group *g);
/* Machines wanted that no call has asked the cloud for: giving them up is free. At most 0: there are none. */
int64_t node_group_unasked(const struct node_group *g);
/* Of the machines that the cloud was asked for, and that no look shows yet, one that nobody waits for any more is
 * wished again: it comes, and another in its place would be bought twice. False: there is none. */
bool node_group_claim(struct node_group *g);
/* Machines fewer of those that were asked for, never came, and that no start waits for. */
void node_group_give_up(struct node_group *g, int64_t machines);
/* Never above the manifest's max of standby. */
void node_group_set_standby(struct node_group *g, int64_t machines);
/* A fight with others over its size that the history tells of goes on as it stood. Before its first look. */
void node_group_recall_contention(struct node_group *g);

/* It was given up, and stays: what it will hold is on its way again. */
void node_group_keep(struct node_group *g, const char *machine);

/* A change that the cloud accepted, or may have, in this life or an earlier one. */
void node_group_note_accepted(struct node_group *g, const struct accepted_call *c);
/* Whether a look that began at `began` (clock_mono) may be taken: it shows all that was accepted, or should by now. */
bool node_group_believes(const struct node_group *g, const struct group_description *d, millis began);
/* Takes the description that a call brought, and tells the starts what became of machines. */
void node_group_see(struct node_group *g, struct provider_call *c);
/* Takes over what others made of the sizes, and what failed. Nothing of ours is under way. */
void node_group_take_over(struct node_group *g);
/* Ends the starts that no machine can come for any more; while nothing may be sent, what is wanted is what there is. */
void node_group_fit_starts(struct node_group *g);
/* What was seen and taken over may be acted on. Tells the log and the pools, when that is news, that nothing may be
 * changed there, or whether there is standby. */
void node_group_become_known(struct node_group *g);
/* Every pool that names it acts: who only looks, or is paused, changes nothing. */
bool group_is_acted_on(const struct fleet_spec *fleet, size_t group);
bool node_group_is_ours(const struct node_group *g);
/* Every machine is where it is wanted. */
bool node_group_is_settled(const struct node_group *g);

/* Fills in the operation that is due next, all but its token; false when none is. */
bool node_group_plan(struct node_group *g);
/* The operation did what it was asked for: what the sizes are from now on. False when its answer was lost and it does
 * not show in what the cloud told last. `is_seen`: all of it shows there. What was accepted and never shows is told,
 * and refused. */
bool node_group_take_effect(struct node_group *g, bool *is_seen);
/* The cloud put off a change again and again: an operation goes on that looks do not show. Nothing is asked for for ten
 * minutes. */
void node_group_put_off(struct node_group *g, const struct error *why);
/* A growth whose answer was lost, and nobody waits for its machines any more: to ask again would be to buy for nobody.
 */
bool node_group_is_unwished(const struct node_group *g);
/* A growth that was refused for certain, as the cloud was busy with another, and less is wished by now: what it was
 * to bring beyond that is given back to the limit of growth. */
bool node_group_asks_less(struct node_group *g);
/* It is not asked for again. */
void node_group_call_back(struct node_group *g);
/* It came to nothing, or to less: what was wished with it is wished no more; later wishes stay. `did`: machines that
 * came of it all the same. */
void node_group_unwish(struct node_group *g, enum error_kind why, int64_t did);
