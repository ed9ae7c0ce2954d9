#include "controller/simulation/share_trial.h"

#include <string.h>

/* --- need --- */

static size_t at_step(millis t)
{
	return (size_t)(t / SHARE_STEP);
}

/* Ends of the requests, sorted, on an unlimited fleet. */
static struct request *ends_of(const struct share_model *m, struct arena *a)
{
	const struct trace *t = m->trace;
	struct request *ends = arena_array(a, struct request, t->request_count + 1);

	for (size_t i = 0; i < t->request_count; i++) {
		const struct request *r = &t->requests[i];
		double service = queue_service(&m->truth, r->prompt_tokens, r->output_tokens);
		ends[i].arrival = r->arrival + queue_service_ms(service);
	}
	requests_sort(ends, t->request_count);
	return ends;
}

/* Requests that run, followed over arrivals and ends. */
struct running {
	const struct trace *trace;
	const struct request *ends;
	size_t begun, ended;
	millis now;
};

/* Their sum over the time until then, in milliseconds. */
static int64_t pass(struct running *r, millis until)
{
	int64_t sum = 0;

	while (r->now < until) {
		millis next = until;
		if (r->begun < r->trace->request_count && r->trace->requests[r->begun].arrival < next)
			next = r->trace->requests[r->begun].arrival;
		if (r->ended < r->begun && r->ends[r->ended].arrival < next)
			next = r->ends[r->ended].arrival;
		sum += (int64_t)(r->begun - r->ended) * (next - r->now);
		r->now = next;
		while (r->begun < r->trace->request_count && r->trace->requests[r->begun].arrival <= next &&
		       next < until)
			r->begun++;
		while (r->ended < r->begun && r->ends[r->ended].arrival <= next && next < until)
			r->ended++;
	}
	return sum;
}

static struct share_profile profile_of(const struct share_model *m, size_t steps, struct arena *a)
{
	CLEANUP(arena_release) struct arena own = { 0 };
	struct running r = { .trace = m->trace, .ends = ends_of(m, &own) };
	struct share_profile p = { arena_array(a, int32_t, steps), arena_array(a, int32_t, steps) };

	for (size_t i = 0; i < steps; i++) {
		int64_t sum = pass(&r, (millis)(i + 1) * SHARE_STEP);
		p.load[i] = (int32_t)(sum * 1000 / (SHARE_STEP * m->truth.slots));
		p.engines[i] = !sum ? 0 : p.load[i] > 1000 ? p.load[i] : 1000;
	}
	return p;
}

static int64_t peak_of(const struct share_profile *p, size_t steps)
{
	int32_t peak = 1000;

	for (size_t i = 0; i < steps; i++)
		peak = p->engines[i] > peak ? p->engines[i] : peak;
	return (peak + 999) / 1000;
}

struct share_case share_case_of(const struct simulation *alone, const struct share_engine_spec *spec, struct arena *a)
{
	const struct fleet_spec *fleet = alone->world.fleet;
	struct share_case c = { .alone = alone,
				.spec = spec,
				.models = arena_array(a, struct share_model, fleet->pool_count),
				.profiles = arena_array(a, struct share_profile, fleet->pool_count) };
	millis length = 0;

	for (size_t i = 0; i < fleet->pool_count; i++)
		length = alone->world.traces[i]->length > length ? alone->world.traces[i]->length : length;
	c.steps = at_step(length) + 1;
	for (size_t i = 0; i < fleet->pool_count; i++) {
		const struct pool_spec *p = &fleet->pools[i];
		struct share_model *m = &c.models[i];
		*m = (struct share_model){ .name = p->name,
					   .truth = queue_truth_of(p, &alone->world.spec->pools[i]),
					   .late_ppm = p->objective_late_ppm,
					   .gpu_awake_mib = spec->gpu_awake_mib,
					   .gpu_asleep_mib = spec->gpu_asleep_mib,
					   .host_asleep_mib = spec->host_asleep_mib,
					   .sleep = spec->sleep,
					   .wake = spec->wake,
					   .trace = alone->world.traces[i] };
		c.profiles[i] = profile_of(m, c.steps, a);
		m->peak = peak_of(&c.profiles[i], c.steps);
	}
	return c;
}

/* Engines that may be awake together on a slot that holds one of each of so many pools. */
static int64_t awake_on_slot(const struct share_case *c, size_t pools)
{
	const struct share_engine_spec *s = c->spec;
	int64_t fit = s->host_asleep_mib > 0 ? s->slot.host_mib / s->host_asleep_mib : (int64_t)pools;
	int64_t held = fit < (int64_t)pools ? fit : (int64_t)pools;
	int64_t extra = s->gpu_awake_mib - s->gpu_asleep_mib;
	int64_t awake = extra > 0 ? (s->slot.gpu_mib - held * s->gpu_asleep_mib) / extra : held;

	awake = awake > held ? held : awake;
	return awake > 1 ? awake : 1;
}

struct slot_need {
	int64_t *engines, *load;
};

static void add_profile(struct slot_need *n, const struct share_case *c, size_t pool, millis hold)
{
	struct share_hold held = { 0 };

	for (size_t i = 0; i < c->steps; i++) {
		n->engines[i] += share_hold(&held, c->profiles[pool].engines[i], (millis)i * SHARE_STEP, hold);
		n->load[i] += c->profiles[pool].load[i];
	}
}

static struct slot_need need_of(const struct share_case *c, const struct share_group *g, millis hold, struct arena *a)
{
	struct slot_need n = { arena_array(a, int64_t, c->steps), arena_array(a, int64_t, c->steps) };

	for (size_t i = 0; i < g->count; i++)
		add_profile(&n, c, g->pools[i], hold);
	return n;
}

/* The smallest number of slots that is enough in `permille` of the first `steps`. */
static int64_t quantile(const struct slot_need *n, size_t steps, int64_t awake, int64_t permille)
{
	CLEANUP(arena_release) struct arena own = { 0 };
	int64_t most = 0, seen = 0;

	for (size_t i = 0; i < steps; i++) {
		int64_t slots = share_slots_for(n->engines[i], n->load[i], awake);
		most = slots > most ? slots : most;
	}
	int64_t *counts = arena_array(&own, int64_t, (size_t)most + 1);
	for (size_t i = 0; i < steps; i++)
		counts[share_slots_for(n->engines[i], n->load[i], awake)]++;
	for (int64_t slots = 0; slots < most; slots++) {
		seen += counts[slots];
		if (seen * 1000 >= permille * (int64_t)steps)
			return slots;
	}
	return most;
}

static void view_members(const struct share_case *c, const struct share_group *g, struct share_member *out)
{
	for (size_t i = 0; i < g->count; i++) {
		const struct share_model *m = &c->models[g->pools[i]];
		out[i] = (struct share_member){ .gpu_awake_mib = m->gpu_awake_mib,
						.gpu_asleep_mib = m->gpu_asleep_mib,
						.host_asleep_mib = m->host_asleep_mib,
						.peak = m->peak };
	}
}

int64_t share_fewest_slots(const struct share_case *c, const struct share_group *g)
{
	CLEANUP(arena_release) struct arena own = { 0 };
	struct share_member *members = arena_array(&own, struct share_member, g->count);
	int64_t *copies = arena_array(&own, int64_t, g->count);
	size_t *held = arena_array(&own, size_t, g->count), placed = 0;
	int64_t slots = 0;

	view_members(c, g, members);
	for (; placed < g->count; slots++) {
		size_t count = share_place(members, g->count, c->spec->slot, copies, held);
		size_t before = placed;
		for (size_t i = 0; i < count; i++)
			placed += copies[held[i]] == 1;
		if (placed == before)
			return 0;
	}
	return slots;
}

/* --- which belong together --- */

struct proposal {
	struct share_group group;
	struct slot_need need;
	int64_t slots;
};

struct proposals {
	const struct share_case *c;
	struct arena own;
	struct proposal *items;
	size_t count;
	int64_t *saves; /* [i * pools + j], i < j */
};

static int64_t saves(struct proposals *p, size_t i, size_t j)
{
	CLEANUP(arena_release) struct arena own = { 0 };
	const struct share_case *c = p->c;
	size_t count = p->items[i].group.count + p->items[j].group.count;
	struct slot_need both = { arena_array(&own, int64_t, c->steps), arena_array(&own, int64_t, c->steps) };

	if (!p->items[i].group.count || !p->items[j].group.count ||
	    (int64_t)count * c->spec->host_asleep_mib > c->spec->slot.host_mib ||
	    (int64_t)count * c->spec->gpu_asleep_mib + c->spec->gpu_awake_mib - c->spec->gpu_asleep_mib >
		    c->spec->slot.gpu_mib)
		return 0;
	for (size_t k = 0; k < c->steps; k++) {
		both.engines[k] = p->items[i].need.engines[k] + p->items[j].need.engines[k];
		both.load[k] = p->items[i].need.load[k] + p->items[j].need.load[k];
	}
	return p->items[i].slots + p->items[j].slots - quantile(&both, c->steps, awake_on_slot(c, count), 990);
}

static void weigh(struct proposals *p, size_t i)
{
	for (size_t k = 0; k < p->count; k++)
		if (k != i)
			p->saves[(k < i ? k : i) * p->count + (k < i ? i : k)] = saves(p, k < i ? k : i, k < i ? i : k);
}

static void merge(struct proposals *p, size_t i, size_t j)
{
	struct share_group *a = &p->items[i].group, *b = &p->items[j].group;

	for (size_t k = 0; k < b->count; k++)
		a->pools[a->count++] = b->pools[k];
	for (size_t k = 0; k < p->c->steps; k++) {
		p->items[i].need.engines[k] += p->items[j].need.engines[k];
		p->items[i].need.load[k] += p->items[j].need.load[k];
	}
	b->count = 0;
	p->items[i].slots = quantile(&p->items[i].need, p->c->steps, awake_on_slot(p->c, a->count), 990);
	weigh(p, i);
	weigh(p, j);
}

static bool merge_best(struct proposals *p)
{
	size_t best = 0, count = p->count * p->count;

	for (size_t i = 1; i < count; i++)
		if (p->saves[i] > p->saves[best])
			best = i;
	if (p->saves[best] <= 0)
		return false;
	merge(p, best / p->count, best % p->count);
	return true;
}

/* An idle pool needs a slot all the same: alone it keeps an engine. */
static int64_t slots_alone(const struct proposals *p, size_t i)
{
	int64_t slots = quantile(&p->items[i].need, p->c->steps, 1, 990);

	return slots > 1 ? slots : 1;
}

size_t share_propose(const struct share_case *c, struct arena *a, struct share_group **out)
{
	size_t pools = c->alone->world.fleet->pool_count, kept = 0;
	struct proposals p = { .c = c, .count = pools };

	p.items = arena_array(&p.own, struct proposal, pools);
	p.saves = arena_array(&p.own, int64_t, pools * pools);
	for (size_t i = 0; i < pools; i++) {
		p.items[i].group = (struct share_group){ arena_array(a, size_t, pools), 1 };
		p.items[i].group.pools[0] = i;
		p.items[i].need = need_of(c, &p.items[i].group, MINUTE, &p.own);
		p.items[i].slots = slots_alone(&p, i);
	}
	for (size_t i = 0; i < pools; i++)
		for (size_t j = i + 1; j < pools; j++)
			p.saves[i * pools + j] = saves(&p, i, j);
	while (merge_best(&p))
		;
	*out = arena_array(a, struct share_group, pools);
	for (size_t i = 0; i < pools; i++)
		if (p.items[i].group.count)
			(*out)[kept++] = p.items[i].group;
	arena_release(&p.own);
	return kept;
}

struct share_group share_of_all(const struct share_case *c, struct arena *a)
{
	struct share_group g = { .count = c->alone->world.fleet->pool_count };

	g.pools = arena_array(a, size_t, g.count);
	for (size_t i = 0; i < g.count; i++)
		g.pools[i] = i;
	return g;
}

/* --- the stock --- */

/* How a stock is sized: how long a need for an engine is held, and how much later than its members' requests slots may
 * come, as most requests find their engine awake; or a fixed number, enough at that share of the time before the scored
 * part. */
struct share_sizing {
	millis hold;
	int64_t late_factor, fixed_permille; /* fixed_permille 0: the policy sizes it */
};

enum { PIECE = 60000, TOKEN = 10 }; /* ms: a slot is asked for in pieces, so that each weighs by its time */

static void add_piece(struct request *out, size_t *count, millis from, millis until)
{
	if (until > from)
		out[(*count)++] = (struct request){ from, 0, (int32_t)((until - from) / TOKEN), -1 };
}

/* The need for slots as requests of which each keeps a slot busy. */
static struct trace stock_trace(const struct share_case *c, const struct share_group *g, millis hold, struct arena *a)
{
	struct slot_need n = need_of(c, g, hold, a);
	int64_t awake = awake_on_slot(c, g->count), most = quantile(&n, c->steps, awake, 1000), level = 0;
	millis *since = arena_array(a, millis, (size_t)most + 1);
	size_t count = 0, room = 1;

	for (size_t i = 0; i < c->steps; i++)
		room += (size_t)share_slots_for(n.engines[i], n.load[i], awake);
	struct trace t = { .requests = arena_array(a, struct request, room) };
	for (size_t i = 0; i <= c->steps; i++) {
		millis now = (millis)i * SHARE_STEP;
		int64_t next = i < c->steps ? share_slots_for(n.engines[i], n.load[i], awake) : 0;
		for (int64_t k = 0; k < level; k++)
			if (k >= next || now - since[k] >= PIECE) {
				add_piece(t.requests, &count, since[k], now);
				since[k] = now;
			}
		for (int64_t k = level; k < next; k++)
			since[k] = now;
		level = next;
	}
	t.request_count = count;
	t.length = (millis)c->steps * SHARE_STEP;
	requests_sort(t.requests, count);
	return t;
}

struct recorder {
	struct arena *a;
	LIST(struct stock_step) steps;
	millis warm_up, until;
	struct share_stock *out;
};

static bool take_tick(void *user, const struct tick_view *v, struct error *e)
{
	struct recorder *r = user;
	int64_t ready = v->results[0].ready;
	millis interval = v->snapshot->interval;

	(void)e;
	if (!r->steps.count || r->steps.items[r->steps.count - 1].slots != ready)
		LIST_ADD(r->a, &r->steps, ((struct stock_step){ r->steps.count ? v->end : 0, ready }));
	r->out->most = ready > r->out->most ? ready : r->out->most;
	if (v->end > r->warm_up)
		r->out->ready_ms += ready * interval;
	return true;
}

/* The first pool, with slots for sequences. */
static struct pool_spec stock_pool(const struct share_case *c, struct share_sizing sizing)
{
	static const int64_t LATE_MOST = 500000;
	struct pool_spec p = c->alone->world.fleet->pools[0];

	p.name = "share";
	p.max_sequences = 1;
	p.prefill_tokens_per_second = 0;
	p.inter_token_latency_us = TOKEN * 1000;
	p.tokens_per_second = 1000 / TOKEN;
	p.objective_late_ppm *= sizing.late_factor;
	if (p.objective_late_ppm > LATE_MOST)
		p.objective_late_ppm = LATE_MOST;
	return p;
}

/* Its groups; the first keeps what every member needs to have an engine somewhere. */
static struct group_spec *stock_groups(const struct share_case *c, const struct share_group *g, struct arena *a)
{
	const struct fleet_spec *fleet = c->alone->world.fleet;
	struct group_spec *groups = arena_array(a, struct group_spec, fleet->group_count), *first;

	memcpy(groups, fleet->groups, fleet->group_count * sizeof *groups);
	first = &groups[fleet->pools[0].groups[0]];
	int64_t fewest = share_fewest_slots(c, g);
	if (first->min_nodes < fewest)
		first->min_nodes = fewest;
	return groups;
}

static millis scored(const struct share_case *c)
{
	millis length = 0;

	for (size_t i = 0; i < c->alone->world.fleet->pool_count; i++)
		length = c->models[i].trace->length > length ? c->models[i].trace->length : length;
	return length > c->alone->warm_up ? length - c->alone->warm_up : 0;
}

struct share_stock share_stock_fixed(const struct share_case *c, int64_t slots, struct arena *a)
{
	struct share_stock s = { .steps = arena_new(a, struct stock_step), .count = 1, .most = slots };

	s.steps[0].slots = slots;
	s.billed_ms = s.ready_ms = slots * scored(c);
	s.billed_before_ms = slots * c->alone->warm_up;
	return s;
}

/* What was enough before the scored part. */
static struct share_stock stock_seen(const struct share_case *c, const struct share_group *g,
				     struct share_sizing sizing, struct arena *a)
{
	struct slot_need n = need_of(c, g, sizing.hold, a);
	size_t steps = c->alone->warm_up > 0 ? at_step(c->alone->warm_up) : c->steps;
	int64_t slots = quantile(&n, steps, awake_on_slot(c, g->count), sizing.fixed_permille);
	int64_t fewest = share_fewest_slots(c, g);

	return share_stock_fixed(c, slots > fewest ? slots : fewest, a);
}

/* The policy of `alone` sizes it, with node groups and objective of the first pool. */
static bool size_stock(const struct share_case *c, const struct share_group *g, struct share_sizing sizing,
		       struct arena *a, struct share_stock *out, struct error *e)
{
	CLEANUP(arena_release) struct arena own = { 0 };
	const struct trace trace = stock_trace(c, g, sizing.hold, &own), *traces[] = { &trace };
	const struct pool_spec pool = stock_pool(c, sizing);
	const struct fleet_spec only = { .groups = stock_groups(c, g, &own),
					 .group_count = c->alone->world.fleet->group_count,
					 .pools = &pool,
					 .pool_count = 1 };
	struct share_stock stock = { 0 };
	struct recorder recorder = { .a = a, .warm_up = c->alone->warm_up, .out = &stock };
	const struct observer observer = { take_tick, &recorder };
	const struct world_spec world = world_spec_default(&only, &own);
	struct simulation s = *c->alone;
	struct run_result result;

	if (sizing.fixed_permille) {
		*out = stock_seen(c, g, sizing, a);
		return true;
	}
	s.world.fleet = &only;
	s.world.spec = &world;
	s.world.traces = traces;
	s.observers = &observer;
	s.observer_count = 1;
	if (!simulate(&s, &own, &result, e))
		return false;
	stock.steps = recorder.steps.items;
	stock.count = recorder.steps.count;
	int64_t gpus = pool.gpus_per_replica > 0 ? pool.gpus_per_replica : 1;
	stock.billed_ms = result.pools[0].scored.gpu_ms / gpus;
	stock.billed_before_ms = result.pools[0].whole.gpu_ms / gpus - stock.billed_ms;
	*out = stock;
	return true;
}

/* --- the slots --- */

static struct share_setup setup_of(const struct share_case *c, const struct share_group *g,
				   const struct share_stock *stock, struct arena *a)
{
	struct share_model *models = arena_array(a, struct share_model, g->count);

	for (size_t i = 0; i < g->count; i++)
		models[i] = c->models[g->pools[i]];
	return (struct share_setup){ .models = models,
				     .model_count = g->count,
				     .size = c->spec->slot,
				     .stock = stock->steps,
				     .stock_count = stock->count,
				     .wake_failed_ppm = c->spec->wake_failed_ppm,
				     .mend = c->spec->mend,
				     .warm_up = c->alone->warm_up,
				     .seed = c->alone->world.seed };
}

/* `aim`: the part of what is allowed that it may use. */
static bool member_keeps(const struct share_model *m, const struct share_score *s, double aim)
{
	return (double)s->late * 1e6 <= aim * (double)m->late_ppm * (double)s->requests;
}

/* Slots that stay longer than the stock says are billed, too. */
static struct share_result result_of(const struct share_setup *s, const struct share_stock *stock, struct arena *a)
{
	struct share_result r = { .outcome = share_simulate(s, a) };
	int64_t longer = r.outcome.slot_ms - stock->ready_ms;

	r.slot_ms = stock->billed_ms + (longer > 0 ? longer : 0);
	for (size_t i = 0; i < s->model_count; i++) {
		r.requests += r.outcome.members[i].requests;
		r.late += r.outcome.members[i].late;
		r.members_met += member_keeps(&s->models[i], &r.outcome.members[i], 1);
	}
	return r;
}

struct share_result share_run_rule(const struct share_case *c, const struct share_group *g,
				   const struct share_stock *stock, const struct share_rule *rule, struct arena *a)
{
	struct share_setup s = setup_of(c, g, stock, a);

	s.rule = rule;
	return result_of(&s, stock, a);
}

static struct share_result run_with_shadows(const struct share_case *c, const struct share_group *g,
					    const struct share_stock *stock, struct arena *a)
{
	struct share_setup s = setup_of(c, g, stock, a);

	s.note = c->note;
	s.user = c->user;
	return result_of(&s, stock, a);
}

/* Whether scores keep the objectives. `is_early`: as a guess at what is to come, with something to spare, and one late
 * request says nothing of a pool. */
static bool keeps(const struct share_case *c, const struct share_group *g, const struct share_score *scores,
		  bool is_early)
{
	static const double AIM = .8, AIM_EACH = .9;
	double allowed = 0, aim = is_early ? AIM : 1;
	int64_t late = 0;
	size_t met = 0;

	for (size_t i = 0; i < g->count; i++) {
		const struct share_model *m = &c->models[g->pools[i]];
		allowed += (double)m->late_ppm * (double)scores[i].requests;
		late += scores[i].late;
		met += member_keeps(m, &scores[i], is_early ? AIM_EACH : 1) || (is_early && scores[i].late <= 1);
	}
	return (double)late * 1e6 <= aim * allowed && met * 10 >= g->count * 9;
}

bool share_keeps(const struct share_case *c, const struct share_group *g, const struct share_result *r)
{
	return keeps(c, g, r->outcome.members, false);
}

/* The first, which holds most, is taken where none keeps the objectives. What was enough for less than a day says
 * nothing of the next. */
static const struct share_sizing sizings[] = {
	{ HOUR, 1, 0 },		 { 10 * MINUTE, 1, 0 }, { 10 * MINUTE, 20, 0 },
	{ MINUTE, 1, 0 },	 { MINUTE, 20, 0 },	{ 10 * SECOND, 1, 0 },
	{ 10 * SECOND, 20, 0 },	 { 0, 1, 0 },		{ 0, 20, 0 },
	{ MINUTE, 1, 1000 },	 { MINUTE, 1, 990 },	{ 10 * SECOND, 1, 1000 },
	{ 10 * SECOND, 1, 990 },
};

/* What it held before the scored part, or on all of it; ABSENT where it did not keep the objectives there. By one rule
 * for all sizings. */
static bool weigh_sizing(const struct share_case *c, const struct share_group *g, struct share_sizing sizing,
			 int64_t *held, struct error *e)
{
	CLEANUP(arena_release) struct arena own = { 0 };
	bool is_tuned = c->alone->warm_up > 0;
	struct share_stock stock;
	size_t count;

	if (!size_stock(c, g, sizing, &own, &stock, e))
		return false;
	struct share_result r = share_run_rule(c, g, &stock, share_rules(&count), &own);
	*held = !keeps(c, g, is_tuned ? r.outcome.before : r.outcome.members, true) ? INT64_MAX
		: is_tuned							    ? stock.billed_before_ms
										    : r.slot_ms;
	return true;
}

bool share_run_best(const struct share_case *c, const struct share_group *g, struct arena *a, struct share_stock *stock,
		    struct share_result *out, struct error *e)
{
	size_t best = 0;
	int64_t least = INT64_MAX;

	for (size_t i = 0; i < sizeof sizings / sizeof *sizings; i++) {
		int64_t held;
		if (sizings[i].fixed_permille && c->alone->warm_up > 0 && c->alone->warm_up < DAY)
			continue;
		if (!weigh_sizing(c, g, sizings[i], &held, e))
			return false;
		if (held < least) {
			least = held;
			best = i;
		}
	}
	if (!size_stock(c, g, sizings[best], a, stock, e))
		return false;
	*out = run_with_shadows(c, g, stock, a);
	return true;
}

static bool rival_keeps(const struct share_case *c, const struct share_group *g, int64_t slots,
			const struct share_rule *rule)
{
	CLEANUP(arena_release) struct arena own = { 0 };
	struct share_stock stock = share_stock_fixed(c, slots, &own);
	struct share_result r = share_run_rule(c, g, &stock, rule, &own);

	return share_keeps(c, g, &r);
}

/* The fewest slots below `most` with which the rule keeps the objectives; `most` when there are none. */
static int64_t fewest(const struct share_case *c, const struct share_group *g, const struct share_rule *rule,
		      int64_t most)
{
	int64_t least = share_fewest_slots(c, g) - 1;

	while (most - least > 1) {
		int64_t middle = least + (most - least) / 2;
		*(rival_keeps(c, g, middle, rule) ? &most : &least) = middle;
	}
	return most;
}

struct share_result share_rival(const struct share_case *c, const struct share_group *g, struct arena *a,
				int64_t *slots, millis *threshold)
{
	static const millis thresholds[] = { 10 * SECOND, MINUTE, 5 * MINUTE, 15 * MINUTE, HOUR };
	struct share_rule best = { 0 };
	int64_t engines = 1;

	for (size_t i = 0; i < g->count; i++)
		engines += c->models[g->pools[i]].peak;
	int64_t most = engines + share_fewest_slots(c, g);
	*slots = most;
	for (size_t i = 0; i < sizeof thresholds / sizeof *thresholds; i++) {
		struct share_rule rule = { .keep_alive = thresholds[i], .spare_permille = 1000 };
		int64_t n = fewest(c, g, &rule, *slots);
		if (n >= *slots)
			continue;
		*slots = n;
		best = rule;
	}
	*threshold = best.keep_alive;
	if (*slots == most)
		return (struct share_result){ 0 };
	struct share_stock stock = share_stock_fixed(c, *slots, a);
	return share_run_rule(c, g, &stock, &best, a);
}
