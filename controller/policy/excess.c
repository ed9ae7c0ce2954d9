#include "controller/policy/excess.h"

#include "base/exact.h"

static int64_t told(int64_t value)
{
	return value == ABSENT || value < 0 ? 0 : value;
}

static int64_t within(int64_t value, int64_t most)
{
	return value < 0 ? 0 : value < most ? value : most;
}

/* GPU-milliseconds of so many thousandths of a replica over the tick. */
static int64_t gpu_ms_of(const struct cost_tick *t, int64_t milli)
{
	int64_t gpus = t->snapshot->fleet->pools[t->pool].gpus_per_replica;

	return (int64_t)((__int128)told(milli) * gpus * t->elapsed / 1000);
}

/* Up to where the ready replicas are held for each part, in thousandths of a replica. */
static void reaches(const struct pool_decision *d, int64_t out[EXCESS_FLOOR + 1])
{
	double factor = exact_exp((double)told(d->margin_permille) / 1000);
	int64_t low = told(d->low_milli), high = told(d->high_milli), due = told(d->deadline_need_milli);

	out[EXCESS_MARGIN] = (int64_t)((double)told(d->level_milli) * factor + .5) + told(d->chase_milli);
	out[EXCESS_HOLD] = low > high ? low : high;
	out[EXCESS_HOLD] = due > out[EXCESS_HOLD] ? due : out[EXCESS_HOLD];
	out[EXCESS_FLOOR] = told(d->floor) * 1000;
}

/* Of what ready replicas hold idle, which begins where the work ends. */
static void split_idle(const struct cost_tick *t, const struct cost_sums *tick, int64_t work,
		       int64_t part[EXCESS_PARTS])
{
	const struct pool_decision *d = &t->plan->decision;
	int64_t reach[EXCESS_FLOOR + 1], idle = tick->gpu_ms[GPU_IDLE], at = work;
	int64_t left = within(gpu_ms_of(t, told(d->ready) * 1000) - work, idle);

	part[EXCESS_EMPTY] = idle - left;
	reaches(d, reach);
	for (int i = EXCESS_MARGIN; i <= EXCESS_FLOOR; i++) {
		part[i] = within(gpu_ms_of(t, reach[i]) - at, left);
		at += part[i];
		left -= part[i];
	}
	part[EXCESS_LEAVING] = left;
}

/* The dollars of a state by its GPU-milliseconds. */
static void add_dollars(struct excess_sums *sums, int64_t dollars, const enum excess_part *parts, size_t count,
			const int64_t part[EXCESS_PARTS])
{
	int64_t weights[EXCESS_PARTS] = { 0 }, out[EXCESS_PARTS] = { 0 };

	for (size_t i = 0; i < count; i++)
		weights[i] = part[parts[i]];
	cost_spread(dollars, weights, count, out);
	for (size_t i = 0; i < count; i++)
		sums->dollars[parts[i]] += out[i];
}

void excess_add_tick(struct excess_sums *sums, const struct cost_tick *t, int64_t *busy_ppm)
{
	static const enum excess_part serving[] = { EXCESS_WORK, EXCESS_DRAIN };
	static const enum excess_part idle[] = { EXCESS_EMPTY, EXCESS_MARGIN, EXCESS_HOLD, EXCESS_FLOOR,
						 EXCESS_LEAVING };
	struct cost_sums tick = { 0 };
	int64_t part[EXCESS_PARTS] = { 0 };

	cost_add_tick(&tick, t, busy_ppm);
	part[EXCESS_DRAIN] = within(gpu_ms_of(t, told(t->plan->decision.draining) * 1000), tick.gpu_ms[GPU_SERVING]);
	part[EXCESS_WORK] = tick.gpu_ms[GPU_SERVING] - part[EXCESS_DRAIN];
	part[EXCESS_STARTS] = tick.gpu_ms[GPU_STARTING];
	part[EXCESS_LENT] = tick.gpu_ms[GPU_LENT];
	part[EXCESS_STANDBY] = tick.gpu_ms[GPU_STANDBY];
	split_idle(t, &tick, part[EXCESS_WORK], part);
	for (int i = 0; i < EXCESS_PARTS; i++)
		sums->gpu_ms[i] += part[i];
	add_dollars(sums, tick.dollars[GPU_SERVING], serving, sizeof serving / sizeof *serving, part);
	add_dollars(sums, tick.dollars[GPU_IDLE], idle, sizeof idle / sizeof *idle, part);
	sums->dollars[EXCESS_STARTS] += tick.dollars[GPU_STARTING];
	sums->dollars[EXCESS_LENT] += tick.dollars[GPU_LENT];
	sums->dollars[EXCESS_STANDBY] += tick.dollars[GPU_STANDBY];
}

const char *excess_part_name(enum excess_part part)
{
	static const char *const names[EXCESS_PARTS] = { "work",  "margin", "hold",  "floor", "leaving",
							 "empty", "starts", "drain", "lent",  "standby" };

	return names[part];
}
