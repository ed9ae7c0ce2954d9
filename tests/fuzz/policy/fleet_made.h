/* A small fleet and one tick of it that has something in every list, for fuzzing what decides. */
#pragma once
#include "controller/policy/decide.h"

enum { MADE_TICK = 15000, MADE_GROUPS = 2 };

static const struct group_spec made_groups[MADE_GROUPS] = {
	{ .name = "spot",
	  .provider = "simulated",
	  .settings = "{}",
	  .zone = "a",
	  .instance_type = "",
	  .capacity_type = CAPACITY_SPOT,
	  .gpus_per_node = 2,
	  .price_per_hour = 480000,
	  .max_nodes = 20 },
	{ .name = "on-demand",
	  .provider = "simulated",
	  .settings = "{}",
	  .zone = "b",
	  .instance_type = "",
	  .gpus_per_node = 1,
	  .price_per_hour = 1210000,
	  .min_nodes = 1,
	  .max_nodes = 20,
	  .standby_max_nodes = 5,
	  .standby_price_ppm = 20000,
	  .standby_lead_time = { 45000, 75000 } },
};
static const size_t made_order[MADE_GROUPS] = { 0, 1 };
static const struct pool_spec made_pool = {
	.name = "chat",
	.namespace = "llm",
	.objective_wait = 2000,
	.objective_late_ppm = 10000,
	.gpus_per_replica = 1,
	.max_sequences = 100,
	.tokens_per_second = 3333,
	.prefill_tokens_per_second = 25000,
	.inter_token_latency_us = 30000,
	.groups = made_order,
	.group_count = MADE_GROUPS,
	.lead_time = { 60000, 90000 },
	.headroom_min = 1,
	.headroom_max = 20,
	.lend_to = 1u << CLASS_BATCH,
	.yield_within = 30000,
	.budget_per_hour = 20000000,
	.budget_name = "",
};
static const struct fleet_spec made_fleet = { made_groups, MADE_GROUPS, &made_pool, 1, NULL };

struct made {
	struct scrape_input scrapes[3];
	struct group_input groups[MADE_GROUPS];
	struct start_input starts[3];
	struct event_input events[4];
	struct deadline_input deadlines[1];
	struct pool_snapshot pool;
	struct snapshot snapshot;
};

static inline void made_fill(struct made *m)
{
	millis now = m->snapshot.now;

	for (int i = 0; i < 3; i++)
		m->scrapes[i] = (struct scrape_input){ .at = now - 10000 + i * INT64_C(5000),
						       .ready = 6,
						       .running = 500,
						       .running_draining = 10,
						       .waiting = 20 * i,
						       .started = 250,
						       .late = 3,
						       .completed = 240,
						       .prompt_tokens = 240000,
						       .output_tokens = 60000 };
	m->groups[0] = (struct group_input){ .ready = 4, .nodes = 4, .billed_gpus_milli = 7000, .free_places = 1 };
	m->groups[1] = (struct group_input){ .ready = 2,
					     .draining = 1,
					     .standby = 2,
					     .lent = 1,
					     .nodes = 4,
					     .standby_nodes = 2,
					     .billed_gpus_milli = 3000 };
	m->starts[0] = (struct start_input){ 0, START_COLD, now - 50000, STAGE_IMAGE, 2 };
	m->starts[1] = (struct start_input){ 1, START_REFILL, now - 30000, STAGE_PROVISION, 1 };
	m->starts[2] = (struct start_input){ 1, START_WAKE, now - 15000, STAGE_LOAD, 1 };
	m->events[0] = (struct event_input){ 0, EVENT_SERVING, START_COLD, STAGE_LOAD, 61000, 1, 0 };
	m->events[1] = (struct event_input){ 1, EVENT_REFUSED, START_WAKE, STAGE_PROVISION, 1, 1, 0 };
	m->events[2] = (struct event_input){ 0, EVENT_REFUSED, START_COLD, STAGE_PROVISION, 1, 1, 0 };
	m->events[3] = (struct event_input){ 1, EVENT_SERVING, START_RECLAIM, STAGE_LOAD, 40000, 1, 0 };
	m->deadlines[0] = (struct deadline_input){ now + HOUR, 7200000 };
	m->pool = (struct pool_snapshot){ .input = { .scrapes_expected = 18,
						     .scrapes_fresh = 18,
						     .ready = 6,
						     .draining = 1,
						     .lent = 1,
						     .schedule_floor = 2,
						     .schedule_next_floor = 4,
						     .schedule_next_at = now + HOUR,
						     .inter_token_latency_us = 31000,
						     .kv_cache_permille = 700 },
					  .scrapes = m->scrapes,
					  .groups = m->groups,
					  .starts = m->starts,
					  .events = m->events,
					  .deadlines = m->deadlines,
					  .scrape_count = 3,
					  .group_count = MADE_GROUPS,
					  .start_count = 3,
					  .event_count = 4,
					  .deadline_count = 1 };
}

static inline void made_tick(struct made *m, int64_t tick)
{
	m->snapshot =
		(struct snapshot){ tick, INT64_C(1767571200000) + tick * MADE_TICK, MADE_TICK, &made_fleet, &m->pool };
	made_fill(m);
}

static inline void made_decide(struct policy_state *m, int64_t from, int64_t ticks)
{
	CLEANUP(arena_release) struct arena a = { 0 };
	struct made made;

	for (int64_t tick = from; tick < from + ticks; tick++) {
		made_tick(&made, tick);
		policy_decide(&made.snapshot, m, &a);
		arena_clear(&a);
	}
}

enum { MADE_LEARNT = 300 };

/* The memory before tick MADE_LEARNT. */
static inline const struct buf *made_checkpoint(void)
{
	static struct buf bytes;

	if (!bytes.len) {
		struct policy_state *m = policy_state_new(&made_fleet);
		made_decide(m, 0, MADE_LEARNT);
		policy_state_encode(m, &bytes);
		policy_state_free(m);
	}
	return &bytes;
}

/* Numbers on which arithmetic and indices break, picked by one byte; small ones are themselves. */
static inline uint64_t made_number(uint8_t pick)
{
	static const uint64_t wild[] = {
		0,
		1,
		UINT64_MAX,	   /* -1 */
		UINT64_C(1) << 63, /* absent */
		INT64_MAX,
		INT32_MAX,
		UINT64_C(0x80000000),
		UINT64_C(0x7fffffff7fffffff), /* two of 32 bits */
		UINT64_C(0xffffffffffffffff) << 31,
		UINT64_C(0xffff),
		UINT64_C(0xffffffff00000000),
		UINT64_C(0x7ff0000000000000), /* infinity */
		UINT64_C(0xfff0000000000000),
		UINT64_C(0x7ff8000000000000), /* not a number */
		UINT64_C(0x7fefffffffffffff), /* the largest double */
		UINT64_C(0xffefffffffffffff),
		UINT64_C(0x3ff0000000000000), /* 1.0 */
		UINT64_C(0xbff0000000000000),
		UINT64_C(0x0000000000000001), /* the smallest double */
		UINT64_C(0x4340000000000000), /* 2^53 */
		UINT64_C(0x43f0000000000000), /* 2^64 */
		UINT64_C(0x41dfffffffc00000), /* 2^31 - 1 */
	};
	size_t count = sizeof wild / sizeof *wild;

	if (pick < count)
		return wild[pick];
	if (pick < count + 64)
		return UINT64_C(1) << (pick - count);
	return (uint64_t)pick;
}
