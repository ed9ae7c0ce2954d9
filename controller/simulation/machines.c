/*
 * Machines, the replicas on them and the starts on their way: what a plan does to them (world_apply), what time and
 * the cloud do to them, and whom they are billed to.
 */
#include "base/exact.h"
#include "controller/simulation/modelled_world.h"

static void meter_change(struct meter *m, int64_t by, millis at);
static void node_bill(struct world *w, size_t node, millis at);
static void replica_cancel(struct world *w, size_t id);
static int64_t replica_evict(struct world *w, size_t id);
static void pool_event(struct world *w, struct holding *h, struct event_input e);
static void node_change_owner(struct world *w, size_t node, size_t owner);

/* When a running machine will be taken, if ever. */
static void draw_loss(struct world *w, size_t node)
{
	struct node *n = node_of(w, node);
	struct group_state *g = &w->groups[n->group];

	if (!g->world->loss_per_hour_ppm || n->is_foreign)
		return;
	double hours = -exact_log(1 - random_uniform(&g->losses)) * 1e6 / (double)g->world->loss_per_hour_ppm;
	if (hours < 1e6)
		happens_add(w, w->now + (millis)(hours * (double)HOUR), HAPPENS_LOSS, node, n->serial);
}

size_t node_add(struct world *w, struct holding *h, enum node_state state)
{
	size_t node = w->unused_nodes.count ? w->unused_nodes.items[--w->unused_nodes.count] : w->nodes.count;

	if (node == w->nodes.count)
		LIST_ADD(&w->arena, &w->nodes, ((struct node){ 0 }));
	*node_of(w, node) = (struct node){
		.state = state,
		.serial = ++w->serials,
		.group = h->group->index,
		.owner = h->pool->index,
		.borrower = NONE,
		.first = NONE,
	};
	return node;
}

/* booting is over: it can be lost from now on */
static void node_run(struct world *w, size_t node)
{
	if (node_of(w, node)->state != NODE_BOOTING)
		return;
	node_of(w, node)->state = NODE_RUNNING;
	draw_loss(w, node);
}

/* Free GPUs can be had on what runs or boots, but not on what will be stopped. */
bool node_takes_places(const struct world *w, const struct node *n)
{
	if (n->state == NODE_RUNNING)
		return true;
	if (n->state != NODE_BOOTING)
		return false;
	for (size_t r = n->first; r != NONE; r = w->replicas.items[r].next_on_node)
		if (w->replicas.items[r].kind == START_REFILL)
			return false;
	return n->first != NONE;
}

static void node_forget(struct world *w, size_t node, millis at)
{
	struct node *n = node_of(w, node);

	w->offers -= n->is_offered;
	if (n->is_foreign)
		holding_in(&w->pools[n->owner], n->group)->foreign_free++;
	else
		w->groups[n->group].nodes--;
	n->state = NODE_UNUSED;
	n->has_run = false;
	n->serial = 0;
	node_bill(w, node, at);
	LIST_ADD(&w->arena, &w->unused_nodes, node);
}

static void node_remove(struct world *w, size_t node, millis at)
{
	w->pools[node_of(w, node)->owner].totals.removals++;
	node_forget(w, node, at);
}

static void node_stop(struct world *w, size_t node, millis at)
{
	struct node *n = node_of(w, node);
	struct group_state *g = &w->groups[n->group];
	struct holding *h = holding_in(&w->pools[n->owner], n->group);

	if (n->is_foreign || g->standby_nodes >= g->spec->standby_max_nodes) {
		node_remove(w, node, at);
		return;
	}
	h->pool->totals.removals++;
	g->nodes--;
	g->standby_nodes++;
	g->standby_first += !n->has_run;
	n->state = NODE_STOPPED;
	n->serial = ++w->serials;
	node_bill(w, node, at);
	meter_change(&h->standby, g->spec->gpus_per_node * 1000, at);
	LIST_ADD(&w->arena, &h->stopped, node);
}

static void node_wake(struct world *w, size_t node)
{
	struct node *n = node_of(w, node);
	struct group_state *g = &w->groups[n->group];

	g->nodes++;
	g->standby_nodes--;
	g->standby_first -= !n->has_run;
	n->state = NODE_BOOTING;
	meter_change(&holding_in(&w->pools[n->owner], n->group)->standby, -g->spec->gpus_per_node * 1000, w->now);
	node_bill(w, node, w->now);
}

void node_lose(struct world *w, size_t node)
{
	while (node_of(w, node)->first != NONE) {
		size_t r = node_of(w, node)->first;
		struct holding *h = replica_of(w, r)->holding;
		if (replica_of(w, r)->state == REPLICA_READY)
			pool_event(w, h, (struct event_input){ .what = EVENT_LOST, .count = 1 });
		replica_evict(w, r);
	}
	node_forget(w, node, w->now);
}

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
	case START_RECLAIM:
		draw_total(&g->leads, h->pool->world->lendable.reclaim, &lead);
		break;
	case START_WAKE:  /* wake_draw() */
	case START_ROUSE: /* no engine sleeps in a modelled world */
	case START_KIND_COUNT:
		break;
	}
	return lead;
}

static struct lead_draw wake_draw(struct world *w, const struct holding *h, const struct node *n)
{
	struct lead_draw lead = { .stuck_in = STAGE_COUNT };
	struct group_state *g = &w->groups[h->group->index];
	const struct quantiles of_first[] = { g->world->first_wake, g->world->wake, g->spec->standby_first_lead_time };
	struct quantiles takes = is_given(g->world->wake) ? g->world->wake : g->spec->standby_lead_time;

	for (size_t i = sizeof of_first / sizeof *of_first; !n->has_run && i-- > 0;)
		takes = is_given(of_first[i]) ? of_first[i] : takes;
	draw_total(&g->leads, takes, &lead);
	return lead;
}

/* The borrower yields within the manifest's yieldWithin, then the model loads. */
static struct lead_draw yield_draw(struct world *w, const struct holding *h)
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

/* START_PLACE there */
static struct lead_draw place_draw(struct world *w, const struct holding *h, size_t node)
{
	struct lead_draw lead = lead_draw(w, h, START_PLACE);
	size_t last = NONE;

	for (size_t r = node_of(w, node)->first; r != NONE; r = replica_of(w, r)->next_on_node)
		last = r; /* the one that opened the node */
	if (node_of(w, node)->state == NODE_BOOTING && last != NONE)
		wait_for_node(w, h, replica_of(w, last), &lead);
	return lead;
}

static bool wake_is_refused(struct world *w, const struct group_state *g)
{
	if (!g->world->wake_refused_ppm)
		return false;
	struct random *r = &w->groups[g->index].failures;
	struct random hour = world_stream(w, "refused-hours", w->now / HOUR);
	double drawn = g->world->wake_refused_by_hour ? random_uniform(&hour) : random_uniform(r);

	return drawn * 1e6 < (double)g->world->wake_refused_ppm;
}

/* ERROR_NONE: it isn't */
static enum error_kind start_is_refused(const struct world *w, const struct group_state *g)
{
	for (size_t i = 0; i < g->world->stockout_count; i++) {
		const struct stockout_window *s = &g->world->stockouts[i];
		if (w->now >= s->from && w->now < s->to)
			return s->kind;
	}
	return ERROR_NONE;
}

static bool lends_to(const struct pool_state *lender, const struct pool_state *borrower)
{
	return lender != borrower && (lender->spec->lend_to >> borrower->spec->class & 1);
}

static int64_t free_gpus(const struct world *w, const struct node *n)
{
	return w->groups[n->group].spec->gpus_per_node - n->gpus_held;
}

/* The cold start of the group that is expected last; NONE when there is none. */
static size_t last_expected(struct world *w, const struct holding *h)
{
	size_t last = NONE;

	for (size_t id = h->pool->first_start; id != NONE; id = replica_of(w, id)->after) {
		const struct replica *r = replica_of(w, id);
		if (r->holding == h && r->kind == START_COLD && r->refusal == ERROR_NONE &&
		    (last == NONE || r->expected_at >= replica_of(w, last)->expected_at))
			last = id;
	}
	return last;
}

/* Replaces cold starts of a borrower by replicas on the node. */
static void match_starts(struct world *w, struct holding *h, size_t node)
{
	size_t start;

	while (free_gpus(w, node_of(w, node)) >= h->pool->spec->gpus_per_replica &&
	       (start = last_expected(w, h)) != NONE) {
		struct lead_draw lead = lead_draw(w, h, START_PLACE);
		node_change_owner(w, node, h->pool->index);
		replica_start(w, h, node, START_PLACE, &lead);
		replica_cancel(w, start);
	}
}

/* lending.c */
static void node_give(struct world *w, size_t node, millis at)
{
	struct node *n = node_of(w, node);
	const struct pool_state *lender = &w->pools[n->owner];

	if (n->is_foreign) {
		node_remove(w, node, at);
		return;
	}
	n->is_offered = true;
	w->offers++;
	happens_add(w, w->now + OFFER_TIME, HAPPENS_OFFER_ENDS, node, n->serial);
	for (size_t i = 0; i < w->fleet->pool_count; i++) {
		struct holding *h = lends_to(lender, &w->pools[i]) ? holding_in(&w->pools[i], n->group) : NULL;
		if (h)
			match_starts(w, h, node);
	}
}

void node_offer_ends(struct world *w, size_t node)
{
	if (node_of(w, node)->is_offered)
		node_remove(w, node, w->now);
}

/* NONE: none */
static size_t node_offered_to(struct world *w, const struct holding *h)
{
	for (size_t i = 0; w->offers && i < w->nodes.count; i++) {
		const struct node *n = node_of(w, i);
		if (n->state == NODE_RUNNING && n->is_offered && n->group == h->group->index &&
		    lends_to(&w->pools[n->owner], h->pool) && free_gpus(w, n) >= h->pool->spec->gpus_per_replica)
			return i;
	}
	return NONE;
}

static int64_t reclaim_foreign(struct world *w, struct holding *h, int64_t count)
{
	int64_t per_node = holding_per_node(h);

	while (count > 0 && h->foreign_free > 0 && per_node > 0) {
		struct lead_draw lead = lead_draw(w, h, START_RECLAIM);
		size_t node = node_add(w, h, NODE_BOOTING);
		node_of(w, node)->is_foreign = true;
		h->foreign_free--;
		h->pool->totals.starts++;
		for (int64_t i = 0; i < per_node && count > 0; i++, count--) {
			replica_start(w, h, node, START_RECLAIM, &lead);
			h->pool->totals.batch_lost_ms += h->pool->world->lendable.restart_loss;
		}
	}
	return count;
}

static bool can_leave(const struct replica *r, const struct holding *borrower)
{
	return r->holding == borrower && (r->state == REPLICA_READY || r->state == REPLICA_DRAINING);
}

/* GPUs of the node that the lender gets when the borrower's replicas leave. */
static int64_t gpus_without(struct world *w, size_t node, const struct holding *borrower)
{
	int64_t gpus = free_gpus(w, node_of(w, node));

	for (size_t r = node_of(w, node)->first; r != NONE; r = replica_of(w, r)->next_on_node)
		gpus += can_leave(replica_of(w, r), borrower) ? borrower->pool->spec->gpus_per_replica : 0;
	return gpus;
}

/* What drains already goes first. `node`: there only, NONE: anywhere. */
static size_t least_loaded_on(struct world *w, const struct holding *h, size_t node, int64_t need)
{
	size_t best = NONE;
	int64_t fewest = INT64_MAX;

	for (size_t id = 0; id < w->replicas.count; id++) {
		const struct replica *r = replica_of(w, id);
		if (!can_leave(r, h) || (node != NONE && r->node != node) || gpus_without(w, r->node, h) < need)
			continue;
		int64_t running = r->state == REPLICA_READY ? queue_seat_running(&h->pool->queue, id) : -1;
		if (running < fewest) {
			best = id;
			fewest = running;
		}
	}
	return best;
}

static void take_back(struct world *w, struct holding *h, struct holding *borrower, size_t victim)
{
	size_t node = replica_of(w, victim)->node;
	int64_t need = h->pool->spec->gpus_per_replica, lost = 0;

	while (victim != NONE && free_gpus(w, node_of(w, node)) < need) {
		if (replica_of(w, victim)->state == REPLICA_READY)
			pool_event(w, borrower, (struct event_input){ .what = EVENT_LOST, .count = 1 });
		lost += replica_evict(w, victim);
		victim = least_loaded_on(w, borrower, node, need);
	}
	h->pool->totals.batch_lost_ms += lost / borrower->pool->queue.truth.slots;
	h->pool->totals.starts++;
	node_of(w, node)->borrower = borrower->pool->index;
	struct lead_draw lead = yield_draw(w, h);
	replica_start(w, h, node, START_RECLAIM, &lead);
}

static bool reclaim_from_pools(struct world *w, struct holding *h)
{
	struct holding *from = NULL;
	size_t victim = NONE;

	for (size_t i = 0; i < w->fleet->pool_count && victim == NONE; i++) {
		if (!lends_to(h->pool, &w->pools[i]))
			continue;
		from = holding_in(&w->pools[i], h->group->index);
		if (from)
			victim = least_loaded_on(w, from, NONE, h->pool->spec->gpus_per_replica);
	}
	if (victim == NONE)
		return false;
	take_back(w, h, from, victim);
	return true;
}

/* returns how many it could not */
static int64_t holding_reclaim(struct world *w, struct holding *h, int64_t count)
{
	count = reclaim_foreign(w, h, count);
	while (count > 0 && reclaim_from_pools(w, h))
		count--;
	return count;
}

/* The reclaim was cancelled: the node stays lent. */
static void reclaim_undo(struct world *w, size_t node, millis at)
{
	struct node *n = node_of(w, node);
	struct holding *h = n->borrower != NONE ? holding_in(&w->pools[n->borrower], n->group) : NULL;

	if (h && free_gpus(w, n) >= h->pool->spec->gpus_per_replica) {
		struct lead_draw lead = lead_draw(w, h, START_PLACE);
		replica_start(w, h, node, START_PLACE, &lead);
	} else if (n->first == NONE) {
		node_give(w, node, at);
	}
}

static int64_t ready_on(const struct world *w, const struct node *n, const struct holding *h)
{
	int64_t ready = 0;

	for (size_t r = n->first; r != NONE; r = w->replicas.items[r].next_on_node)
		ready += w->replicas.items[r].holding == h && w->replicas.items[r].state == REPLICA_READY;
	return ready;
}

/* How often take_back() finds room on the node, even if its free GPUs are taken by others. */
static int64_t lent_on(const struct world *w, const struct holding *h, const struct node *n)
{
	int64_t need = h->pool->spec->gpus_per_replica, free = 0, lent = 0;

	for (size_t i = 0; i < w->fleet->pool_count; i++) {
		struct pool_state *p = &w->pools[i];
		int64_t each = p->spec->gpus_per_replica;
		const struct holding *from = lends_to(h->pool, p) ? holding_in(p, n->group) : NULL;
		for (int64_t left = from ? ready_on(w, n, from) : 0; left > 0 && free + left * each >= need; lent++) {
			for (; free < need; left--)
				free += each;
			free -= need;
		}
	}
	return lent;
}

int64_t holding_lent(const struct world *w, const struct holding *h)
{
	int64_t lent = h->foreign_free * holding_per_node(h), borrowed = 0;

	for (size_t i = 0; i < w->fleet->pool_count; i++) {
		struct pool_state *p = &w->pools[i];
		const struct holding *other = lends_to(h->pool, p) ? holding_in(p, h->group->index) : NULL;
		borrowed += other ? (int64_t)other->ready.count : 0;
	}
	for (size_t i = 0; borrowed > 0 && i < w->nodes.count; i++)
		if (w->nodes.items[i].state != NODE_UNUSED && w->nodes.items[i].group == h->group->index)
			lent += lent_on(w, h, &w->nodes.items[i]);
	return lent;
}

void meter_advance(struct meter *m, millis until)
{
	if (until > m->until) {
		m->sum += m->level * (until - m->until);
		m->until = until;
	}
}

/* meter.c */
static void meter_change(struct meter *m, int64_t by, millis at)
{
	meter_advance(m, at);
	m->sum += by * (m->until - at);
	m->level += by;
}

/* The GPUs of a node are billed to the pools on it in proportion to what they hold; rounding goes to the first. */
static void node_bill(struct world *w, size_t node, millis at)
{
	struct node *n = node_of(w, node);
	bool is_hot = n->state == NODE_BOOTING || n->state == NODE_RUNNING;
	int64_t whole = is_hot ? w->groups[n->group].spec->gpus_per_node * 1000 : 0, left = whole;

	for (size_t r = n->first; r != NONE; r = replica_of(w, r)->next_on_node)
		left -= whole * replica_of(w, r)->holding->pool->spec->gpus_per_replica / n->gpus_held;
	for (size_t i = n->first; i != NONE; i = replica_of(w, i)->next_on_node) {
		struct replica *r = replica_of(w, i);
		int64_t milli = whole * r->holding->pool->spec->gpus_per_replica / n->gpus_held;
		if (i == n->first)
			milli += left;
		if (milli != r->billed_milli)
			meter_change(&r->holding->hot, milli - r->billed_milli, at);
		r->billed_milli = milli;
	}
	int64_t empty = n->first == NONE ? whole : 0;
	if (empty != n->empty_milli)
		meter_change(&holding_in(&w->pools[n->owner], n->group)->hot, empty - n->empty_milli, at);
	n->empty_milli = empty;
}

static void node_change_owner(struct world *w, size_t node, size_t owner)
{
	struct node *n = node_of(w, node);

	if (n->empty_milli)
		meter_change(&holding_in(&w->pools[n->owner], n->group)->hot, -n->empty_milli, w->now);
	n->empty_milli = 0;
	n->owner = owner;
	node_bill(w, node, w->now);
}

static int64_t charge(int64_t gpu_milli_ms, int64_t price_per_hour, int64_t gpus_per_node)
{
	return (int64_t)((__int128)gpu_milli_ms * price_per_hour / ((__int128)gpus_per_node * 1000 * HOUR));
}

int64_t holding_micro_dollars(const struct holding *h)
{
	const struct group_spec *g = h->group->spec;
	int64_t stopped = (int64_t)((__int128)h->standby.sum * g->standby_price_ppm / 1000000);

	return charge(h->hot.sum, g->price_per_hour, g->gpus_per_node) +
	       charge(stopped, g->price_per_hour, g->gpus_per_node);
}

static void pool_event(struct world *w, struct holding *h, struct event_input e)
{
	e.group = (int64_t)h->index;
	LIST_ADD(&w->arena, &h->pool->events, e);
}

static size_t replica_add(struct world *w, struct holding *h, size_t node, enum start_kind kind)
{
	struct pool_state *p = h->pool;
	size_t id = w->unused_replicas.count ? w->unused_replicas.items[--w->unused_replicas.count] : w->replicas.count;

	if (id == w->replicas.count)
		LIST_ADD(&w->arena, &w->replicas, ((struct replica){ 0 }));
	*replica_of(w, id) = (struct replica){
		.state = REPLICA_STARTING,
		.kind = kind,
		.serial = ++w->serials,
		.holding = h,
		.node = node,
		.next_on_node = NONE,
		.before = p->last_start,
		.after = NONE,
		.asked_at = w->now,
	};
	if (p->last_start != NONE)
		replica_of(w, p->last_start)->after = id;
	else
		p->first_start = id;
	p->last_start = id;
	return id;
}

static void leave_starts(struct world *w, size_t id)
{
	struct replica *r = replica_of(w, id);
	struct pool_state *p = r->holding->pool;

	if (r->before != NONE)
		replica_of(w, r->before)->after = r->after;
	else
		p->first_start = r->after;
	if (r->after != NONE)
		replica_of(w, r->after)->before = r->before;
	else
		p->last_start = r->before;
}

static void leave_ready(struct world *w, size_t id)
{
	struct replica *r = replica_of(w, id);
	struct holding *h = r->holding;
	size_t last = h->ready.items[--h->ready.count];

	h->ready.items[r->position] = last;
	replica_of(w, last)->position = r->position;
}

static void enter_node(struct world *w, size_t id, size_t node)
{
	struct node *n = node_of(w, node);

	replica_of(w, id)->next_on_node = n->first;
	n->first = id;
	n->gpus_held += replica_of(w, id)->holding->pool->spec->gpus_per_replica;
	w->offers -= n->is_offered;
	n->is_offered = false;
	node_bill(w, node, w->now);
}

static void leave_node(struct world *w, size_t id, millis at)
{
	struct replica *r = replica_of(w, id);
	struct node *n = node_of(w, r->node);
	size_t *link = &n->first;

	while (*link != id)
		link = &replica_of(w, *link)->next_on_node;
	*link = r->next_on_node;
	n->gpus_held -= r->holding->pool->spec->gpus_per_replica;
	meter_change(&r->holding->hot, -r->billed_milli, at);
	r->billed_milli = 0;
	node_bill(w, r->node, at);
}

static void replica_forget(struct world *w, size_t id)
{
	replica_of(w, id)->state = REPLICA_UNUSED;
	replica_of(w, id)->serial = 0;
	LIST_ADD(&w->arena, &w->unused_replicas, id);
}

static void begin_stage(struct world *w, size_t id, millis wait)
{
	struct replica *r = replica_of(w, id);

	if (r->stage != r->lead.stuck_in)
		happens_add(w, w->now + wait + r->lead.stage[r->stage], HAPPENS_STAGE, id, r->serial);
}

size_t replica_start(struct world *w, struct holding *h, size_t node, enum start_kind kind,
		     const struct lead_draw *lead)
{
	size_t id = replica_add(w, h, node, kind);
	struct replica *r = replica_of(w, id);
	millis total = lead->wait;

	r->lead = *lead;
	for (size_t i = 0; i < STAGE_COUNT; i++)
		total += lead->stage[i];
	r->stage = kind == START_PLACE && lead->is_staged ? STAGE_IMAGE : 0;
	r->expected_at = w->now + total;
	h->starting++;
	enter_node(w, id, node);
	if (lead->stuck_in < STAGE_COUNT || total > lead->deadline)
		happens_add(w, w->now + lead->deadline, HAPPENS_GIVEN_UP, id, r->serial);
	begin_stage(w, id, lead->wait);
	return id;
}

/* It looks like a start until the refusal is told. `node`: the stopped one that won't wake, or NONE. */
static void replica_refuse(struct world *w, struct holding *h, size_t node, enum start_kind kind, enum error_kind why)
{
	size_t id = replica_add(w, h, node, kind);
	millis after = kind == START_WAKE ? WAKE_REFUSED_AFTER : REFUSED_AFTER;

	replica_of(w, id)->refusal = why;
	happens_add(w, w->now + after, HAPPENS_REFUSAL, id, replica_of(w, id)->serial);
}

static void refusal_ends(struct world *w, size_t id)
{
	struct replica *r = replica_of(w, id);

	if (r->node != NONE && node_of(w, r->node)->state == NODE_REFUSING) {
		node_of(w, r->node)->state = NODE_STOPPED;
		LIST_ADD(&w->arena, &r->holding->stopped, r->node);
	}
	leave_starts(w, id);
	replica_forget(w, id);
}

static void refused(struct world *w, size_t id)
{
	const struct replica *r = replica_of(w, id);

	r->holding->pool->totals.refused++;
	pool_event(w, r->holding,
		   (struct event_input){
			   .what = EVENT_REFUSED, .kind = (int64_t)r->kind, .value = (int64_t)r->refusal, .count = 1 });
	refusal_ends(w, id);
}

static void node_is_empty(struct world *w, size_t node, enum start_kind kind)
{
	switch (kind) {
	case START_WAKE:
		node_stop(w, node, w->now);
		break;
	case START_RECLAIM:
		break; /* reclaim_undo() knows */
	case START_COLD:
	case START_REFILL:
	case START_PLACE:
	case START_ROUSE:
	case START_KIND_COUNT:
		node_remove(w, node, w->now);
		break;
	}
}

/* a start; its node ends as the kind wants */
static void replica_cancel(struct world *w, size_t id)
{
	struct replica *r = replica_of(w, id);
	size_t node = r->node;
	enum start_kind kind = r->kind;

	if (r->refusal != ERROR_NONE) {
		r->holding->pool->totals.refused++;
		refusal_ends(w, id);
		return;
	}
	leave_starts(w, id);
	r->holding->starting--;
	leave_node(w, id, w->now);
	replica_forget(w, id);
	if (node_of(w, node)->first == NONE)
		node_is_empty(w, node, kind);
	if (kind == START_RECLAIM)
		reclaim_undo(w, node, w->now);
}

static void serve(struct world *w, size_t id)
{
	struct replica *r = replica_of(w, id);
	struct holding *h = r->holding;

	r->state = REPLICA_READY;
	node_of(w, r->node)->has_run = true;
	r->position = h->ready.count;
	LIST_ADD(&w->arena, &h->ready, id);
	node_run(w, r->node);
	queue_seat_open(&h->pool->queue, id, w->now);
}

static void start_ends(struct world *w, size_t id)
{
	struct replica *r = replica_of(w, id);
	size_t node = r->node;

	pool_event(w, r->holding,
		   (struct event_input){ .what = EVENT_SERVING,
					 .kind = (int64_t)r->kind,
					 .value = w->now - r->asked_at,
					 .count = 1,
					 .first = r->kind == START_WAKE && !node_of(w, node)->has_run });
	leave_starts(w, id);
	r->holding->starting--;
	if (r->kind != START_REFILL) {
		serve(w, id);
		return;
	}
	leave_node(w, id, w->now);
	replica_forget(w, id);
	if (node_of(w, node)->first == NONE)
		node_stop(w, node, w->now);
}

static void stage_ends(struct world *w, size_t id)
{
	struct replica *r = replica_of(w, id);

	if (r->lead.is_staged && r->lead.stage[r->stage] > 0)
		pool_event(w, r->holding,
			   (struct event_input){ .what = EVENT_STAGE,
						 .kind = (int64_t)r->kind,
						 .stage = (int64_t)r->stage,
						 .value = r->lead.stage[r->stage],
						 .count = 1 });
	if (r->lead.is_staged && ++r->stage < STAGE_COUNT)
		begin_stage(w, id, 0);
	else
		start_ends(w, id);
}

static void given_up(struct world *w, size_t id)
{
	struct replica *r = replica_of(w, id);

	pool_event(w, r->holding,
		   (struct event_input){ .what = EVENT_STUCK,
					 .kind = (int64_t)r->kind,
					 .stage = (int64_t)r->stage,
					 .value = w->now - r->asked_at,
					 .count = 1 });
	replica_cancel(w, id);
}

static void replica_drain(struct world *w, size_t id, enum fate fate)
{
	struct replica *r = replica_of(w, id);
	millis empty = queue_seat_drain(&r->holding->pool->queue, id, w->now);

	leave_ready(w, id);
	r->state = REPLICA_DRAINING;
	r->fate = fate;
	r->holding->draining++;
	if (empty >= 0)
		happens_add(w, empty > w->now ? empty : w->now, HAPPENS_DRAINED, id, r->serial);
}

static void drained(struct world *w, size_t id, millis at)
{
	struct replica *r = replica_of(w, id);
	size_t node = r->node;
	enum fate fate = r->fate;

	queue_seat_close(&r->holding->pool->queue, id);
	r->holding->draining--;
	leave_node(w, id, at);
	replica_forget(w, id);
	if (node_of(w, node)->first != NONE)
		return;
	switch (fate) {
	case FATE_DELETE:
		node_remove(w, node, at);
		break;
	case FATE_STOP:
		node_stop(w, node, at);
		break;
	case FATE_GIVE:
		node_give(w, node, at);
		break;
	}
}

/* its node stays; returns the work lost, slot-ms */
static int64_t replica_evict(struct world *w, size_t id)
{
	struct replica *r = replica_of(w, id);
	int64_t lost = 0;

	r->holding->pool->totals.lost++;
	switch (r->state) {
	case REPLICA_STARTING:
		leave_starts(w, id);
		r->holding->starting--;
		break;
	case REPLICA_READY:
		leave_ready(w, id);
		lost = queue_seat_lose(&r->holding->pool->queue, id, w->now);
		break;
	case REPLICA_DRAINING:
		r->holding->draining--;
		lost = queue_seat_lose(&r->holding->pool->queue, id, w->now);
		break;
	case REPLICA_UNUSED:
		break;
	}
	leave_node(w, id, w->now);
	replica_forget(w, id);
	return lost;
}

void replica_happens(struct world *w, const struct happens *h)
{
	if (replica_of(w, h->subject)->serial != h->serial)
		return;
	switch (h->what) {
	case HAPPENS_STAGE:
		stage_ends(w, h->subject);
		break;
	case HAPPENS_REFUSAL:
		refused(w, h->subject);
		break;
	case HAPPENS_GIVEN_UP:
		if (replica_of(w, h->subject)->state == REPLICA_STARTING)
			given_up(w, h->subject);
		break;
	case HAPPENS_DRAINED:
		drained(w, h->subject, h->at);
		break;
	case HAPPENS_LOSS:
	case HAPPENS_OFFER_ENDS:
	case HAPPENS_LOSS_WINDOW:
		break;
	}
}

/* Youngest first. */
static void holding_cancel(struct world *w, struct holding *h, enum start_kind kind, int64_t count)
{
	size_t id = h->pool->last_start;

	while (count > 0 && id != NONE) {
		size_t before = replica_of(w, id)->before;
		if (replica_of(w, id)->holding == h && replica_of(w, id)->kind == kind) {
			replica_cancel(w, id);
			count--;
		}
		id = before;
	}
	h->pool->totals.ignored += count > 0 ? count : 0;
}

struct tenants node_tenants(const struct world *w, const struct node *n, const struct holding *h)
{
	struct tenants t = { 0 };

	for (size_t i = n->first; i != NONE; i = w->replicas.items[i].next_on_node) {
		const struct replica *r = &w->replicas.items[i];
		if (r->holding == h && r->state == REPLICA_READY)
			t.ready++;
		else if (r->state != REPLICA_DRAINING)
			t.others++;
	}
	return t;
}

struct choice {
	bool is_wrong_owner; /* lent nodes are given back, our own are stopped or deleted */
	struct tenants tenants;
	int64_t running;
	size_t replica;
};

static bool is_better(const struct choice *a, const struct choice *b)
{
	if (a->is_wrong_owner != b->is_wrong_owner)
		return b->is_wrong_owner;
	if (a->tenants.others != b->tenants.others)
		return a->tenants.others < b->tenants.others;
	if (a->tenants.ready != b->tenants.ready)
		return a->tenants.ready < b->tenants.ready;
	if (a->running != b->running)
		return a->running < b->running;
	return a->replica < b->replica;
}

/* The node that empties soonest, nobody else's first, and on it the replica with the least to do. */
static size_t choose(const struct world *w, const struct holding *h, enum fate fate)
{
	struct choice best = { .replica = NONE };

	for (size_t i = 0; i < h->ready.count; i++) {
		size_t id = h->ready.items[i];
		const struct node *n = &w->nodes.items[w->replicas.items[id].node];
		struct choice c = { .is_wrong_owner = n->is_foreign != (fate == FATE_GIVE),
				    .tenants = node_tenants(w, n, h),
				    .running = queue_seat_running(&h->pool->queue, id),
				    .replica = id };
		if (best.replica == NONE || is_better(&c, &best))
			best = c;
	}
	return best.replica;
}

static void release(struct world *w, struct holding *h, int64_t count, enum fate fate)
{
	for (; count > 0 && h->ready.count > 0; count--)
		replica_drain(w, choose(w, h, fate), fate);
	h->pool->totals.ignored += count > 0 ? count : 0;
}

static int64_t least(int64_t a, int64_t b)
{
	return a < b ? a : b;
}

static void holding_release(struct world *w, struct holding *h, const struct group_decision *d)
{
	int64_t give = least(d->give_back, d->release), stop = least(d->stop, d->release - give);

	release(w, h, give, FATE_GIVE);
	release(w, h, stop, FATE_STOP);
	release(w, h, d->release - give - stop, FATE_DELETE);
}

/* A node with free GPUs: one that runs before one that boots, then the fullest. NONE: there is none. */
static size_t find_place(const struct world *w, const struct holding *h)
{
	size_t best = NONE;
	int64_t size = h->group->spec->gpus_per_node, need = h->pool->spec->gpus_per_replica, lowest = INT64_MAX;

	for (size_t i = 0; i < w->nodes.count; i++) {
		const struct node *n = &w->nodes.items[i];
		int64_t free = size - n->gpus_held, rank = n->state == NODE_RUNNING ? free : free + size;
		if (n->group == h->group->index && free >= need && rank < lowest && node_takes_places(w, n)) {
			best = i;
			lowest = rank;
		}
	}
	return best;
}

static void place(struct world *w, struct holding *h)
{
	size_t node;

	for (; h->unplaced > 0 && (node = find_place(w, h)) != NONE; h->unplaced--) {
		struct lead_draw lead = place_draw(w, h, node);
		replica_start(w, h, node, START_PLACE, &lead);
	}
}

/* On what the plan bought for others; where that was refused, they are wished again. */
static void place_rest(struct world *w, struct holding *h, const struct group_decision *d)
{
	(void)d;
	place(w, h);
	if (h->unplaced > 0 && start_is_refused(w, h->group) == ERROR_NONE)
		h->pool->totals.ignored += h->unplaced;
	h->unplaced = 0;
}

static void ask_places(struct world *w, struct holding *h, const struct group_decision *d)
{
	(void)w;
	h->unplaced = d->place;
}

static void wake(struct world *w, struct holding *h, int64_t count)
{
	int64_t per_node = holding_per_node(h);

	while (count > 0 && per_node > 0 && h->stopped.count > 0 && h->group->nodes < h->group->spec->max_nodes) {
		size_t node = h->stopped.items[--h->stopped.count];
		bool is_refused = wake_is_refused(w, h->group);
		struct lead_draw lead = wake_draw(w, h, node_of(w, node));
		if (is_refused)
			node_of(w, node)->state = NODE_REFUSING;
		else
			node_wake(w, node);
		h->pool->totals.starts++;
		for (int64_t i = 0; i < per_node && count > 0; i++, count--) {
			if (!is_refused)
				replica_start(w, h, node, START_WAKE, &lead);
			else
				replica_refuse(w, h, node, START_WAKE, ERROR_STOCKOUT);
		}
	}
	h->pool->totals.ignored += count > 0 ? count : 0;
}

/* Nodes that a lender gave back are taken before new ones are bought. */
static int64_t take_offers(struct world *w, struct holding *h, int64_t count)
{
	size_t node;

	for (; count > 0 && (node = node_offered_to(w, h)) != NONE; count--) {
		struct lead_draw lead = lead_draw(w, h, START_PLACE);
		node_change_owner(w, node, h->pool->index);
		replica_start(w, h, node, START_PLACE, &lead);
	}
	return count;
}

static void buy(struct world *w, struct holding *h, enum start_kind kind, int64_t count)
{
	int64_t per_node = holding_per_node(h);
	enum error_kind why = start_is_refused(w, h->group);

	while (count > 0 && per_node > 0 && h->group->nodes < h->group->spec->max_nodes) {
		size_t node = NONE;
		h->pool->totals.starts++;
		if (why == ERROR_NONE) {
			node = node_add(w, h, NODE_BOOTING);
			w->groups[h->group->index].nodes++;
		}
		struct lead_draw lead = lead_draw(w, h, kind);
		for (int64_t i = 0; i < per_node && count > 0; i++, count--) {
			if (why == ERROR_NONE)
				replica_start(w, h, node, kind, &lead);
			else
				replica_refuse(w, h, NONE, kind, why);
		}
	}
	h->pool->totals.ignored += count > 0 ? count : 0;
}

static void delete_standby(struct world *w, struct holding *h, int64_t count)
{
	int64_t per_node = holding_per_node(h);

	for (; count > 0 && h->stopped.count > 0; count -= per_node) {
		size_t node = h->stopped.items[--h->stopped.count];
		node_wake(w, node);
		node_remove(w, node, w->now);
		h->pool->totals.removals--;
	}
	h->pool->totals.ignored += count > 0 ? count : 0;
}

/* Oldest first: they will serve instead of being stopped. */
static void adopt(struct world *w, struct holding *h, int64_t count)
{
	for (size_t id = h->pool->first_start; count > 0 && id != NONE; id = replica_of(w, id)->after) {
		struct replica *r = replica_of(w, id);
		if (r->holding == h && r->kind == START_REFILL) {
			r->kind = START_COLD;
			count--;
		}
	}
	h->pool->totals.ignored += count > 0 ? count : 0;
}

static void shrink(struct world *w, struct holding *h, const struct group_decision *d)
{
	adopt(w, h, d->adopt_refill);
	holding_cancel(w, h, START_COLD, d->cancel_cold);
	holding_cancel(w, h, START_PLACE, d->cancel_place);
	holding_cancel(w, h, START_WAKE, d->cancel_wake);
	holding_cancel(w, h, START_REFILL, d->cancel_refill);
	holding_cancel(w, h, START_RECLAIM, d->cancel_reclaim);
	holding_release(w, h, d);
	delete_standby(w, h, d->delete_standby);
}

static void grow(struct world *w, struct holding *h, const struct group_decision *d)
{
	int64_t left = holding_reclaim(w, h, d->reclaim);
	h->pool->totals.ignored += left > 0 ? left : 0;
	wake(w, h, d->wake);
	buy(w, h, START_COLD, take_offers(w, h, d->cold));
	buy(w, h, START_REFILL, d->refill);
}

static void for_each(struct world *w, const struct plan *plan,
		     void (*act)(struct world *, struct holding *, const struct group_decision *))
{
	for (size_t i = 0; i < plan->pool_count && i < w->fleet->pool_count; i++)
		for (size_t g = 0; g < plan->pools[i].group_count && g < w->pools[i].spec->group_count; g++)
			act(w, &w->pools[i].holdings[g], &plan->pools[i].groups[g]);
}

/* What needs most first: the small ones fit into what is left. */
static void place_all(struct world *w, const struct plan *plan)
{
	int64_t most = 0;

	for (size_t i = 0; i < w->fleet->pool_count; i++)
		most = w->pools[i].spec->gpus_per_replica > most ? w->pools[i].spec->gpus_per_replica : most;
	for (int64_t need = most; need > 0; need--)
		for (size_t i = 0; i < plan->pool_count && i < w->fleet->pool_count; i++)
			for (size_t g = 0; g < plan->pools[i].group_count && g < w->pools[i].spec->group_count; g++)
				if (w->pools[i].spec->gpus_per_replica == need)
					place(w, &w->pools[i].holdings[g]);
}

void world_apply(struct world *w, const struct plan *plan)
{
	for (size_t i = 0; i < w->fleet->pool_count; i++)
		w->pools[i].events.count = 0;
	w->has_applied = true;
	for_each(w, plan, ask_places);
	place_all(w, plan); /* before a cancelled start takes its node away */
	for_each(w, plan, shrink);
	for_each(w, plan, grow);
	for_each(w, plan, place_rest);
}
