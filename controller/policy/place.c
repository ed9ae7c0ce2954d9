#include "controller/policy/place.h"

#include "base/error.h"

static const millis STOCKOUT_BACKOFF = 3 * MINUTE, QUOTA_BACKOFF = 10 * MINUTE, OTHER_BACKOFF = MINUTE;
static const millis LONGEST_BACKOFF = 30 * MINUTE, WAKE_BACKOFF = MINUTE;

static int64_t at_most(int64_t a, int64_t b)
{
	return a < b ? a : b;
}

static int64_t positive(int64_t a)
{
	return a > 0 ? a : 0;
}

static const struct group_spec *spec_of(const struct placing *p, size_t i)
{
	return &p->s->fleet->groups[p->s->fleet->pools[p->pool].groups[i]];
}

static size_t index_of(const struct placing *p, size_t i)
{
	return p->s->fleet->pools[p->pool].groups[i];
}

static int64_t per_node(const struct placing *p, size_t i)
{
	int64_t n = replicas_per_node(spec_of(p, i), &p->s->fleet->pools[p->pool]);

	return n > 0 ? n : 1;
}

static void back_off(struct group_memory *g, const struct event_input *e, millis now)
{
	millis first = e->value == ERROR_STOCKOUT ? STOCKOUT_BACKOFF
		       : e->value == ERROR_QUOTA  ? QUOTA_BACKOFF
						  : OTHER_BACKOFF;

	if (e->kind == START_WAKE) {
		g->wakes_blocked_until = now + WAKE_BACKOFF;
		return;
	}
	/* Several refusals of one request count once: the back-off is over only after blocked_until. */
	if (g->blocked_until > now)
		return;
	for (int64_t i = 0; i < g->refusals && first < LONGEST_BACKOFF; i++)
		first *= 2;
	g->blocked_until = now + at_most(first, LONGEST_BACKOFF);
	g->refusals++;
	g->refused_with = e->value;
}

void place_observe(struct group_memory *groups, const struct snapshot *s, size_t pool)
{
	const struct pool_snapshot *seen = &s->pools[pool];

	for (size_t i = 0; i < seen->event_count; i++) {
		const struct event_input *e = &seen->events[i];
		if (e->group < 0 || (size_t)e->group >= s->fleet->pools[pool].group_count)
			continue;
		struct group_memory *g = &groups[s->fleet->pools[pool].groups[e->group]];
		if (e->what == EVENT_REFUSED)
			back_off(g, e, s->now);
		else if (e->what == EVENT_SERVING && e->kind == START_COLD)
			g->refusals = 0;
	}
}

/* Groups that differ in their zone only are filled evenly: the emptiest of them is taken first. */
static bool same_but_zone(const struct group_spec *a, const struct group_spec *b)
{
	return a->price_per_hour == b->price_per_hour && a->capacity_type == b->capacity_type &&
	       a->gpus_per_node == b->gpus_per_node;
}

static int64_t cold_room(const struct placing *p, size_t i)
{
	const struct group_room *room = &p->room[index_of(p, i)];
	const struct group_input *in = &p->s->pools[p->pool].groups[i];

	if (p->memory[index_of(p, i)].blocked_until > p->s->now)
		return 0;
	int64_t nodes = positive(spec_of(p, i)->max_nodes - room->nodes);
	/* What was asked in this plan already fills the nodes it opens. */
	return positive(in->free_places - room->places) + nodes * per_node(p, i);
}

static size_t next_group(const struct placing *p)
{
	size_t count = p->s->fleet->pools[p->pool].group_count, best = count;

	for (size_t i = 0; i < count; i++) {
		if (cold_room(p, i) <= 0)
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

/* Opens one node, or fills free GPUs of one, and puts up to `want` replicas there. */
static int64_t put_cold(const struct placing *p, size_t i, int64_t want, bool is_refill)
{
	struct group_room *room = &p->room[index_of(p, i)];
	int64_t places = positive(p->s->pools[p->pool].groups[i].free_places - room->places);

	if (places > 0 && !is_refill) {
		int64_t n = at_most(places, want);
		p->out[i].place += n;
		room->places += n;
		return n;
	}
	int64_t n = at_most(want, per_node(p, i));
	room->nodes++;
	if (is_refill) {
		n = per_node(p, i);
		room->standby++;
		p->out[i].refill += n;
	} else {
		p->out[i].cold += n;
	}
	return n;
}

static int64_t place_cold(const struct placing *p, int64_t want)
{
	while (want > 0) {
		size_t i = next_group(p);
		if (i == p->s->fleet->pools[p->pool].group_count)
			break;
		want -= put_cold(p, i, want, false);
	}
	return positive(want);
}

static void place_refills(const struct placing *p, int64_t want)
{
	size_t count = p->s->fleet->pools[p->pool].group_count;

	for (size_t i = 0; i < count && want > 0; i++) {
		const struct group_room *room = &p->room[index_of(p, i)];
		const struct group_spec *g = spec_of(p, i);
		while (want > 0 && room->standby < g->standby_max_nodes && room->nodes < g->max_nodes &&
		       p->memory[index_of(p, i)].blocked_until <= p->s->now)
			want -= put_cold(p, i, want, true);
	}
}

static int64_t place_wakes(const struct placing *p, int64_t want)
{
	for (size_t i = 0; i < p->s->fleet->pools[p->pool].group_count && want > 0; i++) {
		struct group_room *room = &p->room[index_of(p, i)];
		const struct group_input *in = &p->s->pools[p->pool].groups[i];
		int64_t each = per_node(p, i), nodes = positive(spec_of(p, i)->max_nodes - room->nodes);
		int64_t stopped = positive(in->standby - room->woken);
		if (p->memory[index_of(p, i)].wakes_blocked_until > p->s->now)
			continue;
		int64_t n = at_most(at_most(want, stopped), nodes * each);
		p->out[i].wake += n;
		room->woken += n;
		room->nodes += (n + each - 1) / each;
		room->standby -= (n + each - 1) / each;
		want -= n;
	}
	return want;
}

static int64_t place_reclaims(const struct placing *p, int64_t want)
{
	for (size_t i = 0; i < p->s->fleet->pools[p->pool].group_count && want > 0; i++) {
		int64_t n = at_most(want, p->s->pools[p->pool].groups[i].lent);
		p->out[i].reclaim += n;
		want -= n;
	}
	return want;
}

static int64_t starting(const struct placing *p, size_t i, enum start_kind kind)
{
	const struct pool_snapshot *seen = &p->s->pools[p->pool];
	int64_t n = 0;

	for (size_t k = 0; k < seen->start_count; k++)
		if (seen->starts[k].group == (int64_t)i && seen->starts[k].kind == (int64_t)kind)
			n += seen->starts[k].count;
	return n;
}

/* Cancels in the least preferred group first. */
static void place_cancels(const struct placing *p, const struct moves *m)
{
	int64_t cold = m->cancel_cold, wake = m->cancel_wake, reclaim = m->cancel_reclaim;

	for (size_t i = p->s->fleet->pools[p->pool].group_count; i-- > 0;) {
		struct group_decision *d = &p->out[i];
		d->cancel_cold = at_most(cold, starting(p, i, START_COLD) + starting(p, i, START_PLACE));
		d->cancel_wake = at_most(wake, starting(p, i, START_WAKE));
		d->cancel_reclaim = at_most(reclaim, starting(p, i, START_RECLAIM));
		p->room[index_of(p, i)].nodes -= (d->cancel_cold + d->cancel_wake) / per_node(p, i);
		cold -= d->cancel_cold;
		wake -= d->cancel_wake;
		reclaim -= d->cancel_reclaim;
	}
}

static void place_adoptions(const struct placing *p, int64_t want)
{
	for (size_t i = 0; i < p->s->fleet->pools[p->pool].group_count && want > 0; i++) {
		int64_t n = at_most(want, starting(p, i, START_REFILL));
		p->out[i].adopt_refill = n;
		want -= n;
	}
}

/* Where a released machine goes: to a pool that borrows, into the stock, or away. */
static void send_off(const struct placing *p, size_t i, int64_t n, int64_t give_back)
{
	struct group_room *room = &p->room[index_of(p, i)];
	const struct group_spec *g = spec_of(p, i);
	struct group_decision *d = &p->out[i];
	int64_t each = per_node(p, i), nodes = n / each;

	d->release += n;
	d->give_back += p->borrower_waits ? n : at_most(n, give_back);
	int64_t stop = at_most(positive(g->standby_max_nodes - room->standby) * each, n - d->give_back);
	stop = positive(stop) / each * each;
	d->stop += stop;
	room->standby += stop / each;
	room->nodes -= nodes;
}

static int64_t place_releases(const struct placing *p, struct wish *w)
{
	int64_t want = w->moves.release, give_back = w->moves.give_back;

	for (size_t i = p->s->fleet->pools[p->pool].group_count; i-- > 0 && want > 0;) {
		const struct group_input *in = &p->s->pools[p->pool].groups[i];
		int64_t each = per_node(p, i);
		int64_t spare = positive(p->room[index_of(p, i)].nodes - spec_of(p, i)->min_nodes) * each;
		int64_t n = at_most(at_most(want, in->ready), spare) / each * each;
		if (n <= 0)
			continue;
		int64_t back = at_most(give_back, n);
		send_off(p, i, n, back);
		give_back -= back;
		want -= n;
	}
	return want;
}

static void delete_stock(const struct placing *p, int64_t want)
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

static enum limit refusal_limit(const struct group_memory *g)
{
	return g->refused_with == ERROR_QUOTA ? LIMIT_QUOTA : LIMIT_STOCKOUT;
}

static enum limit why_no_room(const struct placing *p)
{
	for (size_t i = 0; i < p->s->fleet->pools[p->pool].group_count; i++)
		if (p->memory[index_of(p, i)].blocked_until > p->s->now)
			return refusal_limit(&p->memory[index_of(p, i)]);
	return LIMIT_MAX;
}

/* All nodes of a gang or none. */
static void drop_partial_gang(const struct placing *p, struct wish *w)
{
	for (size_t i = 0; i < p->s->fleet->pools[p->pool].group_count; i++) {
		p->room[index_of(p, i)].nodes -= (p->out[i].cold + per_node(p, i) - 1) / per_node(p, i);
		p->out[i].cold = p->out[i].place = 0;
	}
	w->held_by = LIMIT_GANG;
}

static void report_groups(const struct placing *p)
{
	for (size_t i = 0; i < p->s->fleet->pools[p->pool].group_count; i++) {
		const struct group_memory *g = &p->memory[index_of(p, i)];
		struct group_decision *d = &p->out[i];
		d->nodes = p->s->pools[p->pool].groups[i].nodes;
		d->nodes_desired = p->room[index_of(p, i)].nodes;
		d->blocked_until = g->blocked_until > p->s->now ? g->blocked_until : 0;
		d->refusals = g->refusals;
		d->held_by = d->blocked_until				    ? refusal_limit(g)
			     : d->nodes_desired >= spec_of(p, i)->max_nodes ? LIMIT_MAX
									    : LIMIT_NONE;
	}
}

void place_moves(const struct placing *p, struct wish *w)
{
	struct moves *m = &w->moves;
	int64_t want = m->cold + m->replace_cold;

	place_cancels(p, m);
	place_adoptions(p, m->adopt_refill);
	int64_t left = place_reclaims(p, m->reclaim);
	left = place_wakes(p, m->wake + m->replace_wake + left);
	/* Wakes that find nothing to wake become new machines. */
	left = place_cold(p, want + left);
	if (left > 0) {
		enum limit why = why_no_room(p);
		if (w->held_by == LIMIT_NONE || why != LIMIT_MAX)
			w->held_by = why;
		if (p->s->fleet->pools[p->pool].class == CLASS_TRAINING)
			drop_partial_gang(p, w);
	}
	place_refills(p, m->refill);
	if (place_releases(p, w) > 0 && w->held_by == LIMIT_NONE)
		w->held_by = LIMIT_WHOLE_NODE;
	delete_stock(p, w->stock_excess);
	report_groups(p);
}
