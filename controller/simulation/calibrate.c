#include "controller/simulation/calibrate.h"

#include "controller/policy/capacity.h"
#include "base/exact.h"
#include "base/list.h"
#include "base/random.h"
#include "controller/simulation/queue.h"

#include <stdlib.h>
#include <string.h>

enum {
	LEAD_LEAST = 3,	   /* samples of a duration that say more than the manifest */
	WINDOWS_MOST = 500 /* of one kind; later ones are left out */
};
/* Refusals no further apart are one stock-out: nobody asked between them. */
static const millis STOCKOUT_GAP = 10 * MINUTE;
static const double HOURS_TOLERANCE = 1.1, LATE_TOLERANCE = 1.5;
enum {
	DRAWS = 8,	   /* of what nobody saw: when in its minute a request came, and which were the long ones */
	TOKENS_EACH = 1000 /* of a request that came without */
};
static const millis SHUFFLED = 10 * MINUTE; /* lengths are known as a mean of about as long */

struct sample {
	millis value;
	int64_t count;
};
typedef LIST(struct sample) samples;

/* Replicas that served from then on. */
struct level {
	millis at; /* since the start */
	int64_t ready;
};

struct pool_calibration {
	struct capacity_state capacity;
	struct measured measured;
	samples total[START_KIND_COUNT], stages[STAGE_COUNT]; /* stages: of starts on new machines */
	LIST(struct telemetry_window) blind;
	LIST(struct level) levels;
	struct cost_sums recorded;
	int64_t busy_ppm; /* see cost_add_tick() */
	millis read_at;	  /* the last reading; 0: none yet */
	double slot_ms, completed, prompt_tokens, output_tokens;
	double latency_us, latency_weight;
	double starting_ms; /* replica-milliseconds on their way to serve, or to be given up */
	bool has_grown;
};

struct group_calibration {
	samples wakes, first_wakes;
	LIST(struct stockout_window) stockouts;
	int64_t served, stuck, wakes_refused, lost;
	double replica_hours;
};

struct calibration {
	const struct fleet_spec *fleet;
	millis start;
	struct arena *arena;
	struct pool_calibration *pools;
	struct group_calibration *groups;
};

struct calibration *calibration_new(const struct fleet_spec *fleet, millis start, struct arena *a)
{
	struct calibration *c = arena_new(a, struct calibration);

	*c = (struct calibration){ .fleet = fleet, .start = start, .arena = a };
	c->pools = arena_array(a, struct pool_calibration, fleet->pool_count);
	c->groups = arena_array(a, struct group_calibration, fleet->group_count);
	for (size_t i = 0; i < fleet->pool_count; i++)
		c->pools[i].busy_ppm = ABSENT;
	return c;
}

static size_t pool_named(const struct fleet_spec *fleet, const char *name)
{
	size_t i = 0;

	while (i < fleet->pool_count && strcmp(fleet->pools[i].name, name) != 0)
		i++;
	return i;
}

/* NULL: the simulated fleet has no such group. */
static struct group_calibration *group_of(struct calibration *c, const struct snapshot *s, size_t pool, int64_t index)
{
	const struct pool_spec *was = &s->fleet->pools[pool];

	if (index < 0 || (size_t)index >= was->group_count)
		return NULL;
	const char *name = s->fleet->groups[was->groups[index]].name;
	for (size_t i = 0; i < c->fleet->group_count; i++)
		if (!strcmp(c->fleet->groups[i].name, name))
			return &c->groups[i];
	return NULL;
}

/* --- taking ticks in --- */

static void add_sample(struct calibration *c, samples *to, const struct event_input *ev)
{
	struct sample s = { ev->value, ev->count > 0 ? ev->count : 1 };

	if (s.value > 0)
		LIST_ADD(c->arena, to, s);
}

static void add_stockout(struct calibration *c, struct group_calibration *g, millis from, millis to,
			 enum error_kind kind)
{
	struct stockout_window *last = g->stockouts.count ? &g->stockouts.items[g->stockouts.count - 1] : NULL;

	if (last && last->kind == kind && from <= last->to + STOCKOUT_GAP)
		last->to = to > last->to ? to : last->to;
	else if (g->stockouts.count < WINDOWS_MOST)
		LIST_ADD(c->arena, &g->stockouts, ((struct stockout_window){ from, to, kind }));
}

static void add_refusal(struct calibration *c, struct group_calibration *g, const struct event_input *ev, millis from,
			millis to)
{
	bool is_stock = ev->what == EVENT_NO_STOCK || (ev->what == EVENT_REFUSED && ev->value == ERROR_STOCKOUT);
	bool is_quota = ev->what == EVENT_NO_QUOTA || (ev->what == EVENT_REFUSED && ev->value == ERROR_QUOTA);

	if (ev->what == EVENT_REFUSED && ev->kind == START_WAKE)
		g->wakes_refused += ev->count;
	else if (is_stock || is_quota)
		add_stockout(c, g, from, to, is_stock ? ERROR_STOCKOUT : ERROR_QUOTA);
}

static void take_event(struct calibration *c, struct pool_calibration *p, struct group_calibration *g,
		       const struct event_input *ev, millis from, millis to)
{
	bool is_new_machine = ev->kind == START_COLD || ev->kind == START_REFILL;

	switch ((enum event_kind)ev->what) {
	case EVENT_STAGE:
		if (is_new_machine && ev->stage >= 0 && ev->stage < STAGE_COUNT)
			add_sample(c, &p->stages[ev->stage], ev);
		break;
	case EVENT_SERVING:
		if (ev->kind >= 0 && ev->kind < START_KIND_COUNT)
			add_sample(c, &p->total[ev->kind], ev);
		if (g && is_new_machine)
			g->served += ev->count;
		if (g && ev->kind == START_WAKE)
			add_sample(c, ev->first ? &g->first_wakes : &g->wakes, ev);
		break;
	case EVENT_STUCK:
		if (g && is_new_machine)
			g->stuck += ev->count;
		break;
	case EVENT_LOST:
		if (g)
			g->lost += ev->count;
		break;
	default:
		if (g)
			add_refusal(c, g, ev, from, to);
	}
}

/* Little's law: what ran, over what completed, is how long a request keeps its slot. */
static void take_readings(struct pool_calibration *p, const struct pool_snapshot *s, millis interval)
{
	double unread = s->input.scrapes_fresh > 0 && s->input.scrapes_expected > s->input.scrapes_fresh
				? (double)s->input.scrapes_expected / (double)s->input.scrapes_fresh
				: 1;

	for (size_t i = 0; i < s->scrape_count; i++) {
		const struct scrape_input *r = &s->scrapes[i];
		millis span = p->read_at && r->at - p->read_at < 2 * interval ? r->at - p->read_at : 0;
		double running = (double)(r->running > 0 ? r->running : 0) +
				 (double)(r->running_draining > 0 ? r->running_draining : 0);

		p->read_at = r->at;
		if (span <= 0 || r->completed < 0)
			continue;
		p->slot_ms += running * unread * (double)span;
		p->completed += (double)r->completed * unread;
		p->prompt_tokens += r->prompt_tokens > 0 ? (double)r->prompt_tokens * unread : 0;
		p->output_tokens += r->output_tokens > 0 ? (double)r->output_tokens * unread : 0;
		if (s->input.inter_token_latency_us > 0) {
			p->latency_us += (double)s->input.inter_token_latency_us * running;
			p->latency_weight += running;
		}
	}
}

static void take_levels(struct calibration *c, struct pool_calibration *p, const struct pool_snapshot *s, millis from,
			millis to)
{
	bool is_blind = s->input.scrapes_expected > 0 && s->input.scrapes_fresh == 0;
	struct telemetry_window *last = p->blind.count ? &p->blind.items[p->blind.count - 1] : NULL;

	p->has_grown |= p->levels.count && p->levels.items[p->levels.count - 1].ready < s->input.ready;
	if (!p->levels.count || p->levels.items[p->levels.count - 1].ready != s->input.ready)
		LIST_ADD(c->arena, &p->levels, ((struct level){ to, s->input.ready }));
	p->measured.ticks++;
	p->measured.blind_ticks += is_blind;
	if (is_blind && last && last->to >= from)
		last->to = to;
	else if (is_blind && p->blind.count < WINDOWS_MOST)
		LIST_ADD(c->arena, &p->blind, ((struct telemetry_window){ from, to, TELEMETRY_MISSING, 1000000 }));
}

static void take_pool(struct calibration *c, const struct snapshot *s, size_t pool, struct pool_calibration *p,
		      const struct pool_plan *plan)
{
	const struct pool_snapshot *in = &s->pools[pool];
	millis to = s->now - c->start, from = to - s->interval;

	capacity_observe(&p->capacity, in, s->interval);
	take_readings(p, in, s->interval);
	take_levels(c, p, in, from, to);
	for (size_t i = 0; i < in->group_count; i++) {
		struct group_calibration *g = group_of(c, s, pool, (int64_t)i);
		if (g)
			g->replica_hours += (double)in->groups[i].ready * (double)s->interval / (double)HOUR;
	}
	for (size_t i = 0; i < in->event_count; i++)
		take_event(c, p, group_of(c, s, pool, in->events[i].group), &in->events[i], from, to);
	for (size_t i = 0; i < in->start_count; i++)
		p->starting_ms += (double)in->starts[i].count * (double)s->interval;
	cost_add_tick(&p->recorded, &(struct cost_tick){ s, pool, plan, s->interval, NULL }, &p->busy_ppm);
}

void calibration_tick(struct calibration *c, const struct snapshot *s, const struct pool_plan *const *plans)
{
	for (size_t i = 0; i < s->fleet->pool_count; i++) {
		size_t pool = pool_named(c->fleet, s->fleet->pools[i].name);
		if (pool < c->fleet->pool_count)
			take_pool(c, s, i, &c->pools[pool], plans[i]);
	}
}

/* --- what they come to --- */

static int by_value(const void *a, const void *b)
{
	millis x = ((const struct sample *)a)->value, y = ((const struct sample *)b)->value;

	return (x > y) - (x < y);
}

static int64_t sample_count(const samples *s)
{
	int64_t n = 0;

	for (size_t i = 0; i < s->count; i++)
		n += s->items[i].count;
	return n;
}

/* The nearest rank; sorts them. */
static struct quantiles quantiles_of(samples *s)
{
	int64_t n = sample_count(s), below = 0;
	struct quantiles q = { 0 };

	if (n < LEAD_LEAST)
		return q;
	qsort(s->items, s->count, sizeof *s->items, by_value);
	for (size_t i = 0; i < s->count; i++) {
		below += s->items[i].count;
		if (!q.p50 && below * 2 >= n)
			q.p50 = s->items[i].value;
		if (!q.p95 && below * 20 >= n * 19)
			q.p95 = s->items[i].value;
	}
	return q;
}

/* What only models think (latency, KV cache) is no measurement of what a replica holds. */
static int64_t slots_of(const struct pool_calibration *p, const struct pool_spec *spec)
{
	struct capacity b = capacity_believed(&p->capacity, spec);

	if (b.source == SLOTS_SATURATED)
		return (int64_t)(b.slots + .5);
	return p->capacity.busiest > (double)spec->max_sequences ? (int64_t)(p->capacity.busiest + .5) : 0;
}

const struct measured *calibration_measured(struct calibration *c, size_t pool)
{
	struct pool_calibration *p = &c->pools[pool];

	p->measured.slots = slots_of(p, &c->fleet->pools[pool]);
	p->measured.service = p->completed > 0 ? (millis)(p->slot_ms / p->completed + .5) : 0;
	p->measured.lead_samples = sample_count(&p->total[START_COLD]);
	p->measured.lead = quantiles_of(&p->total[START_COLD]);
	p->measured.has_starts = p->starting_ms > 0;
	p->measured.has_unseen_starts = p->has_grown && p->starting_ms <= 0;
	p->measured.has_tokens = p->prompt_tokens + p->output_tokens > 0;
	return &p->measured;
}

/* Requests without tokens: as many each, or around as many, which last as long as the slot was kept. */
static void count_as_tokens(struct trace *t)
{
	double lengths[16];
	struct random r = random_stream(0, "lengths without tokens");

	exact_lognormal_points(1, lengths, sizeof lengths / sizeof *lengths);
	for (size_t i = 0; t && i < t->bin_count; i++)
		t->bins[i].output_tokens = t->bins[i].requests * TOKENS_EACH;
	for (size_t i = 0; t && i < t->request_count; i++)
		t->requests[i].output_tokens = (int32_t)(TOKENS_EACH * lengths[random_next(&r) >> 60] + .5);
}

/* So that what completed takes the slot time that was measured: tokens at the latency that was told, the rest is
 * prefill; at another latency where that alone would be more. */
static void set_service(const struct pool_calibration *p, const struct pool_spec *spec, struct trace *trace,
			struct pool_world *w)
{
	double slots = (double)(w->max_sequences ? w->max_sequences : spec->max_sequences);
	double latency =
		p->latency_weight > 0 ? p->latency_us / p->latency_weight : (double)spec->inter_token_latency_us;
	double decode_ms = p->output_tokens * latency / 1000;

	if (p->completed <= 0 || p->slot_ms <= 0)
		return;
	if (!p->measured.has_tokens) {
		count_as_tokens(trace);
		w->inter_token_latency_us = (int64_t)(p->slot_ms / p->completed * 1000 / TOKENS_EACH + .5);
		return;
	}
	if (p->prompt_tokens > 0 && (decode_ms < p->slot_ms || p->output_tokens <= 0)) {
		double prefill = slots * p->prompt_tokens * 1000 / (p->slot_ms - decode_ms);
		w->prefill_tokens_per_second = prefill < 1e9 ? (int64_t)(prefill + .5) : INT64_C(1000000000);
	} else {
		w->prefill_tokens_per_second = INT64_C(1000000000);
		latency = p->slot_ms * 1000 / p->output_tokens;
	}
	w->inter_token_latency_us = latency >= 1 ? (int64_t)(latency + .5) : 1;
}

static bool is_given(struct quantiles q)
{
	return q.p50 > 0 || q.p95 > 0;
}

static void set_lead(struct pool_calibration *p, struct pool_world *w)
{
	struct quantiles stages[STAGE_COUNT];
	bool is_given_already = is_given(w->lead_time), is_whole = true;

	for (size_t i = 0; i < STAGE_COUNT; i++) {
		is_given_already |= is_given(w->stage[i]);
		stages[i] = quantiles_of(&p->stages[i]);
		is_whole &= is_given(stages[i]);
	}
	if (!is_given_already && is_whole)
		memcpy(w->stage, stages, sizeof stages);
	else if (!is_given_already)
		w->lead_time = p->measured.lead;
	if (!is_given(w->reclaim))
		w->reclaim = quantiles_of(&p->total[START_RECLAIM]);
}

static void set_pool(struct calibration *c, size_t pool, struct trace *trace, struct pool_world *w)
{
	struct pool_calibration *p = &c->pools[pool];
	const struct measured *m = calibration_measured(c, pool);

	if (!w->max_sequences && w->capacity_permille == 1000)
		w->max_sequences = m->slots;
	if (!w->prefill_tokens_per_second && !w->inter_token_latency_us && w->capacity_permille == 1000)
		set_service(p, &c->fleet->pools[pool], trace, w);
	set_lead(p, w);
	if (!w->telemetry_count) {
		w->telemetry = p->blind.items;
		w->telemetry_count = p->blind.count;
	}
}

static int64_t share_ppm(double part, double whole)
{
	return whole > 0 ? (int64_t)(part / whole * 1e6 + .5) : 0;
}

static void set_group(struct group_calibration *g, struct group_world *w)
{
	if (!w->stockout_count) {
		w->stockouts = g->stockouts.items;
		w->stockout_count = g->stockouts.count;
	}
	if (!w->failed_start_ppm)
		w->failed_start_ppm = share_ppm((double)g->stuck, (double)(g->stuck + g->served));
	if (!w->loss_per_hour_ppm && !w->loss_count) {
		int64_t ppm = share_ppm((double)g->lost, g->replica_hours);
		w->loss_per_hour_ppm = ppm < 1000000 ? ppm : 1000000;
	}
	if (!w->wake_refused_ppm)
		w->wake_refused_ppm =
			share_ppm((double)g->wakes_refused,
				  (double)(g->wakes_refused + sample_count(&g->wakes) + sample_count(&g->first_wakes)));
	if (!is_given(w->wake))
		w->wake = quantiles_of(&g->wakes);
	if (!is_given(w->first_wake))
		w->first_wake = quantiles_of(&g->first_wakes);
}

void calibration_world(struct calibration *c, struct trace *const *traces, struct world_spec *spec)
{
	struct pool_world *pools = arena_array(c->arena, struct pool_world, c->fleet->pool_count);
	struct group_world *groups = arena_array(c->arena, struct group_world, c->fleet->group_count);

	for (size_t i = 0; i < c->fleet->pool_count; i++) {
		pools[i] = spec->pools[i];
		if (c->pools[i].measured.ticks)
			set_pool(c, i, traces[i], &pools[i]);
	}
	for (size_t i = 0; i < c->fleet->group_count; i++) {
		groups[i] = spec->groups[i];
		set_group(&c->groups[i], &groups[i]);
	}
	spec->pools = pools;
	spec->groups = groups;
}

/* --- the recorded fleet --- */

/* Replicas of the model, one a seat, opened and drained as they were. */
struct replayed_fleet {
	struct queue queue;
	struct arena *arena;
	LIST(millis) ends; /* of draining seats, 0: not known yet or long over; by seat */
	size_t open, next; /* seats next - open .. next - 1 are open: the oldest are drained first */
	millis now;
	double replica_ms; /* open and draining */
};

static void close_emptied(struct replayed_fleet *f)
{
	for (size_t i = 0; i < f->queue.emptied.count; i++)
		queue_seat_close(&f->queue, f->queue.emptied.items[i].seat);
	f->queue.emptied.count = 0;
	for (size_t i = 0; i < f->ends.count; i++)
		if (f->ends.items[i] && f->ends.items[i] <= f->now) {
			queue_seat_close(&f->queue, i);
			f->ends.items[i] = 0;
		}
}

static void let_pass(struct replayed_fleet *f, millis until)
{
	for (millis step; f->now < until; f->now = step) {
		step = f->now + SECOND < until ? f->now + SECOND : until;
		f->replica_ms += (double)(f->queue.open_seats + f->queue.draining_seats) * (double)(step - f->now);
		queue_advance(&f->queue, step);
		close_emptied(f);
	}
}

static void resize(struct replayed_fleet *f, size_t ready)
{
	for (; f->open < ready; f->open++, f->next++) {
		queue_seat_open(&f->queue, f->next, f->now);
		LIST_ADD(f->arena, &f->ends, 0);
	}
	for (; f->open > ready; f->open--) {
		size_t seat = f->next - f->open;
		millis empty = queue_seat_drain(&f->queue, seat, f->now);
		f->ends.items[seat] = empty > f->now ? empty : empty >= 0 ? f->now + 1 : 0;
	}
}

static double ratio_of(double model, double recorded)
{
	return model == recorded ? 1 : recorded > 0 ? model / recorded : 1e9;
}

/* Counts that differ by less than three deviations of theirs say nothing. Late requests come together: what the draws
 * of the same hours differ by is chance, and no less than that of as many that came one by one. */
static bool is_chance(double recorded, double model, double variance)
{
	double difference = recorded - model, alone = recorded + model;

	return difference * difference <= 9 * (variance > alone ? variance : alone);
}

static void compare_both(struct recorded_fleet *r)
{
	double requests = (double)r->recorded.started;

	r->hours_ratio = ratio_of(r->model_gpu_hours, r->gpu_hours);
	r->late_ratio = ratio_of(r->model_late_share, r->late_share);
	r->fits = r->hours_ratio <= HOURS_TOLERANCE && r->hours_ratio * HOURS_TOLERANCE >= 1 &&
		  (is_chance(r->late_share * requests, r->model_late_share * requests, r->late_variance) ||
		   (r->late_share < RECORDED_LATE_LEAST && r->model_late_share < RECORDED_LATE_LEAST) ||
		   (r->late_ratio <= LATE_TOLERANCE && r->late_ratio * LATE_TOLERANCE >= 1));
}

/* Of requests that started `first` and `second` times. */
static double share_of_both(double first_share, int64_t first, double second_share, int64_t second)
{
	double all = (double)(first + second);

	return all > 0 ? (first_share * (double)first + second_share * (double)second) / all : 0;
}

void recorded_fleet_add(struct recorded_fleet *to, const struct recorded_fleet *more)
{
	int64_t had = to->recorded.started, has = more->recorded.started;

	to->late_share = share_of_both(to->late_share, had, more->late_share, has);
	to->model_late_share = share_of_both(to->model_late_share, had, more->model_late_share, has);
	to->gpu_hours += more->gpu_hours;
	to->dollars += more->dollars;
	to->model_gpu_hours += more->model_gpu_hours;
	to->model_dollars += more->model_dollars;
	to->late_variance += more->late_variance;
	cost_add(&to->recorded, &more->recorded);
	compare_both(to);
}

/* The same traffic, as it may as well have been: each request at another moment of its minute, lengths in another
 * order.
 */
static struct trace draw_again(const struct trace *as, struct random *r, struct arena *a)
{
	struct trace t = *as;

	t.requests = arena_array(a, struct request, as->request_count + 1);
	for (size_t i = 0, first = 0; i < as->request_count; i++) {
		if (as->requests[i].arrival / SHUFFLED != as->requests[first].arrival / SHUFFLED)
			first = i;
		size_t other = first + (size_t)(random_uniform(r) * (double)(i - first + 1));
		t.requests[i] = t.requests[other];
		t.requests[other] = as->requests[i];
	}
	for (size_t i = 0; i < as->request_count; i++)
		t.requests[i].arrival =
			as->requests[i].arrival / MINUTE * MINUTE + (millis)(random_uniform(r) * (double)MINUTE);
	requests_sort(t.requests, t.request_count);
	return t;
}

struct replayed {
	double replica_ms, late, requests;
};

static struct replayed replay(const struct pool_calibration *p, const struct queue_truth *truth,
			      const struct trace *trace, struct arena *a)
{
	struct replayed_fleet f = { .arena = a };

	queue_open(&f.queue, truth, trace, a);
	for (size_t i = 0; i < p->levels.count; i++) {
		let_pass(&f, i ? p->levels.items[i].at : 0);
		resize(&f, (size_t)p->levels.items[i].ready);
	}
	let_pass(&f, p->recorded.watched_ms > trace->length ? p->recorded.watched_ms : trace->length);
	return (struct replayed){ f.replica_ms, (double)(f.queue.late + queue_waiting_late(&f.queue, f.now)),
				  (double)f.queue.arrived };
}

/* Means of some draws, and how far those are apart; requests that are only counted are as they are. */
static struct replayed replay_all(const struct calibration *c, size_t pool, const struct trace *trace,
				  const struct queue_truth *truth, double *variance)
{
	const struct pool_calibration *p = &c->pools[pool];
	int draws = trace->is_binned ? 1 : DRAWS;
	struct random r = random_stream(pool, "draws of a recording");
	struct replayed sum = { 0 };
	double squares = 0;

	for (int i = 0; i < draws; i++) {
		CLEANUP(arena_release) struct arena a = { 0 };
		struct trace drawn = i ? draw_again(trace, &r, &a) : *trace;
		struct replayed one = replay(p, truth, &drawn, &a);
		sum.replica_ms += one.replica_ms / draws;
		sum.late += one.late / draws;
		sum.requests += one.requests / draws;
		squares += one.late * one.late;
	}
	*variance = draws > 1 ? (squares - draws * sum.late * sum.late) / (draws - 1) : 0;
	return sum;
}

struct recorded_fleet calibration_replay(struct calibration *c, size_t pool, const struct trace *trace,
					 const struct world_spec *spec)
{
	const struct pool_calibration *p = &c->pools[pool];
	const struct pool_spec *as = &c->fleet->pools[pool];
	struct queue_truth truth = queue_truth_of(as, &spec->pools[pool]);
	struct recorded_fleet r = { .recorded = p->recorded };
	struct replayed model = replay_all(c, pool, trace, &truth, &r.late_variance);

	r.gpu_hours = (double)cost_billed_gpu_ms(&p->recorded) / (double)HOUR;
	r.dollars = (double)cost_micro_dollars(&p->recorded) / 1e6;
	r.late_share = p->recorded.started > 0 ? (double)p->recorded.late / (double)p->recorded.started : 0;
	r.model_gpu_hours = (model.replica_ms + p->starting_ms) * (double)as->gpus_per_replica / (double)HOUR;
	r.model_dollars = r.gpu_hours > 0 ? r.dollars * r.model_gpu_hours / r.gpu_hours : 0;
	r.model_late_share = model.requests > 0 ? model.late / model.requests : 0;
	compare_both(&r);
	return r;
}
