#include "controller/policy/share.h"

#include <string.h>

/* The first is what is followed before anything is known. */
static const struct share_rule rules[] = {
	{ 0, 5 * MINUTE, 5 * MINUTE, 1000, VICTIM_AFFORDS },
	{ 0, MINUTE, MINUTE, 0, VICTIM_AFFORDS },
	{ 0, MINUTE, MINUTE, 0, VICTIM_LEAST_RECENT },
	{ 0, MINUTE, MINUTE, 150, VICTIM_AFFORDS },
	{ 0, MINUTE, MINUTE, 150, VICTIM_LEAST_RECENT },
	{ 0, MINUTE, MINUTE, 1000, VICTIM_AFFORDS },
	{ 0, MINUTE, MINUTE, 1000, VICTIM_LEAST_RECENT },
	{ 0, 5 * SECOND, 5 * SECOND, 0, VICTIM_AFFORDS },
	{ 0, 5 * SECOND, 5 * SECOND, 0, VICTIM_LEAST_RECENT },
	{ 0, 5 * SECOND, 5 * SECOND, 150, VICTIM_AFFORDS },
	{ 0, 5 * SECOND, 5 * SECOND, 150, VICTIM_LEAST_RECENT },
	{ 0, 5 * SECOND, 5 * SECOND, 1000, VICTIM_AFFORDS },
	{ 0, 5 * SECOND, 5 * SECOND, 1000, VICTIM_LEAST_RECENT },
	{ 0, 5 * MINUTE, 5 * MINUTE, 0, VICTIM_AFFORDS },
	{ 0, 5 * MINUTE, 5 * MINUTE, 0, VICTIM_LEAST_RECENT },
	{ 0, 5 * MINUTE, 5 * MINUTE, 150, VICTIM_AFFORDS },
	{ 0, 5 * MINUTE, 5 * MINUTE, 150, VICTIM_LEAST_RECENT },
	{ 0, 5 * MINUTE, 5 * MINUTE, 1000, VICTIM_LEAST_RECENT },
	{ 250, MINUTE, MINUTE, 0, VICTIM_AFFORDS },
	{ 250, MINUTE, MINUTE, 150, VICTIM_AFFORDS },
	{ 250, 5 * MINUTE, 5 * MINUTE, 0, VICTIM_AFFORDS },
	{ 250, 5 * MINUTE, 5 * MINUTE, 150, VICTIM_AFFORDS },
};

const struct share_rule *share_rules(size_t *count)
{
	*count = sizeof rules / sizeof *rules;
	return rules;
}

double share_strain(double late, double asked, int64_t late_ppm)
{
	return late / (1 + asked * (double)late_ppm / 1e6);
}

size_t share_rule_choose(const double *strain, size_t count, size_t present)
{
	static const double STICKINESS = .95;
	size_t best = 0;

	for (size_t i = 1; i < count; i++)
		if (strain[i] < strain[best])
			best = i;
	return present != SHARE_NONE && strain[best] >= STICKINESS * strain[present] ? present : best;
}

int64_t share_need(int64_t requests, int64_t sequences, const struct share_rule *r)
{
	int64_t thousandths = requests * (1000 + r->margin_permille);

	return (thousandths + 1000 * sequences - 1) / (1000 * sequences);
}

int64_t share_slots_for(int64_t engines, int64_t work, int64_t awake)
{
	int64_t by_memory = (engines + 1000 * awake - 1) / (1000 * awake), by_work = (work + 999) / 1000;

	return by_memory > by_work ? by_memory : by_work;
}

int64_t share_hold(struct share_hold *h, int64_t need, millis now, millis hold)
{
	if (need >= h->need) {
		*h = (struct share_hold){ need, 0, now + hold };
	} else if (now >= h->until) {
		*h = (struct share_hold){ h->next > need ? h->next : need, need, now + hold };
	} else if (need > h->next) {
		h->next = need;
	}
	return h->need;
}

static bool holds_gpu(const struct share_engine *e)
{
	return e->state != SHARE_ASLEEP;
}

int64_t share_gpu_left(const struct share_slot *s, const struct share_member *members)
{
	int64_t left = s->gpu_mib;

	for (size_t i = 0; i < s->engine_count; i++) {
		const struct share_member *m = &members[s->engines[i].member];
		left -= holds_gpu(&s->engines[i]) ? m->gpu_awake_mib : m->gpu_asleep_mib;
	}
	return left;
}

int64_t share_host_left(const struct share_slot *s, const struct share_member *members)
{
	int64_t left = s->host_mib;

	for (size_t i = 0; i < s->engine_count; i++)
		if (s->engines[i].state == SHARE_ASLEEP || s->engines[i].state == SHARE_FALLING_ASLEEP)
			left -= members[s->engines[i].member].host_asleep_mib;
	return left;
}

/* --- one pass --- */

/* A slot as it is before the pass, counted once. */
struct slot_facts {
	bool is_busy; /* sleeps or wakes */
	int64_t gpu_left, host_left;
	const size_t *awake; /* engines */
	size_t awake_count;
};

struct pass {
	const struct share_view *v;
	struct share_plan plan;
	int64_t *serving; /* per member: engines awake or waking on slots that stay */
	int64_t *coming;  /* per member: slots that are cleared for it */
	struct slot_facts *facts;
	size_t *sleepers; /* [slot * member_count + member]: engine asleep, SHARE_NONE: none */
};

/* Whether a slot can take an order in this pass. */
static bool is_free(const struct pass *p, size_t slot)
{
	return p->plan.orders[slot].verb == SHARE_KEEP && !p->facts[slot].is_busy;
}

static const struct share_times *times_of(const struct pass *p, size_t slot, size_t member)
{
	return &p->v->times[p->v->slots[slot].type * p->v->member_count + member];
}

static size_t sleeper_of(const struct pass *p, size_t slot, size_t member)
{
	return p->sleepers[slot * p->v->member_count + member];
}

static void look_at_slot(struct pass *p, size_t slot, size_t *awake)
{
	const struct share_slot *s = &p->v->slots[slot];
	struct slot_facts *f = &p->facts[slot];

	*f = (struct slot_facts){ false, share_gpu_left(s, p->v->members), share_host_left(s, p->v->members), awake,
				  0 };
	for (size_t m = 0; m < p->v->member_count; m++)
		p->sleepers[slot * p->v->member_count + m] = SHARE_NONE;
	for (size_t k = 0; k < s->engine_count; k++) {
		const struct share_engine *e = &s->engines[k];
		f->is_busy |= e->state == SHARE_WAKING || e->state == SHARE_FALLING_ASLEEP;
		if (e->state == SHARE_AWAKE)
			awake[f->awake_count++] = k;
		if (e->state == SHARE_ASLEEP)
			p->sleepers[slot * p->v->member_count + e->member] = k;
		p->serving[e->member] += !s->is_leaving && (e->state == SHARE_AWAKE || e->state == SHARE_WAKING);
	}
}

static void begin(struct pass *p, struct arena *a)
{
	const struct share_view *v = p->v;
	size_t engines = 0, at = 0;

	for (size_t i = 0; i < v->slot_count; i++)
		engines += v->slots[i].engine_count;
	size_t *awake = arena_array(a, size_t, engines);
	bool *routed = arena_array(a, bool, engines);
	for (size_t i = 0; i < v->slot_count; i++) {
		const struct share_slot *s = &v->slots[i];
		size_t cleared_for = s->is_leaving ? SHARE_NONE : s->cleared_for;
		p->plan.orders[i] = (struct share_order){ .engine = SHARE_NONE, .cleared_for = cleared_for };
		p->plan.is_in_routing[i] = routed + at;
		look_at_slot(p, i, awake + at);
		at += s->engine_count;
		if (cleared_for != SHARE_NONE)
			p->coming[cleared_for]++;
	}
}

static int64_t missing(const struct pass *p, size_t member)
{
	return p->v->members[member].need_held - p->serving[member] - p->coming[member];
}

/* What runs nothing, was awake long enough to be worth its wake, and finds room among the sleepers. */
static bool can_sleep(const struct pass *p, size_t slot, size_t engine)
{
	const struct share_engine *e = &p->v->slots[slot].engines[engine];
	const struct share_times *t = times_of(p, slot, e->member);

	return e->state == SHARE_AWAKE && !e->running && p->v->now - e->since >= t->sleep + t->wake &&
	       p->facts[slot].host_left >= p->v->members[e->member].host_asleep_mib;
}

struct harm {
	int64_t strain; /* thousandths: late requests over those allowed, with one more */
	millis idle_since;
};

/* None where others of the pool serve, too. */
static struct harm harm_of(const struct pass *p, size_t slot, size_t engine)
{
	const struct share_engine *e = &p->v->slots[slot].engines[engine];
	const struct share_member *m = &p->v->members[e->member];
	bool counts = p->v->rule->victim == VICTIM_AFFORDS && p->serving[e->member] <= 1;

	return (struct harm){ counts ? (m->late + 1) * 1000000 / (m->allowed_milli + 1000) : 0, e->idle_since };
}

static bool is_less(struct harm a, struct harm b)
{
	return a.strain != b.strain ? a.strain < b.strain : a.idle_since < b.idle_since;
}

/* The engine to be put to sleep on a slot. `spared`: engines that each pool keeps are those it was seen to need of
 * late, otherwise those it needs now. SHARE_NONE when there is none. */
static size_t find_victim(const struct pass *p, size_t slot, size_t for_member, bool spared)
{
	size_t best = SHARE_NONE;

	for (size_t k = 0; k < p->facts[slot].awake_count; k++) {
		size_t i = p->facts[slot].awake[k];
		const struct share_engine *e = &p->v->slots[slot].engines[i];
		const struct share_member *m = &p->v->members[e->member];
		if (e->member == for_member || !can_sleep(p, slot, i) ||
		    p->serving[e->member] <= (spared ? m->need_held : m->need))
			continue;
		if (best == SHARE_NONE || is_less(harm_of(p, slot, i), harm_of(p, slot, best)))
			best = i;
	}
	return best;
}

static bool has_room(const struct pass *p, size_t slot, size_t member)
{
	const struct share_member *m = &p->v->members[member];

	return p->facts[slot].gpu_left >= m->gpu_awake_mib - m->gpu_asleep_mib;
}

static enum share_reason why(const struct pass *p, size_t member)
{
	return p->v->members[member].waiting && !p->serving[member] ? SHARE_NO_ENGINE : SHARE_NEED;
}

static void order_wake(struct pass *p, size_t slot, size_t engine)
{
	size_t member = p->v->slots[slot].engines[engine].member;

	p->plan.orders[slot] =
		(struct share_order){ SHARE_WAKE, engine, SHARE_NONE, times_of(p, slot, member)->wake, why(p, member) };
	p->serving[member]++;
}

static void order_sleep(struct pass *p, size_t slot, size_t engine, size_t for_member)
{
	size_t member = p->v->slots[slot].engines[engine].member;
	struct share_order *o = &p->plan.orders[slot];

	*o = (struct share_order){ SHARE_SLEEP, engine, for_member, 0, SHARE_SPARE };
	p->serving[member]--;
	if (for_member == SHARE_NONE)
		return;
	o->lead = times_of(p, slot, member)->sleep + times_of(p, slot, for_member)->wake;
	o->reason = why(p, for_member);
}

/* A slot that is cleared for a pool goes on as far as it can; where the need has gone, or what was to sleep runs again,
 * it is given up. */
static void go_on(struct pass *p, size_t slot)
{
	size_t member = p->plan.orders[slot].cleared_for;

	if (member == SHARE_NONE || !is_free(p, slot))
		return;
	size_t sleeper = sleeper_of(p, slot, member), victim = SHARE_NONE;
	bool is_needed = p->v->members[member].need_held > p->serving[member] && sleeper != SHARE_NONE;
	p->coming[member]--;
	p->plan.orders[slot].cleared_for = SHARE_NONE;
	if (is_needed && has_room(p, slot, member))
		order_wake(p, slot, sleeper);
	else if (is_needed)
		victim = find_victim(p, slot, member, p->v->members[member].need <= p->serving[member]);
	if (victim == SHARE_NONE)
		return;
	order_sleep(p, slot, victim, member);
	p->coming[member]++;
}

/* What is awake beside each other though it does not fit, and what is not ours to hold back (it starts): whoever is
 * idle makes room, and of those whoever can best afford it. */
static void relieve(struct pass *p, size_t slot)
{
	size_t victim = SHARE_NONE;

	if (p->facts[slot].gpu_left >= 0 || p->plan.orders[slot].cleared_for != SHARE_NONE || !is_free(p, slot))
		return;
	for (size_t k = 0; k < p->facts[slot].awake_count; k++) {
		size_t i = p->facts[slot].awake[k];
		if (can_sleep(p, slot, i) &&
		    (victim == SHARE_NONE || is_less(harm_of(p, slot, i), harm_of(p, slot, victim))))
			victim = i;
	}
	if (victim == SHARE_NONE)
		return;
	order_sleep(p, slot, victim, SHARE_NONE);
	p->plan.orders[slot].reason = SHARE_CROWDED;
}

/* --- what members need --- */

/* Waits for an engine most: requests that wait over engines that serve them. */
static size_t most_urgent(const struct pass *p, const bool *is_done)
{
	size_t best = SHARE_NONE;
	int64_t most = 0;

	for (size_t i = 0; i < p->v->member_count; i++) {
		if (is_done[i] || missing(p, i) <= 0)
			continue;
		int64_t urgency =
			1 + 1000 * p->v->members[i].waiting / (1 + p->serving[i] + p->coming[i]) + missing(p, i);
		if (urgency > most) {
			most = urgency;
			best = i;
		}
	}
	return best;
}

struct candidate {
	size_t slot, engine, victim; /* victim SHARE_NONE: there is room */
	struct harm harm;
	int64_t gpu_left;
};

/* Room before a victim, then the least harm; among slots with room the one with most of it, where an engine that is
 * awake already is not slowed down. */
static bool is_better(const struct candidate *a, const struct candidate *b)
{
	if (b->slot == SHARE_NONE || (a->victim == SHARE_NONE) != (b->victim == SHARE_NONE))
		return b->slot == SHARE_NONE || a->victim == SHARE_NONE;
	return a->victim == SHARE_NONE ? a->gpu_left > b->gpu_left : is_less(a->harm, b->harm);
}

static struct candidate find_slot(const struct pass *p, size_t member, bool spared)
{
	struct candidate best = { .slot = SHARE_NONE };

	for (size_t i = 0; i < p->v->slot_count; i++) {
		if (p->v->slots[i].is_leaving || p->plan.orders[i].cleared_for != SHARE_NONE || !is_free(p, i))
			continue;
		struct candidate c = { i, sleeper_of(p, i, member), SHARE_NONE, { 0, 0 }, p->facts[i].gpu_left };
		if (c.engine == SHARE_NONE)
			continue;
		if (!has_room(p, i, member)) {
			c.victim = find_victim(p, i, member, spared);
			if (c.victim == SHARE_NONE)
				continue;
			c.harm = harm_of(p, i, c.victim);
		}
		if (is_better(&c, &best))
			best = c;
	}
	return best;
}

static bool serve(struct pass *p, size_t member)
{
	const struct share_member *m = &p->v->members[member];
	struct candidate c = find_slot(p, member, true);

	if (c.slot == SHARE_NONE && m->need > p->serving[member] + p->coming[member])
		c = find_slot(p, member, false);
	if (c.slot == SHARE_NONE)
		return false;
	if (c.victim == SHARE_NONE) {
		order_wake(p, c.slot, c.engine);
	} else {
		order_sleep(p, c.slot, c.victim, member);
		p->coming[member]++;
	}
	return true;
}

static void serve_all(struct pass *p, struct arena *a)
{
	bool *is_done = arena_array(a, bool, p->v->member_count);

	for (size_t member = most_urgent(p, is_done); member != SHARE_NONE; member = most_urgent(p, is_done))
		if (!serve(p, member))
			is_done[member] = true;
}

/* --- what goes to sleep with nobody waiting for it --- */

/* Nothing stands in the way of a wake on it. */
static bool is_empty(const struct pass *p, size_t slot)
{
	const struct share_order *o = &p->plan.orders[slot];
	const struct share_slot *s = &p->v->slots[slot];
	size_t awake = p->facts[slot].awake_count;

	for (size_t k = 0; k < s->engine_count; k++)
		awake += s->engines[k].state == SHARE_WAKING || s->engines[k].state == SHARE_BROKEN;
	return !s->is_leaving && o->cleared_for == SHARE_NONE && o->verb != SHARE_WAKE &&
	       awake == (o->verb == SHARE_SLEEP);
}

static bool put_one_to_sleep(struct pass *p)
{
	size_t best = SHARE_NONE, victim = SHARE_NONE;

	for (size_t i = 0; i < p->v->slot_count; i++) {
		if (p->v->slots[i].is_leaving || p->plan.orders[i].cleared_for != SHARE_NONE || !is_free(p, i))
			continue;
		size_t v = find_victim(p, i, SHARE_NONE, true);
		if (v == SHARE_NONE || p->v->now - p->v->slots[i].engines[v].idle_since < p->v->rule->keep_alive)
			continue;
		if (best == SHARE_NONE || is_less(harm_of(p, i, v), harm_of(p, best, victim))) {
			best = i;
			victim = v;
		}
	}
	if (best != SHARE_NONE)
		order_sleep(p, best, victim, SHARE_NONE);
	return best != SHARE_NONE;
}

static void keep_spares(struct pass *p)
{
	int64_t slots = 0, empty = 0;

	for (size_t i = 0; i < p->v->slot_count; i++) {
		slots += !p->v->slots[i].is_leaving;
		empty += is_empty(p, i);
	}
	int64_t spare = (slots * p->v->rule->spare_permille + 999) / 1000;
	for (int64_t lacking = spare - empty; lacking > 0 && put_one_to_sleep(p); lacking--)
		;
}

/* --- routing --- */

static bool may_serve(const struct pass *p, size_t slot, size_t engine)
{
	const struct share_order *o = &p->plan.orders[slot];

	return p->v->slots[slot].engines[engine].state == SHARE_AWAKE &&
	       !(o->verb == SHARE_SLEEP && o->engine == engine);
}

/* On slots that stay. */
static bool may_serve_on(const struct pass *p, size_t slot, size_t engine)
{
	return !p->v->slots[slot].is_leaving && may_serve(p, slot, engine);
}

/* As many engines as the pool needs get requests, those in routing already and with most running first, so that the
 * others run empty and may sleep. One always does. */
static void route_member(struct pass *p, size_t member)
{
	int64_t left = p->v->members[member].need_held > 1 ? p->v->members[member].need_held : 1;

	while (left-- > 0) {
		bool *best = NULL;
		int64_t most = -1;
		for (size_t i = 0; i < p->v->slot_count; i++)
			for (size_t n = 0; n < p->facts[i].awake_count; n++) {
				size_t k = p->facts[i].awake[n];
				const struct share_engine *e = &p->v->slots[i].engines[k];
				int64_t rank = e->running + (e->is_in_routing ? INT32_MAX : 0);
				if (e->member != member || p->plan.is_in_routing[i][k] || rank <= most ||
				    !may_serve_on(p, i, k))
					continue;
				most = rank;
				best = &p->plan.is_in_routing[i][k];
			}
		if (!best)
			return;
		*best = true;
	}
}

/* Where a pool has no more engines than it needs, all of them are in routing; on slots that go, what is needed, until
 * one that stays has taken over. */
static void route(struct pass *p, struct arena *a)
{
	int64_t *awake = arena_array(a, int64_t, p->v->member_count);

	for (size_t i = 0; i < p->v->slot_count; i++)
		for (size_t n = 0; n < p->facts[i].awake_count; n++)
			awake[p->v->slots[i].engines[p->facts[i].awake[n]].member] +=
				may_serve_on(p, i, p->facts[i].awake[n]);
	for (size_t i = 0; i < p->v->slot_count; i++)
		for (size_t n = 0; n < p->facts[i].awake_count; n++) {
			size_t k = p->facts[i].awake[n], member = p->v->slots[i].engines[k].member;
			bool is_all = awake[member] <= 1 || awake[member] <= p->v->members[member].need_held;
			bool goes_on = !awake[member] && p->v->members[member].need_held > 0;
			p->plan.is_in_routing[i][k] = is_all && (goes_on ? may_serve(p, i, k) : may_serve_on(p, i, k));
		}
	for (size_t m = 0; m < p->v->member_count; m++)
		if (awake[m] > 1 && awake[m] > p->v->members[m].need_held)
			route_member(p, m);
}

/* --- who waits for its turn --- */

static size_t who_holds(const struct pass *p, size_t member)
{
	size_t holder = SHARE_NONE;

	if (!p->v->members[member].waiting || p->serving[member] > 0 || p->coming[member] > 0)
		return SHARE_NONE;
	for (size_t i = 0; i < p->v->slot_count; i++)
		for (size_t n = 0; n < p->facts[i].awake_count; n++) {
			const struct share_engine *e = &p->v->slots[i].engines[p->facts[i].awake[n]];
			if (e->member == member) /* on a slot that goes */
				return SHARE_NONE;
			if (holder == SHARE_NONE && e->running && !p->v->slots[i].is_leaving &&
			    sleeper_of(p, i, member) != SHARE_NONE)
				holder = e->member;
		}
	return holder;
}

struct share_plan share_decide(const struct share_view *v, struct arena *a)
{
	struct pass p = { .v = v,
			  .plan = { arena_array(a, struct share_order, v->slot_count),
				    arena_array(a, bool *, v->slot_count), arena_array(a, size_t, v->member_count) },
			  .serving = arena_array(a, int64_t, v->member_count),
			  .coming = arena_array(a, int64_t, v->member_count),
			  .facts = arena_array(a, struct slot_facts, v->slot_count),
			  .sleepers = arena_array(a, size_t, v->slot_count * v->member_count) };

	begin(&p, a);
	for (size_t i = 0; i < v->slot_count; i++) {
		relieve(&p, i);
		go_on(&p, i);
	}
	serve_all(&p, a);
	if (v->rule->spare_permille > 0)
		keep_spares(&p);
	route(&p, a);
	for (size_t m = 0; m < v->member_count; m++)
		p.plan.waits_for[m] = who_holds(&p, m);
	return p.plan;
}

/* --- placement --- */

/* The one with the fewest engines for its peak; those with none first. */
static size_t scarcest(const struct share_member *members, size_t count, const int64_t *copies, const bool *is_passed)
{
	size_t best = SHARE_NONE;

	for (size_t i = 0; i < count; i++) {
		if (is_passed[i])
			continue;
		int64_t peak = members[i].peak > 0 ? members[i].peak : 1;
		int64_t best_peak = best != SHARE_NONE && members[best].peak > 0 ? members[best].peak : 1;
		if (best == SHARE_NONE || copies[i] * best_peak < copies[best] * peak ||
		    (copies[i] * best_peak == copies[best] * peak && peak > best_peak))
			best = i;
	}
	return best;
}

static bool fits(const struct share_member *m, struct share_size left, int64_t largest)
{
	int64_t extra = m->gpu_awake_mib - m->gpu_asleep_mib;

	return m->host_asleep_mib <= left.host_mib &&
	       m->gpu_asleep_mib + (extra > largest ? extra : largest) <= left.gpu_mib;
}

size_t share_place(const struct share_member *members, size_t member_count, struct share_size size, int64_t *copies,
		   size_t *out)
{
	bool is_passed[SHARE_MEMBERS_MAX] = { false };
	size_t count = 0;
	int64_t largest = 0;

	for (size_t tried = 0; tried < member_count; tried++) {
		size_t i = scarcest(members, member_count, copies, is_passed);
		const struct share_member *m = &members[i];
		is_passed[i] = true;
		if (!fits(m, size, largest))
			continue;
		if (m->gpu_awake_mib - m->gpu_asleep_mib > largest)
			largest = m->gpu_awake_mib - m->gpu_asleep_mib;
		size.host_mib -= m->host_asleep_mib;
		size.gpu_mib -= m->gpu_asleep_mib;
		copies[i]++;
		out[count++] = i;
	}
	return count;
}
