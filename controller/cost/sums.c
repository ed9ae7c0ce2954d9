/* What can be said of sums. */
#include "controller/cost/cost.h"

#include <string.h>

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
	static const char *const names[LATE_CAUSE_COUNT] = { "burst",  "cold-start", "stock-out", "quota",     "max",
							     "budget", "rate",	     "stale",	  "not-acting" };

	return names[cause];
}
