/* From replicas wanted to orders in node groups: a static rival asks, the snapshot is made by hand. */
#include "controller/simulation/rivals/rival.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <cmocka.h>

enum { NOW = 1000 * 1000, TICK = 15 * 1000, GROUPS = 2 };

static const size_t pool_groups[GROUPS] = { 0, 1 };
static const struct group_spec groups[GROUPS] = {
	{ .name = "spot", .gpus_per_node = 1, .price_per_hour = 500000, .max_nodes = 10, .standby_max_nodes = 6 },
	{ .name = "on-demand", .gpus_per_node = 1, .price_per_hour = 1000000, .min_nodes = 1, .max_nodes = 5 },
};
static const struct pool_spec pool = {
	.name = "p", .gpus_per_replica = 1, .max_sequences = 100, .groups = pool_groups, .group_count = GROUPS
};
static const struct fleet_spec fleet = { .groups = groups, .group_count = GROUPS, .pools = &pool, .pool_count = 1 };

/* What is there, and what must be ordered. */
struct scene {
	const char *name, *setting;
	struct group_input there[GROUPS];
	struct start_input starts[4];
	size_t start_count;
	struct event_input event;
	bool has_event, is_early, is_blind;
	struct group_decision expected[GROUPS];
	enum limit held_by;
};

static struct snapshot snapshot_of(const struct scene *s, struct pool_snapshot *p, const struct scrape_input *reading)
{
	*p = (struct pool_snapshot){ .groups = s->there,
				     .group_count = GROUPS,
				     .starts = s->starts,
				     .start_count = s->start_count,
				     .events = &s->event,
				     .event_count = s->has_event,
				     .scrapes = reading,
				     .scrape_count = !s->is_blind };
	for (size_t g = 0; g < GROUPS; g++) {
		p->input.ready += s->there[g].ready;
		p->input.draining += s->there[g].draining;
	}
	return (struct snapshot){
		.tick = s->is_early ? 3 : 100, .now = NOW, .interval = TICK, .fleet = &fleet, .pools = p
	};
}

#define EXPECT(field)                                                                                  \
	if (got->field != want->field)                                                                 \
	fail_msg("%s: group %zu " #field " is %lld, expected %lld", s->name, g, (long long)got->field, \
		 (long long)want->field)

static void check(const struct scene *s)
{
	CLEANUP(arena_release) struct arena a = { 0 };
	struct error e = { 0 };
	struct pool_snapshot p;
	const struct scrape_input reading = { .at = NOW };
	struct snapshot snapshot = snapshot_of(s, &p, &reading);
	const struct policy_ops *rival = rival_find("static");
	void *state = rival->open(&fleet, s->setting, &e);

	assert_non_null(state);
	struct plan plan = rival->decide(state, &snapshot, &a);
	for (size_t g = 0; g < GROUPS; g++) {
		const struct group_decision *got = &plan.pools[0].groups[g], *want = &s->expected[g];

		EXPECT(cold);
		EXPECT(wake);
		EXPECT(refill);
		EXPECT(reclaim);
		EXPECT(place);
		EXPECT(adopt_refill);
		EXPECT(cancel_cold);
		EXPECT(cancel_wake);
		EXPECT(cancel_refill);
		EXPECT(cancel_reclaim);
		EXPECT(release);
		EXPECT(stop);
		EXPECT(give_back);
		EXPECT(delete_standby);
	}
	if (plan.pools[0].decision.held_by != (int64_t)s->held_by)
		fail_msg("%s: held by %s, expected %s", s->name, limit_name((enum limit)plan.pools[0].decision.held_by),
			 limit_name(s->held_by));
	rival->close(state);
}

#define COLD(g, n)                                             \
	{                                                      \
		.group = (g), .kind = START_COLD, .count = (n) \
	}
#define WAKE(g, n)                                             \
	{                                                      \
		.group = (g), .kind = START_WAKE, .count = (n) \
	}
#define REFILL(g, n)                                             \
	{                                                        \
		.group = (g), .kind = START_REFILL, .count = (n) \
	}

static const struct scene scenes[] = {
	{ .name = "buys in order of preference",
	  .setting = "replicas=14",
	  .there = { { .ready = 4, .nodes = 4 }, { .ready = 1, .nodes = 1 } },
	  .expected = { { .cold = 6 }, { .cold = 3 } } },
	{ .name = "stops at the manifest's max",
	  .setting = "replicas=40",
	  .there = { { .ready = 4, .nodes = 4 }, { .ready = 1, .nodes = 1 } },
	  .expected = { { .cold = 6 }, { .cold = 4 } },
	  .held_by = LIMIT_MAX },
	{ .name = "counts what is on its way",
	  .setting = "replicas=9",
	  .there = { { .ready = 4, .nodes = 8 }, { .ready = 1, .nodes = 1 } },
	  .starts = { COLD(0, 4) },
	  .start_count = 1,
	  .expected = { { 0 } } },
	{ .name = "buys the manifest's min",
	  .setting = "replicas=3",
	  .there = { { .ready = 3, .nodes = 3 } },
	  .expected = { [1] = { .cold = 1 } } },
	{ .name = "wakes, adopts refills, then places, then buys",
	  .setting = "replicas=9,pool=static:0",
	  .there = { { .ready = 2, .nodes = 4, .standby = 2, .free_places = 1 }, { .ready = 1, .nodes = 1 } },
	  .starts = { REFILL(0, 2) },
	  .start_count = 1,
	  .expected = { { .wake = 2, .adopt_refill = 2, .place = 1, .cold = 1 } } },
	{ .name = "takes lent nodes first when it uses them",
	  .setting = "replicas=6,lent=1",
	  .there = { { .ready = 2, .nodes = 2, .standby = 5, .lent = 2 }, { .ready = 1, .nodes = 1 } },
	  .expected = { { .reclaim = 2, .wake = 1, .delete_standby = 4 } } },
	{ .name = "leaves lent nodes alone otherwise",
	  .setting = "replicas=4",
	  .there = { { .ready = 2, .nodes = 2, .lent = 2 }, { .ready = 1, .nodes = 1 } },
	  .expected = { { .cold = 1 } } },
	{ .name = "cancels the youngest first, then releases the least preferred",
	  .setting = "replicas=4",
	  .there = { { .ready = 4, .nodes = 7 }, { .ready = 3, .nodes = 3 } },
	  .starts = { COLD(0, 2), WAKE(0, 1) },
	  .start_count = 2,
	  .expected = { { .cancel_cold = 2, .cancel_wake = 1, .release = 1, .delete_standby = 0 }, { .release = 2 } } },
	{ .name = "cancels only what is too much",
	  .setting = "replicas=6",
	  .there = { { .ready = 4, .nodes = 7 }, { .ready = 1, .nodes = 1 } },
	  .starts = { COLD(0, 2), COLD(0, 1) },
	  .start_count = 2,
	  .expected = { { .cancel_cold = 2 } } },
	{ .name = "never goes below the manifest's min",
	  .setting = "replicas=0",
	  .there = { { .ready = 2, .nodes = 2 }, { .ready = 1, .nodes = 1 } },
	  .expected = { { .release = 2 } },
	  .held_by = LIMIT_MIN },
	{ .name = "releases nothing while fleets fill up",
	  .setting = "replicas=1",
	  .there = { { .ready = 2, .nodes = 2 }, { .ready = 1, .nodes = 1 } },
	  .is_early = true,
	  .held_by = LIMIT_COOLDOWN },
	{ .name = "holds without readings",
	  .setting = "replicas=1",
	  .there = { { .ready = 2, .nodes = 2 }, { .ready = 1, .nodes = 1 } },
	  .is_blind = true,
	  .held_by = LIMIT_STALE },
	{ .name = "keeps released machines up to the stock, buys what misses",
	  .setting = "replicas=3,pool=static:4",
	  .there = { { .ready = 4, .nodes = 4, .standby = 1 }, { .ready = 1, .nodes = 1 } },
	  .expected = { { .release = 2, .stop = 2, .refill = 1 } } },
	{ .name = "fills the stock no further than the group allows",
	  .setting = "replicas=3,pool=static:40",
	  .there = { { .ready = 2, .nodes = 2, .standby = 1 }, { .ready = 1, .nodes = 1 } },
	  .expected = { { .refill = 5 } } },
	{ .name = "cancels refills, then deletes",
	  .setting = "replicas=3,pool=static:1",
	  .there = { { .ready = 2, .nodes = 4, .standby = 3 }, { .ready = 1, .nodes = 1 } },
	  .starts = { REFILL(0, 2) },
	  .start_count = 1,
	  .expected = { { .cancel_refill = 2, .delete_standby = 2 } } },
	{ .name = "prepares a total of running and stopped machines",
	  .setting = "replicas=3,pool=total:5",
	  .there = { { .ready = 2, .nodes = 2 }, { .ready = 1, .nodes = 1 } },
	  .expected = { { .refill = 2 } } },
	{ .name = "leaves a group alone that refused",
	  .setting = "replicas=6",
	  .there = { { .ready = 2, .nodes = 2 }, { .ready = 1, .nodes = 1 } },
	  .event = { .group = 0, .what = EVENT_REFUSED, .kind = START_COLD, .count = 3 },
	  .has_event = true,
	  .expected = { [1] = { .cold = 3 } } },
	{ .name = "says so when every group refused",
	  .setting = "replicas=9",
	  .there = { { .ready = 2, .nodes = 2 }, { .ready = 5, .nodes = 5 } },
	  .event = { .group = 0, .what = EVENT_REFUSED, .kind = START_COLD, .count = 3 },
	  .has_event = true,
	  .held_by = LIMIT_STOCKOUT },
	{ .name = "replaces a refused wake by a new machine",
	  .setting = "replicas=6,pool=static:3",
	  .there = { { .ready = 2, .nodes = 2, .standby = 4 }, { .ready = 1, .nodes = 1 } },
	  .event = { .group = 0, .what = EVENT_REFUSED, .kind = START_WAKE, .count = 2 },
	  .has_event = true,
	  .expected = { { .wake = 1, .cold = 2 } } },
};

static void orders(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof scenes / sizeof *scenes; i++)
		check(&scenes[i]);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(orders) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
