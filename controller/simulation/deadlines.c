#include "controller/simulation/deadlines.h"

void deadlines_open(struct deadline_book *b, millis deadline)
{
	/* A deadline spans at most 14 buckets, so that all that is due and one that is overdue can be shown. */
	*b = (struct deadline_book){ .width = deadline ? deadline / (DEADLINES_SHOWN - 3) + 1 : 0 };
}

static void add_to(int64_t *bucket, int64_t work)
{
	*bucket = work > DEADLINE_WORK_MOST - *bucket ? DEADLINE_WORK_MOST : *bucket + work;
}

void deadlines_add(struct deadline_book *b, millis due, int64_t work)
{
	int64_t number = due / b->width;

	while (number - b->first >= DEADLINE_BUCKETS) {
		int64_t *oldest = &b->work[b->first % DEADLINE_BUCKETS];
		b->first++;
		add_to(&b->work[b->first % DEADLINE_BUCKETS], *oldest);
		*oldest = 0;
	}
	add_to(&b->work[(number > b->first ? number : b->first) % DEADLINE_BUCKETS], work);
}

void deadlines_take(struct deadline_book *b, int64_t work)
{
	for (int64_t i = b->first; work > 0 && i < b->first + DEADLINE_BUCKETS; i++) {
		int64_t *bucket = &b->work[i % DEADLINE_BUCKETS];
		int64_t part = *bucket < work ? *bucket : work;
		*bucket -= part;
		work -= part;
	}
}

size_t deadlines_show(const struct deadline_book *b, millis now, int64_t slots, millis start,
		      struct deadline_input *out)
{
	size_t shown = 0;
	int64_t overdue = 0;

	for (int64_t i = b->first; b->width && i < b->first + DEADLINE_BUCKETS; i++) {
		int64_t work = b->work[i % DEADLINE_BUCKETS] / slots;
		if (i * b->width <= now)
			overdue += work;
		else if (work > 0 && shown < DEADLINES_SHOWN - 1)
			out[1 + shown++] = (struct deadline_input){ .due = start + i * b->width, .work_ms = work };
	}
	if (overdue) {
		out[0] = (struct deadline_input){ .due = start + now, .work_ms = overdue };
		return shown + 1;
	}
	for (size_t i = 0; i < shown; i++)
		out[i] = out[i + 1];
	return shown;
}
