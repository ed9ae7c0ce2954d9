/* A small fleet and traffic for tests, and a world over them. */
#pragma once
#include "controller/simulation/simulate.h"
#include "controller/simulation/world.h"

#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>
#include <string.h>

enum { TOY_POOLS = 2, TOY_GROUPS = 2, TOY_TICK = 15000 };

struct toy {
	struct arena arena;
	struct group_spec groups[TOY_GROUPS];
	struct pool_spec pools[TOY_POOLS];
	size_t order[TOY_GROUPS];
	struct fleet_spec fleet;
	struct pool_world pool_worlds[TOY_POOLS];
	struct group_world group_worlds[TOY_GROUPS];
	struct world_spec spec;
	struct trace traces[TOY_POOLS];
	const struct trace *given[TOY_POOLS];
	struct world_setup setup;
	struct group_decision decisions[TOY_POOLS][TOY_GROUPS];
	struct pool_plan plans[TOY_POOLS];
	struct plan plan;
	struct world *world;
	struct snapshot snapshot;
};

/* One pool on one group of one-GPU machines that take exactly 100 s to start; 10 slots; no traffic. */
static inline void toy_setup(struct toy *t)
{
	*t = (struct toy){ 0 };
	for (size_t i = 0; i < TOY_GROUPS; i++) {
		t->groups[i] = (struct group_spec){ .name = i ? "second" : "first",
						    .provider = "simulated",
						    .settings = "{}",
						    .zone = "",
						    .instance_type = "",
						    .gpus_per_node = 1,
						    .price_per_hour = 3600000,
						    .max_nodes = 50,
						    .standby_max_nodes = 20,
						    .standby_price_ppm = 20000,
						    .standby_lead_time = { 20 * SECOND, 20 * SECOND } };
		t->order[i] = i;
		t->group_worlds[i] = group_world_default;
	}
	for (size_t i = 0; i < TOY_POOLS; i++) {
		t->pools[i] = (struct pool_spec){ .name = i ? "batch" : "chat",
						  .namespace = "",
						  .class = i ? CLASS_BATCH : CLASS_INTERACTIVE,
						  .objective_wait = 2 * SECOND,
						  .objective_late_ppm = 10000,
						  .gpus_per_replica = 1,
						  .max_sequences = 10,
						  .tokens_per_second = 1000,
						  .prefill_tokens_per_second = 10000,
						  .inter_token_latency_us = 10000,
						  .groups = t->order,
						  .group_count = 1,
						  .lead_time = { 100 * SECOND, 100 * SECOND },
						  .budget_name = "" };
		t->pool_worlds[i] = pool_world_default;
		t->pool_worlds[i].initial_replicas = 0;
		t->traces[i].length = HOUR;
		t->given[i] = &t->traces[i];
		t->plans[i] = (struct pool_plan){ .groups = t->decisions[i], .group_count = 1 };
	}
	t->fleet = (struct fleet_spec){ t->groups, 1, t->pools, 1, NULL };
	t->spec = (struct world_spec){ t->pool_worlds, t->group_worlds };
	t->setup = (struct world_setup){
		.fleet = &t->fleet, .spec = &t->spec, .traces = t->given, .interval = TOY_TICK, .seed = 1
	};
	t->plan = (struct plan){ t->plans, 1 };
}

static inline void toy_two_pools(struct toy *t)
{
	t->fleet.pool_count = t->plan.pool_count = 2;
}

/* `count` requests, `gap` apart from `first` on, each holding a slot for `service`. */
static inline void toy_requests(struct toy *t, size_t pool, size_t count, millis first, millis gap, millis service)
{
	struct request *r = arena_array(&t->arena, struct request, count);

	for (size_t i = 0; i < count; i++)
		r[i] = (struct request){ first + (millis)i * gap, 0, (int32_t)(service / 10), -1 };
	t->traces[pool].requests = r;
	t->traces[pool].request_count = count;
}

static inline void toy_start(struct toy *t)
{
	t->world = world_new(&t->setup);
}

/* Carries t->decisions out, clears them, and lets ticks pass; each is looked at. */
static inline void toy_pass(struct toy *t, int ticks)
{
	for (int i = 0; i < ticks; i++) {
		world_apply(t->world, &t->plan);
		memset(t->decisions, 0, sizeof t->decisions);
		world_advance(t->world);
		t->snapshot = world_snapshot(t->world, &t->arena);
	}
}

/* How often it happened in the last tick. */
static inline int64_t toy_events(const struct toy *t, size_t pool, enum event_kind what)
{
	const struct pool_snapshot *p = &t->snapshot.pools[pool];
	int64_t count = 0;

	for (size_t i = 0; i < p->event_count; i++)
		if (p->events[i].what == (int64_t)what)
			count += p->events[i].count;
	return count;
}

static inline void toy_end(struct toy *t)
{
	world_free(t->world);
	arena_release(&t->arena);
}
