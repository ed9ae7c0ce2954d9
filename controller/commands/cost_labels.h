/* The bill by the cost labels of pods. */
#pragma once
#include "base/table.h"
#include "controller/commands/cost_read.h"

struct cost_label_question {
	struct question *question; /* open */
	struct cost_period *period;
	const char *output;
	int64_t label; /* enum cost_label, or ANY: by all of them together */
};

/* "label" or "label=product". */
bool cost_label_parse(const char *by, int64_t *label, struct error *e) MUST_USE;
bool cost_labels_print(const struct cost_label_question *q, struct error *e) MUST_USE;

/* Cells: dollars from micro-dollars; hours from milliseconds (of GPUs, or of time). */
void cost_add_dollars(struct table *t, int64_t micro);
void cost_add_hours(struct table *t, millis sum);
/* "(unlabelled)", "(no pod)", "(others)" where there is no value. */
const char *cost_label_value(const struct cost_labels *l, enum cost_label label);
