/* The real policy in seeded random worlds: what it plans can be carried out, and holds max, budget and bill. */
#include "base/random.h"
#include "tests/unit/simulation/toy.h"

#include <stdlib.h>

enum { POOLS = 3, GROUPS = 3, WORLDS = 60, TICKS = 480 };

struct scene {
	uint64_t seed;
	struct arena arena, tick_arena;
	struct group_spec groups[GROUPS];
	struct pool_spec pools[POOLS];
	size_t order[POOLS][GROUPS];
	struct fleet_spec fleet;
	struct pool_world pool_worlds[POOLS];
	struct group_world group_worlds[GROUPS];
	struct world_spec spec;
	struct trace traces[POOLS];
	const struct trace *given[POOLS];
	struct world_setup setup;
	struct world *world;
	void *policy;
	struct snapshot snapshot;
	struct plan plan;
	int64_t tick, ignored[POOLS];
};

#define LAW(condition, pool)                                                                                      \
	do {                                                                                                      \
		if (!(condition))                                                                                 \
			fail_msg("seed %llu, tick %lld, %s: %s", (unsigned long long)s->seed, (long long)s->tick, \
				 (pool) < POOLS ? s->pools[pool].name : "fleet", #condition);                     \
	} while (0)

static int64_t below(struct random *r, int64_t n)
{
	return (int64_t)(random_next(r) % (uint64_t)n);
}

static void make_group(struct scene *s, size_t i, struct random *r)
{
	static const char *const names[] = { "spot", "od", "big" };
	static const struct stockout_window stockout = { 600 * SECOND, 1500 * SECOND, ERROR_STOCKOUT };
	static const struct loss_window loss = { 1000 * SECOND, 1300 * SECOND, 300000 };

	s->groups[i] = (struct group_spec){ .name = names[i],
					    .provider = "simulated",
					    .settings = "{}",
					    .zone = "",
					    .instance_type = "",
					    .gpus_per_node = 1 << below(r, 4),
					    .price_per_hour = 500000 + below(r, 4000000),
					    .min_nodes = below(r, 4) ? 0 : below(r, 3),
					    .max_nodes = 3 + below(r, 20),
					    .standby_price_ppm = 20000,
					    .standby_lead_time = { 90 * SECOND, 150 * SECOND } };
	s->groups[i].standby_max_nodes = below(r, 2) ? below(r, 8) : 0;
	s->group_worlds[i] = group_world_default;
	s->group_worlds[i].stockouts = &stockout;
	s->group_worlds[i].stockout_count = below(r, 3) == 0;
	s->group_worlds[i].losses = &loss;
	s->group_worlds[i].loss_count = below(r, 4) == 0;
	s->group_worlds[i].loss_per_hour_ppm = below(r, 3) ? 0 : below(r, 300000);
	s->group_worlds[i].failed_start_ppm = below(r, 3) ? 0 : below(r, 200000);
	s->group_worlds[i].wake_refused_ppm = below(r, 3) ? 0 : below(r, 300000);
}

static void make_traffic(struct scene *s, size_t i, struct random *r)
{
	struct trace *t = &s->traces[i];
	size_t count = TICKS;
	int64_t rate = 1 + below(r, 900), level = below(r, rate);

	t->is_binned = true;
	t->bin_width = TOY_TICK;
	t->bins = arena_array(&s->arena, struct bin, count);
	t->bin_count = count;
	for (size_t k = 0; k < count; k++) {
		if (below(r, 30) == 0)
			level = below(r, 3) ? below(r, rate) : 0;
		t->bins[k] = (struct bin){ (millis)k * TOY_TICK, level, level * 200, level * (200 + below(r, 800)) };
	}
	t->length = (millis)count * TOY_TICK;
}

static void choose_groups(struct scene *s, size_t i, struct random *r)
{
	struct pool_spec *p = &s->pools[i];
	int64_t size = 4;

	for (size_t g = 0; g < s->fleet.group_count; g++)
		if (below(r, 3) || (p->group_count == 0 && g + 1 == s->fleet.group_count))
			s->order[i][p->group_count++] = g;
	p->groups = s->order[i];
	for (size_t g = 0; g < p->group_count; g++)
		if (s->groups[p->groups[g]].gpus_per_node < size)
			size = s->groups[p->groups[g]].gpus_per_node;
	p->gpus_per_replica = 1 + below(r, size);
}

static void make_pool(struct scene *s, size_t i, struct random *r)
{
	static const char *const names[] = { "chat", "embed", "batch" };
	static const enum pool_class classes[] = { CLASS_INTERACTIVE, CLASS_EMBEDDING, CLASS_BATCH };
	struct pool_spec *p = &s->pools[i];

	*p = (struct pool_spec){ .name = names[i],
				 .namespace = "",
				 .class = classes[i],
				 .objective_wait = 2 * SECOND,
				 .objective_late_ppm = 10000,
				 .max_sequences = 10,
				 .tokens_per_second = 1000,
				 .prefill_tokens_per_second = 10000,
				 .inter_token_latency_us = 10000,
				 .lead_time = { 60 * SECOND, 150 * SECOND },
				 .headroom_min = below(r, 3),
				 .scale_down_after = below(r, 3) ? 0 : 5 * MINUTE,
				 .yield_within = 30 * SECOND,
				 .shrink_priority = below(r, 3),
				 .budget_per_hour = below(r, 3) ? 0 : 5000000 + below(r, 30000000),
				 .budget_name = "" };
	p->lend_to = i < 2 && below(r, 2) ? 1u << CLASS_BATCH : 0;
	choose_groups(s, i, r);
	s->pool_worlds[i] = pool_world_default;
	s->pool_worlds[i].initial_replicas = below(r, 3);
	s->pool_worlds[i].deadline = i == 2 && below(r, 2) ? 20 * MINUTE : 0;
	if (p->lend_to && below(r, 2))
		s->pool_worlds[i].lendable.replicas = below(r, 10);
	make_traffic(s, i, r);
	s->given[i] = &s->traces[i];
}

/* Two pools may share one budget. */
static void share_budget(struct scene *s, struct random *r)
{
	if (s->fleet.pool_count < 2 || below(r, 3))
		return;
	for (size_t i = 0; i < 2; i++) {
		s->pools[i].budget_name = "team";
		s->pools[i].budget_per_hour = 20000000;
	}
}

static void scene_open(struct scene *s, uint64_t seed)
{
	struct random r = random_stream(seed, "policy-laws");
	struct error e;

	*s = (struct scene){ .seed = seed };
	s->fleet = (struct fleet_spec){ s->groups, (size_t)(1 + below(&r, GROUPS)), s->pools,
					(size_t)(1 + below(&r, POOLS)), NULL };
	for (size_t i = 0; i < s->fleet.group_count; i++)
		make_group(s, i, &r);
	for (size_t i = 0; i < s->fleet.pool_count; i++)
		make_pool(s, i, &r);
	share_budget(s, &r);
	s->spec = (struct world_spec){ s->pool_worlds, s->group_worlds };
	s->setup = (struct world_setup){
		.fleet = &s->fleet, .spec = &s->spec, .traces = s->given, .interval = TOY_TICK, .seed = seed
	};
	s->world = world_new(&s->setup);
	s->policy = policy_preheat.open(&s->fleet, "", &e);
	assert_non_null(s->policy);
}

static void scene_close(struct scene *s)
{
	policy_preheat.close(s->policy);
	world_free(s->world);
	arena_release(&s->tick_arena);
	arena_release(&s->arena);
}

static void scene_step(struct scene *s)
{
	arena_release(&s->tick_arena);
	world_advance(s->world);
	s->snapshot = world_snapshot(s->world, &s->tick_arena);
	s->plan = policy_preheat.decide(s->policy, &s->snapshot, &s->tick_arena);
	for (size_t i = 0; i < s->fleet.pool_count; i++)
		s->ignored[i] = world_totals(s->world, i).ignored;
	world_apply(s->world, &s->plan);
	s->snapshot = world_snapshot(s->world, &s->tick_arena); /* as the plan left it */
}

static const struct group_input *share_of(const struct scene *s, size_t pool, size_t group)
{
	for (size_t i = 0; i < s->pools[pool].group_count; i++)
		if (s->pools[pool].groups[i] == group)
			return &s->snapshot.pools[pool].groups[i];
	return NULL;
}

static void check_group(const struct scene *s, size_t group)
{
	const struct group_spec *g = &s->groups[group];
	int64_t billed = 0, foreign = 0, nodes = 0;
	bool is_used = false;

	for (size_t p = 0; p < s->fleet.pool_count; p++) {
		const struct group_input *in = share_of(s, p, group);
		if (!in)
			continue;
		LAW(in->nodes <= g->max_nodes && in->nodes >= 0, p);
		LAW(in->standby_nodes <= g->standby_max_nodes && in->standby_nodes >= 0, p);
		is_used = true;
		nodes = in->nodes;
		billed += in->billed_gpus_milli;
		if (s->pools[p].groups[0] == group)
			foreign += s->pool_worlds[p].lendable.replicas;
	}
	int64_t size = g->gpus_per_node * 1000, beyond = billed - nodes * size;
	LAW(!is_used || (beyond >= 0 && beyond <= foreign * size && beyond % size == 0), POOLS);
}

static int64_t cost_of(const struct scene *s, size_t pool)
{
	int64_t cost = 0;

	for (size_t i = 0; i < s->pools[pool].group_count; i++) {
		const struct group_spec *g = &s->groups[s->pools[pool].groups[i]];
		const struct group_input *in = &s->snapshot.pools[pool].groups[i];
		int64_t per_node = replicas_per_node(g, &s->pools[pool]);
		cost += in->billed_gpus_milli * g->price_per_hour / (1000 * g->gpus_per_node);
		cost += in->standby / per_node * g->price_per_hour / 1000000 * g->standby_price_ppm;
	}
	return cost;
}

/* Machines, not free GPUs of nodes that are paid for. */
static int64_t asked_by(const struct scene *s, size_t pool)
{
	int64_t asked = 0;

	for (size_t i = 0; i < s->plan.pools[pool].group_count; i++) {
		const struct group_decision *d = &s->plan.pools[pool].groups[i];
		asked += d->cold + d->wake + d->refill;
	}
	return asked;
}

static bool shares_budget(const struct scene *s, size_t a, size_t b)
{
	return a == b || (s->pools[a].budget_name[0] && !strcmp(s->pools[a].budget_name, s->pools[b].budget_name));
}

/* No other budget's pool on the same nodes, whose coming and going would move the bill. */
static bool has_own_nodes(const struct scene *s, size_t pool)
{
	for (size_t i = 0; i < s->fleet.pool_count; i++)
		for (size_t k = 0; k < s->fleet.pool_count; k++)
			for (size_t g = 0; g < s->fleet.group_count; g++)
				if (shares_budget(s, pool, i) && !shares_budget(s, pool, k) && share_of(s, i, g) &&
				    share_of(s, k, g))
					return false;
	return true;
}

/* A plan that buys or wakes never says, nor leads to, more than the budget; taking one's own back is not bought. */
static void check_budget(const struct scene *s, size_t pool)
{
	int64_t cost = 0, said = 0, asked = 0, budget = s->pools[pool].budget_per_hour;

	for (size_t i = 0; i < s->fleet.pool_count; i++)
		if (shares_budget(s, pool, i)) {
			cost += cost_of(s, i);
			said += s->plan.pools[i].decision.dollars_per_hour;
			asked += asked_by(s, i);
		}
	LAW(budget == 0 || asked == 0 || said <= budget, pool);
	LAW(budget == 0 || asked == 0 || cost <= budget || !has_own_nodes(s, pool), pool);
}

static void check_pool(const struct scene *s, size_t pool)
{
	struct world_totals t = world_totals(s->world, pool);
	bool may_be_taken = false;

	LAW(t.ignored == s->ignored[pool], pool);
	for (size_t g = 0; g < s->fleet.group_count; g++)
		may_be_taken |= s->group_worlds[g].loss_count || s->group_worlds[g].loss_per_hour_ppm;
	for (size_t p = 0; p < s->fleet.pool_count; p++)
		may_be_taken |= s->pools[p].lend_to != 0;
	LAW(may_be_taken || t.returned == 0, pool); /* nothing that ran was deleted */
	check_budget(s, pool);
}

static void every_plan_can_be_carried_out(void **state)
{
	const char *only = getenv("PREHEAT_SEED");
	uint64_t first = only ? strtoull(only, NULL, 10) : 1, last = only ? first : WORLDS;

	(void)state;
	for (uint64_t seed = first; seed <= last; seed++) {
		struct scene scene, *s = &scene;
		scene_open(s, seed);
		for (s->tick = 0; s->tick < TICKS; s->tick++) {
			scene_step(s);
			for (size_t g = 0; g < s->fleet.group_count; g++)
				check_group(s, g);
			for (size_t p = 0; p < s->fleet.pool_count; p++)
				check_pool(s, p);
		}
		scene_close(s);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(every_plan_can_be_carried_out) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
