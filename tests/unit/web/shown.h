/* Two pools on two node groups, as the loop would publish them; tests change what they are about. */
#pragma once
#include "controller/web/published.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#define SHOWN_NOW (INT64_C(1767225600) * SECOND) /* 2026-01-01T00:00:00Z */

struct shown {
	struct published p;
	struct clock clock;
	struct group_spec groups[2];
	struct pool_spec pools[2];
	struct fleet_spec fleet;
	struct snapshot snapshot;
	struct plan plan;
	struct pool_plan plans[2];
	struct group_decision decisions[2][2];
	struct published_pool live_pools[2];
	struct published_group live_groups[2];
	struct published_watch watches[2];
	struct published_count calls[2], pending[2], refused[1];
	struct cost_sums cost;
	struct published_label_cost label_costs[3];
};

static inline void shown_pools(struct shown *s)
{
	static const size_t both[] = { 0, 1 };
	static const struct group_user of_first[] = { { 0, 0 }, { 1, 0 } }, of_second[] = { { 0, 1 } };
	static const struct group_users users[] = { { of_first, 2 }, { of_second, 1 } };

	s->groups[0] = (struct group_spec){ .name = "g5-spot",
					    .provider = "simulated",
					    .settings = "{}",
					    .zone = "",
					    .instance_type = "",
					    .gpus_per_node = 1,
					    .price_per_hour = 480000,
					    .max_nodes = 40 };
	s->groups[1] = s->groups[0];
	s->groups[1].name = "g5-od";
	s->groups[1].min_nodes = 1;
	s->pools[0] = (struct pool_spec){ .name = "chat",
					  .namespace = "llm",
					  .objective_wait = 2 * SECOND,
					  .objective_late_ppm = 10000,
					  .gpus_per_replica = 1,
					  .groups = both,
					  .group_count = 2,
					  .budget_name = "" };
	s->pools[1] = s->pools[0];
	s->pools[1].name = "batch";
	s->pools[1].class = CLASS_BATCH;
	s->pools[1].group_count = 1;
	s->fleet = (struct fleet_spec){ s->groups, 2, s->pools, 2, users };
}

static inline void shown_plan(struct shown *s)
{
	s->plans[0].decision = (struct pool_decision){ .ready = 4,
						       .on_the_way = 2,
						       .draining = 1,
						       .standby = 3,
						       .demand_milli = 3250,
						       .backlog_ms = 10000,
						       .waiting_now = 7,
						       .wished = 6,
						       .decided = 6,
						       .lead_cold_p50 = 380 * SECOND,
						       .lead_cold_p95 = 650 * SECOND,
						       .own_share_ppm = 2000,
						       .objective_ppm = 10000,
						       .cheaper_rule = ABSENT,
						       .stock_permille = ABSENT,
						       .dollars_per_hour = 2420000 };
	s->plans[1].decision = s->plans[0].decision;
	for (size_t i = 0; i < 2; i++) {
		s->decisions[i][0] = (struct group_decision){ .nodes = 5, .nodes_desired = 6 };
		s->decisions[i][1] = (struct group_decision){ .nodes = 2, .nodes_desired = 2 };
		s->plans[i].groups = s->decisions[i];
		s->plans[i].group_count = s->pools[i].group_count;
	}
	s->plan = (struct plan){ s->plans, 2 };
	s->snapshot = (struct snapshot){ .tick = 41, .now = SHOWN_NOW, .interval = 15 * SECOND, .fleet = &s->fleet };
}

static inline void shown_around(struct shown *s)
{
	s->live_pools[0] = (struct published_pool){ .is_object = true,
						    .generation = 3,
						    .target_kind = "Deployment",
						    .target_name = "llama",
						    .signals_age = 4200,
						    .queued = 17,
						    .devices = { .count = 6,
								 .held = 4,
								 .failing = 1,
								 .last_xid = 79,
								 .use_permille = 615,
								 .stranded_permille = 132,
								 .memory_used_mib = 80000,
								 .memory_free_mib = 53000,
								 .power_mw = 512345 },
						    .changed_at = SHOWN_NOW - HOUR,
						    .changed_from = 5,
						    .changed_to = 6,
						    .arrived = 1200,
						    .started = 1190,
						    .late = 9,
						    .reason = "6 hot replicas: as wished." };
	s->live_pools[1] = (struct published_pool){ .reason = "" };
	s->live_groups[0] = (struct published_group){ .is_described = true, .described_at = SHOWN_NOW, .desired = 6 };
	s->watches[0] = (struct published_watch){ .resource = "nodes", .is_synced = true, .objects = 7, .relists = 1 };
	s->watches[1] = (struct published_watch){ .resource = "pods", .is_synced = true, .objects = 90 };
	s->calls[0] = (struct published_count){ { "simulated", "resize", "none" }, 12 };
	s->calls[1] = (struct published_count){ { "simulated", "resize", "stock-out" }, 2 };
}

/* It points into itself: filled in where it stays. */
static inline void shown_fill(struct shown *s)
{
	*s = (struct shown){ .clock = clock_open_by_hand(SHOWN_NOW) };
	shown_pools(s);
	shown_plan(s);
	shown_around(s);
	s->p = (struct published){ .clock = &s->clock,
				   .version = "0.1.0",
				   .identity = "a",
				   .started_at = SHOWN_NOW - DAY,
				   .tick_interval = 15 * SECOND,
				   .role = ROLE_LEADER,
				   .leader = "a",
				   .tick_begun_mono = 1000 * SECOND,
				   .tick_ended_mono = 1000 * SECOND + 3,
				   .tick_due_mono = 100 * SECOND,
				   .ticks = 42,
				   .fleet = &s->fleet,
				   .snapshot = &s->snapshot,
				   .plan = &s->plan,
				   .pools = s->live_pools,
				   .groups = s->live_groups,
				   .watches = s->watches,
				   .watch_count = 2,
				   .provider_calls = { s->calls, 2 } };
	published_time(&s->p.tick_time, 1500);
	published_time(&s->p.tick_time, 700000);
}
