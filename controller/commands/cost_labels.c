#include "controller/commands/cost_labels.h"

#include "base/terminal.h"
#include "base/quantity.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void cost_add_dollars(struct table *t, int64_t micro)
{
	CLEANUP(buf_release) struct buf raw = { 0 };

	fixed_format(micro, 6, &raw);
	table_value(t, human_dollars((double)micro / 1e6).text, raw.text);
}

void cost_add_hours(struct table *t, millis sum)
{
	CLEANUP(buf_release) struct buf raw = { 0 };

	fixed_format((int64_t)((__int128)sum * 1000000 / HOUR), 6, &raw);
	table_value(t, human_decimal((double)sum / HOUR, 1).text, raw.text);
}

bool cost_label_parse(const char *by, int64_t *label, struct error *e)
{
	static const char prefix[] = "label=";

	*label = ANY;
	if (!strcmp(by, "label"))
		return true;
	for (int i = 0; !strncmp(by, prefix, strlen(prefix)) && i < COST_LABEL_COUNT; i++)
		if (!strcmp(by + strlen(prefix), cost_label_name((enum cost_label)i))) {
			*label = i;
			return true;
		}
	return error_set(e, ERROR_INVALID,
			 "--by: found '%.60s'; allowed: pool, class, label, label=cost-center, label=product, "
			 "label=environment, label=workload-type (which labels of pods these are, costLabels in the "
			 "manifest says)",
			 by);
}

const char *cost_label_value(const struct cost_labels *l, enum cost_label label)
{
	switch (l->holder) {
	case COST_NO_POD:
		return "(no pod)";
	case COST_OTHERS:
		return "(others)";
	case COST_BY_PODS:
	case COST_HOLDER_COUNT:
		break;
	}
	return l->value[label][0] ? l->value[label] : "(unlabelled)";
}

static int compare(const struct cost_labels *a, const struct cost_labels *b, int64_t label)
{
	int order = (a->holder > b->holder) - (a->holder < b->holder);

	for (int i = 0; i < COST_LABEL_COUNT && !order; i++)
		if (label == ANY || label == i)
			order = strcmp(a->value[i], b->value[i]);
	return order;
}

/* One row per value: the first of its kind takes what the others have. */
static size_t merge(const struct cost_label_question *q, struct cost_label_hour *hours, size_t count)
{
	size_t kept = 0;

	for (size_t i = 0; i < count; i++) {
		size_t k = 0;

		if (q->question->pool_index != ANY && (size_t)q->question->pool_index != hours[i].pool)
			continue;
		while (k < kept && compare(&hours[k].labels, &hours[i].labels, q->label) != 0)
			k++;
		if (k == kept) {
			hours[kept++] = hours[i];
			continue;
		}
		hours[k].gpu_ms += hours[i].gpu_ms;
		hours[k].dollars += hours[i].dollars;
	}
	return kept;
}

/* The dearest first; equal ones by name. */
static int by_dollars(const void *a, const void *b)
{
	const struct cost_label_hour *x = a, *y = b;
	int order = (x->dollars < y->dollars) - (x->dollars > y->dollars);

	return order ? order : compare(&x->labels, &y->labels, ANY);
}

static void print_rows(const struct cost_label_question *q, const struct cost_label_hour *rows, size_t count)
{
	static const struct table_column columns[] = {
		{ .name = "cost_center", .title = "COST CENTER" },
		{ .name = "product" },
		{ .name = "environment" },
		{ .name = "workload_type", .title = "WORKLOAD TYPE" },
		{ .name = "dollars", .is_right = true },
		{ .name = "gpu_hours", .title = "GPU HOURS", .is_right = true },
		{ .name = "share", .is_right = true },
	};
	struct table_column shown[sizeof columns / sizeof *columns];
	size_t n = 0;
	int64_t all = 0;

	for (size_t i = 0; i < sizeof columns / sizeof *columns; i++)
		if (q->label == ANY || i >= COST_LABEL_COUNT || q->label == (int64_t)i)
			shown[n++] = columns[i];
	for (size_t i = 0; i < count; i++)
		all += rows[i].dollars;
	struct table *t = table_new(shown, n);
	for (size_t i = 0; i < count; i++) {
		for (int k = 0; k < COST_LABEL_COUNT; k++)
			if (q->label == ANY || q->label == k)
				table_text(t, cost_label_value(&rows[i].labels, (enum cost_label)k));
		cost_add_dollars(t, rows[i].dollars);
		cost_add_hours(t, rows[i].gpu_ms);
		CLEANUP(buf_release) struct buf raw = { 0 };
		double share = all ? (double)rows[i].dollars / (double)all : 0;
		buf_printf(&raw, "%.6f", share);
		table_value(t, human_share(share).text, raw.text);
	}
	table_print(t, table_format_of(q->output), stdout);
	table_free(t);
}

static bool refuse(struct question *q, struct error *e)
{
	bool is_simulated;

	if (!costs_are_simulated(q, &is_simulated, e))
		return false;
	return error_set(e, ERROR_INVALID, "%s: %s; --by pool and --by class tell the rest", history_path(q->history),
			 is_simulated ? "a simulation has no pods, and so no cost labels"
				      : "costs by label were not kept in this period");
}

bool cost_labels_print(const struct cost_label_question *q, struct error *e)
{
	enum table_format format = table_format_of(q->output);
	CLEANUP(buf_release) struct buf period = { 0 };
	struct cost_label_hour *hours;
	struct costs c;
	size_t count;

	if (!costs_read(q->question, q->period, &c, e) ||
	    !history_cost_label_hours(q->question->history,
				      (struct hour_range){ q->period->from / HOUR, q->period->to / HOUR - 1 },
				      &q->question->arena, &hours, &count, e))
		return false;
	if (!count)
		return refuse(q->question, e);
	count = merge(q, hours, count);
	qsort(hours, count, sizeof *hours, by_dollars);
	print_rows(q, hours, count);
	cost_period_text(q->question, q->period, &period);
	if (!table_is_for_programs(format))
		printf("\n%s\n", period.text);
	costs_print_notes(q->question, &c);
	return true;
}
