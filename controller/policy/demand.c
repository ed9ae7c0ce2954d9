#include "controller/policy/demand.h"

#include "base/exact.h"

/* Per 15 s. Full replicas tell the service time at once, and a burst often brings longer requests. */
static const double LOG_KEEP = -.0512932943875505, LOG_KEEP_QUEUEING = -.6931471805599453; /* log .95, log .5 */
static const double SMALLEST = .05;
/* While requests queue, all that finished before counts as so many at most: a burst of longer requests is seen at once,
 * and not only once it is over. */
static const double FINISHED_MOST = 300;
/* The more sequences are running, the less chance there is in their number, and the less time tells of demand. */
static const double LEVEL_SECONDS = 60, LEVEL_SECONDS_OF_MANY = 30, MANY_SEQUENCES = 400;
static const millis GONE_AFTER = 2 * MINUTE;
enum { LATEST_TICKS = 8 };

/* A chat turn of common length; corrected by the first completions. */
enum { PRIOR_PROMPT_TOKENS = 1000, PRIOR_OUTPUT_TOKENS = 250 };

/* Slot seconds of a mean request by the manifest, for a pool that has finished none yet. */
static double demand_prior_service(const struct pool_spec *spec)
{
	double prefill = (double)spec->max_sequences * PRIOR_PROMPT_TOKENS /
			 (double)(spec->prefill_tokens_per_second > 0 ? spec->prefill_tokens_per_second : 25000);
	double seconds = prefill + PRIOR_OUTPUT_TOKENS * (double)spec->inter_token_latency_us / 1e6;

	return seconds > .1 ? seconds : .1;
}

struct totals {
	double in_service, waiting, completed, started, late, refused;
	bool started_told;
	int64_t last_in_service, last_waiting;
};

static struct totals sum_readings(const struct pool_snapshot *s)
{
	struct totals t = { .started_told = true };

	for (size_t i = 0; i < s->scrape_count; i++) {
		const struct scrape_input *r = &s->scrapes[i];
		t.in_service += (double)(r->running + r->running_draining);
		t.waiting += (double)r->waiting;
		t.completed += (double)r->completed;
		t.late += (double)(r->late == ABSENT ? 0 : r->late);
		t.refused += (double)r->refused;
		if (r->started == ABSENT)
			t.started_told = false;
		else
			t.started += (double)r->started;
		t.last_in_service = r->running + r->running_draining;
		t.last_waiting = r->waiting;
	}
	return t;
}

/* Less than half of the readings is too little to shrink by, and so is one that contradicts itself, one from before
 * anybody served, or not to know what queues elsewhere; none for two minutes is blindness. */
static enum signal_state judge(struct demand_state *d, const struct pool_snapshot *s, millis now)
{
	int64_t expected = s->input.scrapes_expected, fresh = s->input.scrapes_fresh;
	bool is_news = s->scrape_count > 0 || expected <= 0; /* between two readings the last one stands */

	if (expected <= 0 || (fresh > 0 && fresh >= expected)) {
		d->fresh_at = is_news ? now : d->fresh_at;
		bool is_unread = expected <= 0 && s->input.ready > 0;
		return is_unread || s->input.queue_waiting == ABSENT || s->input.scrapes_disputed > 0 ? SIGNALS_PARTIAL
												      : SIGNALS_FRESH;
	}
	if (fresh * 2 >= expected && fresh > 0) {
		d->fresh_at = is_news ? now : d->fresh_at;
		return SIGNALS_PARTIAL;
	}
	return now - d->fresh_at > GONE_AFTER ? SIGNALS_GONE : SIGNALS_STALE;
}

/* An exact zero right after a busy minute is a broken exporter until it has lasted. */
static bool is_sudden_zero(struct demand_state *d, const struct totals *t, millis now, millis interval, millis limit)
{
	bool zero = t->in_service <= 0 && t->waiting <= 0 && t->completed <= 0 && t->started <= 0;

	if (!zero) {
		d->quiet_since = 0;
		return false;
	}
	if (!d->quiet_since) {
		if (d->busy_rate * (double)interval / 1000 < 10)
			return false;
		d->quiet_since = now;
	}
	return now - d->quiet_since < limit;
}

static void learn_service(struct demand_state *d, const struct totals *t, double admitted, double seconds, double ticks)
{
	bool is_queueing = t->waiting > .02 * t->in_service;
	double keep = exact_exp(ticks * (is_queueing ? LOG_KEEP_QUEUEING : LOG_KEEP));

	if (is_queueing && d->finished * keep > FINISHED_MOST)
		keep = FINISHED_MOST / d->finished;
	d->busy = d->busy * keep + t->in_service * seconds;
	d->finished = d->finished * keep + (t->completed > admitted ? t->completed : admitted);
}

/* After a silence the level begins anew: what was before it is no part of the last minute. */
static void set_level(struct demand_state *d, const struct demand_reading *r, double slots, bool was_silent)
{
	double sum = 0, tick = r->seconds * (double)r->readings;
	bool is_many = d->level * slots >= MANY_SEQUENCES;
	int64_t n = (int64_t)((is_many ? LEVEL_SECONDS_OF_MANY : LEVEL_SECONDS) / tick + .5), least = is_many ? 2 : 4;

	n = n < least ? least : n > LEVEL_TICKS_MOST ? LEVEL_TICKS_MOST : n;
	n = n < d->level_count + 1 ? n : d->level_count + 1;
	if (r->readings) {
		d->mean = 0;
		for (size_t i = 0; i < r->readings; i++)
			d->mean += r->demand[i] / (double)r->readings;
	}
	d->recent[d->level_count % LEVEL_TICKS_MOST] = d->mean;
	for (int64_t i = 0; was_silent && i < LEVEL_TICKS_MOST; i++)
		d->recent[i] = d->mean;
	for (int64_t i = 0; i < n; i++)
		sum += d->recent[(uint64_t)(d->level_count - i) % LEVEL_TICKS_MOST];
	d->level = sum / (double)n;
	if (d->level_room)
		d->levels[d->level_count % d->level_room] = d->level;
	d->level_count++;
}

/* Requests that arrived between the reading before and this one. */
static double arrived_between(const struct scrape_input *r, const struct scrape_input *before)
{
	double started = r->started != ABSENT ? (double)r->started
					      : (double)(r->completed + r->running + r->running_draining -
							 before->running - before->running_draining);
	double arrived = started + (double)r->refused + (double)(r->waiting - before->waiting);

	return arrived > 0 ? arrived : 0;
}

/* Demand at each reading: what is in service, or, while requests queue, what the arrivals would occupy on an
 * unlimited fleet, which it approaches with the service time. */
static void read_demand(const struct demand_state *d, const struct pool_snapshot *s, double slots, double scale,
			struct demand_reading *r)
{
	struct scrape_input before = { .running = d->last_in_service, .waiting = d->last_waiting };
	double x = d->last, step = 1 - exact_exp(-r->seconds / r->service);

	for (size_t i = 0; i < r->readings; i++) {
		const struct scrape_input *in = &s->scrapes[i];
		double in_service = (double)(in->running + in->running_draining);
		double arrived = arrived_between(in, &before);
		r->arrived += arrived;
		if ((double)in->waiting > .02 * in_service || (double)before.waiting > .02 * in_service)
			x += step * (arrived / r->seconds * r->service * scale / slots - x);
		else
			x = (in_service + (double)in->waiting) * scale / slots;
		r->demand[i] = x > SMALLEST || x <= 0 ? x : SMALLEST;
		before = *in;
	}
}

static void forget_the_tick(struct demand_state *d, struct demand_reading *r, double interval)
{
	r->readings = 1;
	r->seconds = interval;
	r->demand[0] = d->mean;
	r->arrived = r->started = r->late = 0;
	r->in_service = (double)d->last_in_service;
	r->waiting = (double)d->last_waiting;
}

/* The tick's readings are sound: takes them in. */
static void observe_trusted(struct demand_state *d, const struct pool_snapshot *s, const struct totals *t, double slots,
			    struct demand_reading *r)
{
	double n = (double)s->scrape_count, seconds = r->seconds * (double)r->readings;
	double fresh = (double)s->input.scrapes_fresh, expected = (double)s->input.scrapes_expected;

	r->in_service = t->in_service / n;
	r->waiting = t->waiting / n;
	r->late = t->late + t->refused;
	read_demand(d, s, slots, fresh > 0 && expected > fresh ? expected / fresh : 1, r);
	d->last = r->demand[r->readings - 1];
	d->last_in_service = t->last_in_service;
	d->last_waiting = t->last_waiting;
	d->busy_rate = d->busy_rate * .75 + .25 * r->arrived / seconds;
}

/* The manifest's guess counts as a twentieth of a request: it rules a pool that has finished nothing, and gives way
 * when requests turn out to run for long. */
static double service_of(const struct demand_state *d, const struct pool_spec *spec)
{
	const double weight = .05;

	return (d->busy + weight * demand_prior_service(spec)) / (d->finished + weight);
}

/* Readings tell of all that happened since those before. A tick may come late; after a longer silence counters begin
 * anew. */
static millis covered(const struct demand_state *d, const struct snapshot *all)
{
	millis since = all->now - d->fresh_at;

	return since > all->interval + all->interval / 2 && since <= LATEST_TICKS * all->interval ? since
												  : all->interval;
}

struct demand_reading demand_observe(struct demand_state *d, const struct snapshot *all, size_t pool, double slots,
				     millis quiet_limit)
{
	const struct pool_snapshot *s = &all->pools[pool];
	const struct pool_spec *spec = &all->fleet->pools[pool];
	/* Before judge(), which notes this tick. */
	double seconds = (double)covered(d, all) / 1000;
	bool was_silent = all->now - d->fresh_at > LATEST_TICKS * all->interval;
	struct demand_reading r = { .signals = judge(d, s, all->now) };
	struct totals t = sum_readings(s);

	if (s->scrape_count && r.signals <= SIGNALS_PARTIAL &&
	    is_sudden_zero(d, &t, all->now, all->interval, quiet_limit))
		r.signals = SIGNALS_STALE;
	if (s->scrape_count && r.signals <= SIGNALS_PARTIAL) {
		double admitted = t.completed + (double)(t.last_in_service - d->last_in_service);
		r.started = t.started_told ? t.started : admitted > 0 ? admitted : 0;
		r.readings = s->scrape_count < SCRAPES_MAX ? s->scrape_count : SCRAPES_MAX;
		r.seconds = seconds / (double)r.readings;
		learn_service(d, &t, r.started, r.seconds, seconds / 15);
		r.service = service_of(d, spec);
		observe_trusted(d, s, &t, slots, &r);
		r.started += t.refused; /* they held no slot, and nobody was served too late more surely */
	} else {
		r.service = service_of(d, spec);
		forget_the_tick(d, &r, (double)all->interval / 1000);
	}
	set_level(d, &r, slots, was_silent && s->scrape_count && r.signals <= SIGNALS_PARTIAL);
	return r;
}

struct demand_reading demand_recall(const struct demand_state *d, const struct pool_spec *spec)
{
	return (struct demand_reading){ .in_service = (double)d->last_in_service,
					.waiting = (double)d->last_waiting,
					.service = service_of(d, spec) };
}

double demand_peak(const struct demand_state *d, int64_t ticks)
{
	double peak = 0;

	if (ticks > d->level_count)
		ticks = d->level_count;
	if (ticks > d->level_room)
		ticks = d->level_room;
	for (int64_t i = 1; i <= ticks; i++) {
		double level = d->levels[(d->level_count - i) % d->level_room];
		if (level > peak)
			peak = level;
	}
	return peak;
}
