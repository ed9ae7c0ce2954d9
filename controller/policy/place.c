#include "controller/policy/place.h"

#include "base/error.h"
#include "controller/policy/swap.h"

/* What asking (place.c) and letting go (place_release.c) share. Private to these two. */

static inline int64_t at_most(int64_t a, int64_t b)
{
	return a < b ? a : b;
}

static inline int64_t positive(int64_t a)
{
	return a > 0 ? a : 0;
}

static inline const struct group_spec *spec_of(const struct placing *p, size_t i)
{
	return &p->s->fleet->groups[p->s->fleet->pools[p->pool].groups[i]];
}

static inline size_t index_of(const struct placing *p, size_t i)
{
	return p->s->fleet->pools[p->pool].groups[i];
}

static inline int64_t per_node(const struct placing *p, size_t i)
{
	int64_t n = replicas_per_node(spec_of(p, i), &p->s->fleet->pools[p->pool]);

	return n > 0 ? n : 1;
}

static inline bool placing_can_pay(const struct placing *p, int64_t price)
{
	return !p->money || *p->money >= price;
}

static inline void placing_pay(const struct placing *p, int64_t price)
{
	if (p->money)
		*p->money -= price;
}

/* What one more waking node costs: it is paid a little already. */
static inline int64_t wake_price(const struct group_spec *g)
{
	return g->price_per_hour - g->price_per_hour / 1000 * g->standby_price_ppm / 1000;
}

static inline int64_t starting(const struct placing *p, size_t i, enum start_kind kind)
{
	const struct pool_snapshot *seen = &p->s->pools[p->pool];
	int64_t n = 0;

	for (size_t k = 0; k < seen->start_count; k++)
		if (seen->starts[k].group == (int64_t)i && seen->starts[k].kind == (int64_t)kind)
			n += seen->starts[k].count;
	return n;
}

/* Nodes that may go without the group falling below its smallest size. */
static inline int64_t spare_nodes(const struct placing *p, size_t i)
{
	const struct group_room *room = &p->room[index_of(p, i)];

	return positive(room->nodes - room->leaving - spec_of(p, i)->min_nodes);
}

static void place_cancels(const struct placing *p, const struct scale_actions *m);
static int64_t cancel(const struct placing *p, size_t i, enum start_kind kind, int64_t *want, int64_t *out);
static void send_off(const struct placing *p, size_t i, int64_t n, int64_t give_back, bool keeps_stock);
static void place_adoptions(const struct placing *p, int64_t want);
static void place_releases(const struct placing *p, struct recommendation *w);
static void place_deletions(const struct placing *p, int64_t want);

static enum limit why_no_room(const struct placing *p);
static enum limit back_off_limit(const struct group_memory *g);

/* Groups that differ in their zone only are filled evenly: the emptiest of them is taken first. */
static bool same_but_zone(const struct group_spec *a, const struct group_spec *b)
{
	return a->price_per_hour == b->price_per_hour && a->capacity_type == b->capacity_type &&
	       a->gpus_per_node == b->gpus_per_node;
}

static int64_t free_places(const struct placing *p, size_t i)
{
	int64_t gpus = p->s->fleet->pools[p->pool].gpus_per_replica;
	const struct group_room *room = &p->room[index_of(p, i)];

	/* Places that other pools of this tick took, in GPUs, cost at least one of ours each. */
	return positive(p->s->pools[p->pool].groups[i].free_places - (room->gpus + gpus - 1) / gpus) +
	       room->left_over / gpus;
}

static bool has_room(const struct placing *p, size_t i)
{
	return p->room[index_of(p, i)].nodes < spec_of(p, i)->max_nodes &&
	       p->memory[index_of(p, i)].blocked_until <= p->s->now &&
	       placing_can_pay(p, spec_of(p, i)->price_per_hour);
}

/* Nothing came of what was bought there twice in a row, and nobody knows why: a machine at a time proves it, while
 * others have room. */
static bool is_on_trial(const struct placing *p, size_t i)
{
	const struct group_memory *g = &p->memory[index_of(p, i)];
	const struct pool_snapshot *seen = &p->s->pools[p->pool];
	bool is_tried = p->out[i].cold > 0, has_other = false;

	if (g->refusals < 2 || g->refused_with != ERROR_UNAVAILABLE)
		return false;
	for (size_t k = 0; k < seen->start_count; k++)
		is_tried |= seen->starts[k].group == (int64_t)i && seen->starts[k].kind == START_COLD;
	for (size_t k = 0; k < p->s->fleet->pools[p->pool].group_count; k++)
		has_other |= k != i && has_room(p, k);
	return is_tried && has_other;
}

static bool may_open(const struct placing *p, size_t i)
{
	return has_room(p, i) && !is_on_trial(p, i);
}

static size_t next_group(const struct placing *p)
{
	size_t count = p->s->fleet->pools[p->pool].group_count, best = count;

	for (size_t i = 0; i < count; i++) {
		if (!may_open(p, i))
			continue;
		if (best == count) {
			best = i;
		} else if (!same_but_zone(spec_of(p, best), spec_of(p, i))) {
			break;
		} else if (p->room[index_of(p, i)].nodes < p->room[index_of(p, best)].nodes) {
			best = i;
		}
	}
	return best;
}

/* Fills a free place, in whatever group: it is paid for, and the scheduler would. On what this plan opens first. */
static int64_t fill_place(const struct placing *p)
{
	int64_t gpus = p->s->fleet->pools[p->pool].gpus_per_replica;

	for (size_t i = 0; i < p->s->fleet->pools[p->pool].group_count; i++) {
		struct group_room *room = &p->room[index_of(p, i)];
		if (free_places(p, i) <= 0)
			continue;
		if (room->left_over >= gpus)
			room->left_over -= gpus;
		else
			room->gpus += gpus;
		p->out[i].place++;
		return 1;
	}
	return 0;
}

/* What the replicas on a node that this plan starts leave of it is for the next. */
static void open_node(const struct placing *p, size_t i, int64_t replicas)
{
	struct group_room *room = &p->room[index_of(p, i)];

	room->nodes++;
	room->left_over = spec_of(p, i)->gpus_per_node - replicas * p->s->fleet->pools[p->pool].gpus_per_replica;
}

/* Opens one node and puts up to `want` replicas there. */
static int64_t place_cold(const struct placing *p, int64_t want)
{
	size_t i = want > 0 ? next_group(p) : p->s->fleet->pools[p->pool].group_count;

	if (i == p->s->fleet->pools[p->pool].group_count)
		return 0;
	int64_t n = at_most(want, per_node(p, i));
	open_node(p, i, n);
	placing_pay(p, spec_of(p, i)->price_per_hour);
	p->out[i].cold += n;
	return n;
}

static void place_refills(const struct placing *p, int64_t want)
{
	size_t count = p->s->fleet->pools[p->pool].group_count;

	for (size_t i = 0; i < count && want > 0; i++) {
		struct group_room *room = &p->room[index_of(p, i)];
		while (want > 0 && room->standby < spec_of(p, i)->standby_max_nodes && may_open(p, i)) {
			room->nodes++;
			room->standby++;
			placing_pay(p, spec_of(p, i)->price_per_hour);
			p->out[i].refill += per_node(p, i);
			want -= per_node(p, i);
		}
	}
}

static int64_t wakeable(const struct placing *p, size_t i)
{
	const struct group_room *room = &p->room[index_of(p, i)];
	const struct group_spec *g = spec_of(p, i);
	int64_t nodes = positive(g->max_nodes - room->nodes);

	if (p->memory[index_of(p, i)].wakes_blocked_until > p->s->now)
		return 0;
	if (p->money && wake_price(g) > 0)
		nodes = at_most(nodes, positive(*p->money / wake_price(g)));
	return at_most(positive(p->s->pools[p->pool].groups[i].standby - room->woken), nodes * per_node(p, i));
}

/* Wakes one machine. */
static int64_t place_wake(const struct placing *p, int64_t want)
{
	for (size_t i = 0; i < p->s->fleet->pools[p->pool].group_count && want > 0; i++) {
		struct group_room *room = &p->room[index_of(p, i)];
		int64_t n = at_most(at_most(want, per_node(p, i)), wakeable(p, i));
		if (n <= 0)
			continue;
		p->out[i].wake += n;
		room->woken += n;
		room->standby--;
		open_node(p, i, n);
		placing_pay(p, wake_price(spec_of(p, i)));
		return n;
	}
	return 0;
}

static int64_t place_reclaims(const struct placing *p, int64_t want)
{
	for (size_t i = 0; i < p->s->fleet->pools[p->pool].group_count && want > 0; i++) {
		int64_t each = per_node(p, i), price = spec_of(p, i)->price_per_hour / each;
		struct group_room *room = &p->room[index_of(p, i)];
		int64_t n = at_most(want, positive(p->s->pools[p->pool].groups[i].lent - room->reclaimed));
		if (p->money && price > 0)
			n = at_most(n, positive(*p->money / price));
		p->out[i].reclaim += n;
		room->reclaimed += n;
		placing_pay(p, n * price);
		want -= n;
	}
	return want;
}

/* The manifest's smallest size counts once per group, whichever pool comes first. */
static void fill_minima(const struct placing *p, struct recommendation *w)
{
	for (size_t i = 0; i < p->s->fleet->pools[p->pool].group_count; i++) {
		struct group_room *room = &p->room[index_of(p, i)];
		while (room->nodes - room->leaving < spec_of(p, i)->min_nodes && may_open(p, i)) {
			room->nodes++;
			placing_pay(p, spec_of(p, i)->price_per_hour);
			p->out[i].cold += per_node(p, i);
			w->held_by = LIMIT_MIN;
		}
	}
}

static enum limit why_no_room(const struct placing *p)
{
	bool too_dear = false, is_closed = false;

	for (size_t i = 0; i < p->s->fleet->pools[p->pool].group_count; i++) {
		if (p->memory[index_of(p, i)].blocked_until > p->s->now)
			return back_off_limit(&p->memory[index_of(p, i)]);
		is_closed |= reservation_is_closed(&p->reservations[index_of(p, i)], p->s->now);
		too_dear |= !placing_can_pay(p, spec_of(p, i)->price_per_hour) &&
			    p->room[index_of(p, i)].nodes < spec_of(p, i)->max_nodes;
	}
	return too_dear ? LIMIT_BUDGET : is_closed ? LIMIT_RESERVATION : LIMIT_MAX;
}

static void report_groups(const struct placing *p)
{
	for (size_t i = 0; i < p->s->fleet->pools[p->pool].group_count; i++) {
		const struct group_memory *g = &p->memory[index_of(p, i)];
		const struct reservation *r = &p->reservations[index_of(p, i)];
		struct group_decision *d = &p->out[i];
		d->nodes = p->s->pools[p->pool].groups[i].nodes;
		d->nodes_desired = p->room[index_of(p, i)].nodes - p->room[index_of(p, i)].leaving;
		d->blocked_until = g->blocked_until > p->s->now ? g->blocked_until : 0;
		d->refusals = g->refusals;
		d->ends_at = r->ends_at;
		d->closes_at = r->closes_at;
		d->leaves_at = r->leaves_at;
		d->held_by = reservation_is_closed(r, p->s->now)	    ? LIMIT_RESERVATION
			     : d->blocked_until				    ? back_off_limit(g)
			     : d->nodes_desired >= spec_of(p, i)->max_nodes ? LIMIT_MAX
									    : LIMIT_NONE;
	}
}

/* Wakes that find nothing to wake become new machines. */
static int64_t place_some(struct placing *p)
{
	struct placing_asks *a = &p->asks;
	int64_t n = a->reclaim - place_reclaims(p, a->reclaim);

	a->wake += a->reclaim - n;
	a->reclaim = 0;
	if (n > 0)
		return n;
	if (placing_asks(a) > 0 && fill_place(p) > 0) {
		*(a->cold > 0 ? &a->cold : &a->wake) -= 1;
		return 1;
	}
	n = place_wake(p, a->wake);
	a->wake -= n;
	if (n > 0)
		return n;
	a->cold += a->wake;
	a->wake = 0;
	n = place_cold(p, a->cold);
	a->cold -= n;
	return n;
}

static bool is_gang(const struct placing *p, const struct scale_actions *m)
{
	return p->s->fleet->pools[p->pool].class == CLASS_TRAINING && m->cold + m->wake + m->reclaim > 0;
}

/* All nodes of a gang or none: what was placed of an incomplete one is taken back. */
static int64_t place_gang(struct placing *p, struct recommendation *w)
{
	enum { MOST = 16 };
	struct group_room rooms[MOST];
	struct group_decision out[MOST];
	size_t count = p->s->fleet->pools[p->pool].group_count;
	int64_t money = p->money ? *p->money : 0, all = placing_asks(&p->asks);

	for (size_t i = 0; i < count && i < MOST; i++) {
		rooms[i] = p->room[index_of(p, i)];
		out[i] = p->out[i];
	}
	while (count <= MOST && !w->is_cut && placing_asks(&p->asks) > 0 && place_some(p) > 0)
		;
	if (placing_asks(&p->asks) == 0)
		return all;
	for (size_t i = 0; i < count && i < MOST; i++) {
		p->room[index_of(p, i)] = rooms[i];
		p->out[i] = out[i];
	}
	if (p->money)
		*p->money = money;
	w->held_by = LIMIT_GANG;
	p->asks = (struct placing_asks){ .cold = w->moves.replace_wake + w->moves.replace_cold };
	return 0;
}

/* Machines that its waiting pods need in one group; false where the group, as it turns out, cannot have them all. None
 * is on trial here: that others have room does not say that the pods fit there. */
static bool open_needed(const struct placing *p, size_t i)
{
	for (int64_t n = p->s->pools[p->pool].groups[i].lacking_nodes; n > 0; n--) {
		if (!has_room(p, i))
			return false;
		open_node(p, i, per_node(p, i));
		placing_pay(p, spec_of(p, i)->price_per_hour);
		p->out[i].cold += per_node(p, i);
	}
	return true;
}

static void close_needed(const struct placing *p, size_t i)
{
	int64_t nodes = p->out[i].cold / per_node(p, i);

	p->room[index_of(p, i)].nodes -= nodes;
	placing_pay(p, -nodes * spec_of(p, i)->price_per_hour);
	p->out[i].cold = 0;
}

/* Who sat where was one thought, gangs among them: with less than all of it nothing is bought, and the next decision
 * knows the room that there is. */
static void open_all_needed(const struct placing *p, struct recommendation *w)
{
	size_t count = p->s->fleet->pools[p->pool].group_count, i = 0;

	while (i < count && open_needed(p, i))
		i++;
	if (i == count)
		return;
	w->held_by = why_no_room(p);
	for (size_t k = 0; k <= i; k++)
		close_needed(p, k);
}

/* The pods of a half-empty node move, so that it goes; not while a machine is bought: they might take its place. */
static void empty_movable(const struct placing *p, const struct recommendation *w, size_t i)
{
	const struct group_input *in = &p->s->pools[p->pool].groups[i];
	struct group_decision *d = &p->out[i];

	if (w->moves.release <= 0 || w->moves.cold > 0 || in->movable_nodes <= 0 || spare_nodes(p, i) <= 0)
		return;
	d->move = 1;
	d->move_pods = in->movable_pods;
	d->move_saves = spec_of(p, i)->price_per_hour;
	p->room[index_of(p, i)].leaving++;
}

static void place_by_group(const struct placing *p, struct recommendation *w)
{
	const struct pool_snapshot *seen = &p->s->pools[p->pool];

	for (size_t i = 0; i < p->s->fleet->pools[p->pool].group_count; i++) {
		const struct group_input *in = &seen->groups[i];
		int64_t needless = w->moves.cancel_cold > 0 ? in->needless_nodes * per_node(p, i) : 0;
		int64_t idle = w->moves.release > 0 ? at_most(in->idle_nodes, spare_nodes(p, i)) : 0;
		placing_pay(p, -spec_of(p, i)->price_per_hour *
				       cancel(p, i, START_COLD, &needless, &p->out[i].cancel_cold));
		if (idle > 0)
			send_off(p, i, idle * per_node(p, i), 0, false);
		empty_movable(p, w, i);
	}
	if (w->moves.cold > 0)
		open_all_needed(p, w);
	if (w->moves.cold > 0 && seen->input.stranded_gpus > 0)
		w->held_by = why_no_room(p);
	w->moves = (struct scale_actions){ 0 };
}

void place_begin(struct placing *p, struct recommendation *w)
{
	const struct scale_actions *m = &w->moves;

	if (p->s->fleet->pools[p->pool].class == CLASS_ANY) {
		place_by_group(p, w);
		return;
	}
	p->asks = (struct placing_asks){ m->reclaim, m->wake + m->replace_wake, m->cold + m->replace_cold };
	place_cancels(p, m);
	place_adoptions(p, m->adopt_refill);
}

int64_t place_next(struct placing *p, struct recommendation *w)
{
	if (placing_asks(&p->asks) <= 0)
		return 0;
	return is_gang(p, &w->moves) ? place_gang(p, w) : place_some(p);
}

/* The first group with room that is cheaper than `dear`, of those that differ in their zone only the emptiest. One
 * that refused is asked for one machine first. */
static size_t cheaper_room(const struct placing *p, size_t dear)
{
	const struct pool_spec *spec = &p->s->fleet->pools[p->pool];
	size_t best = dear;

	for (size_t k = 0; k < dear; k++) {
		bool is_probed = p->memory[index_of(p, k)].refusals > 0 && p->out[k].swap > 0;
		if (is_probed || !swap_is_cheaper(p->s->fleet, spec, dear, k) || !may_open(p, k))
			continue;
		if (best == dear)
			best = k;
		else if (same_but_zone(spec_of(p, best), spec_of(p, k)) &&
			 p->room[index_of(p, k)].nodes < p->room[index_of(p, best)].nodes)
			best = k;
	}
	return best;
}

/* Whole new machines in cheaper groups for as many replicas of dear ones; for `going` more some are on their way or
 * serve. Returns the replicas that found room. */
static int64_t place_swaps(const struct placing *p, int64_t want, int64_t going)
{
	int64_t left = want;

	for (size_t i = p->s->fleet->pools[p->pool].group_count; i-- > 0 && left > 0;) {
		int64_t dear = swap_dear(p->s, p->pool, i), served = at_most(going, dear);
		going -= served;
		dear = at_most(dear - served, left);
		for (size_t k; (k = cheaper_room(p, i)) < i && dear >= per_node(p, k);) {
			p->room[index_of(p, k)].nodes++;
			placing_pay(p, spec_of(p, k)->price_per_hour);
			p->out[k].cold += per_node(p, k);
			p->out[k].swap += per_node(p, k);
			dear -= per_node(p, k);
			left -= per_node(p, k);
		}
	}
	return want - left;
}

int64_t place_end(struct placing *p, struct recommendation *w)
{
	struct scale_actions *m = &w->moves;
	int64_t left = placing_asks(&p->asks);
	enum limit why = left > 0 && !is_gang(p, m) ? why_no_room(p) : LIMIT_NONE;

	if (why != LIMIT_NONE && (w->held_by == LIMIT_NONE || why != LIMIT_MAX))
		w->held_by = why;
	place_refills(p, m->refill);
	place_releases(p, w);
	m->swap = m->release == 0 && left == 0 ? place_swaps(p, m->swap, w->fleet.swap + w->overdue) : 0;
	if (p->s->fleet->pools[p->pool].mode == MODE_ACT)
		fill_minima(p, w);
	place_deletions(p, w->stock_excess);
	report_groups(p);
	return positive(m->replace_wake + m->replace_cold - left);
}

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
static void place_cancels(const struct placing *p, const struct scale_actions *m)
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

/* What is free is used first: a machine that is adopted is missing as standby. It serves whole. */
static void place_adoptions(const struct placing *p, int64_t want)
{
	while (want > 0 && fill_place(p) > 0)
		want--;
	for (size_t i = 0; i < p->s->fleet->pools[p->pool].group_count && want > 0; i++) {
		int64_t n = at_most(want, starting(p, i, START_REFILL)), each = per_node(p, i);
		int64_t gpus = p->s->fleet->pools[p->pool].gpus_per_replica;
		p->out[i].adopt_refill = n;
		p->room[index_of(p, i)].left_over = n > 0 ? ((n + each - 1) / each * each - n) * gpus : 0;
		want -= n;
	}
}

/* Where released machines go: to a pool that borrows, into the stock, or away. */
static void send_off(const struct placing *p, size_t i, int64_t n, int64_t give_back, bool keeps_stock)
{
	struct group_room *room = &p->room[index_of(p, i)];
	const struct group_spec *g = spec_of(p, i);
	struct group_decision *d = &p->out[i];
	int64_t each = per_node(p, i), nodes = (n + each - 1) / each;
	int64_t back = p->borrower_waits ? n : at_most(n, give_back);
	int64_t kept = keeps_stock ? at_most(positive(g->standby_max_nodes - room->standby), nodes) : 0;
	int64_t stop = at_most(kept * each, n - back);

	d->release += n;
	d->give_back += back;
	d->stop += stop;
	room->leaving += nodes;
	room->standby += (stop + each - 1) / each;
}

/* Replicas whose release empties nodes: a replica less on a node that stays saves nothing. */
static int64_t releasable(const struct placing *p, size_t i, int64_t want)
{
	const struct group_input *in = &p->s->pools[p->pool].groups[i];
	int64_t gone = p->out[i].release;

	if (per_node(p, i) == 1)
		return at_most(at_most(want, in->ready - gone), spare_nodes(p, i));
	return !gone && spare_nodes(p, i) > 0 && in->least_on_node > 0 && in->least_on_node <= want ? in->least_on_node
												    : 0;
}

/* Sleepers serve nobody: as long as there are nodes with no other replica, these go in place of some that serve.
 * Returns the replicas for which that was done. */
static int64_t release_sleepers(const struct placing *p, int64_t want)
{
	int64_t left = want;

	for (size_t i = p->s->fleet->pools[p->pool].group_count; i-- > 0 && left > 0;) {
		int64_t each = per_node(p, i) > 0 ? per_node(p, i) : 1;
		int64_t nodes = at_most(p->s->pools[p->pool].groups[i].asleep_nodes, (left + each - 1) / each);
		nodes = at_most(nodes, positive(spare_nodes(p, i)));
		p->out[i].release_asleep = nodes;
		p->room[index_of(p, i)].leaving += nodes;
		left = positive(left - nodes * each);
	}
	return want - left;
}

/* Dear ones whose work a cheaper group does now go first. Returns the replicas that went. */
static int64_t release_swapped(const struct placing *p, int64_t want, bool keeps_stock)
{
	int64_t left = want;

	for (size_t i = p->s->fleet->pools[p->pool].group_count; i-- > 0 && left > 0;) {
		int64_t n = swap_dear(p->s, p->pool, i) > 0 ? releasable(p, i, left) : 0;
		if (n <= 0)
			continue;
		send_off(p, i, n, 0, keeps_stock);
		p->out[i].swapped = n;
		left -= n;
	}
	return want - left;
}

static void place_releases(const struct placing *p, struct recommendation *w)
{
	int64_t sleepers = release_sleepers(p, w->moves.release);
	int64_t want = w->moves.release - sleepers, give_back = w->moves.give_back;
	bool at_min = false;

	w->moves.swapped = release_swapped(p, at_most(w->moves.swapped, positive(want - give_back)), w->keeps_stock);
	want -= w->moves.swapped;
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
	if (sleepers > 0 && w->held_by == LIMIT_NONE)
		w->held_by = LIMIT_ASLEEP;
	if (want > 0 && w->held_by == LIMIT_NONE)
		w->held_by = at_min ? LIMIT_MIN : LIMIT_WHOLE_NODE;
}

static void place_deletions(const struct placing *p, int64_t want)
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

static const millis STOCKOUT_BACKOFF = 3 * MINUTE, QUOTA_BACKOFF = 10 * MINUTE, OTHER_BACKOFF = MINUTE;
static const millis LONGEST_BACKOFF = 30 * MINUTE, WAKE_BACKOFF = MINUTE;

static void back_off(struct group_memory *g, const struct event_input *e, millis now)
{
	millis first = e->value == ERROR_STOCKOUT ? STOCKOUT_BACKOFF
		       : e->value == ERROR_QUOTA  ? QUOTA_BACKOFF
						  : OTHER_BACKOFF;

	if (e->kind == START_WAKE) {
		if (g->wakes_blocked_until != NO_STANDBY)
			g->wakes_blocked_until = now + WAKE_BACKOFF;
		return;
	}
	/* Several refusals of one request count once: the back-off is over only after blocked_until. */
	if (g->blocked_until > now)
		return;
	for (int64_t i = 0; i < g->refusals && first < LONGEST_BACKOFF; i++)
		first *= 2;
	g->blocked_until = now + (first < LONGEST_BACKOFF ? first : LONGEST_BACKOFF);
	g->refusals++;
	g->refused_with = e->value;
}

/* The cloud says how long, or it is known. */
static void block(struct group_memory *g, const struct event_input *e, millis now)
{
	millis lasts = e->value < SECOND ? SECOND : e->value > DAY ? DAY : e->value;

	if (e->what == EVENT_HELD && g->wakes_blocked_until != NO_STANDBY)
		g->wakes_blocked_until = now + lasts;
	if (e->what == EVENT_HELD && g->blocked_until > now)
		return; /* what the cloud said of itself goes on when the others are done */
	if (g->blocked_until < now + lasts)
		g->blocked_until = now + lasts;
	g->refusals++;
	g->refused_with = e->what == EVENT_NO_QUOTA ? ERROR_QUOTA
			  : e->what == EVENT_HELD   ? ERROR_UNAVAILABLE
						    : ERROR_STOCKOUT;
}

/* It was held only because nobody could tell of it. */
static void take_off(struct group_memory *g)
{
	if (g->refused_with != ERROR_UNAVAILABLE)
		return;
	g->blocked_until = 0;
	g->refusals = 0;
	if (g->wakes_blocked_until != NO_STANDBY)
		g->wakes_blocked_until = 0;
}

static void note_standby(struct group_memory *g, bool has)
{
	if (!has)
		g->wakes_blocked_until = NO_STANDBY;
	else if (g->wakes_blocked_until == NO_STANDBY)
		g->wakes_blocked_until = 0;
}

/* What no back-off reaches stands there because the clock was set back. */
static void mend(struct group_memory *g, millis now)
{
	if (g->blocked_until > now + DAY)
		g->blocked_until = 0;
	if (g->wakes_blocked_until > now + DAY && g->wakes_blocked_until != NO_STANDBY)
		g->wakes_blocked_until = 0;
}

void back_off_observe(struct group_memory *groups, const struct snapshot *s, size_t pool)
{
	const struct pool_snapshot *seen = &s->pools[pool];

	for (size_t i = 0; i < s->fleet->pools[pool].group_count; i++)
		mend(&groups[s->fleet->pools[pool].groups[i]], s->now);
	for (size_t i = 0; i < seen->event_count; i++) {
		const struct event_input *e = &seen->events[i];
		if (e->group < 0 || (size_t)e->group >= s->fleet->pools[pool].group_count)
			continue;
		struct group_memory *g = &groups[s->fleet->pools[pool].groups[e->group]];
		if (e->what == EVENT_REFUSED)
			back_off(g, e, s->now);
		else if (e->what == EVENT_NO_STOCK || e->what == EVENT_NO_QUOTA || e->what == EVENT_HELD)
			block(g, e, s->now);
		else if (e->what == EVENT_DESCRIBED)
			take_off(g);
		else if (e->what == EVENT_STANDBY)
			note_standby(g, e->value != 0);
		else if (e->what == EVENT_SERVING && e->kind == START_COLD)
			g->refusals = 0;
	}
}

/* The limit that a group in back-off imposes. */
static enum limit back_off_limit(const struct group_memory *g)
{
	return g->refused_with == ERROR_QUOTA	   ? LIMIT_QUOTA
	       : g->refused_with == ERROR_STOCKOUT ? LIMIT_STOCKOUT
						   : LIMIT_UNAVAILABLE;
}
