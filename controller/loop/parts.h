/* What the files of this folder share about a running controller; nobody else includes this. */
#pragma once
#include "base/log.h"
#include "controller/cluster/event.h"
#include "controller/cluster/lease.h"
#include "controller/cluster/model.h"
#include "controller/cluster/verbs.h"
#include "controller/loop/buffer.h"
#include "controller/loop/controller.h"
#include "controller/loop/drain.h"
#include "controller/loop/node_group.h"
#include "controller/loop/serving.h"
#include "controller/loop/stage_times.h"
#include "controller/loop/placeholder.h"
#include "controller/policy/decide.h"
#include "signals/external_queue.h"
#include "signals/device.h"
#include "signals/source.h"
#include "state/history.h"

struct published_devices;

/* Groups are given so long, in the world's time, to be described before the first decision. */
#define FIRST_LOOK (20 * SECOND)

enum role_state {
	STATE_FOLLOWING, /* somebody else leads, or nobody yet */
	STATE_LEADING,
	STATE_SETTLING, /* stopped acting; goes on once nothing is under way */
};

/* What has to happen within a time, or the loop is wedged. */
enum awaited {
	AWAITED_NOTHING,
	AWAITED_TICK,
	AWAITED_QUIET, /* calls under way end */
	AWAITED_BEGIN, /* it holds the lease and has pools to decide on */
};

/* The workload of a pool, as its scale subresource shows it. */
struct scale_target {
	struct scale_call call;
	bool is_calling;
	int64_t wanted;					      /* replicas that we want; ABSENT: not decided yet */
	int64_t is;					      /* as told last; ABSENT: not known */
	int64_t was;					      /* before it was lowered last */
	millis quiet_until, fewer_since, told_at, lowered_at; /* loop_now */
	int failures;
};

/* The Deployment of a pool's placeholders. */
struct placeholder {
	struct object_call call;
	bool is_calling;
	struct buf pod, body; /* the pod's spec without its number; the object on its way */
	char name[PLACEHOLDER_NAME_MAX + 1];
	int64_t wanted, asked, is;   /* ABSENT: not known */
	millis read_at, quiet_until; /* loop_now */
	bool is_stale;		     /* what there is may differ from what was applied */
};

/* The Deployment of placeholders of a pool that is no more, one at a time. */
struct left_placeholders {
	struct controller *controller;
	struct object_call call;
	char namespace[64], name[PLACEHOLDER_NAME_MAX + 1];
	bool is_calling, has_complained;
	millis quiet_until; /* loop_now */
};

/* What events said of a pool last, so that only changes are told. */
struct pool_told {
	unsigned problems; /* bit per enum pool_problem */
	bool is_stale, is_refused, is_failing;
	int64_t signals; /* enum signal_state */
	int64_t limit;
	millis limit_at;
};

/* One pool of the fleet while we run it. */
struct live_pool {
	char key[130]; /* NAMESPACE/NAME */
	size_t index;
	struct controller *controller;
	struct source *source;	       /* of its readings; NULL: its pods are the work */
	struct external_queue *queue;	       /* outside of its replicas; NULL: none */
	struct device_source *devices; /* NULL: none; of another pool, too, unless owned */
	bool owns_devices;
	struct scrape_input scrapes[SCRAPES_MAX];
	size_t scrape_count;
	int64_t queued; /* of the last look at the queue; ABSENT: not known */
	int64_t expected, fresh, itl_sum, itl_count, kv_sum, kv_count;
	int64_t last_expected, last_fresh; /* of the last reading, of whatever tick */
	bool has_heard;			   /* there was one */
	struct serving serving;
	struct schedule_state schedule;
	millis schedule_asked;
	int64_t finished; /* work pods that ended since the last tick */
	int64_t starving; /* replicas whose release found no node */
	/* Since the last tick: replicas that were refused and shall start elsewhere, what they would have cost an
	 * hour, and a bit per position that refused. */
	int64_t fallen, fallen_price;
	uint64_t refused;
	struct scale_target scale;
	struct placeholder placeholder;
	struct buffer buffer;
	struct pool_view view; /* of the last look, in the tick's arena */
	int64_t stuck[STAGE_COUNT], stuck_in_a_row;
	struct stage_times stages[STAGE_COUNT];
	millis stuck_at;
	char stuck_reason[256], reason[512];
	millis changed_at;
	int64_t changed_from, changed_to, published_size;
	int64_t arrived, started, late; /* requests, in all ticks */
	bool has_reported, is_blind;	/* blind: its signals are stale, or nothing was decided yet */
	struct pool_told told;
};

struct account;
struct objects;
struct follow;
struct status_target;

struct idle_node {
	char machine[MACHINE_ID_MAX + 1];
	millis since; /* clock_mono */
	bool is_idle; /* in the sweep under way */
};

struct controller {
	struct controller_settings settings;
	struct loop *loop;
	struct api *api;
	struct clock own_clock; /* as the settings', less what it jumped */
	const struct clock *clock;
	millis timed_at, timed_mono; /* by both of its hands, when it was compared last */
	struct cluster *cluster;
	struct events *events;
	struct objects *objects;
	struct follow *follow;
	struct status_target *statuses; /* of WarmPools, in no order */
	struct lease *lease;
	enum role_state state;

	struct arena manifest_arena;
	struct manifest manifest; /* in force */
	struct live_pool *pools;
	struct live_pool *former_pools; /* until others are there: what they told is carried over */
	size_t former_count;
	int64_t former_term;
	struct node_group *groups;
	struct provider *providers[PROVIDER_COUNT]; /* opened on first use */
	struct cluster_door door;		    /* for providers whose groups are objects of the cluster */
	struct group_context context;
	struct starts starts;
	struct drains drains;
	struct left_placeholders left;

	struct history *history;
	struct account *account;
	struct policy_state *memory;
	int64_t tick;
	millis recording_since; /* clock_mono, when its first reading was due; 0: not yet */
	size_t recordings_over; /* pools whose last recorded reading was told */
	int64_t traced;		/* spans of starts so far */
	millis due;		/* clock_mono of the next tick */
	struct timer ticker, soon;
	struct arena arena, kept; /* of the present tick; of what is published */
	struct snapshot snapshot;
	struct plan plan;
	millis blind_since, seen_again; /* clock_now; of the watches of nodes and pods */
	millis led_since;		/* loop_now */
	int64_t term;
	bool may_lead;		       /* we hold the lease, or need none */
	struct manifest next_manifest; /* to be used once all is quiet */
	struct arena next_arena;
	bool may_be_interrupted; /* a node that the cloud will take was seen, or a tick passed */
	int64_t interrupted;	 /* machines that the cloud said it would take */
	bool has_more_to_drop;	 /* of the history, by its retention */
	bool has_next, targets_changed, is_due_soon;

	provider_counts provider_counts[PROVIDER_COUNT];
	struct throttle throttles[PROVIDER_COUNT];
	struct published published;
	struct published_pool *published_pools;
	struct published_group *published_groups;

	struct idle_node *idle; /* nodes that nobody uses */
	size_t idle_count, idle_room;

	enum awaited awaited; /* as was published last */
	char obstacle[640];
	millis away_since; /* loop_now */
	bool is_stopping, has_decided;
	void (*closed)(void *user);
	void *closed_user;
	struct timer closing;
};

/* observe_group.c: of the pool's node group in this place, after the views of all pools */
struct group_input observe_group(struct controller *c, size_t pool, size_t position, struct arena *a);
/* observe.c */
struct snapshot observe(struct controller *c, struct arena *a);
void observe_taken(struct controller *c);			/* the snapshot is recorded: sums begin anew */
void observe_reading(void *pool, const struct pool_reading *r); /* struct live_pool */
void observe_targets(struct controller *c);			/* tells the sources which pods there are */
const char *pod_key(const struct pod *p, struct arena *a);	/* of a pod among the source's targets */

/* sources.c: where the pool's readings come from; NULL: its pods are the work */
struct source *source_of_pool(struct controller *c, size_t pool);
struct external_queue *queue_of_pool(struct controller *c, size_t pool); /* NULL: it has none */
void devices_open(struct controller *c, size_t pool);		  /* pools in their order: several share one */

/* devices.c: what the GPUs of a pool tell */
void devices_publish(const struct controller *c, size_t pool, struct published_devices *out, struct arena *a);

/* machines.c: the cluster's events into starts, and what got stuck */
void machines_event(void *user, const struct cluster_event *event);
struct node_stages machines_stages(void *user, const char *machine);
size_t machines_unready(void *user, size_t group, struct arena *a, const char *const **ids);
void machines_adopt_pods(struct controller *c);
void machines_check(struct controller *c);

/* fresh.c: what may be concluded from what is seen */
bool cluster_is_fresh(const struct controller *c); /* the watches of nodes and pods are in sync now */
/* The machine under a node as its provider calls it; valid until the group is looked at again. */
const char *machine_of_node(const struct controller *c, const struct node *n);
/* GPU pods of others run on it, or replicas of the pool serve there. */
bool node_is_needed(const struct controller *c, const struct node *n, size_t pool);
/* We lead, by our own clock, at this moment. */
bool lead_may_act(const struct controller *c);

/* act.c */
void act(struct controller *c);
void act_soon(void *user); /* drives groups, drains and scales from the loop */
/* Cancels the calls under way; each still ends. */
void act_stop(struct controller *c);
/* Tells the policy which groups, refused before because their cloud had told nothing, are known now. */
void act_tell_described(struct controller *c);
/* As many starts of the kind on machines more as the group's cloud may be asked for. */
void act_buy(struct controller *c, size_t pool, size_t position, enum start_kind kind, int64_t count);
/* The same of a group that is known, without a word about what is not granted; returns how many start. */
int64_t act_grant(struct controller *c, size_t pool, size_t position, enum start_kind kind, int64_t count);

/* fall_back.c */
void fall_back_note(void *user, const struct start *s, enum error_kind why);
/* Asks the next offerings for what was refused since the last tick. */
void fall_back_drive(struct controller *c);
/* A ready replica of the pool was lost, or will be: another one starts without waiting for the next tick. */
void fall_back_lost(struct controller *c, size_t pool);
void fall_back_forget(struct controller *c); /* a new decision knows of it */

/* interrupted.c: nodes whose machine the cloud will take are emptied, and what served there is replaced */
void interrupted_drive(struct controller *c);

/* money.c: machines more of the group, negative when there are too many; INT64_MAX without a budget */
int64_t money_affordable(void *user, size_t group);
bool money_is_shared(const struct pool_spec *a, const struct pool_spec *b); /* one budget */

/* own_time.c: time goes on as it did, whatever the machine's clock does */
void time_begin(struct controller *c); /* never before what the history has */
void time_follow(struct controller *c);

/* intents.c: purchases of an earlier life. What became of them shows in the group's description, which is the truth;
 * what still goes on is waited for. */
bool intents_adopt(struct controller *c, struct error *e) MUST_USE;

/* scale.c */
void scale_want(struct controller *c, size_t pool, int64_t replicas);
void scale_drive(struct controller *c);
void scale_stop(struct controller *c);
/* What we set the workload to last, a moment ago where that was more; ABSENT where we set nothing, or have not yet. */
int64_t scale_set(const struct controller *c, size_t pool);
int64_t scale_beyond_plan(struct controller *c, size_t pool);

/* tick.c */
void tick_start(struct controller *c);
void tick_stop(struct controller *c);

/* fleet.c: the pools and groups of the manifest in force */
void fleet_tell_cluster(struct controller *c);
bool fleet_open(struct controller *c, struct error *e) MUST_USE;
void fleet_close(struct controller *c);	 /* nothing may be under way */
void fleet_forget(struct controller *c); /* what fleet_close() kept for fleet_open() */
/* Another manifest, in an arena that the controller takes over: what is under way is stopped, what was estimates kept. */
void fleet_change(struct controller *c, const struct manifest *m, struct arena *held);

/* lead.c */
bool lead_open(struct controller *c, struct error *e) MUST_USE;
/* Stops acting at once: no writing call is begun, those in flight are cancelled. */
void lead_stop_acting(struct controller *c, const char *why);
bool lead_is_quiet(const struct controller *c); /* nothing of ours is under way any more */
void lead_go_on(struct controller *c);		/* leads, if it may and is ready to */

/* events.c: events on the objects concerned, and the pools' status */
void events_of_tick(struct controller *c);
void events_of_scale(struct controller *c, size_t pool, const struct error *why);  /* the workload cannot be scaled */
void events_of_buffer(struct controller *c, size_t pool, const struct error *why); /* no room can be kept so */
void events_of_interruption(struct controller *c, size_t pool, const struct node *n);
void events_of_fall_back(struct controller *c, size_t pool, const char *group, int64_t replicas);
void events_of_stuck(struct controller *c, const struct start *s, const char *why);

/* retain.c */
void retain_some(struct controller *c);

/* publish.c */
void publish(struct controller *c);

/* problems.c: what is wrong with how a pool is set up, one sentence with its remedy each, NULL where nothing is */
void problems_find(const struct controller *c, size_t pool, const char *out[PROBLEM_COUNT], struct arena *a);

static inline const struct fleet_spec *fleet_of(const struct controller *c)
{
	return &c->manifest.fleet;
}

/* Placeholders hold what is warm; somebody else scales the workload. */
static inline bool is_held(const struct controller *c, size_t pool)
{
	return c->manifest.pools[pool].spec.workload.warm == WARM_PLACEHOLDERS;
}

/* Another autoscaler keeps warm nodes free; somebody else scales the workload. */
static inline bool is_buffered(const struct controller *c, size_t pool)
{
	return c->manifest.pools[pool].spec.workload.warm == WARM_BUFFER;
}

/* The pods themselves are the work: nothing is scraped, places are bought for them. */
static inline bool runs_work(const struct controller *c, size_t pool)
{
	return c->manifest.pools[pool].spec.signals.engine == SOURCE_PODS;
}
