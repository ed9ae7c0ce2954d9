#include "controller/simulation/files/timeline.h"

#include "base/json.h"
#include "base/file.h"

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

static void write_row(struct buf *out, millis end, const struct pool_spec *pool, const struct tick_result *r)
{
	const int64_t counts[] = { r->arrived,		r->started, r->late,	 r->waiting,  r->running,
				   r->running_draining, r->ready,   r->starting, r->draining, r->standby };

	write_seconds(out, end);
	buf_append(out, ",", 1);
	buf_text(out, pool->name);
	for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
		buf_append(out, ",", 1);
		write_number(out, counts[i], 1);
	}
	buf_append(out, ",", 1);
	write_seconds(out, r->gpu_ms);
	buf_append(out, ",", 1);
	if (!pool->is_unpriced) {
		write_number(out, r->micro_dollars / 1000000, 1);
		buf_append(out, ".", 1);
		write_number(out, r->micro_dollars % 1000000, 6);
	}
	buf_append(out, "\n", 1);
}

bool timeline_tick(void *timeline, const struct tick_view *v, struct error *e)
{
	struct timeline *t = timeline;

	(void)e; /* output_commit() tells */
	buf_clear(&t->row);
	for (size_t i = 0; i < v->snapshot->fleet->pool_count; i++)
		write_row(&t->row, v->end, &v->snapshot->fleet->pools[i], &v->results[i]);
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

static void write_score(const struct pool_spec *pool, const struct score *s, const char *indent, struct buf *out)
{
	buf_printf(out, "%s\"requests\": %" PRId64 ",\n", indent, s->requests);
	buf_printf(out, "%s\"late\": %" PRId64 ",\n", indent, s->late);
	buf_printf(out, "%s\"late_share\": %.8f,\n", indent, score_late_share(s));
	buf_printf(out, "%s\"draws\": %" PRId64 ",\n", indent, s->draws);
	buf_printf(out, "%s\"draws_met\": %" PRId64 ",\n", indent, s->draws_met);
	buf_printf(out, "%s\"late_share_least\": %.8f,\n", indent, s->late_least);
	buf_printf(out, "%s\"late_share_most\": %.8f,\n", indent, s->late_most);
	buf_printf(out, "%s\"gave_up\": %" PRId64 ",\n", indent, s->gave_up);
	buf_printf(out, "%s\"started\": %" PRId64 ",\n", indent, s->started);
	buf_printf(out, "%s\"waiting_at_end\": %" PRId64 ",\n", indent, s->waiting);
	buf_printf(out, "%s\"wait_p50_s\": ", indent);
	score_write_wait(s, s->wait_p50, out);
	buf_printf(out, ",\n%s\"wait_p99_s\": ", indent);
	score_write_wait(s, s->wait_p99, out);
	buf_text(out, ",\n");
	buf_printf(out, "%s\"gpu_hours\": %.4f,\n", indent, score_gpu_hours(s));
	buf_printf(out, "%s\"dollars\": ", indent);
	score_write_dollars(pool, s->micro_dollars, out);
	buf_text(out, ",\n");
	buf_printf(out, "%s\"starts\": %" PRId64 ",\n", indent, s->starts);
	buf_printf(out, "%s\"removals\": %" PRId64 ",\n", indent, s->removals);
	buf_printf(out, "%s\"lost\": %" PRId64 ",\n", indent, s->lost);
	buf_printf(out, "%s\"refused\": %" PRId64 ",\n", indent, s->refused);
	buf_printf(out, "%s\"standby_gpu_hours\": %.4f,\n", indent, (double)s->standby_gpu_ms / (double)HOUR);
	buf_printf(out, "%s\"lent_replica_hours\": %.4f,\n", indent, (double)s->lent_replica_ms / (double)HOUR);
	buf_printf(out, "%s\"batch_lost_hours\": %.4f", indent, (double)s->batch_lost_ms / (double)HOUR);
}

/* What the ticks in timeline.csv and history.db add up to. */
static void write_first(const struct pool_spec *pool, const struct score *s, struct buf *out)
{
	buf_printf(out,
		   ",\n      \"first_draw\": { \"late\": %" PRId64 ", \"late_share\": %.8f, \"gpu_hours\": %.4f, "
		   "\"dollars\": ",
		   s->late, score_late_share(s), score_gpu_hours(s));
	score_write_dollars(pool, s->micro_dollars, out);
	buf_printf(out, ", \"starts\": %" PRId64 ", \"removals\": %" PRId64 " }", s->starts, s->removals);
}

static void write_classes(const struct pool_spec *pool, const struct pool_score *p, struct buf *out)
{
	if (!p->class_count)
		return;
	buf_text(out, ",\n      \"classes\": {");
	for (size_t i = 0; i < p->class_count; i++) {
		const struct class_score *c = &p->classes[i];
		buf_text(out, i ? ",\n        " : "\n        ");
		json_write_text(c->name, out);
		buf_printf(out, ": { \"requests\": %" PRId64 ", \"late\": %" PRId64 ", \"slot_hours\": %.4f, ",
			   c->requests, c->late, (double)c->slot_ms / (double)HOUR);
		buf_text(out, "\"dollars\": ");
		score_write_dollars(pool, c->micro_dollars, out);
		buf_text(out, " }");
	}
	buf_text(out, "\n      }");
}

void summary_json(const struct summary_run *run, const struct run_result *result, struct buf *out)
{
	buf_text(out, "{\n  \"program\": ");
	json_write_text(run->program, out);
	buf_text(out, ",\n  \"policy\": ");
	json_write_text(run->policy, out);
	buf_text(out, ",\n  \"setting\": ");
	json_write_text(run->setting, out);
	buf_printf(out, ",\n  \"seed\": %" PRIu64, run->seed);
	buf_printf(out, ",\n  \"tick_s\": %.3f", (double)run->interval / 1000);
	buf_printf(out, ",\n  \"warm_up_s\": %.3f", (double)run->warm_up / 1000);
	buf_printf(out, ",\n  \"simulated_s\": %.3f", (double)result->simulated / 1000);
	buf_printf(out, ",\n  \"complete\": %s", result->stopped ? "false" : "true");
	if (run->recorded)
		buf_printf(out, ",\n  \"recorded\": %s", run->recorded);
	buf_text(out, ",\n  \"pools\": {");
	for (size_t i = 0; i < run->fleet->pool_count; i++) {
		const struct pool_spec *pool = &run->fleet->pools[i];

		buf_text(out, i ? ",\n    " : "\n    ");
		json_write_text(pool->name, out);
		buf_text(out, ": {\n");
		write_score(pool, &result->pools[i].whole, "      ", out);
		buf_text(out, ",\n      \"scored\": {\n");
		write_score(pool, &result->pools[i].scored, "        ", out);
		buf_text(out, "\n      }");
		if (run->first)
			write_first(pool, &run->first[i].whole, out);
		write_classes(pool, &result->pools[i], out);
		buf_text(out, "\n    }");
	}
	buf_text(out, "\n  }\n}\n");
}
