#include "controller/loop/stage_times.h"

#include <stdlib.h>
#include <string.h>

static int by_size(const void *a, const void *b)
{
	millis left = *(const millis *)a, right = *(const millis *)b;

	return (left > right) - (left < right);
}

void stage_times_add(struct stage_times *t, millis duration)
{
	t->last[t->count++ % STAGE_TIMES_KEPT] = duration;
}

struct published_stage stage_times_show(const struct stage_times *t)
{
	int64_t n = t->count < STAGE_TIMES_KEPT ? t->count : STAGE_TIMES_KEPT;
	millis sorted[STAGE_TIMES_KEPT];

	if (!n)
		return (struct published_stage){ 0 };
	memcpy(sorted, t->last, (size_t)n * sizeof *sorted);
	qsort(sorted, (size_t)n, sizeof *sorted, by_size);
	return (struct published_stage){ .p50 = sorted[(n * 50 + 99) / 100 - 1],
					 .p95 = sorted[(n * 95 + 99) / 100 - 1],
					 .samples = t->count };
}

void stage_times_note(struct stage_times stages[STAGE_COUNT], const struct pool_snapshot *s)
{
	for (size_t i = 0; i < s->event_count; i++) {
		const struct event_input *e = &s->events[i];
		for (int64_t k = 0; e->what == EVENT_STAGE && k < e->count && k < STAGE_TIMES_KEPT; k++)
			stage_times_add(&stages[e->stage], e->value);
	}
}
