#include "controller/simulation/files/timeline.h"

#include "base/output.h"

struct timeline {
	struct arena arena;
	struct output *output;
	struct buf row;
};

struct timeline *timeline_open(const char *path, struct error *e)
{
	struct arena arena = { 0 };
	struct timeline *t = arena_new(&arena, struct timeline);

	t->arena = arena;
	t->output = output_open(path, e);
	if (!t->output) {
		arena_release(&arena);
		return NULL;
	}
	output_text(t->output, "t_s,pool,arrived,started,late,waiting,running,running_draining,ready,starting,"
			       "draining,standby,gpu_seconds,dollars\n");
	return t;
}

/* Rows are most of what a long run writes, so digits are made by hand. */
static void write_number(struct buf *out, int64_t value, int least_digits)
{
	char digits[24];
	size_t at = sizeof digits;

	for (uint64_t left = (uint64_t)value; left || least_digits > 0; left /= 10, least_digits--)
		digits[--at] = (char)('0' + left % 10);
	buf_append(out, digits + at, sizeof digits - at);
}

/* Milliseconds as seconds, without a fraction when there is none. */
static void write_seconds(struct buf *out, millis ms)
{
	write_number(out, ms / SECOND, 1);
	if (ms % SECOND) {
		buf_append(out, ".", 1);
		write_number(out, ms % SECOND, 3);
	}
}

static void write_row(struct buf *out, millis end, const char *pool, const struct tick_result *r)
{
	const int64_t counts[] = { r->arrived,		r->started, r->late,	 r->waiting,  r->running,
				   r->running_draining, r->ready,   r->starting, r->draining, r->standby };

	write_seconds(out, end);
	buf_append(out, ",", 1);
	buf_text(out, pool);
	for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
		buf_append(out, ",", 1);
		write_number(out, counts[i], 1);
	}
	buf_append(out, ",", 1);
	write_seconds(out, r->gpu_ms);
	buf_append(out, ",", 1);
	write_number(out, r->micro_dollars / 1000000, 1);
	buf_append(out, ".", 1);
	write_number(out, r->micro_dollars % 1000000, 6);
	buf_append(out, "\n", 1);
}

bool timeline_tick(void *timeline, const struct tick_view *v, struct error *e)
{
	struct timeline *t = timeline;

	(void)e; /* output_commit() tells */
	buf_clear(&t->row);
	for (size_t i = 0; i < v->snapshot->fleet->pool_count; i++)
		write_row(&t->row, v->end, v->snapshot->fleet->pools[i].name, &v->results[i]);
	output_bytes(t->output, t->row.text, t->row.len);
	return true;
}

static void release(struct timeline *t)
{
	struct arena arena = t->arena; /* the timeline lies in it */

	buf_release(&t->row);
	arena_release(&arena);
}

bool timeline_commit(struct timeline *t, struct error *e)
{
	bool is_done = output_commit(t->output, e);

	release(t);
	return is_done;
}

void timeline_abandon(struct timeline *t)
{
	if (!t)
		return;
	output_abandon(t->output);
	release(t);
}
