#include "controller/policy/lead_time.h"

#include "base/exact.h"

static const double Z95 = 1.6448536269514722, Z99 = 2.3263478740408408;
static const double LOG_LONGEST = 13; /* five days: no start takes longer */
static const double KEEP = .99;	      /* per sample: the last hundred count */
/* vLLM's level 1 wakes in 0.3 to 6 s, level 2 in 1 to 7 s (its blog, vllm#48337): until it is measured. */
static const double ROUSE_P50 = 3, ROUSE_P95 = 10;
static const double RECLAIM_P50 = 45, RECLAIM_P95 = 75, LOAD_SHARE = .3;

static void add(struct lead_sums *s, double seconds)
{
	double x = exact_log(seconds > .001 ? seconds : .001);

	s->n = s->n * KEEP + 1;
	s->sum = s->sum * KEEP + x;
	s->squares = s->squares * KEEP + x * x;
}

static void observe_event(struct lead_state *l, const struct event_input *e)
{
	if (e->kind < 0 || e->kind >= START_KIND_COUNT)
		return;
	double seconds = (double)e->value / 1000;
	for (int64_t i = 0; i < e->count && i < 64; i++) {
		if (e->what != EVENT_SERVING)
			continue;
		add(e->kind == START_WAKE && e->first ? &l->first_wake : &l->total[e->kind], seconds);
		l->samples++;
	}
	if (e->kind == START_WAKE && e->what == EVENT_SERVING)
		l->asked_wakes += (double)e->count;
	if (e->kind == START_WAKE && e->what == EVENT_REFUSED) {
		l->asked_wakes += (double)e->count;
		l->refused_wakes += (double)e->count;
	}
}

void lead_observe(struct lead_state *l, const struct pool_snapshot *s, millis interval)
{
	double keep = exact_exp(-(double)interval / (double)HOUR * .6931);

	l->asked_wakes *= keep;
	l->refused_wakes *= keep;
	for (size_t i = 0; i < s->event_count; i++)
		observe_event(l, &s->events[i]);
}

static struct lead of_quantiles(struct quantiles q)
{
	return (struct lead){ (double)q.p50 / 1000, (double)q.p95 / 1000 };
}

/* A sum of independent log-normal stages, taken as log-normal with the same mean and variance. */
static struct lead sum_of_stages(const struct quantiles *stages, int from)
{
	double mean = 0, variance = 0;

	for (int i = from; i < STAGE_COUNT; i++) {
		if (stages[i].p50 <= 0)
			continue;
		double p50 = (double)stages[i].p50 / 1000;
		double sigma = exact_log((double)stages[i].p95 / (double)stages[i].p50) / Z95, v = sigma * sigma;
		double m = p50 * exact_exp(v / 2);
		mean += m;
		variance += m * m * (exact_exp(v) - 1);
	}
	if (mean <= 0)
		return (struct lead){ 0 };
	double v = exact_log(1 + variance / (mean * mean)), p50 = mean * exact_exp(-v / 2);
	return (struct lead){ p50, p50 * exact_exp(Z95 * exact_sqrt(v)) };
}

static struct lead cold_prior(const struct pool_spec *spec)
{
	return spec->lead_time.p50 > 0 ? of_quantiles(spec->lead_time) : sum_of_stages(spec->stage, 0);
}

static const struct group_spec *standby_of(const struct fleet_spec *fleet, const struct pool_spec *spec)
{
	for (size_t i = 0; i < spec->group_count; i++)
		if (fleet->groups[spec->groups[i]].standby_max_nodes > 0)
			return &fleet->groups[spec->groups[i]];
	return NULL;
}

static struct lead wake_prior(const struct fleet_spec *fleet, const struct pool_spec *spec)
{
	const struct group_spec *g = standby_of(fleet, spec);

	return g ? of_quantiles(g->standby_lead_time) : (struct lead){ 0 };
}

static struct lead place_prior(const struct pool_spec *spec)
{
	struct lead known = sum_of_stages(spec->stage, STAGE_IMAGE), whole = cold_prior(spec);

	return known.p50 > 0 ? known : (struct lead){ whole.p50 * LOAD_SHARE, whole.p95 * LOAD_SHARE };
}

static struct lead prior(const struct fleet_spec *fleet, const struct pool_spec *spec, enum start_kind kind)
{
	switch (kind) {
	case START_COLD:
	case START_REFILL:
		return cold_prior(spec);
	case START_WAKE:
		return wake_prior(fleet, spec);
	case START_RECLAIM:
		return (struct lead){ RECLAIM_P50, RECLAIM_P95 };
	case START_PLACE:
		return place_prior(spec);
	case START_ROUSE:
		return (struct lead){ ROUSE_P50, ROUSE_P95 };
	case START_KIND_COUNT:
		break;
	}
	return (struct lead){ 0 };
}

/* In samples; without samples of its own to say otherwise, a tier is what the manifest says. */
static double prior_weight(double measured)
{
	double left = 1 - measured / LEAD_ENOUGH_SAMPLES;

	return left > 0 ? LEAD_PRIOR_SAMPLES * left : 0;
}

static struct lead believed(struct lead p, const struct lead_sums *s)
{
	double weight = p.p50 > 0 ? prior_weight(s->n) : 0;
	double mean_prior = p.p50 > 0 ? exact_log(p.p50) : 0;
	double sigma = p.p50 > 0 && p.p95 > p.p50 ? exact_log(p.p95 / p.p50) / Z95 : .3;
	double n = s->n + weight, mean = (s->sum + weight * mean_prior) / n;
	/* Spread around the sample mean: where the prior is off, its distance must not count as spread. */
	double own = s->sum / s->n, spread = s->squares - s->n * own * own;
	double variance = ((spread > 0 ? spread : 0) + weight * sigma * sigma) / n;
	double p50 = exact_exp(mean < LOG_LONGEST ? mean : LOG_LONGEST);
	double spread95 = Z95 * exact_sqrt(variance);
	return (struct lead){ p50, p50 * exact_exp(spread95 < LOG_LONGEST ? spread95 : LOG_LONGEST) };
}

struct lead lead_believed(const struct lead_state *l, const struct fleet_spec *fleet, const struct pool_spec *spec,
			  enum start_kind kind)
{
	struct lead p = prior(fleet, spec, kind);
	const struct lead_sums *s = &l->total[kind == START_REFILL ? START_COLD : kind];

	return s->n <= 0 || (p.p50 <= 0 && kind != START_COLD) ? p : believed(p, s);
}

double lead_first_share(const struct pool_snapshot *s)
{
	double all = 0, first = 0;

	for (size_t i = 0; i < s->group_count; i++) {
		all += (double)s->groups[i].standby_nodes;
		first += (double)s->groups[i].standby_first;
	}
	return all > 0 && first < all ? first / all : all > 0;
}

static double sigma_of(struct lead lead)
{
	return lead.p50 > 0 && lead.p95 > lead.p50 ? exact_log(lead.p95 / lead.p50) / Z95 : 0;
}

/* Of either kind with its share: taken as log-normal with the same mean and variance of the logarithm. */
static struct lead mixed(struct lead a, struct lead b, double share)
{
	if (share <= 0 || a.p50 <= 0 || b.p50 <= 0)
		return a;
	double x = exact_log(a.p50), y = exact_log(b.p50), mean = (1 - share) * x + share * y;
	double s = sigma_of(a), t = sigma_of(b);
	double variance = (1 - share) * (s * s + (x - mean) * (x - mean)) + share * (t * t + (y - mean) * (y - mean));
	double p50 = exact_exp(mean);
	return (struct lead){ p50, p50 * exact_exp(Z95 * exact_sqrt(variance)) };
}

/* What stands by and never ran has no image on its disk. */
static struct lead wake_believed(const struct lead_state *l, const struct fleet_spec *fleet,
				 const struct pool_spec *spec, double first)
{
	struct lead again = lead_believed(l, fleet, spec, START_WAKE);
	const struct group_spec *g = standby_of(fleet, spec);

	if (!g || first <= 0)
		return again;
	struct lead p = of_quantiles(g->standby_first_lead_time);
	return mixed(again, l->first_wake.n > 0 ? believed(p, &l->first_wake) : p, first);
}

struct tier_leads lead_tiers(const struct lead_state *l, const struct fleet_spec *fleet, const struct pool_spec *spec,
			     double first)
{
	struct tier_leads t = { .cold = lead_believed(l, fleet, spec, START_COLD),
				.wake = wake_believed(l, fleet, spec, first),
				.place = lead_believed(l, fleet, spec, START_PLACE),
				.rouse = lead_believed(l, fleet, spec, START_ROUSE) };

	if (spec->lend_to)
		t.reclaim = lead_believed(l, fleet, spec, START_RECLAIM);
	if (t.cold.p50 < 1)
		t.cold = (struct lead){ 1, 1 };
	t.times = (struct tier_times){ t.cold.p50, t.cold.p95, t.wake.p50, t.wake.p95, t.reclaim.p50, t.reclaim.p95 };
	return t;
}

double lead_quantile(struct lead lead, int i, int n)
{
	return lead.p50 * exact_exp(sigma_of(lead) * exact_normal_quantile((i + .5) / n));
}

double lead_remaining(struct lead lead, double age)
{
	enum { GRID = 32 };
	int first = 0;

	while (first < GRID && lead_quantile(lead, first, GRID) <= age)
		first++;
	if (first == GRID)
		return 0;
	return lead_quantile(lead, first + (GRID - first) / 2, GRID) - age;
}

double lead_overdue(struct lead lead)
{
	return lead.p50 * exact_exp(sigma_of(lead) * Z99);
}

bool lead_is_overdue(struct lead lead, double age)
{
	return lead.p50 > 0 && age > 1.5 * lead_overdue(lead);
}
