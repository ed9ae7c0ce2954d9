/* Costs on their way into the file: summed up until the transaction of their ticks ends. */
#include "state/cost.h"

#include "state/history_file.h"

#include <string.h>

struct pending_label {
	int64_t hour;
	size_t pool;
	struct cost_labels labels;
	int64_t gpu_ms, dollars;
};

/* A tick that ends with the hour is of that hour. */
static int64_t hour_of(millis at)
{
	return (at - 1) / HOUR;
}

void history_cost(struct history *h, millis at, size_t place, enum pool_class class, const struct cost_sums *tick)
{
	struct fleet_place *p = &h->places[place];
	struct cost_hour *items = (void *)h->costs.text, entry = { hour_of(at), p->pool, class, *tick };

	p->metered_gpu_ms += cost_billed_gpu_ms(tick);
	p->metered_dollars += cost_micro_dollars(tick);
	p->is_metered = true;
	if (p->cost && items[p->cost - 1].hour == entry.hour) {
		cost_add(&items[p->cost - 1].sums, tick);
		return;
	}
	buf_append(&h->costs, &entry, sizeof entry);
	p->cost = h->costs.len / sizeof entry;
}

static struct cost_labels copy_labels(struct history *h, const struct cost_labels *labels)
{
	struct cost_labels copy = *labels;

	for (int i = 0; i < COST_LABEL_COUNT; i++)
		copy.value[i] = arena_strdup(&h->cost_texts, labels->value[i], strlen(labels->value[i]));
	return copy;
}

bool cost_labels_equal(const struct cost_labels *a, const struct cost_labels *b)
{
	bool equal = a->holder == b->holder;

	for (int i = 0; i < COST_LABEL_COUNT; i++)
		equal = equal && strcmp(a->value[i], b->value[i]) == 0;
	return equal;
}

void history_cost_label(struct history *h, millis at, size_t place, const struct cost_labels *labels, int64_t gpu_ms,
			int64_t micro_dollars)
{
	struct pending_label *items = (void *)h->cost_labels.text;
	struct fleet_place *p = &h->places[place];
	struct pending_label entry = { hour_of(at), p->pool, *labels, gpu_ms, micro_dollars };
	size_t count = h->cost_labels.len / sizeof *items;

	for (size_t i = count; p->label && i >= p->label && items[i - 1].hour == entry.hour; i--)
		if (items[i - 1].pool == entry.pool && cost_labels_equal(&items[i - 1].labels, labels)) {
			items[i - 1].gpu_ms += gpu_ms;
			items[i - 1].dollars += micro_dollars;
			return;
		}
	entry.labels = copy_labels(h, labels);
	buf_append(&h->cost_labels, &entry, sizeof entry);
	if (!p->label)
		p->label = count + 1;
}

void history_forget_costs(struct history *h)
{
	buf_clear(&h->costs);
	buf_clear(&h->cost_labels);
	buf_clear(&h->quotas);
	buf_clear(&h->holdings);
	buf_clear(&h->levels);
	buf_clear(&h->lead_times);
	arena_clear(&h->cost_texts);
	for (size_t i = 0; i < h->place_count; i++) {
		h->places[i].cost = h->places[i].label = 0;
		h->places[i].metered_gpu_ms = h->places[i].metered_dollars = 0;
		h->places[i].is_metered = false;
		memset(h->places[i].level, 0, sizeof h->places[i].level);
	}
}

static bool save_hour(struct history *h, const struct cost_hour *c, struct error *e)
{
	struct statement *s = db_prepare(
		h->db, "INSERT INTO cost VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?,"
		       " ?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO UPDATE SET watched_ms = watched_ms + excluded.watched_ms,"
		       " idle_gpu_ms = idle_gpu_ms + excluded.idle_gpu_ms,"
		       " lent_gpu_ms = lent_gpu_ms + excluded.lent_gpu_ms,"
		       " starting_gpu_ms = starting_gpu_ms + excluded.starting_gpu_ms,"
		       " serving_gpu_ms = serving_gpu_ms + excluded.serving_gpu_ms,"
		       " standby_gpu_ms = standby_gpu_ms + excluded.standby_gpu_ms,"
		       " idle_micro_dollars = idle_micro_dollars + excluded.idle_micro_dollars,"
		       " lent_micro_dollars = lent_micro_dollars + excluded.lent_micro_dollars,"
		       " starting_micro_dollars = starting_micro_dollars + excluded.starting_micro_dollars,"
		       " serving_micro_dollars = serving_micro_dollars + excluded.serving_micro_dollars,"
		       " standby_micro_dollars = standby_micro_dollars + excluded.standby_micro_dollars,"
		       " blind_gpu_ms = blind_gpu_ms + excluded.blind_gpu_ms, arrived = arrived + excluded.arrived,"
		       " started = started + excluded.started, late = late + excluded.late,"
		       " completed = completed + excluded.completed,"
		       " prompt_tokens = prompt_tokens + excluded.prompt_tokens,"
		       " output_tokens = output_tokens + excluded.output_tokens,"
		       " late_burst = late_burst + excluded.late_burst,"
		       " late_cold_start = late_cold_start + excluded.late_cold_start,"
		       " late_stock_out = late_stock_out + excluded.late_stock_out,"
		       " late_quota = late_quota + excluded.late_quota, late_max = late_max + excluded.late_max,"
		       " late_budget = late_budget + excluded.late_budget, late_rate = late_rate + excluded.late_rate,"
		       " late_stale = late_stale + excluded.late_stale,"
		       " late_not_acting = late_not_acting + excluded.late_not_acting");

	DB_BIND(s, DB_I(c->hour), DB_I((int64_t)c->pool), DB_I(c->class));
	db_bind_ints(s, (const int64_t *)&c->sums, COST_FIELDS);
	return db_run(s, e);
}

static void bind_labels(struct statement *s, const struct cost_labels *l)
{
	DB_BIND(s, DB_I(l->holder), DB_T(l->value[LABEL_COST_CENTER]), DB_T(l->value[LABEL_PRODUCT]),
		DB_T(l->value[LABEL_ENVIRONMENT]), DB_T(l->value[LABEL_WORKLOAD_TYPE]));
}

static bool find_set(struct history *h, const struct cost_labels *l, int64_t *id, bool *there, struct error *e)
{
	struct statement *s = db_prepare(h->db, "SELECT id FROM cost_label_set WHERE holder = ? AND cost_center = ?"
						" AND product = ? AND environment = ? AND workload_type = ?");

	bind_labels(s, l);
	return db_read_ints(s, id, 1, there, e);
}

static bool number_set(struct history *h, const struct cost_labels *l, int64_t *id, struct error *e)
{
	bool there;

	if (!find_set(h, l, id, &there, e))
		return false;
	if (there)
		return true;
	struct statement *s = db_prepare(h->db, "INSERT INTO cost_label_set (holder, cost_center, product,"
						" environment, workload_type) VALUES (?, ?, ?, ?, ?)");
	bind_labels(s, l);
	if (!db_run(s, e))
		return false;
	*id = db_last_id(h->db);
	return true;
}

/* A pod that invents a label a minute must not fill the disk: what is beyond the hour's number has no row at all. */
static bool is_full(struct history *h, const struct pending_label *p, bool *full, struct error *e)
{
	struct statement *s = db_prepare(h->db, "SELECT count(*) FROM cost_label WHERE hour = ?1 AND pool = ?2 AND"
						" NOT EXISTS (SELECT 1 FROM cost_label WHERE hour = ?1 AND pool = ?2"
						" AND labels = ?3)");
	int64_t count = 0, id = 0;
	bool there;

	if (!find_set(h, &p->labels, &id, &there, e))
		return false;
	DB_BIND(s, DB_I(p->hour), DB_I((int64_t)p->pool), DB_I(there ? id : -1));
	if (!db_read_ints(s, &count, 1, NULL, e))
		return false;
	*full = p->labels.holder == COST_BY_PODS && count >= COST_LABEL_SETS;
	return true;
}

static bool save_label(struct history *h, const struct pending_label *p, struct error *e)
{
	static const struct cost_labels others = { COST_OTHERS, { "", "", "", "" } };
	int64_t id;
	bool full;

	if (!is_full(h, p, &full, e) || !number_set(h, full ? &others : &p->labels, &id, e))
		return false;
	return db_run(DB_QUERY(h->db,
			       "INSERT INTO cost_label VALUES (?, ?, ?, ?, ?) ON CONFLICT DO UPDATE"
			       " SET gpu_ms = gpu_ms + excluded.gpu_ms,"
			       " micro_dollars = micro_dollars + excluded.micro_dollars",
			       DB_I(p->hour), DB_I((int64_t)p->pool), DB_I(id), DB_I(p->gpu_ms), DB_I(p->dollars)),
		      e);
}

bool history_save_costs(struct history *h, struct error *e)
{
	const struct cost_hour *hours = (const void *)h->costs.text;
	const struct pending_label *labels = (const void *)h->cost_labels.text;

	for (size_t i = 0; i < h->costs.len / sizeof *hours; i++)
		if (!save_hour(h, &hours[i], e))
			return false;
	for (size_t i = 0; i < h->cost_labels.len / sizeof *labels; i++)
		if (!save_label(h, &labels[i], e))
			return false;
	if (!history_save_usage(h, e))
		return false;
	history_forget_costs(h);
	return true;
}

/* Costs out of the file. */

const char *cost_label_name(enum cost_label label)
{
	static const char *const names[COST_LABEL_COUNT] = { "cost-center", "product", "environment", "workload-type" };

	return names[label];
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

	db_column_ints(s, 3, values, COST_FIELDS);
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
		l.labels.value[i] = db_column_copy(s, 5 + i, r->arena);
	buf_append(&r->found, &l, sizeof l);
	return true;
}

static bool read_range(struct rows *r, const char *sql, struct hour_range range, rows_take_fn *take, struct error *e)
{
	if (!r->history->has_cost)
		return true;
	struct statement *s = DB_QUERY(r->history->db, sql, DB_I(range.first), DB_I(range.last));
	return rows_read(r, s, take, e);
}

bool history_cost_hours(struct history *h, struct hour_range range, struct arena *a, struct cost_hour **hours,
			size_t *count, struct error *e)
{
	struct rows r = { .history = h, .arena = a };

	if (!read_range(&r, "SELECT * FROM cost WHERE hour BETWEEN ? AND ? ORDER BY hour, pool, class", range,
			take_hour, e))
		return false;
	*hours = rows_array(&r.found, sizeof **hours, a, count);
	return true;
}

static bool take_total(struct rows *r, const struct statement *s, struct error *e)
{
	struct cost_total total = { .first_hour = db_column_int(s, 0), .last_hour = db_column_int(s, 3 + COST_FIELDS) };
	int64_t values[COST_FIELDS], pool = db_column_int(s, 1), class = db_column_int(s, 2);

	db_column_ints(s, 3, values, COST_FIELDS);
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
	*totals = rows_array(&r.found, sizeof **totals, a, count);
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
	*hours = rows_array(&r.found, sizeof **hours, a, count);
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
	*totals = rows_array(&r.found, sizeof **totals, a, count);
	return true;
}
