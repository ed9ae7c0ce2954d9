/*
 * One pool's traffic: arrivals, one FIFO queue, slots on replicas. Knows
 * nothing of machines: the world opens, drains, loses and closes seats (one
 * per replica, numbered by the world) and the queue fills them.
 *
 * Two forms behind one interface. Requests: each has its seat and its end,
 * events in milliseconds. Binned: cohorts by second of arrival, the slots of
 * the pool as one, service times dealt over a distribution.
 */
#pragma once
#include "base/millis.h"
#include "controller/policy/snapshot.h"
#include "base/list.h"
#include "controller/simulation/world.h"

/* Work that must be done by a time, added up by due time. */

enum { DEADLINE_BUCKETS = 64, DEADLINES_SHOWN = 16 };

/* In one bucket; more counts as so much. All of them together fit an int64_t. */
#define DEADLINE_WORK_MOST (INT64_MAX / 128)

struct deadline_book {
	millis width;			/* of a bucket; 0: no deadlines */
	int64_t first;			/* number of the oldest bucket kept: due time / width */
	int64_t work[DEADLINE_BUCKETS]; /* slot-milliseconds, by number modulo DEADLINE_BUCKETS */
};

/* At most DEADLINES_SHOWN, earliest first; what is overdue is one. `slots` turns slot time into replica time and
 * `start` is added to the due times. Returns how many. */
size_t deadlines_show(const struct deadline_book *b, millis now, int64_t slots, millis start,
		      struct deadline_input *out);

/*
 * How long requests waited: counts by length, in steps of at most 3 %.
 * Differences of two give the waits between two moments.
 */

enum { WAITS_STEPS = 32, WAITS_COUNT = 40 * WAITS_STEPS };

struct waits {
	int64_t counts[WAITS_COUNT];
};

void waits_add(struct waits *w, millis wait, int64_t count);
/* The wait that `permille` of those in `w` but not in `before` (NULL: all) did not exceed; 0 when there are none. */
millis waits_quantile(const struct waits *w, const struct waits *before, int64_t permille);

/* How replicas and requests really behave. */
struct queue_truth {
	int64_t slots; /* sequences of a replica, > 0 */
	int64_t prefill_tokens_per_second;
	int64_t inter_token_latency_us;
	int64_t spread_permille; /* coefficient of variation of service times, binned */
	millis objective_wait;
	millis patience; /* 0: for ever */
	millis deadline; /* from arrival to completion, 0: none */
};

struct pool_spec;
struct pool_world;
/* The world file's values, else the manifest's, times the capacity. */
struct queue_truth queue_truth_of(const struct pool_spec *p, const struct pool_world *pw);

enum seat_state { SEAT_CLOSED, SEAT_OPEN, SEAT_DRAINING };

struct seat {
	enum seat_state state;
	int64_t running;      /* requests form */
	size_t before, after; /* neighbours among open seats with as many running; requests form */
};

/* A draining seat that ran empty by itself. */
struct emptied {
	size_t seat;
	millis at;
};

struct queue {
	struct queue_truth truth;
	const struct trace *trace; /* NULL: no traffic */
	struct arena *arena;
	/* since the start */
	int64_t arrived, returned, started, late, gave_up, completed, prompt_tokens, output_tokens;
	/* now */
	int64_t waiting, running, running_draining;
	size_t open_seats, draining_seats;
	struct waits waits;
	struct deadline_book deadlines;
	struct label_use *labels; /* one per label of the trace */
	LIST(struct seat) seats;
	LIST(struct emptied) emptied;  /* the world empties this list */
	struct request_form *requests; /* exactly one of the two */
	struct cohort_form *cohorts;
};

void queue_open(struct queue *q, const struct queue_truth *truth, const struct trace *trace, struct arena *a);
void queue_advance(struct queue *q, millis until);
void queue_seat_open(struct queue *q, size_t seat, millis now);
/* Nothing new starts there. Returns when it will be empty, or -1 when that will be told through `emptied`. */
millis queue_seat_drain(struct queue *q, size_t seat, millis now);
/* What runs there goes back to the head of the queue. Returns the slot-milliseconds of work lost. */
int64_t queue_seat_lose(struct queue *q, size_t seat, millis now);
void queue_seat_close(struct queue *q, size_t seat);
/* Sequences on an open seat; an estimate in binned form. */
int64_t queue_seat_running(const struct queue *q, size_t seat);
/* Requests that wait now and are late already. */
int64_t queue_waiting_late(const struct queue *q, millis now);
/* Replicas that the traffic of the first `span` keeps busy, in thousandths. */
int64_t queue_demand_milli(const struct queue *q, millis span);

/* How long a slot is held by a request, or the requests of a bin together, in milliseconds. */
double queue_service(const struct queue_truth *t, double prompt_tokens, double output_tokens);
/* The same for one request in whole milliseconds, at least one and at most SERVICE_MOST. */
#define SERVICE_MOST (30 * DAY)
millis queue_service_ms(double service);
