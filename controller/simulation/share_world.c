#include "controller/simulation/share_world.h"

#include "base/random.h"
#include "controller/policy/share_shadow.h"

#include <string.h>

enum {
	READING = 5000,	   /* ms between two readings */
	DECIDE_GAP = 100,  /* ms: decisions at events come no closer */
	FULL = 1000000000, /* load of a slot that serves as much as it can */
};

enum happening { HAPPENS_READING, HAPPENS_STOCK, HAPPENS_DECISION, HAPPENS_END_OF_REQUEST, HAPPENS_ENGINE };

struct happens {
	millis at;
	uint64_t order;
	enum happening what;
	size_t slot, engine;
};

struct place_of {
	size_t slot, engine;
};

struct member {
	const struct share_model *model;
	size_t next_arrival, next_start; /* of its trace; between them wait */
	int64_t running, unit;		 /* load of one request */
	int64_t need_seen;		 /* by the last decision */
	struct share_hold hold;
	LIST(struct place_of) routed;
};

struct slot {
	bool is_there;
	millis opened;
	struct share_slot view; /* engines included */
	int64_t load;
};

struct share {
	const struct share_setup *s;
	struct arena *a, pass;
	millis now, end, decided_at;
	bool is_due; /* a decision is asked for */
	struct member *members;
	struct share_member *views;
	struct share_times *times, *slow;
	int64_t *copies;
	size_t *order; /* members, room for share_place() */
	LIST(struct slot) slots;
	LIST(struct share_slot) shown;
	LIST(size_t) shown_as; /* slot behind each that is shown */
	LIST(struct happens) heap;
	uint64_t orders;
	size_t step; /* of the stock, the next one */
	struct random sleeps, wakes, failures, mends;
	struct share_outcome out;
	struct share_shadows shadows;
	struct share_load *loads;
	LIST(uint64_t) slot_keys; /* of those shown */
	bool lacks;		  /* the last decision left a need open */
};

/* --- the heap --- */

static bool is_before(const struct happens *a, const struct happens *b)
{
	return a->at != b->at ? a->at < b->at : a->order < b->order;
}

static void happens_add(struct share *w, struct happens h)
{
	h.order = w->orders++;
	LIST_ADD(w->a, &w->heap, h);
	struct happens *items = w->heap.items;
	for (size_t i = w->heap.count - 1; i > 0 && is_before(&items[i], &items[(i - 1) / 2]); i = (i - 1) / 2) {
		struct happens other = items[i];
		items[i] = items[(i - 1) / 2];
		items[(i - 1) / 2] = other;
	}
}

static struct happens happens_take(struct share *w)
{
	struct happens *items = w->heap.items, first = items[0];

	items[0] = items[--w->heap.count];
	for (size_t i = 0;;) {
		size_t least = i;
		for (size_t k = 2 * i + 1; k <= 2 * i + 2 && k < w->heap.count; k++)
			if (is_before(&items[k], &items[least]))
				least = k;
		if (least == i)
			return first;
		struct happens other = items[i];
		items[i] = items[least];
		items[least] = other;
		i = least;
	}
}

/* --- requests --- */

static struct share_engine *engine_at(struct share *w, struct place_of at)
{
	return &w->slots.items[at.slot].view.engines[at.engine];
}

static int64_t waiting(const struct member *m)
{
	return (int64_t)(m->next_arrival - m->next_start);
}

/* By when it arrived. */
static struct share_score *score_of(struct share *w, size_t member, const struct request *r)
{
	return r->arrival < w->s->warm_up ? &w->out.before[member] : &w->out.members[member];
}

static void count_wait(struct share *w, struct member *m, const struct request *r)
{
	struct share_score *score = score_of(w, (size_t)(m - w->members), r);
	millis wait = w->now - r->arrival;

	score->late += wait > m->model->truth.objective_wait;
	waits_add(&score->waits, wait, 1);
}

/* The engine in routing with least running that has room; false when none has. */
static bool find_room(struct share *w, const struct member *m, struct place_of *at)
{
	int64_t least = m->model->truth.slots;

	for (size_t i = 0; i < m->routed.count; i++) {
		const struct share_engine *e = engine_at(w, m->routed.items[i]);
		if (e->running >= least || w->slots.items[m->routed.items[i].slot].load + m->unit > FULL)
			continue;
		least = e->running;
		*at = m->routed.items[i];
	}
	return least < m->model->truth.slots;
}

static void start_waiting(struct share *w, struct member *m)
{
	struct place_of at = { 0 };

	while (waiting(m) && find_room(w, m, &at)) {
		const struct request *r = &m->model->trace->requests[m->next_start++];
		double service = queue_service(&m->model->truth, r->prompt_tokens, r->output_tokens);
		engine_at(w, at)->running++;
		w->slots.items[at.slot].load += m->unit;
		m->running++;
		count_wait(w, m, r);
		happens_add(w, (struct happens){ w->now + queue_service_ms(service), 0, HAPPENS_END_OF_REQUEST, at.slot,
						 at.engine });
	}
}

/* Engines for what runs and waits; one more than serve where requests wait and those that serve have no room for them
 * because of others on their slot. */
static int64_t need_of(const struct share *w, const struct member *m, const struct share_rule *rule)
{
	int64_t need = share_need(m->running + waiting(m), m->model->truth.slots, rule);
	int64_t serving = 0;

	if (!waiting(m) || need > (int64_t)m->routed.count)
		return need;
	for (size_t i = 0; i < w->slots.count; i++)
		for (size_t k = 0; w->slots.items[i].is_there && k < w->slots.items[i].view.engine_count; k++) {
			const struct share_engine *e = &w->slots.items[i].view.engines[k];
			if (&w->members[e->member] != m)
				continue;
			if (e->state == SHARE_WAKING)
				return need;
			serving += e->state == SHARE_AWAKE && e->is_in_routing;
		}
	return need > serving + 1 ? need : serving + 1;
}

static const struct share_rule *rule_now(const struct share *w)
{
	return w->s->rule ? w->s->rule : share_shadows_rule(&w->shadows);
}

/* A decision is due as soon as the gap allows. */
static void ask_for_decision(struct share *w)
{
	if (w->is_due)
		return;
	w->is_due = true;
	millis at = w->decided_at + DECIDE_GAP;
	happens_add(w, (struct happens){ .at = at > w->now ? at : w->now, .what = HAPPENS_DECISION });
}

static void arrive(struct share *w, struct member *m)
{
	const struct request *r = &m->model->trace->requests[m->next_arrival++];

	w->now = r->arrival;
	score_of(w, (size_t)(m - w->members), r)->requests++;
	start_waiting(w, m);
	if (waiting(m) && need_of(w, m, rule_now(w)) > m->need_seen)
		ask_for_decision(w);
}

static void end_request(struct share *w, struct place_of at)
{
	struct slot *s = &w->slots.items[at.slot];
	struct share_engine *e = &s->view.engines[at.engine];
	struct member *m = &w->members[e->member];

	s->load -= m->unit;
	m->running--;
	if (!--e->running) {
		e->idle_since = w->now;
		if (w->lacks || s->view.is_leaving)
			ask_for_decision(w);
	}
	for (size_t i = 0; i < s->view.engine_count; i++)
		if (s->view.engines[i].is_in_routing)
			start_waiting(w, &w->members[s->view.engines[i].member]);
}

/* --- slots --- */

static void leave_state(const struct share *w, size_t slot, const struct share_engine *e)
{
	if (w->s->note && w->now > e->since)
		w->s->note(w->s->user, &(struct share_span){ e->since, w->now, slot, e->member, e->state });
}

static void leave_states(const struct share *w, size_t slot)
{
	const struct share_slot *s = &w->slots.items[slot].view;

	for (size_t k = 0; k < s->engine_count; k++)
		leave_state(w, slot, &s->engines[k]);
}

static void slot_open(struct share *w)
{
	size_t i = 0;

	while (i < w->slots.count && w->slots.items[i].is_there)
		i++;
	if (i == w->slots.count)
		LIST_ADD(w->a, &w->slots, ((struct slot){ 0 }));
	size_t count = share_place(w->views, w->s->model_count, w->s->size, w->copies, w->order);
	struct share_engine *engines = arena_array(w->a, struct share_engine, count);
	for (size_t k = 0; k < count; k++)
		engines[k] = (struct share_engine){ .member = w->order[k], .since = w->now, .idle_since = w->now };
	w->slots.items[i] = (struct slot){ .is_there = true,
					   .opened = w->now,
					   .view = { .gpu_mib = w->s->size.gpu_mib,
						     .host_mib = w->s->size.host_mib,
						     .engines = engines,
						     .engine_count = count,
						     .cleared_for = SHARE_NONE } };
}

static int64_t slot_running(const struct slot *s)
{
	int64_t running = 0;

	for (size_t k = 0; k < s->view.engine_count; k++)
		running += s->view.engines[k].running;
	return running;
}

static bool is_at_rest(const struct slot *s)
{
	for (size_t k = 0; k < s->view.engine_count; k++)
		if (s->view.engines[k].state == SHARE_WAKING || s->view.engines[k].state == SHARE_FALLING_ASLEEP ||
		    s->view.engines[k].state == SHARE_BROKEN)
			return false;
	return !slot_running(s);
}

/* Slots that leave go once they are at rest. */
static void close_empty(struct share *w)
{
	for (size_t i = 0; i < w->slots.count; i++) {
		struct slot *s = &w->slots.items[i];
		if (!s->is_there || !s->view.is_leaving || !is_at_rest(s))
			continue;
		s->is_there = false;
		leave_states(w, i);
	}
}

/* Whether a pool would be left without an engine on a slot that stays. */
static bool holds_a_last(const struct share *w, const struct slot *s)
{
	for (size_t k = 0; k < s->view.engine_count; k++)
		if (w->copies[s->view.engines[k].member] <= 1)
			return true;
	return false;
}

/* Of those that leave: any. Of those that stay and whose engines all stand elsewhere, too: the one with least running,
 * the latest of equals. NULL when there is none. */
static struct slot *find_slot(struct share *w, bool leaving)
{
	struct slot *best = NULL;

	for (size_t i = 0; i < w->slots.count; i++) {
		struct slot *s = &w->slots.items[i];
		if (!s->is_there || s->view.is_leaving != leaving || (!leaving && holds_a_last(w, s)))
			continue;
		if (!best || slot_running(s) <= slot_running(best))
			best = s;
	}
	return best;
}

static void set_leaving(struct share *w, struct slot *s, bool is_leaving)
{
	s->view.is_leaving = is_leaving;
	for (size_t k = 0; k < s->view.engine_count; k++)
		w->copies[s->view.engines[k].member] += is_leaving ? -1 : 1;
}

static void set_stock(struct share *w, int64_t wanted)
{
	int64_t there = 0;

	for (size_t i = 0; i < w->slots.count; i++)
		there += w->slots.items[i].is_there && !w->slots.items[i].view.is_leaving;
	for (; there < wanted; there++) {
		struct slot *s = find_slot(w, true);
		if (s)
			set_leaving(w, s, false);
		else
			slot_open(w);
	}
	for (struct slot *s = find_slot(w, false); there > wanted && s; there--, s = find_slot(w, false))
		set_leaving(w, s, true);
	close_empty(w);
	ask_for_decision(w);
}

static void next_step(struct share *w)
{
	set_stock(w, w->s->stock[w->step++].slots);
	if (w->step < w->s->stock_count)
		happens_add(w, (struct happens){ .at = w->s->stock[w->step].at, .what = HAPPENS_STOCK });
}

/* --- decisions --- */

static millis draw(struct random *r, struct quantiles q)
{
	millis d = q.p50 > 0 ? (millis)random_lognormal(r, (double)q.p50, (double)(q.p95 > q.p50 ? q.p95 : q.p50)) : 0;

	return d > 1 ? d : 1;
}

static struct share_view see(struct share *w)
{
	const struct share_rule *rule = rule_now(w);

	for (size_t i = 0; i < w->s->model_count; i++) {
		struct member *m = &w->members[i];
		struct share_member *v = &w->views[i];
		m->need_seen = v->need = need_of(w, m, rule);
		v->need_held = share_hold(&m->hold, v->need, w->now, rule->hold);
		v->waiting = waiting(m);
		v->late = w->out.before[i].late + w->out.members[i].late;
		v->allowed_milli = (w->out.before[i].requests + w->out.members[i].requests) * m->model->late_ppm / 1000;
	}
	w->shown.count = w->shown_as.count = 0;
	for (size_t i = 0; i < w->slots.count; i++)
		if (w->slots.items[i].is_there) {
			LIST_ADD(w->a, &w->shown, w->slots.items[i].view);
			LIST_ADD(w->a, &w->shown_as, i);
		}
	return (struct share_view){ .now = w->now,
				    .slots = w->shown.items,
				    .slot_count = w->shown.count,
				    .members = w->views,
				    .member_count = w->s->model_count,
				    .times = w->times,
				    .rule = rule };
}

static void obey(struct share *w, size_t slot, const struct share_order *o)
{
	w->slots.items[slot].view.cleared_for = o->cleared_for;
	if (o->verb == SHARE_KEEP)
		return;
	struct share_engine *e = &w->slots.items[slot].view.engines[o->engine];
	const struct share_model *m = &w->s->models[e->member];
	bool wakes = o->verb == SHARE_WAKE;
	millis takes = wakes ? draw(&w->wakes, m->wake) : draw(&w->sleeps, m->sleep);

	leave_state(w, slot, e);
	e->state = wakes ? SHARE_WAKING : SHARE_FALLING_ASLEEP;
	e->since = w->now;
	*(wakes ? &w->out.wakes : &w->out.sleeps) += 1;
	happens_add(w, (struct happens){ w->now + takes, 0, HAPPENS_ENGINE, slot, o->engine });
}

static void route(struct share *w, const struct share_plan *plan)
{
	for (size_t i = 0; i < w->s->model_count; i++)
		w->members[i].routed.count = 0;
	for (size_t i = 0; i < w->shown_as.count; i++) {
		struct share_slot *s = &w->slots.items[w->shown_as.items[i]].view;
		for (size_t k = 0; k < s->engine_count; k++) {
			s->engines[k].is_in_routing = plan->is_in_routing[i][k];
			if (plan->is_in_routing[i][k])
				LIST_ADD(w->a, &w->members[s->engines[k].member].routed,
					 ((struct place_of){ w->shown_as.items[i], k }));
		}
	}
}

/* A slot's number goes to another once it is gone: its place and when it came are its key. */
static void advance_shadows(struct share *w, const struct share_view *v)
{
	w->slot_keys.count = 0;
	for (size_t i = 0; i < v->slot_count; i++) {
		size_t place = w->shown_as.items[i];
		LIST_ADD(w->a, &w->slot_keys, (uint64_t)w->slots.items[place].opened << 20 | place);
	}
	for (size_t i = 0; i < w->s->model_count; i++) {
		const struct member *m = &w->members[i];
		w->loads[i] = (struct share_load){ .key = i,
						   .sequences = m->model->truth.slots,
						   .running = m->running,
						   .waiting = waiting(m),
						   .arrived = (int64_t)m->next_arrival,
						   .wait = m->model->truth.objective_wait,
						   .late_ppm = m->model->late_ppm };
	}
	share_shadows_advance(&w->shadows, &(struct share_seen){ v, w->loads, w->slow, w->slot_keys.items });
}

static void decide(struct share *w)
{
	close_empty(w);
	struct share_view v = see(w);
	struct share_plan plan = share_decide(&v, &w->pass);

	if (w->s->look)
		w->s->look(w->s->user, &v, &plan);
	w->out.decisions++;
	w->decided_at = w->now;
	route(w, &plan);
	for (size_t i = 0; i < v.slot_count; i++)
		obey(w, w->shown_as.items[i], &plan.orders[i]);
	w->lacks = false;
	for (size_t i = 0; i < w->s->model_count; i++) {
		start_waiting(w, &w->members[i]);
		w->lacks |= waiting(&w->members[i]) > 0;
	}
	if (!w->s->rule)
		advance_shadows(w, &v);
	arena_clear(&w->pass);
}

/* A sleep, a wake or a repair is over. */
static void engine_happens(struct share *w, struct place_of at)
{
	struct share_engine *e = engine_at(w, at);
	bool fails = e->state == SHARE_WAKING && w->s->wake_failed_ppm > 0 &&
		     random_uniform(&w->failures) * 1e6 < (double)w->s->wake_failed_ppm;

	leave_state(w, at.slot, e);
	e->state = fails ? SHARE_BROKEN : e->state == SHARE_WAKING ? SHARE_AWAKE : SHARE_ASLEEP;
	e->since = e->idle_since = w->now;
	w->out.failed_wakes += fails;
	if (fails)
		happens_add(w, (struct happens){ w->now + draw(&w->mends, w->s->mend), 0, HAPPENS_ENGINE, at.slot,
						 at.engine });
	ask_for_decision(w);
}

static void happen(struct share *w, const struct happens *h)
{
	switch (h->what) {
	case HAPPENS_READING:
		decide(w);
		happens_add(w, (struct happens){ .at = w->now + READING, .what = HAPPENS_READING });
		break;
	case HAPPENS_DECISION:
		w->is_due = false;
		decide(w);
		break;
	case HAPPENS_STOCK:
		next_step(w);
		break;
	case HAPPENS_END_OF_REQUEST:
		end_request(w, (struct place_of){ h->slot, h->engine });
		break;
	case HAPPENS_ENGINE:
		engine_happens(w, (struct place_of){ h->slot, h->engine });
		break;
	}
}

/* --- the run --- */

static void meter(struct share *w, millis until)
{
	millis from = w->now > w->s->warm_up ? w->now : w->s->warm_up;

	for (size_t i = 0; until > from && i < w->slots.count; i++)
		w->out.slot_ms += w->slots.items[i].is_there ? until - from : 0;
}

/* The member whose request comes next; SHARE_NONE when none is left. */
static size_t next_member(const struct share *w)
{
	size_t best = SHARE_NONE;
	millis first = 0;

	for (size_t i = 0; i < w->s->model_count; i++) {
		const struct member *m = &w->members[i];
		const struct trace *t = m->model->trace;
		if (m->next_arrival < t->request_count &&
		    (best == SHARE_NONE || t->requests[m->next_arrival].arrival < first)) {
			best = i;
			first = t->requests[m->next_arrival].arrival;
		}
	}
	return best;
}

static void run(struct share *w)
{
	size_t next = next_member(w);

	while (w->now < w->end) {
		millis arrival =
			next == SHARE_NONE
				? w->end
				: w->members[next].model->trace->requests[w->members[next].next_arrival].arrival;
		millis at = w->heap.items[0].at;
		bool is_arrival = next != SHARE_NONE && arrival < at;
		meter(w, is_arrival ? arrival : at < w->end ? at : w->end);
		if (!is_arrival && at >= w->end)
			return;
		if (is_arrival) {
			arrive(w, &w->members[next]);
			next = next_member(w);
		} else {
			struct happens h = happens_take(w);
			w->now = h.at;
			happen(w, &h);
		}
	}
}

/* What never started and has waited too long. */
static void count_left(struct share *w)
{
	for (size_t i = 0; i < w->s->model_count; i++) {
		struct member *m = &w->members[i];
		for (size_t k = m->next_start; k < m->next_arrival; k++) {
			const struct request *r = &m->model->trace->requests[k];
			if (w->now - r->arrival > m->model->truth.objective_wait)
				score_of(w, i, r)->late++;
		}
	}
}

static void begin(struct share *w)
{
	size_t n = w->s->model_count;

	w->members = arena_array(w->a, struct member, n);
	w->views = arena_array(w->a, struct share_member, n);
	w->times = arena_array(w->a, struct share_times, n);
	w->slow = arena_array(w->a, struct share_times, n);
	w->loads = arena_array(w->a, struct share_load, n);
	w->copies = arena_array(w->a, int64_t, n);
	w->order = arena_array(w->a, size_t, n);
	w->out.members = arena_array(w->a, struct share_score, n);
	w->out.before = arena_array(w->a, struct share_score, n);
	for (size_t i = 0; i < n; i++) {
		const struct share_model *m = &w->s->models[i];
		w->members[i] = (struct member){ .model = m, .unit = FULL / m->truth.slots };
		w->views[i] = (struct share_member){ .gpu_awake_mib = m->gpu_awake_mib,
						     .gpu_asleep_mib = m->gpu_asleep_mib,
						     .host_asleep_mib = m->host_asleep_mib,
						     .peak = m->peak };
		w->times[i] = (struct share_times){ m->sleep.p50, m->wake.p50 };
		w->slow[i] = (struct share_times){ m->sleep.p95, m->wake.p95 };
		w->end = m->trace->length > w->end ? m->trace->length : w->end;
	}
}

struct share_outcome share_simulate(const struct share_setup *s, struct arena *a)
{
	struct share w = { .s = s,
			   .a = a,
			   .decided_at = -DECIDE_GAP,
			   .sleeps = random_stream(s->seed, "share-sleeps"),
			   .wakes = random_stream(s->seed, "share-wakes"),
			   .failures = random_stream(s->seed, "share-failures"),
			   .mends = random_stream(s->seed, "share-mends") };

	begin(&w);
	next_step(&w);
	w.out.is_whole = true;
	for (size_t i = 0; i < s->model_count; i++)
		w.out.is_whole &= w.copies[i] > 0;
	happens_add(&w, (struct happens){ .what = HAPPENS_READING });
	run(&w);
	w.now = w.end;
	for (size_t i = 0; i < w.slots.count; i++)
		if (w.slots.items[i].is_there)
			leave_states(&w, i);
	count_left(&w);
	share_shadows_release(&w.shadows);
	arena_release(&w.pass);
	return w.out;
}
