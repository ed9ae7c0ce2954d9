#include "controller/policy/placing.h"

static int64_t cancel(const struct placing *p, size_t i, enum start_kind kind, int64_t *want, int64_t *out)
{
	int64_t each = per_node(p, i), n = at_most(*want, starting(p, i, kind));

	n = at_most(n, spare_nodes(p, i) * each);
	*out = n;
	*want -= n;
	p->room[index_of(p, i)].nodes -= n / each;
	return n / each;
}

/* Cancels in the least preferred group first. */
void place_cancels(const struct placing *p, const struct moves *m)
{
	int64_t cold = m->cancel_cold, wake = m->cancel_wake, reclaim = m->cancel_reclaim;

	for (size_t i = p->s->fleet->pools[p->pool].group_count; i-- > 0;) {
		struct group_decision *d = &p->out[i];
		d->cancel_place = at_most(cold, starting(p, i, START_PLACE));
		cold -= d->cancel_place;
		placing_pay(p, -spec_of(p, i)->price_per_hour * cancel(p, i, START_COLD, &cold, &d->cancel_cold));
		placing_pay(p, -wake_price(spec_of(p, i)) * cancel(p, i, START_WAKE, &wake, &d->cancel_wake));
		d->cancel_reclaim = at_most(reclaim, starting(p, i, START_RECLAIM));
		reclaim -= d->cancel_reclaim;
	}
}

void place_adoptions(const struct placing *p, int64_t want)
{
	for (size_t i = 0; i < p->s->fleet->pools[p->pool].group_count && want > 0; i++) {
		int64_t n = at_most(want, starting(p, i, START_REFILL));
		p->out[i].adopt_refill = n;
		want -= n;
	}
}

/* Where released machines go: to a pool that borrows, into the stock, or away. */
static void send_off(const struct placing *p, size_t i, int64_t n, int64_t give_back, bool keeps_stock)
{
	struct group_room *room = &p->room[index_of(p, i)];
	const struct group_spec *g = spec_of(p, i);
	struct group_decision *d = &p->out[i];
	int64_t each = per_node(p, i), nodes = (n + each - 1) / each, kept;

	d->release += n;
	d->give_back += p->borrower_waits ? n : at_most(n, give_back);
	room->leaving += nodes;
	kept = keeps_stock ? at_most(positive(g->standby_max_nodes - room->standby), nodes) : 0;
	d->stop = at_most(kept * each, n - d->give_back);
	room->standby += (d->stop + each - 1) / each;
}

/* Replicas whose release empties nodes: a replica less on a node that stays saves nothing. */
static int64_t releasable(const struct placing *p, size_t i, int64_t want)
{
	const struct group_input *in = &p->s->pools[p->pool].groups[i];

	if (per_node(p, i) == 1)
		return at_most(at_most(want, in->ready), spare_nodes(p, i));
	return spare_nodes(p, i) > 0 && in->least_on_node > 0 && in->least_on_node <= want ? in->least_on_node : 0;
}

void place_releases(const struct placing *p, struct wish *w)
{
	int64_t want = w->moves.release, give_back = w->moves.give_back;
	bool at_min = false;

	for (size_t i = p->s->fleet->pools[p->pool].group_count; i-- > 0 && want > 0;) {
		int64_t n = releasable(p, i, want);
		at_min |= spare_nodes(p, i) <= 0 && p->s->pools[p->pool].groups[i].ready > 0;
		if (n <= 0)
			continue;
		int64_t back = at_most(give_back, n);
		send_off(p, i, n, back, w->keeps_stock);
		give_back -= back;
		want -= n;
	}
	if (want > 0 && w->held_by == LIMIT_NONE)
		w->held_by = at_min ? LIMIT_MIN : LIMIT_WHOLE_NODE;
}

void place_deletions(const struct placing *p, int64_t want)
{
	for (size_t i = p->s->fleet->pools[p->pool].group_count; i-- > 0 && want > 0;) {
		struct group_room *room = &p->room[index_of(p, i)];
		int64_t each = per_node(p, i), stopped = p->s->pools[p->pool].groups[i].standby - room->woken;
		int64_t n = at_most(want, positive(stopped)) / each * each;
		p->out[i].delete_standby = n;
		room->standby -= n / each;
		want -= n;
	}
}
