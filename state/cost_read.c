/* Costs out of the file. */
#include "state/cost.h"
#include "state/history_file.h"

#include <string.h>

const char *cost_label_name(enum cost_label label)
{
	static const char *const names[COST_LABEL_COUNT] = { "cost-center", "product", "environment", "workload-type" };

	return names[label];
}

bool history_has_cost(const struct history *h)
{
	return h->has_cost;
}

static void *as_array(const struct buf *found, struct arena *a)
{
	char *items = arena_alloc(a, found->len + 1, 16);

	if (found->len)
		memcpy(items, found->text, found->len);
	return items;
}

static struct cost_hour hour_of(const struct statement *s)
{
	struct cost_hour hour = {
		db_column_int(s, 0), (size_t)db_column_int(s, 1), (enum pool_class)db_column_int(s, 2), { 0 }
	};
	int64_t values[COST_FIELDS];

	for (int i = 0; i < COST_FIELDS; i++)
		values[i] = db_column_int(s, 3 + i);
	memcpy(&hour.sums, values, sizeof values);
	return hour;
}

bool history_cost_hours(struct history *h, int64_t first, int64_t last, struct arena *a, struct cost_hour **hours,
			size_t *count, struct error *e)
{
	CLEANUP(buf_release) struct buf found = { 0 };
	bool row = h->has_cost;
	struct statement *s =
		row ? db_prepare(h->db, "SELECT * FROM cost WHERE hour BETWEEN ? AND ? ORDER BY hour, pool, class")
		    : NULL;

	if (s) {
		db_bind_int(s, first);
		db_bind_int(s, last);
	}
	while (row) {
		if (!db_step(s, &row, e))
			return false;
		struct cost_hour hour = row ? hour_of(s) : (struct cost_hour){ 0 };
		if (row && hour.pool < h->pool_count && hour.class < CLASS_COUNT)
			buf_append(&found, &hour, sizeof hour);
	}
	*count = found.len / sizeof **hours;
	*hours = as_array(&found, a);
	return true;
}

static struct cost_label_hour label_hour_of(const struct statement *s, struct arena *a)
{
	struct cost_label_hour l = { .hour = db_column_int(s, 0),
				     .pool = (size_t)db_column_int(s, 1),
				     .gpu_ms = db_column_int(s, 2),
				     .dollars = db_column_int(s, 3),
				     .labels.holder = (enum cost_holder)db_column_int(s, 4) };

	for (int i = 0; i < COST_LABEL_COUNT; i++) {
		const char *text = db_column_text(s, 5 + i);
		l.labels.value[i] = arena_strdup(a, text, strlen(text));
	}
	return l;
}

bool history_cost_label_hours(struct history *h, int64_t first, int64_t last, struct arena *a,
			      struct cost_label_hour **hours, size_t *count, struct error *e)
{
	CLEANUP(buf_release) struct buf found = { 0 };
	bool row = h->has_cost;
	struct statement *s =
		row ? db_prepare(h->db, "SELECT hour, pool, gpu_ms, micro_dollars, holder, cost_center, product,"
					" environment, workload_type FROM cost_label JOIN cost_label_set ON id = labels"
					" WHERE hour BETWEEN ? AND ? ORDER BY hour, pool, holder, cost_center, product,"
					" environment, workload_type")
		    : NULL;

	if (s) {
		db_bind_int(s, first);
		db_bind_int(s, last);
	}
	while (row) {
		if (!db_step(s, &row, e))
			return false;
		struct cost_label_hour l = row ? label_hour_of(s, a) : (struct cost_label_hour){ 0 };
		if (row && l.pool < h->pool_count && l.labels.holder < COST_HOLDER_COUNT)
			buf_append(&found, &l, sizeof l);
	}
	*count = found.len / sizeof **hours;
	*hours = as_array(&found, a);
	return true;
}
