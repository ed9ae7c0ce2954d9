#include "controller/policy/capacity.h"

static const double KV_TARGET = .9;	 /* share of the KV cache above which engines preempt */
static const double FIT_KEEP = .9942;	 /* per 15 s tick: half-life of 30 minutes */
static const double LATENCY_SLACK = 1.5; /* times the manifest's inter-token latency that a full replica may take */

static void observe_reading(struct capacity_state *c, const struct scrape_input *r)
{
	if (r->ready <= 0 || r->running < 0)
		return;
	double each = (double)r->running / (double)r->ready;

	/* The first readings of a queue still show replicas filling up. */
	c->queueing_readings = r->waiting > 0 ? c->queueing_readings + 1 : 0;
	if (c->queueing_readings >= QUEUEING_READINGS)
		c->saturated[c->sample_count++ % SATURATED_SAMPLES] = each;
	if (each > c->busiest)
		c->busiest = each;
}

static void observe_latency(struct capacity_state *c, double each, double latency_us)
{
	c->fit_n = c->fit_n * FIT_KEEP + 1;
	c->fit_x = c->fit_x * FIT_KEEP + each;
	c->fit_y = c->fit_y * FIT_KEEP + latency_us;
	c->fit_xx = c->fit_xx * FIT_KEEP + each * each;
	c->fit_xy = c->fit_xy * FIT_KEEP + each * latency_us;
}

void capacity_observe(struct capacity_state *c, const struct pool_snapshot *s)
{
	for (size_t i = 0; i < s->scrape_count; i++)
		observe_reading(c, &s->scrapes[i]);
	if (!s->scrape_count || s->scrapes[s->scrape_count - 1].ready <= 0)
		return;
	const struct scrape_input *last = &s->scrapes[s->scrape_count - 1];
	double each = (double)last->running / (double)last->ready;
	if (s->input.kv_cache_permille != ABSENT && s->input.kv_cache_permille >= 300 && each >= 1) {
		double fits = each * 1000 * KV_TARGET / (double)s->input.kv_cache_permille;
		c->kv_slots = c->kv_slots > 0 ? c->kv_slots * .98 + fits * .02 : fits;
	}
	if (s->input.inter_token_latency_us != ABSENT && s->input.inter_token_latency_us > 0 && each >= 1)
		observe_latency(c, each, (double)s->input.inter_token_latency_us);
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
