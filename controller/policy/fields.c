/* The tables of every record, made from the same lists as the structs. */
#include "controller/policy/plan.h"

#define MEMBER(name, unit, help) { #name, unit, help },

static const struct field_info pool_input_fields[] = {
#include "controller/policy/pool_input.def"
};
static const struct field_info scrape_input_fields[] = {
#include "controller/policy/scrape_input.def"
};
static const struct field_info group_input_fields[] = {
#include "controller/policy/group_input.def"
};
static const struct field_info start_input_fields[] = {
#include "controller/policy/start_input.def"
};
static const struct field_info event_input_fields[] = {
#include "controller/policy/event_input.def"
};
static const struct field_info deadline_input_fields[] = {
#include "controller/policy/deadline_input.def"
};
static const struct field_info pool_decision_fields[] = {
#include "controller/policy/pool_decision.def"
};
static const struct field_info group_decision_fields[] = {
#include "controller/policy/group_decision.def"
};
static const struct field_info objective_price_fields[] = {
#include "controller/policy/objective_price.def"
};

#undef MEMBER
#define RECORD(record) \
	const struct record_info record##_info = { #record, sizeof(struct record) / sizeof(int64_t), record##_fields }

RECORD(pool_input);
RECORD(scrape_input);
RECORD(group_input);
RECORD(start_input);
RECORD(event_input);
RECORD(deadline_input);
RECORD(pool_decision);
RECORD(group_decision);
RECORD(objective_price);
