#include "controller/simulation/parts.h"

/* Youngest first. */
void holding_cancel(struct world *w, struct holding *h, enum start_kind kind, int64_t count)
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

void holding_release(struct world *w, struct holding *h, const struct group_decision *d)
{
	int64_t give = least(d->give_back, d->release), stop = least(d->stop, d->release - give);

	release(w, h, give, FATE_GIVE);
	release(w, h, stop, FATE_STOP);
	release(w, h, d->release - give - stop, FATE_DELETE);
}
