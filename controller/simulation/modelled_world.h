/*
 * The insides of the modelled world, shared by its files only: machines
 * (nodes) of groups, replicas on them, a queue per pool, and one heap of
 * what happens to machines when. Times count from the start of the traces.
 */
#pragma once
#include "base/random.h"
#include "controller/simulation/queue.h"
#include "controller/simulation/world.h"

enum {
	SCRAPE_PERIOD = 5000,	    /* ms */
	REFUSED_AFTER = 5000,	    /* a stock-out is told after so many ms */
	WAKE_REFUSED_AFTER = 30000, /* a wake that fails is seen after so many ms */
	OFFER_TIME = 120000,	    /* a node handed over waits so long for a taker */
};

enum node_state {
	NODE_UNUSED,
	NODE_BOOTING, /* no replica on it has been ready yet */
	NODE_RUNNING,
	NODE_STOPPED,
	NODE_REFUSING, /* stopped; a wake is under way that will fail */
};

struct node {
	enum node_state state;
	uint64_t serial;
	size_t group, owner; /* owner: the pool that pays while nobody uses it, and that may wake it */
	size_t borrower;     /* pool whose replica was taken off by a reclaim, NONE */
	size_t first;	     /* replicas on it */
	bool is_foreign;     /* lent to batch work outside the manifest when not used */
	bool is_offered;     /* given back, waits for a taker */
	bool has_run;	     /* a replica served on it */
	int64_t gpus_held;
	int64_t empty_milli; /* billed to the owner while no replica is on it */
};

enum replica_state { REPLICA_UNUSED, REPLICA_STARTING, REPLICA_READY, REPLICA_DRAINING };

/* What becomes of the node once the replica has drained. */
enum fate { FATE_DELETE, FATE_STOP, FATE_GIVE };

/* How long a start will take. */
struct lead_draw {
	millis stage[STAGE_COUNT]; /* not staged: the total stands in the first */
	bool is_staged;
	millis wait;	 /* before the first stage: until the node is there */
	size_t stuck_in; /* stage that never ends, STAGE_COUNT: none */
	millis deadline; /* given up after this */
};

struct replica {
	enum replica_state state;
	enum start_kind kind;
	enum fate fate;
	uint64_t serial;
	struct holding *holding;
	size_t node; /* NONE: refused, no machine */
	size_t next_on_node;
	size_t position;      /* among holding->ready */
	size_t before, after; /* among the pool's starts, oldest first */
	millis asked_at, expected_at;
	enum error_kind refusal; /* not ERROR_NONE: refused, and the policy will know soon */
	size_t stage;
	struct lead_draw lead;
	int64_t billed_milli;
};

/* Sums a level over time; the level may be changed for moments that have passed. */
struct meter {
	int64_t level, sum; /* thousandths of a GPU, times milliseconds */
	millis until;
};

/* A pool's share of one node group. */
struct holding {
	struct pool_state *pool;
	struct group_state *group;
	size_t index; /* among the pool's groups */
	LIST(size_t) ready;
	LIST(size_t) stopped; /* nodes that can be woken */
	int64_t starting;     /* without the refused */
	int64_t draining;
	int64_t foreign_free; /* lendable nodes that run batch work now */
	int64_t unplaced;     /* of the plan that is applied: replicas for free GPUs that have none yet */
	struct meter hot, standby;
};

struct group_state {
	const struct group_spec *spec;
	const struct group_world *world;
	size_t index;
	int64_t nodes, standby_nodes; /* without foreign ones */
	int64_t standby_first;	      /* of those: never ran */
	struct random leads, failures, losses;
};

struct pool_state {
	const struct pool_spec *spec;
	const struct pool_world *world;
	size_t index;
	struct holding *holdings; /* one per spec->groups */
	struct queue queue;
	size_t first_start, last_start;
	LIST(struct event_input) events;
	struct scrape_input scrapes[SCRAPES_MAX];
	size_t scrape_count;
	int64_t scrapes_expected, scrapes_fresh;
	struct scrape_input read_before; /* counters since the start, at the last reading */
	struct schedule_state schedule;
	struct world_totals totals; /* without what the queue and the meters count */
	struct world_totals before; /* at the start of the tick */
	struct tick_result result;
};

enum happening {
	HAPPENS_STAGE,	    /* a replica's stage ends */
	HAPPENS_REFUSAL,    /* a replica's start is refused */
	HAPPENS_GIVEN_UP,   /* a replica's start passed its deadline */
	HAPPENS_DRAINED,    /* a replica is empty */
	HAPPENS_LOSS,	    /* a node is taken */
	HAPPENS_OFFER_ENDS, /* nobody took a node */
	HAPPENS_LOSS_WINDOW /* a group's window opens */
};

struct happens {
	millis at;
	uint64_t order; /* of asking: ties */
	enum happening what;
	size_t subject;	 /* replica, node or group */
	uint64_t serial; /* of the subject then; window number */
};

struct world {
	struct arena arena;
	struct world_setup setup;
	const struct fleet_spec *fleet;
	millis now;
	int64_t tick;
	struct group_state *groups;
	struct pool_state *pools;
	LIST(struct node) nodes;
	LIST(struct replica) replicas;
	LIST(size_t) unused_nodes;
	LIST(size_t) unused_replicas;
	LIST(struct happens) heap;
	uint64_t orders, serials;
	int64_t offers; /* nodes that wait for a taker */
	bool has_applied;
	millis scrape_period, next_scrape;
};

/* world.c: a stream of chance for each index, none shared between seeds */
struct random world_stream(const struct world *w, const char *purpose, int64_t index);

/* happens.c */
void happens_add(struct world *w, millis at, enum happening what, size_t subject, uint64_t serial);

void meter_advance(struct meter *m, millis until);

int64_t holding_micro_dollars(const struct holding *h); /* since the start */

/* leads.c */
struct lead_draw lead_draw(struct world *w, const struct holding *h, enum start_kind kind);

/* machines.c */
size_t node_add(struct world *w, struct holding *h, enum node_state state);

bool node_takes_places(const struct world *w, const struct node *n);

void node_lose(struct world *w, size_t node);
size_t replica_start(struct world *w, struct holding *h, size_t node, enum start_kind kind,
		     const struct lead_draw *lead);

void replica_happens(struct world *w, const struct happens *h);

/* release.c */
/* What keeps a node alive whatever happens to those that drain. */
struct tenants {
	int64_t ready;	/* replicas of one pool that can be released */
	int64_t others; /* its starts, and all of other pools */
};
struct tenants node_tenants(const struct world *w, const struct node *n, const struct holding *h);

void node_offer_ends(struct world *w, size_t node);

int64_t holding_lent(const struct world *w, const struct holding *h); /* in replicas */

static inline struct replica *replica_of(struct world *w, size_t replica)
{
	return &w->replicas.items[replica];
}

static inline struct node *node_of(struct world *w, size_t node)
{
	return &w->nodes.items[node];
}

static inline struct holding *holding_in(struct pool_state *p, size_t group)
{
	for (size_t i = 0; i < p->spec->group_count; i++)
		if (p->spec->groups[i] == group)
			return &p->holdings[i];
	return NULL;
}

static inline int64_t holding_per_node(const struct holding *h)
{
	return replicas_per_node(h->group->spec, h->pool->spec);
}
