#include "controller/commands/history_hours.h"

#include "base/table.h"
#include "controller/explain/explain.h"

#include <stdio.h>

static void add_row(struct table *t, const struct question *q, const struct history_hour *h, bool for_programs)
{
	CLEANUP(buf_release) struct buf time = { 0 };
	size_t count;
	const struct history_pool *pools = history_pools(q->history, &count);
	millis at = h->hour * HOUR;

	question_print_time(q, at, for_programs, &time);
	table_text(t, time.text);
	table_text(t, pools[h->pool].name);
	table_count(t, h->ticks);
	table_count(t, h->arrived);
	table_count(t, h->started);
	table_count(t, h->late);
	table_decimal(t, (double)h->replica_ms / HOUR, 2);
	table_decimal(t, (double)h->micro_dollars / 1e6, 2);
	table_count(t, h->asked);
}

bool history_hours_print(struct question *q, const char *output, struct error *e)
{
	static const struct table_column columns[] = {
		{ .name = "hour" },
		{ .name = "pool" },
		{ .name = "ticks", .is_right = true },
		{ .name = "arrived", .is_right = true },
		{ .name = "started", .is_right = true },
		{ .name = "late", .is_right = true },
		{ .name = "replica_hours", .title = "REPLICA HOURS", .is_right = true },
		{ .name = "dollars", .is_right = true },
		{ .name = "changes", .is_right = true },
	};
	enum table_format format = table_format_of(output);
	struct history_hour *hours;
	size_t count;

	if (!history_hours(q->history, q->pool_index, &q->arena, &hours, &count, e))
		return false;
	struct table *t = table_new(columns, sizeof columns / sizeof *columns);
	for (size_t i = 0; i < count; i++)
		add_row(t, q, &hours[i], table_is_for_programs(format));
	table_print(t, format, stdout);
	table_free(t);
	if (!count)
		fprintf(stderr, "No sums: nothing was dropped from %s yet (--retain does that).\n",
			history_path(q->history));
	return true;
}

bool history_hours_retain(struct question *q, millis keep, struct error *e)
{
	int64_t dropped;
	struct history *h = history_edit(history_path(q->history), e);

	if (!h)
		return false;
	if (!history_retain(h, q->span.to - keep, &dropped, e)) {
		history_close(h);
		return false;
	}
	printf("%lld ticks dropped, %lld left; sums per hour stay (--hours)\n", (long long)dropped,
	       (long long)(q->span.last_tick - q->span.first_tick + 1 - dropped));
	return history_finish(h, e);
}
