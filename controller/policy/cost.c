#include "controller/policy/cost.h"

#include <string.h>

static const int64_t PPM = 1000000;

static int64_t less(int64_t a, int64_t b)
{
	return a < b ? a : b;
}

static int64_t told(int64_t value)
{
	return value == ABSENT || value < 0 ? 0 : value;
}

void cost_spread(int64_t total, const int64_t *weights, size_t count, int64_t *out)
{
	__int128 all = 0;
	int64_t left = total;

	for (size_t i = 0; i < count; i++)
		all += weights[i];
	for (size_t i = 0; i < count; i++) {
		out[i] = all > 0 ? (int64_t)(total * (__int128)weights[i] / all) : 0;
		left -= out[i];
	}
	if (all <= 0 && count > 0)
		out[0] = left;
	while (all > 0 && left > 0) { /* fewer than `count`, and only where something remains */
		__int128 most = -1;
		size_t at = 0;

		for (size_t i = 0; i < count; i++) {
			__int128 rest = total * (__int128)weights[i] - out[i] * all;
			if (rest > most) {
				most = rest;
				at = i;
			}
		}
		out[at]++;
		left--;
	}
}

/* Up to `at` at a constant rate, in whole units: differences of it lose nothing over time. */
static int64_t until(__int128 rate, __int128 per, millis at)
{
	return (int64_t)(rate * at / per);
}

/* --- how busy --- */

static int64_t slots_milli(const struct pool_spec *p, const struct pool_decision *d)
{
	return d->slots_milli > 0 ? d->slots_milli : p->max_sequences * 1000;
}

/* Share of the slots of ready replicas that ran a sequence, mean over the readings of the tick. */
static void read_busy(const struct cost_tick *t, int64_t *busy_ppm)
{
	const struct pool_snapshot *in = &t->snapshot->pools[t->pool];
	int64_t slots = slots_milli(&t->snapshot->fleet->pools[t->pool], &t->plan->decision);
	int64_t sum = 0, count = 0;

	for (size_t i = 0; i < in->scrape_count; i++) {
		const struct scrape_input *s = &in->scrapes[i];
		__int128 room = (__int128)told(s->ready) * slots;
		if (room <= 0 || s->running == ABSENT)
			continue;
		__int128 share = (__int128)told(s->running) * 1000 * PPM / room;
		sum += share > PPM ? PPM : (int64_t)share;
		count++;
	}
	if (count > 0)
		*busy_ppm = sum / count;
	else if (t->plan->decision.signals >= SIGNALS_STALE)
		*busy_ppm = ABSENT;
}

/* --- levels of one group, in thousandths of a GPU --- */

static int64_t take(int64_t *left, int64_t wanted)
{
	int64_t got = less(*left, wanted);

	*left -= got;
	return got;
}

static int64_t starting_in(const struct pool_snapshot *in, size_t group)
{
	int64_t count = 0;

	for (size_t i = 0; i < in->start_count; i++)
		count += in->starts[i].group == (int64_t)group ? told(in->starts[i].count) : 0;
	return count;
}

/* The billed GPUs of a pool in a group, each in one state. */
static void levels(const struct cost_tick *t, size_t group, int64_t busy_ppm, int64_t out[GPU_STATE_COUNT])
{
	const struct pool_snapshot *in = &t->snapshot->pools[t->pool];
	const struct group_input *g = &in->groups[group];
	int64_t each = t->snapshot->fleet->pools[t->pool].gpus_per_replica * 1000, left = told(g->billed_gpus_milli);
	int64_t ready = take(&left, told(g->ready) * each), draining = take(&left, told(g->draining) * each);
	int64_t busy = busy_ppm == ABSENT ? ready : (int64_t)((__int128)ready * busy_ppm / PPM);

	out[GPU_STARTING] = take(&left, starting_in(in, group) * each);
	out[GPU_LENT] = take(&left, told(g->lent) * each);
	out[GPU_SERVING] = draining + busy;
	out[GPU_IDLE] = left + ready - busy;
}

/* Stopped machines are on the bill of the first pool that uses the group. */
static int64_t standby_milli(const struct cost_tick *t, size_t position)
{
	const struct fleet_spec *fleet = t->snapshot->fleet;
	size_t group = fleet->pools[t->pool].groups[position];

	for (size_t i = 0; i < fleet->pool_count && i <= t->pool; i++)
		if (pool_uses_group(fleet, i, group) != (i == t->pool))
			return 0;
	return told(t->snapshot->pools[t->pool].groups[position].standby_nodes) * fleet->groups[group].gpus_per_node *
	       1000;
}

/* --- a tick --- */

static void add_group(struct cost_sums *sums, const struct cost_tick *t, size_t position, int64_t busy_ppm)
{
	const struct fleet_spec *fleet = t->snapshot->fleet;
	const struct group_spec *g = &fleet->groups[fleet->pools[t->pool].groups[position]];
	millis end = t->snapshot->now, begin = end - t->elapsed;
	int64_t level[GPU_STATE_COUNT], part[GPU_STATE_COUNT], billed = 0;

	levels(t, position, busy_ppm, level);
	level[GPU_STANDBY] = standby_milli(t, position);
	for (int i = 0; i < GPU_BILLED_STATES; i++)
		billed += level[i];
	cost_spread(until(billed, 1000, end) - until(billed, 1000, begin), level, GPU_BILLED_STATES, part);
	part[GPU_STANDBY] = until(level[GPU_STANDBY], 1000, end) - until(level[GPU_STANDBY], 1000, begin);
	for (int i = 0; i < GPU_STATE_COUNT; i++)
		sums->gpu_ms[i] += part[i];
	if (busy_ppm == ABSENT)
		sums->blind_gpu_ms += part[GPU_SERVING];
	__int128 hour = (__int128)(g->gpus_per_node > 0 ? g->gpus_per_node : 1) * 1000 * HOUR;
	__int128 rate = (__int128)billed * g->price_per_hour;
	cost_spread(until(rate, hour, end) - until(rate, hour, begin), level, GPU_BILLED_STATES, part);
	rate = (__int128)level[GPU_STANDBY] * ((__int128)g->price_per_hour * g->standby_price_ppm / PPM);
	part[GPU_STANDBY] = until(rate, hour, end) - until(rate, hour, begin);
	for (int i = 0; i < GPU_STATE_COUNT; i++)
		sums->dollars[i] += part[i];
}

static enum late_cause cause_of_limit(int64_t limit)
{
	switch ((enum limit)limit) {
	case LIMIT_STOCKOUT:
	case LIMIT_UNAVAILABLE: /* it gave none */
		return LATE_STOCKOUT;
	case LIMIT_QUOTA:
		return LATE_QUOTA;
	case LIMIT_MAX:
		return LATE_MAX;
	case LIMIT_BUDGET:
		return LATE_BUDGET;
	case LIMIT_RATE:
	case LIMIT_GROWTH:
		return LATE_RATE;
	case LIMIT_STALE:
		return LATE_STALE;
	case LIMIT_OBSERVE:
	case LIMIT_PAUSED:
		return LATE_NOT_ACTING;
	case LIMIT_SHARE:
		return LATE_STARTING;
	case LIMIT_NONE:
	case LIMIT_MIN:
	case LIMIT_COOLDOWN:
	case LIMIT_QUEUE:
	case LIMIT_WHOLE_NODE:
	case LIMIT_ASLEEP:
	case LIMIT_RESERVATION:
	case LIMIT_GANG:
	case LIMIT_PODS:
	case LIMIT_COUNT:
		break;
	}
	return LATE_BURST;
}

/* Also what has come just now: requests that waited for it start then. */
static bool waited_for_start(const struct pool_snapshot *in, const struct pool_plan *p)
{
	if (told(p->decision.on_the_way) > 0)
		return true;
	for (size_t i = 0; i < in->event_count; i++)
		if (in->events[i].what == EVENT_SERVING && in->events[i].kind != START_REFILL)
			return true;
	return false;
}

/* What the pool says of itself, else a group that had none to give, else a start. */
static enum late_cause cause_of(const struct pool_snapshot *in, const struct pool_plan *p)
{
	enum late_cause cause = cause_of_limit(p->decision.held_by);

	for (size_t i = 0; i < p->group_count && cause == LATE_BURST; i++)
		if (limit_is_refusal((enum limit)p->groups[i].held_by))
			cause = cause_of_limit(p->groups[i].held_by);
	return cause == LATE_BURST && waited_for_start(in, p) ? LATE_STARTING : cause;
}

static void add_requests(struct cost_sums *sums, const struct cost_tick *t)
{
	const struct pool_snapshot *in = &t->snapshot->pools[t->pool];
	const struct pool_decision *d = &t->plan->decision;

	const struct cost_requests as_told = { told(d->arrived), told(d->started), told(d->late) };
	const struct cost_requests *r = t->requests ? t->requests : &as_told;

	if (t->snapshot->fleet->pools[t->pool].is_stock)
		return; /* its slots are no requests: those are on the bills of the share's pools */

	sums->arrived += r->arrived;
	sums->started += r->started;
	sums->late += r->late;
	sums->late_by[cause_of(in, t->plan)] += r->late;
	for (size_t i = 0; i < in->scrape_count; i++) {
		sums->completed += told(in->scrapes[i].completed);
		sums->prompt_tokens += told(in->scrapes[i].prompt_tokens);
		sums->output_tokens += told(in->scrapes[i].output_tokens);
	}
}

void cost_add_tick(struct cost_sums *sums, const struct cost_tick *t, int64_t *busy_ppm)
{
	size_t groups = t->snapshot->fleet->pools[t->pool].group_count;

	read_busy(t, busy_ppm);
	sums->watched_ms += t->elapsed;
	for (size_t i = 0; i < groups; i++)
		add_group(sums, t, i, *busy_ppm);
	add_requests(sums, t);
}

void cost_meter(struct cost_sums *tick, int64_t billed_gpu_ms, int64_t micro_dollars)
{
	int64_t part[GPU_STATE_COUNT], serving = tick->gpu_ms[GPU_SERVING];
	bool is_priced = cost_micro_dollars(tick) > 0;

	/* What came and went within the tick is with nobody at its end: idle. */
	cost_spread(micro_dollars, is_priced ? tick->dollars : tick->gpu_ms, GPU_STATE_COUNT, part);
	for (int i = 0; i < GPU_STATE_COUNT; i++)
		tick->dollars[i] = part[i];
	cost_spread(billed_gpu_ms, tick->gpu_ms, GPU_BILLED_STATES, part);
	for (int i = 0; i < GPU_BILLED_STATES; i++)
		tick->gpu_ms[i] = part[i];
	if (serving > 0)
		tick->blind_gpu_ms = (int64_t)((__int128)tick->blind_gpu_ms * tick->gpu_ms[GPU_SERVING] / serving);
}

/* What can be said of sums. */

/* Sums of a file that anybody wrote end at the largest number. */
static int64_t plus(int64_t a, int64_t b)
{
	int64_t sum;

	return __builtin_add_overflow(a, b, &sum) ? INT64_MAX : sum;
}

void cost_add(struct cost_sums *to, const struct cost_sums *more)
{
	int64_t a[COST_FIELDS], b[COST_FIELDS];

	memcpy(a, to, sizeof a);
	memcpy(b, more, sizeof b);
	for (int i = 0; i < COST_FIELDS; i++)
		a[i] = plus(a[i], b[i]);
	memcpy(to, a, sizeof a);
}

int64_t cost_billed_gpu_ms(const struct cost_sums *s)
{
	int64_t sum = 0;

	for (int i = 0; i < GPU_BILLED_STATES; i++)
		sum = plus(sum, s->gpu_ms[i]);
	return sum;
}

int64_t cost_micro_dollars(const struct cost_sums *s)
{
	int64_t sum = 0;

	for (int i = 0; i < GPU_STATE_COUNT; i++)
		sum = plus(sum, s->dollars[i]);
	return sum;
}

int64_t cost_per_1000_tokens(const struct cost_sums *s)
{
	int64_t tokens = s->prompt_tokens + s->output_tokens;

	return tokens > 0 ? (int64_t)((__int128)cost_micro_dollars(s) * 1000000 / tokens) : ABSENT;
}

int64_t cost_per_request(const struct cost_sums *s)
{
	return s->started > 0 ? (int64_t)((__int128)cost_micro_dollars(s) * 1000 / s->started) : ABSENT;
}

const char *gpu_state_name(enum gpu_state state)
{
	static const char *const names[GPU_STATE_COUNT] = { "idle", "lent", "starting", "serving", "standby" };

	return names[state];
}

const char *late_cause_name(enum late_cause cause)
{
	static const char *const names[LATE_CAUSE_COUNT] = { "burst",  "starting", "stock-out", "quota",     "max",
							     "budget", "rate",	   "stale",	"not-acting" };

	return names[cause];
}
