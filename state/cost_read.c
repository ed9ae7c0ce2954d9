/* Costs out of the file. */
#include "state/cost.h"
#include "state/rows.h"

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

static bool is_missing(const struct rows *r, struct error *e)
{
	return error_set(e, ERROR_INVALID, "%s: damaged: costs of a pool or kind that is not there",
			 db_path(r->history->db));
}

static bool take_hour(struct rows *r, const struct statement *s, struct error *e)
{
	struct cost_hour hour = { .hour = db_column_int(s, 0), .pool = (size_t)db_column_int(s, 1) };
	int64_t values[COST_FIELDS], class = db_column_int(s, 2);

	for (int i = 0; i < COST_FIELDS; i++)
		values[i] = db_column_int(s, 3 + i);
	if (!rows_check_hour(r, hour.hour, values, COST_FIELDS, e))
		return false;
	if (hour.pool >= r->history->pool_count || class < 0 || class >= CLASS_COUNT)
		return is_missing(r, e);
	hour.class = (enum pool_class) class;
	memcpy(&hour.sums, values, sizeof values);
	buf_append(&r->found, &hour, sizeof hour);
	return true;
}

static bool take_label(struct rows *r, const struct statement *s, struct error *e)
{
	struct cost_label_hour l = { .hour = db_column_int(s, 0),
				     .pool = (size_t)db_column_int(s, 1),
				     .gpu_ms = db_column_int(s, 2),
				     .dollars = db_column_int(s, 3) };
	const int64_t sums[] = { l.gpu_ms, l.dollars }, holder = db_column_int(s, 4);

	if (!rows_check_hour(r, l.hour, sums, 2, e))
		return false;
	if (l.pool >= r->history->pool_count || holder < 0 || holder >= COST_HOLDER_COUNT)
		return is_missing(r, e);
	l.labels.holder = (enum cost_holder)holder;
	for (int i = 0; i < COST_LABEL_COUNT; i++)
		l.labels.value[i] = rows_text(r, s, 5 + i);
	buf_append(&r->found, &l, sizeof l);
	return true;
}

static bool read_range(struct rows *r, const char *sql, struct hour_range range, rows_take_fn *take, struct error *e)
{
	if (!r->history->has_cost)
		return true;
	struct statement *s = db_prepare(r->history->db, sql);
	db_bind_int(s, range.first);
	db_bind_int(s, range.last);
	return rows_read(r, s, take, e);
}

bool history_cost_hours(struct history *h, struct hour_range range, struct arena *a, struct cost_hour **hours,
			size_t *count, struct error *e)
{
	struct rows r = { .history = h, .arena = a };

	if (!read_range(&r, "SELECT * FROM cost WHERE hour BETWEEN ? AND ? ORDER BY hour, pool, class", range,
			take_hour, e))
		return false;
	*hours = rows_array(&r, sizeof **hours, count);
	return true;
}

static bool take_total(struct rows *r, const struct statement *s, struct error *e)
{
	struct cost_total total = { .first_hour = db_column_int(s, 0), .last_hour = db_column_int(s, 3 + COST_FIELDS) };
	int64_t values[COST_FIELDS], pool = db_column_int(s, 1), class = db_column_int(s, 2);

	for (int i = 0; i < COST_FIELDS; i++)
		values[i] = db_column_int(s, 3 + i);
	if (!rows_check_hour(r, total.first_hour, values, COST_FIELDS, e))
		return false;
	if (pool < 0 || (size_t)pool >= r->history->pool_count || class < 0 || class >= CLASS_COUNT)
		return is_missing(r, e);
	total.pool = (size_t)pool;
	total.class = (enum pool_class) class;
	memcpy(&total.sums, values, sizeof values);
	buf_append(&r->found, &total, sizeof total);
	return true;
}

bool history_cost_totals(struct history *h, struct hour_range range, struct arena *a, struct cost_total **totals,
			 size_t *count, struct error *e)
{
	struct rows r = { .history = h, .arena = a };

	if (!read_range(&r,
			"SELECT min(hour), pool, class, "
			"CAST(sum(watched_ms) AS INTEGER), CAST(sum(idle_gpu_ms) AS INTEGER), CAST(sum(lent_gpu_ms) AS "
			"INTEGER), CAST(sum(starting_gpu_ms) AS INTEGER), "
			"CAST(sum(serving_gpu_ms) AS INTEGER), CAST(sum(standby_gpu_ms) AS INTEGER), "
			"CAST(sum(idle_micro_dollars) AS INTEGER), "
			"CAST(sum(lent_micro_dollars) AS INTEGER), CAST(sum(starting_micro_dollars) AS INTEGER), "
			"CAST(sum(serving_micro_dollars) AS INTEGER), "
			"CAST(sum(standby_micro_dollars) AS INTEGER), CAST(sum(blind_gpu_ms) AS INTEGER), "
			"CAST(sum(arrived) AS INTEGER), CAST(sum(started) AS INTEGER), "
			"CAST(sum(late) AS INTEGER), CAST(sum(completed) AS INTEGER), CAST(sum(prompt_tokens) AS "
			"INTEGER), CAST(sum(output_tokens) AS INTEGER), CAST(sum(late_burst) AS INTEGER), "
			"CAST(sum(late_cold_start) AS INTEGER), CAST(sum(late_stock_out) AS INTEGER), "
			"CAST(sum(late_quota) AS INTEGER), CAST(sum(late_max) AS INTEGER), "
			"CAST(sum(late_budget) AS INTEGER), CAST(sum(late_rate) AS INTEGER), CAST(sum(late_stale) AS "
			"INTEGER), CAST(sum(late_not_acting) AS INTEGER), "
			"max(hour) FROM cost WHERE hour BETWEEN ? AND ? GROUP BY pool, class ORDER BY pool, class",
			range, take_total, e))
		return false;
	*totals = rows_array(&r, sizeof **totals, count);
	return true;
}

bool history_cost_label_hours(struct history *h, struct hour_range range, struct arena *a,
			      struct cost_label_hour **hours, size_t *count, struct error *e)
{
	struct rows r = { .history = h, .arena = a };

	if (!read_range(&r,
			"SELECT hour, pool, gpu_ms, micro_dollars, holder, cost_center, product, environment,"
			" workload_type FROM cost_label JOIN cost_label_set ON id = labels WHERE hour BETWEEN ? AND ?"
			" ORDER BY hour, pool, holder, cost_center, product, environment, workload_type",
			range, take_label, e))
		return false;
	*hours = rows_array(&r, sizeof **hours, count);
	return true;
}

bool history_cost_label_totals(struct history *h, struct hour_range range, struct arena *a,
			       struct cost_label_hour **totals, size_t *count, struct error *e)
{
	struct rows r = { .history = h, .arena = a };

	if (!read_range(&r,
			"SELECT min(hour), pool, CAST(sum(gpu_ms) AS INTEGER), CAST(sum(micro_dollars) AS INTEGER), "
			"holder, cost_center, product,"
			" environment, workload_type FROM cost_label JOIN cost_label_set ON id = labels"
			" WHERE hour BETWEEN ? AND ? GROUP BY pool, holder, cost_center, product, environment,"
			" workload_type ORDER BY pool, holder, cost_center, product, environment, workload_type",
			range, take_label, e))
		return false;
	*totals = rows_array(&r, sizeof **totals, count);
	return true;
}
