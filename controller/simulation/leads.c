#include "controller/simulation/parts.h"

static bool is_given(struct quantiles q)
{
	return q.p50 > 0;
}

static millis draw(struct random *r, struct quantiles q)
{
	if (!is_given(q))
		return 0;
	return (millis)random_lognormal(r, (double)q.p50, (double)(q.p95 > q.p50 ? q.p95 : q.p50));
}

static millis longest(struct quantiles q)
{
	return 3 * (q.p95 > q.p50 ? q.p95 : q.p50);
}

static void draw_stages(struct random *r, const struct quantiles *stages, size_t from, struct lead_draw *lead)
{
	lead->is_staged = true;
	for (size_t i = from; i < STAGE_COUNT; i++) {
		lead->stage[i] = draw(r, stages[i]);
		lead->deadline += longest(stages[i]);
	}
}

static void draw_total(struct random *r, struct quantiles total, struct lead_draw *lead)
{
	lead->stage[0] = draw(r, total);
	lead->deadline = longest(total);
}

/* What the world file says, else the manifest: by stage where stages are given. */
static void draw_boot(struct random *r, const struct pool_state *p, size_t from, struct lead_draw *lead)
{
	const struct quantiles *stages = p->spec->stage;
	struct quantiles total = p->spec->lead_time;
	bool world_stages = false, stages_given = false;

	for (size_t i = 0; i < STAGE_COUNT; i++)
		world_stages |= is_given(p->world->stage[i]);
	if (world_stages)
		stages = p->world->stage;
	else if (is_given(p->world->lead_time))
		stages = NULL;
	if (is_given(p->world->lead_time))
		total = p->world->lead_time;
	for (size_t i = 0; stages && i < STAGE_COUNT; i++)
		stages_given |= is_given(stages[i]);
	if (stages_given) {
		draw_stages(r, stages, from, lead);
		return;
	}
	if (from > 0) {
		total.p50 = total.p50 * p->world->place_share_permille / 1000;
		total.p95 = total.p95 * p->world->place_share_permille / 1000;
	}
	draw_total(r, total, lead);
}

static void go_wrong(struct group_state *g, struct lead_draw *lead)
{
	if (g->world->slow_start_ppm && random_uniform(&g->failures) * 1e6 < (double)g->world->slow_start_ppm)
		for (size_t i = 0; i < STAGE_COUNT; i++)
			lead->stage[i] = lead->stage[i] * g->world->slow_factor_permille / 1000;
	if (g->world->failed_start_ppm && random_uniform(&g->failures) * 1e6 < (double)g->world->failed_start_ppm)
		lead->stuck_in = lead->is_staged ? (size_t)(random_uniform(&g->failures) * STAGE_COUNT) : 0;
}

struct lead_draw lead_draw(struct world *w, const struct holding *h, enum start_kind kind)
{
	struct lead_draw lead = { .stuck_in = STAGE_COUNT };
	struct group_state *g = &w->groups[h->group->index];

	switch (kind) {
	case START_COLD:
	case START_REFILL:
		draw_boot(&g->leads, h->pool, 0, &lead);
		go_wrong(g, &lead);
		break;
	case START_PLACE:
		draw_boot(&g->leads, h->pool, STAGE_IMAGE, &lead);
		break;
	case START_WAKE:
		draw_total(&g->leads, is_given(g->world->wake) ? g->world->wake : g->spec->standby_lead_time, &lead);
		break;
	case START_RECLAIM:
		draw_total(&g->leads, h->pool->world->lendable.reclaim, &lead);
		break;
	case START_KIND_COUNT:
		break;
	}
	return lead;
}

/* The borrower yields within the manifest's yieldWithin, then the model loads. */
struct lead_draw yield_draw(struct world *w, const struct holding *h)
{
	static const struct quantiles any_load = { 30 * SECOND, 45 * SECOND };
	struct lead_draw lead = { .stuck_in = STAGE_COUNT };
	struct random *r = &w->groups[h->group->index].leads;
	const struct pool_world *pw = h->pool->world;
	millis within = h->pool->spec->yield_within;

	if (is_given(pw->reclaim)) {
		draw_total(r, pw->reclaim, &lead);
		return lead;
	}
	struct quantiles load =
		is_given(pw->stage[STAGE_LOAD]) ? pw->stage[STAGE_LOAD] : h->pool->spec->stage[STAGE_LOAD];
	draw_total(r, is_given(load) ? load : any_load, &lead);
	millis yield = draw(r, (struct quantiles){ within / 2, within });
	lead.stage[0] += yield < within ? yield : within;
	lead.deadline += within;
	return lead;
}

/* When the machine is there and its image can be pulled, if ever; the rest of its first replica's start is its own. */
static void wait_for_node(const struct world *w, const struct holding *h, const struct replica *first,
			  struct lead_draw *lead)
{
	bool is_placed = first->kind == START_PLACE;
	millis there = first->asked_at + first->lead.wait, rest = 1000 - h->pool->world->place_share_permille;

	for (size_t i = 0; first->lead.is_staged && i < STAGE_IMAGE; i++)
		there += first->lead.stage[i];
	if (!first->lead.is_staged && !is_placed)
		there += first->lead.stage[0] * (rest > 0 ? rest : 0) / 1000;
	lead->wait = there > w->now ? there - w->now : 0;
	lead->deadline += lead->wait;
	if (first->lead.stuck_in < (is_placed ? STAGE_COUNT : STAGE_IMAGE))
		lead->stuck_in = lead->is_staged ? STAGE_IMAGE : 0;
}

struct lead_draw place_draw(struct world *w, const struct holding *h, size_t node)
{
	struct lead_draw lead = lead_draw(w, h, START_PLACE);
	size_t last = NONE;

	for (size_t r = node_of(w, node)->first; r != NONE; r = replica_of(w, r)->next_on_node)
		last = r; /* the one that opened the node */
	if (node_of(w, node)->state == NODE_BOOTING && last != NONE)
		wait_for_node(w, h, replica_of(w, last), &lead);
	return lead;
}

bool wake_is_refused(struct world *w, const struct group_state *g)
{
	if (!g->world->wake_refused_ppm)
		return false;
	struct random *r = &w->groups[g->index].failures;
	struct random hour = world_stream(w, "refused-hours", w->now / HOUR);
	double drawn = g->world->wake_refused_by_hour ? random_uniform(&hour) : random_uniform(r);

	return drawn * 1e6 < (double)g->world->wake_refused_ppm;
}

enum error_kind start_is_refused(const struct world *w, const struct group_state *g)
{
	for (size_t i = 0; i < g->world->stockout_count; i++) {
		const struct stockout_window *s = &g->world->stockouts[i];
		if (w->now >= s->from && w->now < s->to)
			return s->kind;
	}
	return ERROR_NONE;
}
