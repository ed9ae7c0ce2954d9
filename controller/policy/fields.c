/* The tables of every record, made from the same lists as the structs. */
#include "controller/policy/fields.h"

#include "controller/policy/plan.h"

#include <string.h>

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

/* The words that people read for the numbers in records. Order is that of the enums. */

static const char *const classes[] = { "interactive", "batch", "embedding", "experiment", "training", "any" };
static const char *const modes[] = { "act", "observe", "paused", "act" };
static const char *const capacity_types[] = { "on-demand", "spot", "reserved" };
static const char *const stages[] = { "provision", "register", "device", "image", "load" };
static const char *const start_kinds[] = { "cold", "wake", "refill", "reclaim", "place", "rouse" };
static const char *const event_kinds[] = { "stage",  "serving",	 "refused",  "lost",	"stuck",     "resized",
					   "missed", "no-stock", "no-quota", "standby", "described", "held" };
#define LIMIT(name, word) word,
static const char *const limits[] = {
#include "controller/policy/limit.def"
};
#undef LIMIT
static const char *const wish_cuts[] = { "none", "chase", "work" };
static const char *const signal_states[] = { "fresh", "partial", "stale", "gone" };
static const char *const slots_sources[] = { "manifest", "seen", "saturated", "KV cache", "latency" };
static const char *const self_tests[] = { "learning", "agrees", "later", "earlier", "dearer" };
static const char *const objective_states[] = { "none", "beyond-record", "met", "at-risk", "missed" };

#define LENGTH(array) (sizeof(array) / sizeof *(array))

_Static_assert(LENGTH(classes) == CLASS_COUNT, "a name per class");
_Static_assert(LENGTH(modes) == MODE_COUNT, "a name per mode");
_Static_assert(LENGTH(stages) == STAGE_COUNT, "a name per stage");
_Static_assert(LENGTH(start_kinds) == START_KIND_COUNT, "a name per kind of start");
_Static_assert(LENGTH(event_kinds) == EVENT_KIND_COUNT, "a name per kind of event");
_Static_assert(LENGTH(wish_cuts) == WISH_CUT_COUNT, "a name per cut of a wish");
_Static_assert(LENGTH(signal_states) == SIGNAL_STATE_COUNT, "a name per signal state");
_Static_assert(LENGTH(slots_sources) == SLOTS_SOURCE_COUNT, "a name per source of slots");
_Static_assert(LENGTH(self_tests) == SELF_TEST_COUNT, "a name per result of the self-test");
_Static_assert(LENGTH(objective_states) == OBJECTIVE_STATE_COUNT, "a name per state of the objective");

static const struct enum_names {
	const char *name;
	const char *const *values;
	size_t count;
} enums[] = {
	{ "limit", limits, LENGTH(limits) },
	{ "wish_cut", wish_cuts, LENGTH(wish_cuts) },
	{ "signal_state", signal_states, LENGTH(signal_states) },
	{ "slots_source", slots_sources, LENGTH(slots_sources) },
	{ "self_test", self_tests, LENGTH(self_tests) },
	{ "objective_state", objective_states, LENGTH(objective_states) },
	{ "start_kind", start_kinds, LENGTH(start_kinds) },
	{ "event_kind", event_kinds, LENGTH(event_kinds) },
	{ "stage", stages, LENGTH(stages) },
};

const char *field_enum_name(const char *enum_name, int64_t value)
{
	for (size_t i = 0; i < LENGTH(enums); i++)
		if (!strcmp(enums[i].name, enum_name))
			return value >= 0 && (uint64_t)value < enums[i].count ? enums[i].values[value] : NULL;
	return NULL;
}

static const char *pick(const char *const *names, size_t count, size_t value)
{
	return value < count ? names[value] : "?";
}

const char *pool_class_name(enum pool_class class)
{
	return pick(classes, LENGTH(classes), (size_t) class);
}

const char *pool_mode_name(enum pool_mode mode)
{
	return pick(modes, LENGTH(modes), (size_t)mode);
}

const char *capacity_type_name(enum capacity_type type)
{
	return pick(capacity_types, LENGTH(capacity_types), (size_t)type);
}

const char *stage_name(enum stage stage)
{
	return pick(stages, LENGTH(stages), (size_t)stage);
}

const char *limit_name(enum limit limit)
{
	return pick(limits, LENGTH(limits), (size_t)limit);
}

const char *signal_state_name(enum signal_state state)
{
	return pick(signal_states, LENGTH(signal_states), (size_t)state);
}

const char *self_test_name(enum self_test result)
{
	return pick(self_tests, LENGTH(self_tests), (size_t)result);
}

const char *objective_state_name(enum objective_state state)
{
	return pick(objective_states, LENGTH(objective_states), (size_t)state);
}
