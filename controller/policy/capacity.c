#include "controller/policy/capacity.h"

#include "base/exact.h"

static const double KV_TARGET = .9;			      /* share of the KV cache above which engines preempt */
static const double FIT_HALF_LIFE = 1800, KV_HALF_LIFE = 510; /* seconds */
static const double LATENCY_SLACK = 1.5; /* times the manifest's inter-token latency that a full replica may take */

/* Sequences on a full replica: one that became ready lately has room while the queues of others last. Where replicas
 * are not told apart one queue is before all of them. Below 0: none is full. */
static double on_a_full_one(const struct scrape_input *r, double each)
{
	if (r->full == ABSENT)
		return each;
	return r->full > 0 ? (double)r->running_full / (double)r->full : -1;
}

static void observe_reading(struct capacity_state *c, const struct scrape_input *r, double unread)
{
	if (r->ready <= 0 || r->running < 0)
		return;
	double each = (double)r->running * unread / (double)r->ready, full = on_a_full_one(r, each);

	/* A few that wait may all be at one replica, while others have room. The first readings of a queue still show
	 * replicas filling up. */
	c->queueing_readings =
		r->waiting > 0 && (double)r->waiting * unread >= (double)r->ready ? c->queueing_readings + 1 : 0;
	/* Replicas that finish nothing are hung: their emptiness says nothing of what they could hold. */
	if (c->queueing_readings >= QUEUEING_READINGS && r->completed > 0 && full >= 0)
		c->saturated[c->sample_count++ % SATURATED_SAMPLES] = full;
	if (each > c->busiest && unread <= 1)
		c->busiest = each;
}

static double keep_of(millis interval, double half_life)
{
	return exact_exp(-.6931471805599453 * (double)interval / 1000 / half_life);
}

static void observe_latency(struct capacity_state *c, double each, double latency_us, double keep)
{
	c->fit_n = c->fit_n * keep + 1;
	c->fit_x = c->fit_x * keep + each;
	c->fit_y = c->fit_y * keep + latency_us;
	c->fit_xx = c->fit_xx * keep + each * each;
	c->fit_xy = c->fit_xy * keep + each * latency_us;
}

/* Replicas that could not be read run as much as the others. */
static double unread_factor(const struct pool_input *in)
{
	return in->scrapes_fresh > 0 && in->scrapes_expected > in->scrapes_fresh
		       ? (double)in->scrapes_expected / (double)in->scrapes_fresh
		       : 1;
}

void capacity_observe(struct capacity_state *c, const struct pool_snapshot *s, millis interval)
{
	double unread = unread_factor(&s->input);

	for (size_t i = 0; i < s->scrape_count; i++)
		observe_reading(c, &s->scrapes[i], unread);
	if (!s->scrape_count || s->scrapes[s->scrape_count - 1].ready <= 0)
		return;
	const struct scrape_input *last = &s->scrapes[s->scrape_count - 1];
	double each = (double)last->running * unread / (double)last->ready;
	if (s->input.kv_cache_permille != ABSENT && s->input.kv_cache_permille >= 300 && each >= 1) {
		double fits = each * 1000 * KV_TARGET / (double)s->input.kv_cache_permille;
		double keep = keep_of(interval, KV_HALF_LIFE);
		c->kv_slots = c->kv_slots > 0 ? c->kv_slots * keep + fits * (1 - keep) : fits;
	}
	if (s->input.inter_token_latency_us != ABSENT && s->input.inter_token_latency_us > 0 && each >= 1)
		observe_latency(c, each, (double)s->input.inter_token_latency_us, keep_of(interval, FIT_HALF_LIFE));
}

/* 25th percentile of the last saturated samples: insertion into a sorted copy, at most 64. */
static double low_saturated(const struct capacity_state *c)
{
	double sorted[SATURATED_SAMPLES];
	int64_t n = c->sample_count < SATURATED_SAMPLES ? c->sample_count : SATURATED_SAMPLES;

	for (int64_t i = 0; i < n; i++) {
		int64_t at = i;
		for (; at > 0 && sorted[at - 1] > c->saturated[i]; at--)
			sorted[at] = sorted[at - 1];
		sorted[at] = c->saturated[i];
	}
	return sorted[n / 4];
}

/* Sequences at which the fitted line reaches the latency that the manifest allows; 0 when it never does. */
static double latency_slots(const struct capacity_state *c, const struct pool_spec *spec)
{
	double spread = c->fit_n * c->fit_xx - c->fit_x * c->fit_x;

	if (c->fit_n < 20 || spread <= c->fit_x * c->fit_x * .01)
		return 0;
	double slope = (c->fit_n * c->fit_xy - c->fit_x * c->fit_y) / spread;
	double base = (c->fit_y - slope * c->fit_x) / c->fit_n;
	double allowed = LATENCY_SLACK * (double)spec->inter_token_latency_us;
	if (slope <= 0 || base >= allowed)
		return 0;
	return (allowed - base) / slope;
}

struct capacity capacity_believed(const struct capacity_state *c, const struct pool_spec *spec)
{
	struct capacity b = { .slots = (double)spec->max_sequences, .source = SLOTS_PRIOR };
	double by_latency = latency_slots(c, spec);

	if (c->kv_slots > 0 && c->kv_slots < b.slots)
		b = (struct capacity){ c->kv_slots, SLOTS_KV_CACHE };
	if (by_latency > 0 && by_latency < b.slots)
		b = (struct capacity){ by_latency, SLOTS_LATENCY };
	if (c->sample_count >= SATURATED_ENOUGH) {
		b = (struct capacity){ low_saturated(c), SLOTS_SATURATED };
	} else if (c->busiest > b.slots) {
		b = (struct capacity){ c->busiest, SLOTS_SEEN };
	}
	if (b.slots < 1)
		b.slots = 1;
	return b;
}
