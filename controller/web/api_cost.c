/* GET /api/v1/cost: what pools, classes and the owners of pods cost. */
#include "controller/web/api_call.h"
#include "state/cost.h"

#include <string.h>

enum grouping { BY_POOL, BY_CLASS, BY_LABEL };

struct state_view {
	const char *state;
	int64_t gpu_hours, dollars; /* millionths */
};
static const struct record_member state_members[] = {
	{ "state", RECORD_TEXT(state_view, state), .help = "what the GPUs did" },
	{ "gpuHours", RECORD_NUMBER(state_view, gpu_hours, 6), .help = "GPU hours in it" },
	{ "dollars", RECORD_NUMBER(state_view, dollars, 6), .help = "what they cost" },
};
static const struct record_shape state_shape = RECORD_SHAPE("CostState", state_view, state_members);

struct row_view {
	const char *namespace, *pool, *class, *value;
	int64_t dollars, share_ppm, gpu_hours, per_hour, watched_hours, requests, late;
	int64_t per_request, per_1000_tokens; /* billionths */
	struct record_items states;
};
static const struct record_member row_members[] = {
	{ "namespace", RECORD_TEXT(row_view, namespace), .may_be_null = true,
	  .help = "of the pool; null by class and label" },
	{ "pool", RECORD_TEXT(row_view, pool), .may_be_null = true, .help = "null by class and label" },
	{ "class", RECORD_TEXT(row_view, class), .may_be_null = true, .help = "of work at that time; null by label" },
	{ "value", RECORD_TEXT(row_view, value), .may_be_null = true,
	  .help = "of the label; \"\" where pods have none, (no pod) for what no pod held, (others) beyond 200 an hour "
		  "and pool; null by pool and class" },
	{ "dollars", RECORD_NUMBER(row_view, dollars, 6), .may_be_null = true,
	  .help = "what it cost; null where no price is given" },
	{ "share", RECORD_NUMBER(row_view, share_ppm, 6), .may_be_null = true, .help = "of the dollars of all rows" },
	{ "gpuHours", RECORD_NUMBER(row_view, gpu_hours, 6), .help = "billed, stopped machines not" },
	{ "dollarsPerHour", RECORD_NUMBER(row_view, per_hour, 6), .may_be_null = true,
	  .help = "of the hours that were watched; null by label" },
	{ "watchedHours", RECORD_NUMBER(row_view, watched_hours, 6), .may_be_null = true,
	  .help = "time that is accounted for, summed over pools; null by label" },
	{ "states", RECORD_LIST(row_view, states, state_shape), .help = "what GPUs did; none by label" },
	{ "requests", RECORD_COUNT(row_view, requests), .may_be_null = true, .help = "that started; null by label" },
	{ "late", RECORD_COUNT(row_view, late), .may_be_null = true,
	  .help = "of these: waited longer than the objective; null by label" },
	{ "dollarsPerRequest", RECORD_NUMBER(row_view, per_request, 9), .may_be_null = true,
	  .help = "null without requests and without a price" },
	{ "dollarsPer1000Tokens", RECORD_NUMBER(row_view, per_1000_tokens, 9), .may_be_null = true,
	  .help = "null without tokens and without a price" },
};
static const struct record_shape row_shape = RECORD_SHAPE("CostRow", row_view, row_members);

struct cost_view {
	const char *by, *label;
	millis from, to, known_from;
	int64_t dollars;
	struct record_items rows;
};
static const char *const groupings[] = { "pool", "class", "label", NULL };
static const struct record_member members[] = {
	{ "by", RECORD_TEXT(cost_view, by), .help = "what rows are of", .choices = groupings },
	{ "label", RECORD_TEXT(cost_view, label), .may_be_null = true, .help = "the label; null by pool and class" },
	{ "from", RECORD_TIME(cost_view, from), .help = "whole hours" },
	{ "to", RECORD_TIME(cost_view, to), .help = "whole hours" },
	{ "knownFrom", RECORD_TIME(cost_view, known_from), .may_be_null = true,
	  .help = "hours before were not kept; null: none were" },
	{ "dollars", RECORD_NUMBER(cost_view, dollars, 6), .may_be_null = true,
	  .help = "of all rows; null where no price is given" },
	{ "rows", RECORD_LIST(cost_view, rows, row_shape), .help = "in the order of the pools, classes, values" },
};
static const struct record_shape shape = RECORD_SHAPE("Cost", cost_view, members);

struct question {
	enum grouping by;
	enum cost_label label;
	struct hour_range hours;
	struct cost_total *totals;
	size_t count;
	int64_t dollars, gpu_ms;
	bool *is_unpriced; /* by index of history_pools(), by the manifest in force */
};

static int64_t gpu_hours(int64_t gpu_ms)
{
	return (int64_t)((__int128)gpu_ms * 10 / 36); /* millionths */
}

static int64_t share_of(int64_t part, int64_t all)
{
	return all > 0 ? (int64_t)((__int128)part * 1000000 / all) : ABSENT;
}

/* GPU hours that cost nothing have no price. */
static int64_t dollars_or_none(int64_t dollars, int64_t gpu_ms)
{
	return dollars > 0 || gpu_ms <= 0 ? dollars : ABSENT;
}

static struct row_view view_sums(struct api_call *c, const struct question *q, const struct cost_sums *s)
{
	struct state_view *states = arena_array(&c->arena, struct state_view, GPU_STATE_COUNT);
	int64_t dollars = dollars_or_none(cost_micro_dollars(s), cost_billed_gpu_ms(s));
	bool is_priced = dollars != ABSENT;

	for (int i = 0; i < GPU_STATE_COUNT; i++)
		states[i] = (struct state_view){ gpu_state_name((enum gpu_state)i), gpu_hours(s->gpu_ms[i]),
						 s->dollars[i] };
	return (struct row_view){ .dollars = dollars,
				  .share_ppm = is_priced ? share_of(dollars, q->dollars) : ABSENT,
				  .gpu_hours = gpu_hours(cost_billed_gpu_ms(s)),
				  .per_hour = is_priced && s->watched_ms > 0
						      ? (int64_t)((__int128)dollars * HOUR / s->watched_ms)
						      : ABSENT,
				  .watched_hours = s->watched_ms * 10 / 36,
				  .requests = s->started,
				  .late = s->late,
				  .per_request = is_priced ? cost_per_request(s) : ABSENT,
				  .per_1000_tokens = is_priced ? cost_per_1000_tokens(s) : ABSENT,
				  .states = { states, GPU_STATE_COUNT } };
}

static struct record_items view_pools(struct api_call *c, const struct question *q)
{
	struct row_view *rows = arena_array(&c->arena, struct row_view, q->count + 1);
	size_t count;
	const struct history_pool *pools = history_pools(c->history, &count);

	for (size_t i = 0; i < q->count; i++) {
		rows[i] = view_sums(c, q, &q->totals[i].sums);
		rows[i].namespace = pools[q->totals[i].pool].namespace;
		rows[i].pool = pools[q->totals[i].pool].name;
		rows[i].class = pool_class_name(q->totals[i].class);
	}
	return (struct record_items){ rows, q->count };
}

static struct record_items view_classes(struct api_call *c, const struct question *q)
{
	struct row_view *rows = arena_array(&c->arena, struct row_view, CLASS_COUNT);
	size_t n = 0;

	for (int class = 0; class < CLASS_COUNT; class ++) {
		struct cost_sums sum = { 0 };

		for (size_t i = 0; i < q->count; i++)
			if ((int)q->totals[i].class == class)
				cost_add(&sum, &q->totals[i].sums);
		if (!sum.watched_ms)
			continue;
		rows[n] = view_sums(c, q, &sum);
		rows[n++].class = pool_class_name((enum pool_class) class);
	}
	return (struct record_items){ rows, n };
}

static const char *value_of(const struct question *q, const struct cost_label_hour *l)
{
	switch (l->labels.holder) {
	case COST_BY_PODS:
		return l->labels.value[q->label];
	case COST_NO_POD:
		return "(no pod)";
	case COST_OTHERS:
	case COST_HOLDER_COUNT:
		break;
	}
	return "(others)";
}

/* Each value at its first row. */
static bool view_labels(struct api_call *c, const struct question *q, struct record_items *list, struct error *e)
{
	struct cost_label_hour *hours;
	size_t count;

	if (!history_cost_label_totals(c->history, q->hours, &c->arena, &hours, &count, e))
		return false;
	struct row_view *rows = arena_array(&c->arena, struct row_view, count + 1);
	for (size_t i = 0; i < count; i++) {
		const char *value = value_of(q, &hours[i]);
		int64_t dollars = 0, gpu_ms = 0;
		bool is_known = false;

		for (size_t j = 0; j < count && !is_known; j++) {
			if (strcmp(value_of(q, &hours[j]), value) != 0)
				continue;
			is_known = j < i;
			dollars += q->is_unpriced[hours[j].pool] ? 0 : hours[j].dollars;
			gpu_ms += hours[j].gpu_ms;
		}
		if (!is_known)
			rows[list->count++] = (struct row_view){ .value = value,
								 .dollars = dollars_or_none(dollars, gpu_ms),
								 .share_ppm = share_of(dollars, q->dollars),
								 .gpu_hours = gpu_hours(gpu_ms),
								 .per_hour = ABSENT,
								 .watched_hours = ABSENT,
								 .requests = ABSENT,
								 .late = ABSENT,
								 .per_request = ABSENT,
								 .per_1000_tokens = ABSENT };
	}
	list->items = rows;
	return true;
}

static bool take_question(struct api_call *c, struct question *q, struct error *e)
{
	const char *by = api_value(c, "by")->text, *label = api_value(c, "label")->text;
	millis from, to;

	q->by = !by || !strcmp(by, "pool") ? BY_POOL : !strcmp(by, "class") ? BY_CLASS : BY_LABEL;
	if ((label != NULL) != (q->by == BY_LABEL))
		return api_refuse(c, e, 400,
				  "label: allowed with by=label, and needed there: cost-center, product, environment "
				  "or workload-type");
	for (int i = 0; label && i < COST_LABEL_COUNT; i++)
		if (!strcmp(cost_label_name((enum cost_label)i), label))
			q->label = (enum cost_label)i;
	if (!api_time_of(c, "from", c->span.from - HOUR, &from, e) || !api_time_of(c, "to", c->span.to, &to, e))
		return false;
	if (from >= to)
		return api_refuse(c, e, 400, "from: found a time that is not before to; swap them");
	q->hours = (struct hour_range){ from / HOUR, (to - 1) / HOUR };
	return true;
}

/* A price that nobody gave is no money. */
static bool take_prices_away(struct api_call *c, struct question *q, struct error *e)
{
	const struct api_fleet *fleet = api_fleet_at(c, c->span.last_tick, e);
	size_t count;

	if (!fleet)
		return false;
	history_pools(c->history, &count);
	q->is_unpriced = arena_array(&c->arena, bool, count + 1);
	for (size_t i = 0; i < fleet->stretch.pool_count; i++)
		q->is_unpriced[fleet->stretch.pools[i]] = fleet->manifest.fleet.pools[i].is_unpriced;
	for (size_t i = 0; i < q->count; i++)
		if (q->is_unpriced[q->totals[i].pool])
			memset(q->totals[i].sums.dollars, 0, sizeof q->totals[i].sums.dollars);
	return true;
}

static bool write_cost(struct api_call *c, struct buf *out, struct error *e)
{
	struct question q = { 0 };
	int64_t first = INT64_MAX;

	if (!take_question(c, &q, e) || !history_cost_totals(c->history, q.hours, &c->arena, &q.totals, &q.count, e) ||
	    !take_prices_away(c, &q, e))
		return false;
	for (size_t i = 0; i < q.count; i++) {
		q.dollars += cost_micro_dollars(&q.totals[i].sums);
		q.gpu_ms += cost_billed_gpu_ms(&q.totals[i].sums);
		first = q.totals[i].first_hour < first ? q.totals[i].first_hour : first;
	}
	struct cost_view v = { .by = groupings[q.by],
			       .label = q.by == BY_LABEL ? cost_label_name(q.label) : NULL,
			       .from = q.hours.first * HOUR,
			       .to = (q.hours.last + 1) * HOUR,
			       .known_from = q.count ? first * HOUR : 0,
			       .dollars = dollars_or_none(q.dollars, q.gpu_ms) };
	if (q.by == BY_POOL)
		v.rows = view_pools(c, &q);
	if (q.by == BY_CLASS)
		v.rows = view_classes(c, &q);
	if (q.by == BY_LABEL && !view_labels(c, &q, &v.rows, e))
		return false;
	record_write(&shape, &v, out);
	buf_text(out, "\n");
	return true;
}

static const struct api_parameter parameters[] = {
	{ "by", PARAMETER_CHOICE, .choices = "pool|class|label", .help = "what rows are of (default: pool)" },
	{ "label", PARAMETER_CHOICE, .choices = "cost-center|product|environment|workload-type",
	  .help = "with by=label: which" },
	{ "from", PARAMETER_TIME, .help = "from the hour of this time on (default: all of the history)" },
	{ "to", PARAMETER_TIME, .help = "up to the hour of this time (default: the end)" },
};

const struct api_route api_route_cost = {
	.method = "GET",
	.path = "/api/v1/cost",
	.name = "getCost",
	.summary = "What pools, classes and the owners of pods cost, from recorded hours",
	API_PARAMETERS(parameters),
	.needs_history = true,
	.answer = &shape,
	.write = write_cost,
};
