#include "controller/simulation/parts.h"

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

void node_give(struct world *w, size_t node, millis at)
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

size_t node_offered_to(struct world *w, const struct holding *h)
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

int64_t holding_reclaim(struct world *w, struct holding *h, int64_t count)
{
	count = reclaim_foreign(w, h, count);
	while (count > 0 && reclaim_from_pools(w, h))
		count--;
	return count;
}

/* The reclaim was cancelled: the node stays lent. */
void reclaim_undo(struct world *w, size_t node, millis at)
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
