#include "controller/simulation/world.h"

#include "base/buf.h"
#include "controller/simulation/parts.h"

static int64_t or_else(int64_t value, int64_t otherwise)
{
	return value > 0 ? value : otherwise;
}

struct queue_truth queue_truth_of(const struct pool_spec *p, const struct pool_world *pw)
{
	int64_t slots = or_else(pw->max_sequences, p->max_sequences) * pw->capacity_permille / 1000;
	int64_t prefill = or_else(pw->prefill_tokens_per_second, p->prefill_tokens_per_second);

	return (struct queue_truth){ .slots = slots > 0 ? slots : 1,
				     .prefill_tokens_per_second = prefill * pw->capacity_permille / 1000,
				     .inter_token_latency_us =
					     or_else(pw->inter_token_latency_us, p->inter_token_latency_us),
				     .spread_permille = pw->length_spread_permille,
				     .objective_wait = p->objective_wait,
				     .patience = pw->patience,
				     .deadline = pw->deadline };
}

struct random world_stream(const struct world *w, const char *purpose, int64_t index)
{
	CLEANUP(buf_release) struct buf name = { 0 };

	buf_printf(&name, "%s/%lld", purpose, (long long)index);
	return random_stream(w->setup.seed, name.text);
}

static void open_groups(struct world *w, const struct world_spec *spec)
{
	w->groups = arena_array(&w->arena, struct group_state, w->fleet->group_count);
	for (size_t i = 0; i < w->fleet->group_count; i++) {
		struct group_state *g = &w->groups[i];
		g->spec = &w->fleet->groups[i];
		g->world = &spec->groups[i];
		g->index = i;
		g->leads = world_stream(w, "lead-times", (int64_t)i);
		g->failures = world_stream(w, "failures", (int64_t)i);
		g->losses = world_stream(w, "losses", (int64_t)i);
		for (size_t k = 0; k < g->world->loss_count; k++)
			happens_add(w, g->world->losses[k].from, HAPPENS_LOSS_WINDOW, i, k);
	}
}

static void open_pool(struct world *w, struct pool_state *p, const struct trace *trace)
{
	struct queue_truth truth = queue_truth_of(p->spec, p->world);

	p->first_start = p->last_start = NONE;
	p->holdings = arena_array(&w->arena, struct holding, p->spec->group_count);
	for (size_t i = 0; i < p->spec->group_count; i++) {
		struct holding *h = &p->holdings[i];
		h->pool = p;
		h->group = &w->groups[p->spec->groups[i]];
		h->index = i;
		int64_t per_node = holding_per_node(h);
		if (p->world->lendable.group == i && per_node > 0)
			h->foreign_free = p->world->lendable.replicas / per_node;
	}
	queue_open(&p->queue, &truth, trace, &w->arena);
}

struct world *world_new(const struct world_setup *setup)
{
	struct arena arena = { 0 };
	struct world *w = arena_new(&arena, struct world);

	w->arena = arena;
	w->setup = *setup;
	w->fleet = setup->fleet;
	struct world_spec spec = setup->spec ? *setup->spec : world_spec_default(setup->fleet, &w->arena);
	open_groups(w, &spec);
	w->pools = arena_array(&w->arena, struct pool_state, w->fleet->pool_count);
	for (size_t i = 0; i < w->fleet->pool_count; i++) {
		w->pools[i].spec = &w->fleet->pools[i];
		w->pools[i].world = &spec.pools[i];
		w->pools[i].index = i;
		open_pool(w, &w->pools[i], setup->traces[i]);
	}
	int64_t readings = (setup->interval + SCRAPE_PERIOD - 1) / SCRAPE_PERIOD;
	w->scrape_period = SCRAPE_PERIOD * ((readings + SCRAPES_MAX - 1) / SCRAPES_MAX);
	w->next_scrape = w->scrape_period;
	world_start_fleet(w);
	return w;
}

void world_free(struct world *w)
{
	if (!w)
		return;
	struct arena arena = w->arena; /* the world lies in it */
	arena_release(&arena);
}

millis world_length(const struct world *w)
{
	millis longest = 0;

	for (size_t i = 0; i < w->fleet->pool_count; i++)
		if (w->setup.traces[i] && w->setup.traces[i]->length > longest)
			longest = w->setup.traces[i]->length;
	return (longest + w->setup.interval - 1) / w->setup.interval * w->setup.interval;
}

static void open_loss_window(struct world *w, const struct happens *h)
{
	struct group_state *g = &w->groups[h->subject];
	const struct loss_window *window = &g->world->losses[h->serial];

	for (size_t i = 0; i < w->nodes.count; i++) {
		const struct node *n = node_of(w, i);
		if (n->group != g->index || n->state != NODE_RUNNING || n->is_foreign)
			continue;
		if (random_uniform(&g->losses) * 1e6 >= (double)window->share_ppm)
			continue;
		millis after = (millis)(random_uniform(&g->losses) * (double)(window->to - window->from));
		happens_add(w, window->from + after, HAPPENS_LOSS, i, n->serial);
	}
}

static void happen(struct world *w, const struct happens *h)
{
	switch (h->what) {
	case HAPPENS_STAGE:
	case HAPPENS_REFUSAL:
	case HAPPENS_GIVEN_UP:
	case HAPPENS_DRAINED:
		replica_happens(w, h);
		break;
	case HAPPENS_LOSS:
		if (node_of(w, h->subject)->serial == h->serial)
			node_lose(w, h->subject);
		break;
	case HAPPENS_OFFER_ENDS:
		if (node_of(w, h->subject)->serial == h->serial)
			node_offer_ends(w, h->subject);
		break;
	case HAPPENS_LOSS_WINDOW:
		open_loss_window(w, h);
		break;
	}
}

/* Replicas that ran empty since the last look; their machines are billed until that very moment. */
static void collect_emptied(struct world *w, struct queue *q)
{
	for (size_t i = 0; i < q->emptied.count; i++) {
		struct emptied *e = &q->emptied.items[i];
		happens_add(w, e->at, HAPPENS_DRAINED, e->seat, replica_of(w, e->seat)->serial);
	}
	q->emptied.count = 0;
}

static void step(struct world *w, millis until)
{
	for (size_t i = 0; i < w->fleet->pool_count; i++) {
		queue_advance(&w->pools[i].queue, until);
		collect_emptied(w, &w->pools[i].queue);
	}
	w->now = until;
	while (happens_next(w) <= w->now) {
		struct happens h = happens_take(w);
		happen(w, &h);
	}
}

static millis next_stop(const struct world *w, millis end)
{
	millis next = end < w->next_scrape ? end : w->next_scrape, event = happens_next(w);

	if (event < next)
		next = event;
	return next > w->now ? next : w->now;
}

static void begin_tick(struct world *w, struct pool_state *p)
{
	p->before = pool_totals(p);
	p->scrape_count = 0;
	p->scrapes_expected = p->scrapes_fresh = 0;
	if (!w->has_applied)
		p->events.count = 0;
}

static void end_tick(struct world *w, struct pool_state *p)
{
	millis wall = w->setup.start + w->now;

	for (size_t i = 0; i < p->spec->group_count; i++) {
		meter_advance(&p->holdings[i].hot, w->now);
		meter_advance(&p->holdings[i].standby, w->now);
	}
	if (w->setup.schedule && (!w->tick || (p->schedule.next_at && wall >= p->schedule.next_at)))
		p->schedule = w->setup.schedule(p->spec->schedule, p->spec->schedule_count, wall);
}

void world_advance(struct world *w)
{
	millis end = w->now + w->setup.interval;

	for (size_t i = 0; i < w->fleet->pool_count; i++)
		begin_tick(w, &w->pools[i]);
	w->has_applied = false;
	while (w->now < end || happens_next(w) <= end) {
		step(w, next_stop(w, end));
		if (w->now == w->next_scrape)
			world_scrape(w);
	}
	for (size_t i = 0; i < w->fleet->pool_count; i++)
		end_tick(w, &w->pools[i]);
	w->tick++;
}

const struct pool_world pool_world_default = {
	.capacity_permille = 1000,
	.place_share_permille = 300,
	.length_spread_permille = 1000,
	.initial_replicas = -1,
	.lendable = { .reclaim = { 45 * SECOND, 75 * SECOND }, .restart_loss = MINUTE },
};

const struct group_world group_world_default = { .slow_factor_permille = 3000 };

struct world_spec world_spec_default(const struct fleet_spec *fleet, struct arena *a)
{
	struct pool_world *pools = arena_array(a, struct pool_world, fleet->pool_count);
	struct group_world *groups = arena_array(a, struct group_world, fleet->group_count);

	for (size_t i = 0; i < fleet->pool_count; i++)
		pools[i] = pool_world_default;
	for (size_t i = 0; i < fleet->group_count; i++)
		groups[i] = group_world_default;
	return (struct world_spec){ .pools = pools, .groups = groups };
}
