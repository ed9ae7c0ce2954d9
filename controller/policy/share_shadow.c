#include "controller/policy/share_shadow.h"

#include <string.h>

enum {
	POINTS = 16,	     /* of a curve of arrivals */
	STEPS_MOST = 8,	     /* of a shadow between two looks */
	GAP_PER_MEMBER = 4,  /* ms between two looks: more members take longer, and are looked at less often */
	STILL = 5 * MINUTE,  /* nobody looked for so long: what was asked for meanwhile is not known */
	HOURS_KEPT = 7 * 24, /* an hour makes so little of the record */
};

static const millis SERVICE_FIRST = 5 * SECOND; /* of a request, until some have ended */
static const double SERVICE_FIRST_WEIGHT = .2;	/* requests */

/* How many requests had come by when. */
struct share_asked {
	struct share_load load; /* of the last look */
	double come;
	struct point {
		millis at;
		double come;
	} points[POINTS];
	size_t point_count;
};

struct shadow_member {
	double served, judged, late; /* requests, as the curve counts them: begun; looked at for being late */
	struct share_hold hold;
};

struct shadow_share {
	struct share_slot *slots;
	struct share_engine *engines; /* of all slots, one after the other */
	double *running;	      /* on each */
	millis *until;		      /* when its sleep or wake ends */
	size_t moves;
	struct shadow_member *members;
	size_t engine_count;
};

/* Of one member, over the engines of a shadow. */
struct flow {
	double waiting, room, part; /* part: of the room that is taken */
	double linger;		    /* 1 + time of the step over that of a request */
	int64_t routed, waking;
	double running;
};

struct walk {
	struct share_shadows *s;
	const struct share_seen *seen;
	const struct share_view *v;
	struct shadow_share *shadow;
	struct flow *flows;
	double *rooms; /* per engine */
	size_t rule;
};

/* --- what is asked for --- */

/* The last point that is not after it; -1: none. */
static int point_by(const struct share_asked *a, millis at)
{
	int i = (int)a->point_count - 1;

	while (i >= 0 && a->points[i].at > at)
		i--;
	return i;
}

/* Known by then: a request counts from the look that saw it. */
static double seen_by(const struct share_asked *a, millis at)
{
	int i = point_by(a, at);

	return i < 0 ? 0 : a->points[i].come;
}

/* Those that were served on the way to a look did not all come at its end. */
static double come_by(const struct share_asked *a, millis at)
{
	int i = point_by(a, at);

	if (i < 0 || i + 1 == (int)a->point_count)
		return seen_by(a, at);
	const struct point *p = &a->points[i];
	return p[0].come + (double)(at - p[0].at) / (double)(p[1].at - p[0].at) * (p[1].come - p[0].come);
}

static void add_point(struct share_asked *a, millis now)
{
	size_t n = a->point_count;

	if (n > 1 && now - a->points[n - 2].at < a->load.wait / 8) {
		n--;
	} else if (n == POINTS) {
		memmove(a->points, a->points + 1, (POINTS - 1) * sizeof *a->points);
		n--;
	}
	a->points[n] = (struct point){ now, a->come };
	a->point_count = n + 1;
}

/* Where nobody counts arrivals, those that are seen have arrived. */
static int64_t come_since(const struct share_load *was, const struct share_load *is)
{
	int64_t counted = is->arrived - was->arrived, seen = is->running + is->waiting - was->running - was->waiting;

	return counted > seen ? counted : seen > 0 ? seen : 0;
}

static void ask(struct share_shadows *s, size_t member, const struct share_load *is, millis now)
{
	struct share_asked *a = &s->asked[member];
	struct share_tally_member *t = &s->tally.members[member];
	const struct share_load *was = &a->load;
	int64_t come = come_since(was, is);
	int64_t ended = come - (is->running + is->waiting - was->running - was->waiting);

	t->asked += (double)come;
	t->ended += (double)ended;
	t->worked += (double)(was->running + is->running) / 2 * (double)(now - s->now);
	s->tally.asked += (double)come;
	a->come += (double)come;
	a->load = *is;
	add_point(a, now);
}

static double service_of(const struct share_tally_member *t)
{
	return (t->worked + (double)SERVICE_FIRST * SERVICE_FIRST_WEIGHT) / (t->ended + SERVICE_FIRST_WEIGHT);
}

/* --- the slots that there are --- */

static bool is_laid_out(const struct share_shadows *s, const struct share_seen *seen)
{
	const struct share_view *v = seen->view;

	if (s->tally.member_count != v->member_count || s->slot_count != v->slot_count)
		return false;
	for (size_t i = 0; i < v->member_count; i++)
		if (s->tally.members[i].key != seen->loads[i].key)
			return false;
	for (size_t i = 0; i < v->slot_count; i++) {
		const struct share_slot *is = &s->shadows[0].slots[i];
		if (s->slot_keys[i] != seen->slot_keys[i] || is->engine_count != v->slots[i].engine_count)
			return false;
		for (size_t k = 0; k < is->engine_count; k++)
			if (is->engines[k].member != v->slots[i].engines[k].member)
				return false;
	}
	return true;
}

/* Looked for first where it would be had nothing changed. */
static size_t slot_place(const struct share_shadows *s, uint64_t key, size_t hint)
{
	for (size_t n = 0; n < s->slot_count; n++) {
		size_t i = (hint + n) % s->slot_count;
		if (s->slot_keys[i] == key)
			return i;
	}
	return SHARE_NONE;
}

static size_t member_place(const struct share_tally *t, uint64_t key, size_t hint)
{
	for (size_t n = 0; n < t->member_count; n++) {
		size_t i = (hint + n) % t->member_count;
		if (t->members[i].key == key)
			return i;
	}
	return SHARE_NONE;
}

/* How many engines of its member stand before it on its slot. */
static size_t number_of(const struct share_slot *s, size_t engine)
{
	size_t n = 0;

	for (size_t i = 0; i < engine; i++)
		n += s->engines[i].member == s->engines[engine].member;
	return n;
}

static const struct share_engine *find_engine(const struct share_slot *s, size_t member, size_t number)
{
	for (size_t i = 0; i < s->engine_count; i++)
		if (s->engines[i].member == member && !number--)
			return &s->engines[i];
	return NULL;
}

/* One that is new is as it is. */
static struct share_engine new_engine(const struct share_engine *is, millis now)
{
	struct share_engine e = *is;

	if (e.state == SHARE_FALLING_ASLEEP)
		e.state = SHARE_ASLEEP;
	else if (e.state == SHARE_WAKING)
		e.state = SHARE_AWAKE;
	e.idle_since = now;
	return e;
}

/* From one layout to the next: where each member and slot was, SHARE_NONE: nowhere. */
struct mapping {
	const struct share_shadows *old;
	const struct share_seen *seen;
	size_t *members, *slots;
};

static void lay_out_slot(const struct mapping *m, const struct shadow_share *was, struct shadow_share *is, size_t slot)
{
	const struct share_slot *real = &m->seen->view->slots[slot];
	struct share_slot *s = &is->slots[slot];

	s->engines = is->engines + is->engine_count;
	s->engine_count = real->engine_count;
	s->cleared_for = SHARE_NONE;
	for (size_t k = 0; k < real->engine_count; k++) {
		size_t member = m->members[real->engines[k].member];
		const struct share_engine *e = NULL;
		if (m->slots[slot] != SHARE_NONE && member != SHARE_NONE)
			e = find_engine(&was->slots[m->slots[slot]], member, number_of(real, k));
		s->engines[k] = e ? *e : new_engine(&real->engines[k], m->seen->view->now);
		s->engines[k].member = real->engines[k].member;
		is->running[is->engine_count + k] =
			e ? was->running[e - was->engines] : (double)real->engines[k].running;
		is->until[is->engine_count + k] = e ? was->until[e - was->engines] : 0;
	}
	is->engine_count += real->engine_count;
}

static struct shadow_share lay_out_shadow(struct share_shadows *s, const struct mapping *m,
					  const struct shadow_share *was)
{
	const struct share_view *v = m->seen->view;
	size_t engines = 0;

	for (size_t i = 0; i < v->slot_count; i++)
		engines += v->slots[i].engine_count;
	struct shadow_share is = { .slots = arena_array(&s->arena, struct share_slot, v->slot_count),
				   .engines = arena_array(&s->arena, struct share_engine, engines),
				   .running = arena_array(&s->arena, double, engines),
				   .until = arena_array(&s->arena, millis, engines),
				   .moves = was ? was->moves : 0,
				   .members = arena_array(&s->arena, struct shadow_member, v->member_count) };
	for (size_t i = 0; i < v->member_count && was; i++)
		if (m->members[i] != SHARE_NONE)
			is.members[i] = was->members[m->members[i]];
	for (size_t i = 0; i < v->slot_count; i++)
		lay_out_slot(m, was, &is, i);
	return is;
}

static struct share_asked asked_at_first(const struct share_load *l, millis now)
{
	struct share_asked a = { .load = *l, .come = (double)l->waiting };

	add_point(&a, now);
	return a;
}

static void lay_out_members(struct share_shadows *s, struct mapping *m)
{
	const struct share_view *v = m->seen->view;

	s->tally.member_count = v->member_count;
	s->tally.members = arena_array(&s->arena, struct share_tally_member, v->member_count);
	s->asked = arena_array(&s->arena, struct share_asked, v->member_count);
	for (size_t i = 0; i < v->member_count; i++) {
		const struct share_load *l = &m->seen->loads[i];
		size_t was = m->members[i] = member_place(&m->old->tally, l->key, i);
		s->tally.members[i].key = l->key;
		if (was != SHARE_NONE)
			s->tally.members[i] = m->old->tally.members[was];
		s->asked[i] = was != SHARE_NONE && m->old->shadows ? m->old->asked[was] : asked_at_first(l, v->now);
	}
}

/* Members, slots and engines that are there now; those that were there before are as they were. */
static void lay_out(struct share_shadows *s, const struct share_seen *seen, size_t rule_count)
{
	CLEANUP(arena_release) struct arena scratch = { 0 };
	struct share_shadows old = *s;
	const struct share_view *v = seen->view;
	struct mapping m = { &old, seen, arena_array(&scratch, size_t, v->member_count),
			     arena_array(&scratch, size_t, v->slot_count) };

	s->arena = (struct arena){ 0 };
	lay_out_members(s, &m);
	s->slot_count = v->slot_count;
	s->slot_keys = arena_array(&s->arena, uint64_t, v->slot_count);
	for (size_t i = 0; i < v->slot_count; i++) {
		s->slot_keys[i] = seen->slot_keys[i];
		m.slots[i] = old.shadows ? slot_place(&old, s->slot_keys[i], i) : SHARE_NONE;
	}
	s->shadows = arena_array(&s->arena, struct shadow_share, rule_count);
	for (size_t i = 0; i < rule_count; i++)
		s->shadows[i] = lay_out_shadow(s, &m, old.shadows ? &old.shadows[i] : NULL);
	arena_release(&old.arena);
}

/* What no rule has a say in: the slots' size, that they go, and that an engine is broken. */
static void look_at_slots(struct shadow_share *h, const struct share_view *v)
{
	for (size_t i = 0; i < v->slot_count; i++) {
		const struct share_slot *real = &v->slots[i];
		struct share_slot *s = &h->slots[i];
		s->type = real->type;
		s->gpu_mib = real->gpu_mib;
		s->host_mib = real->host_mib;
		s->is_leaving = real->is_leaving;
		for (size_t k = 0; k < s->engine_count; k++) {
			bool is_broken = real->engines[k].state == SHARE_BROKEN;
			if (is_broken != (s->engines[k].state == SHARE_BROKEN)) {
				s->engines[k].state = is_broken ? SHARE_BROKEN : SHARE_ASLEEP;
				s->engines[k].since = v->now;
			}
		}
	}
}

/* --- a step of one shadow --- */

/* Between the middle and the 95th percentile of a normal spread there is a thousand: the middle of each sixteenth, out
 * of order. One after the other, they are as spread as what was measured. */
static millis takes(const struct walk *w, size_t slot, const struct share_engine *e)
{
	static const int64_t spread[] = { 48,  -614, 353,  -144, 802, -1131, 144,  -353,
					  614, -48,  -802, 472,	 244, -472,  1131, -244 };
	const struct share_view *v = w->seen->view;
	size_t row = v->slots[slot].type * v->member_count + e->member;
	const struct share_times *t = &v->times[row], *slow = &w->seen->slow[row];
	millis middle = e->state == SHARE_WAKING ? t->wake : t->sleep;
	millis late = e->state == SHARE_WAKING ? slow->wake : slow->sleep;
	millis wide = late > middle ? late - middle : 0;
	millis drawn = middle + wide * spread[w->shadow->moves++ % (sizeof spread / sizeof *spread)] / 1000;

	return drawn > 0 ? drawn : 0;
}

static bool is_moving(const struct share_engine *e)
{
	return e->state == SHARE_WAKING || e->state == SHARE_FALLING_ASLEEP;
}

/* When the next engine has slept or woken; `until` when none has by then. */
static millis next_end(const struct shadow_share *h, millis until)
{
	for (size_t i = 0; i < h->engine_count; i++)
		if (is_moving(&h->engines[i]) && h->until[i] < until)
			until = h->until[i];
	return until;
}

static void end_moves(struct shadow_share *h, millis now)
{
	for (size_t i = 0; i < h->engine_count; i++) {
		struct share_engine *e = &h->engines[i];
		if (!is_moving(e) || h->until[i] > now)
			continue;
		e->since = e->idle_since = h->until[i];
		e->state = e->state == SHARE_WAKING ? SHARE_AWAKE : SHARE_ASLEEP;
	}
}

static bool is_routed(const struct share_engine *e)
{
	return e->state == SHARE_AWAKE && e->is_in_routing;
}

/* What has ended by then makes room; engines awake together on a slot do not more than one alone. */
static void make_room(struct walk *w, const struct share_slot *s)
{
	double *running = w->shadow->running + (s->engines - w->shadow->engines);
	double *rooms = w->rooms + (s->engines - w->shadow->engines), load = 0;
	int64_t takers = 0;

	for (size_t k = 0; k < s->engine_count; k++) {
		size_t m = s->engines[k].member;
		running[k] /= w->flows[m].linger;
		load += running[k] / (double)w->s->asked[m].load.sequences;
		takers += is_routed(&s->engines[k]) && w->flows[m].waiting > 0;
	}
	for (size_t k = 0; k < s->engine_count; k++) {
		size_t m = s->engines[k].member;
		bool takes_some = is_routed(&s->engines[k]) && w->flows[m].waiting > 0 && load < 1;
		rooms[k] = takes_some ? (1 - load) / (double)takers * (double)w->s->asked[m].load.sequences *
						w->flows[m].linger
				      : 0;
		w->flows[m].room += rooms[k];
	}
}

/* An engine at which anything begins or runs is not idle. */
static void take_room(struct walk *w, size_t engine, millis now)
{
	struct share_engine *e = &w->shadow->engines[engine];
	const struct flow *f = &w->flows[e->member];
	double begun = w->rooms[engine] * f->part;

	w->shadow->running[engine] += begun / f->linger;
	e->running = (int64_t)(w->shadow->running[engine] + .5);
	if (e->running || begun > .01)
		e->idle_since = now;
}

static void judge(struct walk *w, size_t member, millis now)
{
	const struct share_asked *a = &w->s->asked[member];
	struct shadow_member *m = &w->shadow->members[member];
	double due = seen_by(a, now - a->load.wait - 1), from = m->served > m->judged ? m->served : m->judged;

	if (due > from) {
		m->late += due - from;
		w->s->tally.late[w->rule] += due - from;
		w->s->tally.strain[w->rule] +=
			share_strain(due - from, w->s->tally.members[member].asked, a->load.late_ppm);
	}
	if (due > m->judged)
		m->judged = due;
}

static void flow(struct walk *w, millis from, millis to)
{
	for (size_t i = 0; i < w->v->member_count; i++)
		w->flows[i] = (struct flow){
			.waiting = come_by(&w->s->asked[i], to) - w->shadow->members[i].served,
			.linger = 1 + (double)(to - from) / service_of(&w->s->tally.members[i]),
		};
	for (size_t i = 0; i < w->v->slot_count; i++)
		make_room(w, &w->shadow->slots[i]);
	for (size_t i = 0; i < w->v->member_count; i++) {
		struct flow *f = &w->flows[i];
		double begun = f->waiting < f->room ? f->waiting : f->room;
		if (begun <= 0)
			continue;
		f->part = begun / f->room;
		w->shadow->members[i].served += begun;
	}
	for (size_t i = 0; i < w->shadow->engine_count; i++)
		take_room(w, i, to);
	for (size_t i = 0; i < w->v->member_count; i++)
		judge(w, i, to);
}

/* --- a decision of one shadow --- */

static void count_engines(struct walk *w)
{
	for (size_t i = 0; i < w->shadow->engine_count; i++) {
		const struct share_engine *e = &w->shadow->engines[i];
		w->flows[e->member].routed += is_routed(e);
		w->flows[e->member].waking += e->state == SHARE_WAKING;
		w->flows[e->member].running += w->shadow->running[i];
	}
}

static int64_t round_up(double requests)
{
	int64_t whole = requests > 0 ? (int64_t)requests : 0;

	return whole + (requests - (double)whole > .001);
}

/* Where requests find no room on the engines that serve, one more is needed. */
static struct share_member look_at_member(const struct walk *w, size_t i, const struct share_rule *r, millis now)
{
	const struct flow *f = &w->flows[i];
	const struct share_asked *a = &w->s->asked[i];
	struct shadow_member *was = &w->shadow->members[i];
	struct share_member m = w->v->members[i];

	m.waiting = round_up(seen_by(a, now) - was->served);
	m.need = share_need((int64_t)(f->running + .5) + m.waiting, a->load.sequences, r);
	if (m.waiting && m.need <= f->routed && !f->waking)
		m.need = f->routed + 1;
	m.need_held = share_hold(&was->hold, m.need, now, r->hold);
	m.late = (int64_t)was->late;
	m.allowed_milli = (int64_t)(w->s->tally.members[i].asked * (double)a->load.late_ppm / 1000);
	return m;
}

static void obey(struct walk *w, const struct share_plan *plan, millis now)
{
	for (size_t i = 0; i < w->v->slot_count; i++) {
		const struct share_order *o = &plan->orders[i];
		struct share_slot *s = &w->shadow->slots[i];
		s->cleared_for = o->cleared_for;
		for (size_t k = 0; k < s->engine_count; k++)
			s->engines[k].is_in_routing = plan->is_in_routing[i][k];
		if (o->verb == SHARE_KEEP)
			continue;
		struct share_engine *e = &s->engines[o->engine];
		e->state = o->verb == SHARE_WAKE ? SHARE_WAKING : SHARE_FALLING_ASLEEP;
		e->since = now;
		w->shadow->until[e - w->shadow->engines] = now + takes(w, i, e);
	}
}

static void decide(struct walk *w, const struct share_rule *r, millis now)
{
	struct share_member *members = arena_array(&w->s->pass, struct share_member, w->v->member_count);

	count_engines(w);
	for (size_t i = 0; i < w->v->member_count; i++)
		members[i] = look_at_member(w, i, r, now);
	const struct share_view v = { .now = now,
				      .slots = w->shadow->slots,
				      .slot_count = w->v->slot_count,
				      .members = members,
				      .member_count = w->v->member_count,
				      .times = w->v->times,
				      .rule = r };
	const struct share_plan plan = share_decide(&v, &w->s->pass);
	obey(w, &plan, now);
}

/* As the share itself, it decides when an engine has slept or woken, too. */
static void run(struct share_shadows *s, const struct share_seen *seen, size_t rule, const struct share_rule *r)
{
	const struct share_view *v = seen->view;
	struct walk w = { .s = s, .seen = seen, .v = v, .shadow = &s->shadows[rule], .rule = rule };
	millis at = s->now;

	w.flows = arena_array(&s->pass, struct flow, v->member_count);
	w.rooms = arena_array(&s->pass, double, w.shadow->engine_count);
	look_at_slots(w.shadow, v);
	for (int step = 1; at < v->now || step == 1; step++) {
		millis to = step < STEPS_MOST ? next_end(w.shadow, v->now) : v->now;
		to = to > at ? to : at;
		flow(&w, at, to);
		end_moves(w.shadow, to);
		decide(&w, r, to);
		at = to;
	}
	arena_clear(&s->pass);
}

/* --- the choice --- */

static void fade(struct share_shadows *s, size_t rule_count)
{
	const double rest = 1 - 1. / HOURS_KEPT;

	s->tally.asked *= rest;
	for (size_t i = 0; i < rule_count; i++) {
		s->tally.late[i] *= rest;
		s->tally.strain[i] *= rest;
		for (size_t m = 0; m < s->tally.member_count; m++)
			s->shadows[i].members[m].late *= rest;
	}
	for (size_t m = 0; m < s->tally.member_count; m++) {
		s->tally.members[m].asked *= rest;
		s->tally.members[m].worked *= rest;
		s->tally.members[m].ended *= rest;
	}
}

/* Once in each hour. */
static bool choose(struct share_shadows *s, size_t rule_count, millis now)
{
	int64_t hour = now / HOUR + 1;
	size_t rule = s->tally.rule;

	if (hour == s->tally.hour)
		return false;
	if (s->tally.hour)
		rule = share_rule_choose(s->tally.strain, rule_count, s->tally.rule);
	s->tally.hour = hour;
	fade(s, rule_count);
	if (rule == s->tally.rule)
		return false;
	s->tally.was = s->tally.rule;
	s->tally.rule = rule;
	return true;
}

bool share_shadows_advance(struct share_shadows *s, const struct share_seen *seen)
{
	const struct share_view *v = seen->view;
	millis since = v->now - s->now;
	size_t rule_count;
	const struct share_rule *rules = share_rules(&rule_count);

	if (s->shadows && since >= 0 && since < (millis)v->member_count * GAP_PER_MEMBER)
		return false;
	if (since < 0 || since > STILL) {
		s->shadows = NULL;
		s->now = v->now;
	}
	if (!s->shadows || !is_laid_out(s, seen))
		lay_out(s, seen, rule_count);
	for (size_t i = 0; i < v->member_count; i++)
		ask(s, i, &seen->loads[i], v->now);
	for (size_t i = 0; i < rule_count; i++)
		run(s, seen, i, &rules[i]);
	s->now = v->now;
	return choose(s, rule_count, v->now);
}

const struct share_rule *share_shadows_rule(const struct share_shadows *s)
{
	size_t count;

	return &share_rules(&count)[s->tally.rule];
}

void share_shadows_recall(struct share_shadows *s, const struct share_tally *t)
{
	share_shadows_release(s);
	s->tally = *t;
	s->tally.members = arena_array(&s->arena, struct share_tally_member, t->member_count);
	if (t->member_count)
		memcpy(s->tally.members, t->members, t->member_count * sizeof *t->members);
}

void share_shadows_release(struct share_shadows *s)
{
	arena_release(&s->arena);
	arena_release(&s->pass);
	*s = (struct share_shadows){ 0 };
}

/* --- in words --- */

static void write_time(millis t, struct buf *out)
{
	if (t % MINUTE)
		buf_printf(out, "%lld s", (long long)(t / SECOND));
	else
		buf_printf(out, "%lld min", (long long)(t / MINUTE));
}

static void write_rule(const struct share_rule *r, struct buf *out)
{
	if (r->margin_permille)
		buf_printf(out, "%lld %% more than is needed, ", (long long)(r->margin_permille / 10));
	buf_text(out, "a need is kept in mind for ");
	write_time(r->hold, out);
	if (!r->spare_permille) {
		buf_text(out, ", idle engines sleep only for another");
	} else {
		buf_text(out, ", idle engines sleep after ");
		write_time(r->keep_alive, out);
		if (r->spare_permille < 1000)
			buf_printf(out, " where less than %lld %% of the slots stand empty",
				   (long long)(r->spare_permille / 10));
	}
	buf_printf(out, ", and first %s",
		   r->victim == VICTIM_AFFORDS ? "that of the pool that can best afford it" : "the one idle longest");
}

static void write_share(const struct share_tally *t, size_t rule, struct buf *out)
{
	int64_t hundredths = t->asked > 0 ? (int64_t)(t->late[rule] / t->asked * 10000 + .5) : 0;

	buf_printf(out, "%lld.%02lld %%", (long long)(hundredths / 100), (long long)(hundredths % 100));
}

void share_choice_write(const struct share_tally *t, struct buf *out)
{
	size_t count;
	const struct share_rule *rules = share_rules(&count);

	write_rule(&rules[t->rule], out);
	buf_text(out, "; of all requests ");
	write_share(t, t->rule, out);
	buf_text(out, " would have been late instead of ");
	write_share(t, t->was, out);
	buf_text(out, ", weighed by what each pool's objective allows");
}
