/* The laws that every decision keeps, in seeded random worlds, checked after every tick. */
#include "base/random.h"
#include "tests/unit/policy/toy.h"

#include <stdio.h>

enum { WORLDS = 40, TICKS = 1500 };

static uint64_t seed;

#define LAW(condition)                                                                                     \
	do {                                                                                               \
		if (!(condition))                                                                          \
			fail_msg("seed %llu, tick %lld: %s", (unsigned long long)seed, (long long)t->tick, \
				 #condition);                                                              \
	} while (0)

static int64_t below(struct random *r, int64_t n)
{
	return (int64_t)(random_next(r) % (uint64_t)n);
}

static void make_world(struct toy *t, struct random *r)
{
	toy_init(t, 1 + (size_t)below(r, 3));
	for (size_t i = 0; i < t->pool.group_count; i++) {
		t->groups[i].max_nodes = 3 + below(r, 40);
		t->groups[i].min_nodes = below(r, 4) == 0 ? below(r, 3) : 0;
		if (below(r, 2)) {
			t->groups[i].standby_max_nodes = below(r, 20);
			t->groups[i].standby_price_ppm = 20000;
			t->groups[i].standby_lead_time = (struct quantiles){ 90000, 150000 };
		}
	}
	t->pool.budget_per_hour = below(r, 3) == 0 ? 5000000 + below(r, 40000000) : 0;
	t->pool.headroom_min = below(r, 3);
	t->pool.scale_down_after = below(r, 4) == 0 ? below(r, 1800000) : 0;
	if (below(r, 3) == 0) {
		t->pool.lend_to = 1u << CLASS_BATCH;
		t->lent = below(r, 6);
	}
	toy_begin(t, 1 + below(r, 3));
	t->demand = (double)below(r, 20);
}

static void disturb(struct toy *t, struct random *r)
{
	if (below(r, 40) == 0)
		t->demand = (double)below(r, 30);
	t->demand += (random_uniform(r) - .5) * .4;
	if (t->demand < 0)
		t->demand = 0;
	if (below(r, 100) == 0)
		t->blind = !t->blind;
	if (below(r, 60) == 0)
		t->refuse[below(r, TOY_GROUPS)] ^= 1;
	if (below(r, 60) == 0)
		t->refuse_wakes = !t->refuse_wakes;
	if (below(r, 80) == 0) { /* spot takes one */
		int64_t g = below(r, (int64_t)t->pool.group_count);
		if (t->ready[g] > 0) {
			t->ready[g]--;
			toy_event(t, g, EVENT_LOST, 0, 0, 1);
		}
	}
}

static void check_groups(const struct toy *t)
{
	for (size_t i = 0; i < t->pool.group_count; i++) {
		const struct group_decision *d = &t->plan.groups[i];
		const struct group_input *in = &t->inputs[i];
		int64_t asked = d->cold + d->wake + d->refill + d->place;
		LAW(d->cold >= 0 && d->wake >= 0 && d->refill >= 0 && d->release >= 0 && d->cancel_cold >= 0);
		LAW(asked == 0 || in->nodes + asked - d->cancel_cold - d->cancel_wake <= t->groups[i].max_nodes);
		LAW(d->cold == 0 || d->blocked_until == 0);
		LAW(d->release <= in->ready && d->stop + d->give_back <= d->release);
		LAW(d->release == 0 || in->nodes - d->release >= t->groups[i].min_nodes);
		LAW(d->wake + d->delete_standby <= in->standby);
		LAW(d->reclaim <= in->lent);
		LAW(in->standby_nodes + d->stop <= t->groups[i].standby_max_nodes || d->stop == 0);
		LAW(!(d->release > 0 && d->cold > 0));
	}
}

static void check_pool(const struct toy *t, bool was_blind, double waiting)
{
	const struct pool_decision *d = &t->plan.decision;
	int64_t asked = 0, released = 0, price = 0, minima = 0;

	for (size_t i = 0; i < t->pool.group_count; i++) {
		const struct group_decision *g = &t->plan.groups[i];
		asked += g->cold + g->wake;
		minima += t->groups[i].min_nodes;
		released += g->release + g->cancel_cold + g->cancel_wake;
		price = t->groups[i].price_per_hour > price ? t->groups[i].price_per_hour : price;
	}
	LAW(!was_blind || released == 0);
	LAW(waiting <= 0 || d->waiting_now == 0 || d->ready == 0 || asked > 0 || released <= d->on_the_way);
	/* The manifest's smallest sizes are bought at once. */
	LAW(asked <= minima + (d->ready + d->on_the_way > 8 ? d->ready + d->on_the_way : 8));
	/* One replica of rounding, as the budget is kept at the mean price of what runs. */
	LAW(!asked || !t->pool.budget_per_hour || (d->decided - 1) * 1000000 <= t->pool.budget_per_hour + price);
	LAW(d->rule >= 0 && d->held_by >= 0 && d->held_by < LIMIT_COUNT);
}

static void random_worlds_keep_the_laws(void **state)
{
	(void)state;
	for (seed = 1; seed <= WORLDS; seed++) {
		struct random r = random_stream(seed, "laws");
		struct toy world, *t = &world;
		make_world(t, &r);
		for (int i = 0; i < TICKS; i++) {
			disturb(t, &r);
			toy_tick(t);
			check_groups(t);
			check_pool(t, t->blind, t->waiting);
		}
		toy_end(t);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(random_worlds_keep_the_laws) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
