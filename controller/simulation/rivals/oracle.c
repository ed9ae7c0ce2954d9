#include "controller/simulation/rivals/oracle.h"

#include "base/exact.h"

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
