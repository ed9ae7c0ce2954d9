/* GET /api/v1/cost: what pools, classes and the owners of pods cost. */
#include "controller/web/api_parts.h"
#include "state/cost.h"

#include <string.h>

enum grouping { BY_POOL, BY_CLASS, BY_LABEL };

static const struct api_member state_members[] = {
	{ "state", API_TEXT, .help = "what the GPUs did" },
	{ "gpuHours", API_NUMBER, .help = "GPU hours in it" },
	{ "dollars", API_NUMBER, .help = "what they cost" },
};
static const struct api_shape state_shape = API_SHAPE("CostState", state_members);

static const struct api_member row_members[] = {
	{ "namespace", API_TEXT, .may_be_null = true, .help = "of the pool; null by class and label" },
	{ "pool", API_TEXT, .may_be_null = true, .help = "null by class and label" },
	{ "class", API_TEXT, .may_be_null = true, .help = "of work at that time; null by label" },
	{ "value", API_TEXT, .may_be_null = true,
	  .help = "of the label; \"\" where pods have none, (no pod) for what no pod held, (others) beyond 200 an hour "
		  "and pool; null by pool and class" },
	{ "dollars", API_NUMBER, .help = "what it cost" },
	{ "share", API_NUMBER, .may_be_null = true, .help = "of the dollars of all rows" },
	{ "gpuHours", API_NUMBER, .help = "billed, stopped machines not" },
	{ "dollarsPerHour", API_NUMBER, .may_be_null = true, .help = "of the hours that were watched; null by label" },
	{ "watchedHours", API_NUMBER, .may_be_null = true,
	  .help = "time that is accounted for, summed over pools; null by label" },
	{ "states", API_LIST, .help = "what GPUs did; none by label", .of = &state_shape },
	{ "requests", API_COUNT, .may_be_null = true, .help = "that started; null by label" },
	{ "late", API_COUNT, .may_be_null = true, .help = "of these: waited longer than the objective; null by label" },
	{ "dollarsPerRequest", API_NUMBER, .may_be_null = true, .help = "null without requests" },
	{ "dollarsPer1000Tokens", API_NUMBER, .may_be_null = true, .help = "null without tokens" },
};
static const struct api_shape row_shape = API_SHAPE("CostRow", row_members);

static const char *const groupings[] = { "pool", "class", "label", NULL };
static const struct api_member members[] = {
	{ "by", API_TEXT, .help = "what rows are of", .choices = groupings },
	{ "label", API_TEXT, .may_be_null = true, .help = "the label; null by pool and class" },
	{ "from", API_TIME, .help = "whole hours" },
	{ "to", API_TIME, .help = "whole hours" },
	{ "knownFrom", API_TIME, .may_be_null = true, .help = "hours before were not kept; null: none were" },
	{ "dollars", API_NUMBER, .help = "of all rows" },
	{ "rows", API_LIST, .help = "in the order of the pools, classes, values", .of = &row_shape },
};
static const struct api_shape shape = API_SHAPE("Cost", members);

struct told {
	enum grouping by;
	enum cost_label label;
	struct hour_range hours;
	struct cost_total *totals;
	size_t count;
	int64_t dollars;
};

static int64_t gpu_hours(int64_t gpu_ms)
{
	return (int64_t)((__int128)gpu_ms * 10 / 36); /* millionths */
}

static int64_t share_of(int64_t part, int64_t all)
{
	return all > 0 ? (int64_t)((__int128)part * 1000000 / all) : ABSENT;
}

static void write_states(const struct cost_sums *s, struct buf *out)
{
	member_list(out, "states");
	for (int i = 0; i < GPU_STATE_COUNT; i++) {
		item_begin(out);
		member_text(out, "state", gpu_state_name((enum gpu_state)i));
		member_scaled(out, "gpuHours", gpu_hours(s->gpu_ms[i]), 6);
		member_scaled(out, "dollars", s->dollars[i], 6);
		bracket_end(out, '}');
	}
	bracket_end(out, ']');
}

static void write_sums(const struct told *t, const struct cost_sums *s, struct buf *out)
{
	int64_t dollars = cost_micro_dollars(s);

	member_scaled(out, "dollars", dollars, 6);
	member_scaled(out, "share", share_of(dollars, t->dollars), 6);
	member_scaled(out, "gpuHours", gpu_hours(cost_billed_gpu_ms(s)), 6);
	member_scaled(out, "dollarsPerHour",
		      s->watched_ms > 0 ? (int64_t)((__int128)dollars * HOUR / s->watched_ms) : ABSENT, 6);
	member_scaled(out, "watchedHours", s->watched_ms * 10 / 36, 6);
	write_states(s, out);
	member_count(out, "requests", s->started);
	member_count(out, "late", s->late);
	member_scaled(out, "dollarsPerRequest", cost_per_request(s), 9);
	member_scaled(out, "dollarsPer1000Tokens", cost_per_1000_tokens(s), 9);
}

static void write_pools(const struct api_call *c, const struct told *t, struct buf *out)
{
	size_t count;
	const struct history_pool *pools = history_pools(c->history, &count);

	for (size_t i = 0; i < t->count; i++) {
		item_begin(out);
		member_text(out, "namespace", pools[t->totals[i].pool].namespace);
		member_text(out, "pool", pools[t->totals[i].pool].name);
		member_text(out, "class", pool_class_name(t->totals[i].class));
		member_text(out, "value", NULL);
		write_sums(t, &t->totals[i].sums, out);
		bracket_end(out, '}');
	}
}

static void write_classes(const struct told *t, struct buf *out)
{
	for (int class = 0; class < CLASS_COUNT; class ++) {
		struct cost_sums sum = { 0 };

		for (size_t i = 0; i < t->count; i++)
			if ((int)t->totals[i].class == class)
				cost_add(&sum, &t->totals[i].sums);
		if (!sum.watched_ms)
			continue;
		item_begin(out);
		member_text(out, "namespace", NULL);
		member_text(out, "pool", NULL);
		member_text(out, "class", pool_class_name((enum pool_class) class));
		member_text(out, "value", NULL);
		write_sums(t, &sum, out);
		bracket_end(out, '}');
	}
}

/* --- by label --- */

static const char *value_of(const struct told *t, const struct cost_label_hour *l)
{
	switch (l->labels.holder) {
	case COST_BY_PODS:
		return l->labels.value[t->label];
	case COST_NO_POD:
		return "(no pod)";
	case COST_OTHERS:
	case COST_HOLDER_COUNT:
		break;
	}
	return "(others)";
}

static void write_label_row(const struct told *t, const char *value, int64_t dollars, int64_t gpu_ms, struct buf *out)
{
	static const char *const unknown[] = { "dollarsPerHour", "watchedHours" };
	static const char *const more[] = { "requests", "late", "dollarsPerRequest", "dollarsPer1000Tokens" };

	item_begin(out);
	member_text(out, "namespace", NULL);
	member_text(out, "pool", NULL);
	member_text(out, "class", NULL);
	member_text(out, "value", value);
	member_scaled(out, "dollars", dollars, 6);
	member_scaled(out, "share", share_of(dollars, t->dollars), 6);
	member_scaled(out, "gpuHours", gpu_hours(gpu_ms), 6);
	for (size_t i = 0; i < 2; i++)
		member_text(out, unknown[i], NULL);
	member_list(out, "states");
	bracket_end(out, ']');
	for (size_t i = 0; i < 4; i++)
		member_text(out, more[i], NULL);
	bracket_end(out, '}');
}

/* Each value at its first row. */
static bool write_labels(struct api_call *c, struct told *t, struct buf *out, struct error *e)
{
	struct cost_label_hour *rows;
	size_t count;

	if (!history_cost_label_totals(c->history, t->hours, &c->arena, &rows, &count, e))
		return false;
	for (size_t i = 0; i < count; i++) {
		const char *value = value_of(t, &rows[i]);
		int64_t dollars = 0, gpu_ms = 0;
		bool is_told = false;

		for (size_t j = 0; j < count && !is_told; j++) {
			if (strcmp(value_of(t, &rows[j]), value) != 0)
				continue;
			is_told = j < i;
			dollars += rows[j].dollars;
			gpu_ms += rows[j].gpu_ms;
		}
		if (!is_told)
			write_label_row(t, value, dollars, gpu_ms, out);
	}
	return true;
}

/* --- the question --- */

static bool take_question(struct api_call *c, struct told *t, struct error *e)
{
	const char *by = api_value(c, "by")->text, *label = api_value(c, "label")->text;
	millis from, to;

	t->by = !by || !strcmp(by, "pool") ? BY_POOL : !strcmp(by, "class") ? BY_CLASS : BY_LABEL;
	if ((label != NULL) != (t->by == BY_LABEL))
		return api_refuse(c, e, 400,
				  "label: allowed with by=label, and needed there: cost-center, product, environment "
				  "or workload-type");
	for (int i = 0; label && i < COST_LABEL_COUNT; i++)
		if (!strcmp(cost_label_name((enum cost_label)i), label))
			t->label = (enum cost_label)i;
	if (!api_time_of(c, "from", c->span.from - HOUR, &from, e) || !api_time_of(c, "to", c->span.to, &to, e))
		return false;
	if (from >= to)
		return api_refuse(c, e, 400, "from: found a time that is not before to; swap them");
	t->hours = (struct hour_range){ from / HOUR, (to - 1) / HOUR };
	return true;
}

static void write_extent(const struct told *t, struct buf *out)
{
	int64_t first = INT64_MAX;

	for (size_t i = 0; i < t->count; i++)
		first = t->totals[i].first_hour < first ? t->totals[i].first_hour : first;
	member_text(out, "by", groupings[t->by]);
	member_text(out, "label", t->by == BY_LABEL ? cost_label_name(t->label) : NULL);
	member_time(out, "from", t->hours.first * HOUR);
	member_time(out, "to", (t->hours.last + 1) * HOUR);
	member_time(out, "knownFrom", t->count ? first * HOUR : 0);
	member_scaled(out, "dollars", t->dollars, 6);
}

static bool write_cost(struct api_call *c, struct buf *out, struct error *e)
{
	struct told t = { 0 };

	if (!take_question(c, &t, e) || !history_cost_totals(c->history, t.hours, &c->arena, &t.totals, &t.count, e))
		return false;
	for (size_t i = 0; i < t.count; i++)
		t.dollars += cost_micro_dollars(&t.totals[i].sums);
	buf_text(out, "{");
	write_extent(&t, out);
	member_list(out, "rows");
	if (t.by == BY_POOL)
		write_pools(c, &t, out);
	if (t.by == BY_CLASS)
		write_classes(&t, out);
	if (t.by == BY_LABEL && !write_labels(c, &t, out, e))
		return false;
	buf_text(out, "]}\n");
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
