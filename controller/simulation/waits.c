#include "controller/simulation/waits.h"

#include <stddef.h>

/* Up to WAITS_STEPS ms exact; beyond, WAITS_STEPS steps for each doubling. */
static size_t step_of(millis wait)
{
	if (wait < WAITS_STEPS)
		return wait > 0 ? (size_t)wait : 0;
	int shift = 63 - __builtin_clzll((unsigned long long)wait) - 5;
	size_t step = (size_t)(shift + 1) * WAITS_STEPS + ((size_t)(wait >> shift) - WAITS_STEPS);

	return step < WAITS_COUNT ? step : WAITS_COUNT - 1;
}

static millis middle_of(size_t step)
{
	if (step < WAITS_STEPS)
		return (millis)step;
	int shift = (int)(step / WAITS_STEPS) - 1;
	millis first = ((millis)(step % WAITS_STEPS) + WAITS_STEPS) << shift;

	return first + (((millis)1 << shift) - 1) / 2;
}

void waits_add(struct waits *w, millis wait, int64_t count)
{
	w->counts[step_of(wait)] += count;
}

millis waits_quantile(const struct waits *w, const struct waits *before, int64_t permille)
{
	int64_t total = 0, seen = 0;

	for (size_t i = 0; i < WAITS_COUNT; i++)
		total += w->counts[i] - (before ? before->counts[i] : 0);
	if (!total)
		return 0;
	for (size_t i = 0; i < WAITS_COUNT; i++) {
		seen += w->counts[i] - (before ? before->counts[i] : 0);
		if (seen * 1000 >= total * permille)
			return middle_of(i);
	}
	return middle_of(WAITS_COUNT - 1);
}
