#include "controller/simulation/rivals/compare.h"

#include "base/exact.h"

#include <string.h>

/* Below one late request in a million everything counts as equal: zero has no logarithm. */
static const double LEAST_SHARE = 1e-6;

double compare_cost(const struct score *s)
{
	return s->micro_dollars ? score_dollars(s) : score_gpu_hours(s);
}

/* What came before the scored part. */
static struct score compare_first_part(const struct pool_score *p)
{
	return (struct score){ .requests = p->whole.requests - p->scored.requests,
			       .late = p->whole.late - p->scored.late,
			       .gpu_ms = p->whole.gpu_ms - p->scored.gpu_ms,
			       .micro_dollars = p->whole.micro_dollars - p->scored.micro_dollars };
}

static struct score part_of(const struct compare_row *row, size_t pool, bool on_first)
{
	return on_first ? compare_first_part(&row->pools[pool]) : row->pools[pool].scored;
}

static bool passes(const struct compare_row *row, const struct compare_filter *f)
{
	if (!row->is_rival || (f->hot_only && (row->uses_standby || row->uses_lent)))
		return false;
	return !f->policy || !strcmp(f->policy, row->policy);
}

long compare_cheapest(const struct comparison *c, size_t pool, const struct compare_filter *f, int64_t late_ppm,
		      bool on_first)
{
	long best = NO_ROW;
	double least = 0;

	for (size_t i = 0; i < c->row_count; i++) {
		struct score s = part_of(&c->rows[i], pool, on_first);

		if (!passes(&c->rows[i], f) || !score_keeps(&s, late_ppm))
			continue;
		if (best == NO_ROW || compare_cost(&s) < least) {
			best = (long)i;
			least = compare_cost(&s);
		}
	}
	return best;
}

long compare_least_late(const struct comparison *c, size_t pool, const struct compare_filter *f, bool on_first)
{
	long best = NO_ROW;
	double share = 0, cost = 0;

	for (size_t i = 0; i < c->row_count; i++) {
		struct score s = part_of(&c->rows[i], pool, on_first);
		double late = score_late_share(&s);

		if (!passes(&c->rows[i], f))
			continue;
		if (best == NO_ROW || late < share || (late <= share && compare_cost(&s) < cost)) {
			best = (long)i;
			share = late;
			cost = compare_cost(&s);
		}
	}
	return best;
}

long compare_first_choice(const struct comparison *c, size_t pool, const struct compare_filter *f, int64_t late_ppm)
{
	long best = compare_cheapest(c, pool, f, late_ppm, true);

	return best != NO_ROW ? best : compare_least_late(c, pool, f, true);
}

static bool comes_before(const struct compare_point *a, const struct compare_point *b)
{
	return a->late_share < b->late_share || (a->late_share <= b->late_share && a->cost < b->cost);
}

/* Equal ones keep the order of their rows. */
static void insert(struct compare_point *points, size_t count, struct compare_point p)
{
	while (count && comes_before(&p, &points[count - 1])) {
		points[count] = points[count - 1];
		count--;
	}
	points[count] = p;
}

size_t compare_frontier(const struct comparison *c, size_t pool, const struct compare_filter *f, struct arena *a,
			const struct compare_point **out)
{
	struct compare_point *points = arena_array(a, struct compare_point, c->row_count + 1);
	size_t count = 0, kept = 0;

	for (size_t i = 0; i < c->row_count; i++) {
		const struct score *s = &c->rows[i].pools[pool].scored;

		if (passes(&c->rows[i], f))
			insert(points, count++, (struct compare_point){ score_late_share(s), compare_cost(s), i });
	}
	for (size_t i = 0; i < count; i++)
		if (!kept || points[i].cost < points[kept - 1].cost)
			points[kept++] = points[i];
	*out = points;
	return kept;
}

static double share_at_least(double share)
{
	return share > LEAST_SHARE ? share : LEAST_SHARE;
}

double compare_frontier_cost(const struct compare_point *points, size_t count, double late_share)
{
	size_t i = 0;

	if (!count)
		return 0;
	while (i < count && points[i].late_share < late_share)
		i++;
	if (i == count || i == 0 || points[i].cost <= 0)
		return points[i == count ? count - 1 : i].cost;
	double low = exact_log(share_at_least(points[i - 1].late_share));
	double high = exact_log(share_at_least(points[i].late_share));
	double at = high > low ? (exact_log(share_at_least(late_share)) - low) / (high - low) : 0;
	double from = exact_log(points[i - 1].cost), to = exact_log(points[i].cost);
	return exact_exp(from + (to - from) * (at > 0 ? at : 0));
}

enum { DOUBLINGS = 60, BISECTIONS = 30 };

/* The cheapest way to have reached a capacity, and what it left behind. */
struct way {
	double cost, late;
	int64_t starts;
};

struct program {
	const struct oracle_question *q;
	double tick_s;
	int64_t *need; /* per tick that counts: offered load, rounded up */
	size_t ticks, levels;
	double arrivals;
	struct way *ways; /* one per capacity */
};

/* Shrinking is free; growing costs a lead time for each replica. */
static void move(struct program *p)
{
	struct way *ways = p->ways;

	for (size_t c = p->levels - 1; c-- > 0;)
		if (ways[c + 1].cost < ways[c].cost)
			ways[c] = ways[c + 1];
	for (size_t c = 1; c < p->levels; c++) {
		if (ways[c - 1].cost + p->q->lead_s < ways[c].cost) {
			ways[c] = ways[c - 1];
			ways[c].cost += p->q->lead_s;
			ways[c].starts++;
		}
	}
}

static struct way cheapest(struct program *p, double price)
{
	struct way best;

	for (size_t c = 0; c < p->levels; c++)
		p->ways[c] = (struct way){ 0 };
	for (size_t t = 0; t < p->ticks; t++) {
		double late = (double)p->q->load->arrived[p->q->from + t];

		if (t)
			move(p);
		for (size_t c = 0; c < p->levels; c++) {
			p->ways[c].cost += (double)c * p->tick_s;
			if ((int64_t)c < p->need[t]) {
				p->ways[c].cost += price * late;
				p->ways[c].late += late;
			}
		}
	}
	best = p->ways[0];
	for (size_t c = 1; c < p->levels; c++)
		if (p->ways[c].cost < best.cost)
			best = p->ways[c];
	return best;
}

static double allowed(const struct program *p)
{
	return p->q->late_share * p->arrivals;
}

/* The dual at one price; keeps the best answer so far. True: fewer are late than allowed, the price is high enough. */
static bool ask(struct program *p, double price, struct oracle_bound *best)
{
	struct way w = cheapest(p, price);
	double hours = (w.cost - price * allowed(p)) / 3600;

	if (hours > best->replica_hours) {
		best->replica_hours = hours;
		best->price = price;
	}
	if (w.late > allowed(p))
		return false;
	best->late_share = w.late / p->arrivals;
	best->starts = w.starts;
	return true;
}

static struct program prepare(const struct oracle_question *q, struct arena *a)
{
	const struct load *d = q->load;
	struct program p = { .q = q,
			     .tick_s = (double)d->interval / SECOND,
			     .ticks = q->from < d->ticks ? d->ticks - q->from : 0,
			     .levels = 1 };

	p.need = arena_array(a, int64_t, p.ticks + 1);
	for (size_t t = 0; t < p.ticks; t++) {
		double load = d->offered[q->from + t] - 1e-9;
		int64_t whole = load > 0 ? (int64_t)load : 0;

		p.need[t] = whole + ((double)whole < load);
		p.arrivals += (double)d->arrived[q->from + t];
		if (p.need[t] >= (int64_t)p.levels)
			p.levels = (size_t)p.need[t] + 1;
	}
	p.ways = arena_array(a, struct way, p.levels);
	return p;
}

struct oracle_bound oracle_bound(const struct oracle_question *q, struct arena *a)
{
	struct program p = prepare(q, a);
	struct oracle_bound best = { 0 };
	double low = 0, high = 0;

	if (!p.ticks || p.arrivals <= 0)
		return best;
	/* To begin with: what a replica costs for each arrival of a mean tick. */
	high = p.tick_s * (double)p.ticks / p.arrivals;
	for (int i = 0; i < DOUBLINGS && !ask(&p, high, &best); i++) {
		low = high;
		high *= 2;
	}
	/* The dual is concave: its slope is late arrivals less those allowed. */
	for (int i = 0; i < BISECTIONS && high - low > 1e-4 * high; i++) {
		double middle = (low + high) / 2;

		if (ask(&p, middle, &best))
			high = middle;
		else
			low = middle;
	}
	return best;
}

double oracle_mean_lead(struct quantiles q)
{
	const double z95 = 1.6448536269514722;
	double sigma = q.p50 > 0 && q.p95 > q.p50 ? exact_log((double)q.p95 / (double)q.p50) / z95 : 0;

	return (double)q.p50 / SECOND * exact_exp(sigma * sigma / 2);
}

static double mean_of_stages(const struct quantiles *stages)
{
	double sum = 0;

	for (size_t i = 0; i < STAGE_COUNT; i++)
		sum += oracle_mean_lead(stages[i]);
	return sum;
}

double oracle_mean_start(const struct pool_spec *pool, const struct pool_world *truth)
{
	const struct quantiles *totals[] = { &truth->lead_time, &pool->lead_time };
	const struct quantiles *stages[] = { truth->stage, pool->stage };

	for (size_t i = 0; i < 2; i++) {
		if (mean_of_stages(stages[i]) > 0)
			return mean_of_stages(stages[i]);
		if (totals[i]->p50 > 0)
			return oracle_mean_lead(*totals[i]);
	}
	return 0;
}

/* Adds `weight` to every tick's mean for the part of it within [from, to). `steps` holds changes of the
 * level from one tick to the next, so that a long stay costs no more than a short one. */
static void occupy(struct load *d, double *steps, millis from, millis to, double weight)
{
	size_t first = (size_t)(from / d->interval), last = (size_t)(to / d->interval);

	if (first >= d->ticks)
		return;
	double part = weight * (double)(from % d->interval) / (double)d->interval;
	steps[first] += weight - part;
	steps[first + 1] += part;
	if (last >= d->ticks)
		return;
	part = weight * (double)(to % d->interval) / (double)d->interval;
	steps[last] -= weight - part;
	steps[last + 1] -= part;
}

static void add_bin(struct load *d, double *steps, const struct bin *b, millis width, const struct queue_truth *truth)
{
	if (!b->requests)
		return;
	double all = (double)b->requests;
	millis held =
		queue_service_ms(queue_service(truth, (double)b->prompt_tokens / all, (double)b->output_tokens / all));

	/* The mean stay, from every second of the bin. */
	for (millis at = 0; at < width; at += SECOND) {
		millis span = width - at < SECOND ? width - at : SECOND;
		double count = all * (double)span / (double)width;
		size_t tick = (size_t)((b->at + at) / d->interval);

		occupy(d, steps, b->at + at, b->at + at + held, count / (double)truth->slots);
		if (tick < d->ticks)
			d->arrived[tick] += (int64_t)((double)(at + span) * all / (double)width) -
					    (int64_t)((double)at * all / (double)width);
	}
}

static void add_requests(struct load *d, double *steps, const struct trace *t, const struct queue_truth *truth)
{
	for (size_t i = 0; i < t->request_count; i++) {
		const struct request *r = &t->requests[i];
		size_t tick = (size_t)(r->arrival / d->interval);
		millis held = queue_service_ms(queue_service(truth, r->prompt_tokens, r->output_tokens));

		occupy(d, steps, r->arrival, r->arrival + held, 1 / (double)truth->slots);
		if (tick < d->ticks)
			d->arrived[tick]++;
	}
}

struct load load_of(const struct trace *trace, const struct queue_truth *truth, millis interval, struct arena *a)
{
	struct load d = { .interval = interval, .ticks = (size_t)((trace->length + interval - 1) / interval) };
	double *steps = arena_array(a, double, d.ticks + 2), level = 0;

	d.offered = arena_array(a, double, d.ticks + 1);
	d.arrived = arena_array(a, int64_t, d.ticks + 1);
	if (trace->is_binned)
		for (size_t i = 0; i < trace->bin_count; i++)
			add_bin(&d, steps, &trace->bins[i], trace->bin_width, truth);
	else
		add_requests(&d, steps, trace, truth);
	for (size_t i = 0; i < d.ticks; i++) {
		level += steps[i];
		d.offered[i] = level > 1e-9 ? level : 0;
	}
	return d;
}

double load_mean(const struct load *d, size_t from)
{
	double sum = 0;

	for (size_t i = from; i < d->ticks; i++)
		sum += d->offered[i];
	return from < d->ticks ? sum / (double)(d->ticks - from) : 0;
}

double load_peak(const struct load *d, size_t from)
{
	double peak = 0;

	for (size_t i = from; i < d->ticks; i++)
		if (d->offered[i] > peak)
			peak = d->offered[i];
	return peak;
}
