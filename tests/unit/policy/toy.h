/*
 * A toy cluster for tests of the policy: one pool on up to three node
 * groups, starts that take a fixed time, a fluid queue. Only what the
 * tests of this folder need.
 */
#pragma once
#include "controller/policy/decide.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>
#include <stdint.h>
#include <string.h>

enum { TOY_GROUPS = 3, TOY_STARTS = 512, TICK = 15000, TOY_EVENTS = 64 };

struct toy {
	struct group_spec groups[TOY_GROUPS];
	size_t group_indices[TOY_GROUPS];
	struct pool_spec pool;
	struct fleet_spec fleet;
	struct policy_state *memory;

	double slots, service;	       /* true ones */
	millis lead[START_KIND_COUNT]; /* true ones */
	millis now;
	int64_t tick;
	double demand; /* replicas offered */
	double waiting, running, started, late, completed;
	int64_t ready[TOY_GROUPS], standby[TOY_GROUPS], lent;
	struct start_input starts[TOY_STARTS];
	size_t start_count;
	struct event_input events[TOY_EVENTS];
	size_t event_count;
	bool refuse[TOY_GROUPS]; /* cold starts there are refused */
	millis ends_at[TOY_GROUPS];
	bool refuse_wakes, blind;
	bool takes_stopped; /* the cloud takes a stopped machine where a new one is asked for */
	int64_t fresh_permille, disputed;
	int64_t silent_ticks; /* between two with readings, which tell of all since the ones before */
	struct scrape_input untold;
	int64_t asleep; /* in the first group, a node each */
	int64_t wanted_pods, schedule_floor, schedule_next_floor;
	bool is_queue_unknown;
	millis schedule_next_at;
	struct deadline_input deadline;
	int64_t asked_cold, asked_wake, released;
	struct pool_plan plan;
	struct arena arena;
	struct pool_snapshot seen;
	struct scrape_input scrapes[3];
	struct group_input inputs[TOY_GROUPS];
};

static inline void toy_init(struct toy *t, size_t group_count)
{
	*t = (struct toy){ .slots = 100, .service = 10, .now = 1767571200000, .fresh_permille = 1000 };
	for (size_t i = 0; i < TOY_GROUPS; i++) {
		t->group_indices[i] = i;
		t->groups[i] = (struct group_spec){
			.name = i == 0	 ? "first"
				: i == 1 ? "second"
					 : "third",
			.provider = "simulated",
			.settings = "{}",
			.zone = "",
			.instance_type = "",
			.gpus_per_node = 1,
			.price_per_hour = 1000000 + (int64_t)i * 500000,
			.max_nodes = 60,
		};
	}
	t->pool = (struct pool_spec){
		.name = "chat",
		.namespace = "llm",
		.objective_wait = 2000,
		.objective_late_ppm = 10000,
		.gpus_per_replica = 1,
		.max_sequences = 100,
		.tokens_per_second = 3333,
		.prefill_tokens_per_second = 25000,
		.inter_token_latency_us = 30000,
		.groups = t->group_indices,
		.group_count = group_count,
		.lead_time = { 300000, 400000 },
		.budget_name = "",
		.yield_within = 30000,
	};
	t->fleet = (struct fleet_spec){ t->groups, group_count, &t->pool, 1, NULL };
	t->lead[START_COLD] = t->lead[START_REFILL] = 300000;
	t->lead[START_WAKE] = 90000;
	t->lead[START_RECLAIM] = 45000;
	t->lead[START_PLACE] = 90000;
}

/* Up to 20 stopped machines in the first group that serve after 90 s. */
static inline void toy_keep_stock(struct toy *t, int64_t price_ppm)
{
	t->groups[0].standby_max_nodes = 20;
	t->groups[0].standby_price_ppm = price_ppm;
	t->groups[0].standby_lead_time = (struct quantiles){ 90000, 150000 };
}

static inline void toy_begin(struct toy *t, int64_t ready)
{
	t->ready[0] = ready;
	t->memory = policy_state_new(&t->fleet);
}

static inline void toy_end(struct toy *t)
{
	policy_state_free(t->memory);
	arena_release(&t->arena);
}

static inline int64_t toy_ready(const struct toy *t)
{
	return t->ready[0] + t->ready[1] + t->ready[2];
}

static inline int64_t toy_on_the_way(const struct toy *t)
{
	int64_t n = 0;

	for (size_t i = 0; i < t->start_count; i++)
		n += t->starts[i].kind == START_REFILL ? 0 : t->starts[i].count;
	return n;
}

static inline void toy_event(struct toy *t, int64_t group, int64_t what, int64_t kind, int64_t value, int64_t count)
{
	if (t->event_count < TOY_EVENTS)
		t->events[t->event_count++] =
			(struct event_input){ group, what, kind, STAGE_COUNT - 1, value, count, 0 };
}

static inline void toy_arrive(struct toy *t)
{
	size_t kept = 0;

	for (size_t i = 0; i < t->start_count; i++) {
		struct start_input s = t->starts[i];
		if (t->now - s.asked_at < t->lead[s.kind]) {
			t->starts[kept++] = s;
			continue;
		}
		if (s.kind == START_REFILL)
			t->standby[s.group] += s.count;
		else
			t->ready[s.group] += s.count;
		toy_event(t, s.group, EVENT_SERVING, s.kind, t->now - s.asked_at, s.count);
	}
	t->start_count = kept;
}

/* One reading of 5 s: a fluid queue before ready * slots places. */
static inline struct scrape_input toy_read(struct toy *t)
{
	double arrived = t->demand * t->slots / t->service * 5, room = (double)toy_ready(t) * t->slots;
	double done = t->running * 5 / t->service, before = t->waiting;

	done = done < t->running ? done : t->running;
	t->running -= done;
	t->waiting += arrived;
	double start = room > t->running ? room - t->running : 0;
	start = start < t->waiting ? start : t->waiting;
	t->running += start;
	t->waiting -= start;
	t->completed += done;
	double rate = room / t->service;
	double late = rate > 0 && before / rate > (double)t->pool.objective_wait / 1000 ? start : 0;
	struct scrape_input r = {
		.at = t->now,
		.ready = toy_ready(t),
		.running = (int64_t)t->running,
		.waiting = (int64_t)t->waiting,
		.full = ABSENT,
		.running_full = ABSENT,
		.started = (int64_t)(start + .5),
		.late = (int64_t)(late + .5),
		.completed = (int64_t)(done + .5),
	};
	t->started += start;
	t->late += late;
	return r;
}

/* In a silent tick what happened waits for the next reading. */
static inline bool toy_keep_readings(struct toy *t)
{
	bool is_silent = t->silent_ticks && t->tick % (t->silent_ticks + 1) != t->silent_ticks;

	for (int i = 0; i < 3 && is_silent; i++) {
		t->untold.started += t->scrapes[i].started;
		t->untold.late += t->scrapes[i].late;
		t->untold.completed += t->scrapes[i].completed;
	}
	if (is_silent)
		return true;
	t->scrapes[0].started += t->untold.started;
	t->scrapes[0].late += t->untold.late;
	t->scrapes[0].completed += t->untold.completed;
	t->untold = (struct scrape_input){ 0 };
	return false;
}

static inline void toy_observe(struct toy *t)
{
	for (int i = 0; i < 3; i++) {
		t->now += 5000;
		if (i == 0)
			toy_arrive(t);
		t->scrapes[i] = toy_read(t);
	}
	int64_t ready = toy_ready(t);
	bool is_silent = t->blind || toy_keep_readings(t);
	for (size_t i = 0; i < t->pool.group_count; i++) {
		t->inputs[i] = (struct group_input){ .ready = t->ready[i],
						     .asleep = i == 0 ? t->asleep : 0,
						     .asleep_nodes = i == 0 ? t->asleep : 0,
						     .standby = t->standby[i],
						     .lent = i == 0 ? t->lent : 0,
						     .nodes = t->ready[i] + (i == 0 ? t->asleep : 0),
						     .standby_nodes = t->standby[i],
						     .ends_at = t->ends_at[i] };
		for (size_t k = 0; k < t->start_count; k++)
			t->inputs[i].nodes += t->starts[k].group == (int64_t)i ? t->starts[k].count : 0;
		t->inputs[i].billed_gpus_milli = t->inputs[i].nodes * 1000;
		t->inputs[i].least_on_node = t->ready[i] > 0;
	}
	t->seen = (struct pool_snapshot){
		.input = { .scrapes_expected = ready * 3,
			   .scrapes_fresh = t->blind ? 0 : ready * 3 * t->fresh_permille / 1000,
			   .scrapes_disputed = t->disputed,
			   .ready = ready,
			   .asleep = t->asleep,
			   .lent = t->lent,
			   .wanted_pods = t->wanted_pods,
			   .queue_waiting = t->is_queue_unknown ? ABSENT : 0,
			   .schedule_floor = t->schedule_floor,
			   .schedule_next_floor = t->schedule_next_floor,
			   .schedule_next_at = t->schedule_next_at,
			   .inter_token_latency_us = ABSENT,
			   .kv_cache_permille = ABSENT },
		.scrapes = t->scrapes,
		.scrape_count = is_silent ? 0 : 3,
		.groups = t->inputs,
		.group_count = t->pool.group_count,
		.starts = t->starts,
		.start_count = t->start_count,
		.events = t->events,
		.event_count = t->event_count,
		.deadlines = &t->deadline,
		.deadline_count = t->deadline.work_ms > 0,
	};
}

static inline void toy_start(struct toy *t, size_t group, enum start_kind kind, int64_t n)
{
	if (n <= 0)
		return;
	if (kind == START_WAKE ? t->refuse_wakes : kind != START_RECLAIM && t->refuse[group]) {
		toy_event(t, (int64_t)group, EVENT_REFUSED, kind, ERROR_STOCKOUT, n);
		return;
	}
	if (kind == START_WAKE)
		t->standby[group] -= n;
	if (kind == START_RECLAIM)
		t->lent -= n;
	assert_true(t->start_count < TOY_STARTS);
	t->starts[t->start_count++] = (struct start_input){ (int64_t)group, kind, t->now, STAGE_PROVISION, n };
}

static inline int64_t toy_cancel(struct toy *t, size_t group, enum start_kind kind, int64_t n)
{
	for (size_t i = t->start_count; i-- > 0 && n > 0;) {
		struct start_input *s = &t->starts[i];
		int64_t some = s->count < n ? s->count : n;
		if (s->group != (int64_t)group || s->kind != kind)
			continue;
		s->count -= some;
		n -= some;
		if (kind == START_WAKE)
			t->standby[group] += some;
		if (kind == START_RECLAIM)
			t->lent += some;
	}
	size_t kept = 0;
	for (size_t i = 0; i < t->start_count; i++)
		if (t->starts[i].count > 0)
			t->starts[kept++] = t->starts[i];
	t->start_count = kept;
	return n;
}

static inline void toy_adopt(struct toy *t, size_t group, int64_t n)
{
	for (size_t i = 0; i < t->start_count && n > 0; i++)
		if (t->starts[i].group == (int64_t)group && t->starts[i].kind == START_REFILL) {
			assert_true(t->starts[i].count <= n); /* toy refills are adopted whole */
			n -= t->starts[i].count;
			t->starts[i].kind = START_COLD;
		}
}

static inline void toy_act(struct toy *t)
{
	for (size_t i = 0; i < t->pool.group_count; i++) {
		const struct group_decision *d = &t->plan.groups[i];
		assert_int_equal(toy_cancel(t, i, START_COLD, d->cancel_cold), 0);
		assert_int_equal(toy_cancel(t, i, START_PLACE, d->cancel_place), 0);
		assert_int_equal(toy_cancel(t, i, START_WAKE, d->cancel_wake), 0);
		assert_int_equal(toy_cancel(t, i, START_RECLAIM, d->cancel_reclaim), 0);
		for (int64_t k = 0; k < d->refill; k++)
			toy_start(t, i, START_REFILL, 1);
		toy_adopt(t, i, d->adopt_refill);
		assert_true(d->wake <= t->standby[i]);
		int64_t taken = t->takes_stopped ? t->standby[i] - d->wake : 0;
		taken = taken < d->cold ? taken : d->cold;
		toy_start(t, i, START_COLD, d->cold - taken);
		toy_start(t, i, START_WAKE, d->wake + taken);
		toy_start(t, i, START_RECLAIM, d->reclaim);
		assert_true(d->release <= t->ready[i]);
		t->ready[i] -= d->release;
		t->standby[i] += d->stop;
		t->lent += d->give_back;
		assert_true(d->delete_standby <= t->standby[i]);
		t->standby[i] -= d->delete_standby;
		t->asked_cold += d->cold;
		t->asked_wake += d->wake;
		t->released += d->release;
	}
}

/* On what was observed. */
static inline const struct pool_decision *toy_decide(struct toy *t)
{
	struct snapshot s = { t->tick++, t->now, TICK, &t->fleet, &t->seen };
	arena_clear(&t->arena);
	t->plan = policy_decide(&s, t->memory, &t->arena).pools[0];
	t->event_count = 0;
	toy_act(t);
	return &t->plan.decision;
}

/* One tick: let time pass, decide, act. */
static inline const struct pool_decision *toy_tick(struct toy *t)
{
	toy_observe(t);
	return toy_decide(t);
}

static inline void toy_run(struct toy *t, millis duration)
{
	for (millis end = t->now + duration; t->now < end;)
		toy_tick(t);
}
