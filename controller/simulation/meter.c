#include "controller/simulation/parts.h"

void meter_advance(struct meter *m, millis until)
{
	if (until > m->until) {
		m->sum += m->level * (until - m->until);
		m->until = until;
	}
}

void meter_change(struct meter *m, int64_t by, millis at)
{
	meter_advance(m, at);
	m->sum += by * (m->until - at);
	m->level += by;
}

/* The GPUs of a node are billed to the pools on it in proportion to what they hold; rounding goes to the first. */
void node_bill(struct world *w, size_t node, millis at)
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

void node_change_owner(struct world *w, size_t node, size_t owner)
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
