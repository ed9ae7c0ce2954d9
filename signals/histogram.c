#include "signals/histogram.h"

#include <stdlib.h>

static void widen(struct histogram_bin *b, const struct histogram_bin *by)
{
	b->above_us = by->above_us < b->above_us ? by->above_us : b->above_us;
	b->up_to_us = by->up_to_us > b->up_to_us ? by->up_to_us : b->up_to_us;
	b->count += by->count;
}

void histogram_add(struct histogram *s, const struct histogram_bin *bin)
{
	if (bin->count <= 0)
		return;
	for (size_t i = 0; i < s->count; i++)
		if (s->bins[i].above_us == bin->above_us && s->bins[i].up_to_us == bin->up_to_us) {
			s->bins[i].count += bin->count;
			return;
		}
	if (s->count < HISTOGRAM_BINS)
		s->bins[s->count++] = *bin;
	else
		widen(&s->bins[HISTOGRAM_BINS - 1], bin);
}

void histogram_merge(struct histogram *s, const struct histogram *more)
{
	for (size_t i = 0; i < more->count; i++)
		histogram_add(s, &more->bins[i]);
}

struct weight {
	int64_t at, count;
};

static int by_place(const void *left, const void *right)
{
	const struct weight *a = left, *b = right;

	return (a->at > b->at) - (a->at < b->at);
}

static int64_t place_of(struct weight *weights, size_t count, __int128 rank)
{
	__int128 sum = 0;

	qsort(weights, count, sizeof *weights, by_place);
	for (size_t i = 0; i < count; i++)
		if ((sum += weights[i].count) >= rank)
			return weights[i].at;
	return weights[count - 1].at;
}

bool histogram_quantile(const struct histogram *s, int percent, int64_t *lower_us, int64_t *upper_us)
{
	static const int64_t one_request = 1000;
	struct weight lower[HISTOGRAM_BINS], upper[HISTOGRAM_BINS];
	__int128 sum = 0;

	for (size_t i = 0; i < s->count; i++) {
		sum += s->bins[i].count;
		lower[i] = (struct weight){ s->bins[i].above_us, s->bins[i].count };
		upper[i] = (struct weight){ s->bins[i].up_to_us, s->bins[i].count };
	}
	if (sum < one_request)
		return false;
	__int128 rank = (sum * percent + 99) / 100;
	*lower_us = place_of(lower, s->count, rank);
	*upper_us = place_of(upper, s->count, rank);
	return true;
}

void histogram_window_add(struct histogram_window *w, millis now, const struct histogram *s)
{
	int64_t minute = now / MINUTE;
	size_t slot = (size_t)(minute % HISTOGRAM_MINUTES);

	if (w->minute[slot] != minute) {
		w->minute[slot] = minute;
		w->spreads[slot].count = 0;
	}
	histogram_merge(&w->spreads[slot], s);
}

struct histogram histogram_window_sum(const struct histogram_window *w, millis now)
{
	struct histogram sum = { .count = 0 };

	for (size_t i = 0; i < HISTOGRAM_MINUTES; i++)
		if (w->minute[i] <= now / MINUTE && now / MINUTE - w->minute[i] < HISTOGRAM_MINUTES)
			histogram_merge(&sum, &w->spreads[i]);
	return sum;
}
