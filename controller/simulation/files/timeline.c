#include "controller/simulation/files/timeline.h"

#include "base/output.h"

#include <inttypes.h>

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

/* Milliseconds as seconds, without a fraction when there is none. */
static void write_seconds(struct buf *out, millis ms)
{
	if (ms % SECOND)
		buf_printf(out, "%" PRId64 ".%03" PRId64, ms / SECOND, ms % SECOND);
	else
		buf_printf(out, "%" PRId64, ms / SECOND);
}

static void write_row(struct buf *out, millis end, const char *pool, const struct tick_result *r)
{
	write_seconds(out, end);
	buf_printf(out,
		   ",%s,%" PRId64 ",%" PRId64 ",%" PRId64 ",%" PRId64 ",%" PRId64 ",%" PRId64 ",%" PRId64 ",%" PRId64
		   ",%" PRId64 ",%" PRId64 ",",
		   pool, r->arrived, r->started, r->late, r->waiting, r->running, r->running_draining, r->ready,
		   r->starting, r->draining, r->standby);
	write_seconds(out, r->gpu_ms);
	buf_printf(out, ",%" PRId64 ".%06" PRId64 "\n", r->micro_dollars / 1000000, r->micro_dollars % 1000000);
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
