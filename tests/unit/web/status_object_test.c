/* The status of a WarmPool: JSON that the schema takes, and conditions that remember when they changed. */
#include "controller/web/status_object.h"
#include "base/decode.h"
#include "base/file.h"
#include "tests/unit/web/shown.h"

struct told_condition {
	const char *type, *status, *reason, *message;
	millis since;
};

static const struct field condition_fields[] = {
	{ .path = "type", .type = FIELD_STRING, .offset = offsetof(struct told_condition, type), .required = true },
	{ .path = "status", .type = FIELD_STRING, .offset = offsetof(struct told_condition, status), .required = true },
	{ .path = "reason", .type = FIELD_STRING, .offset = offsetof(struct told_condition, reason), .required = true },
	{ .path = "message",
	  .type = FIELD_STRING,
	  .offset = offsetof(struct told_condition, message),
	  .required = true },
	{ .path = "lastTransitionTime",
	  .type = FIELD_TIME,
	  .offset = offsetof(struct told_condition, since),
	  .required = true },
};
static const struct record_spec condition_record = { "", sizeof(struct told_condition), condition_fields, 5 };

struct told_group {
	const char *name, *held_by;
	int64_t nodes, desired;
	millis blocked_until;
};

static const struct field group_fields[] = {
	FIELD(struct told_group, name, FIELD_STRING, "name"),
	FIELD(struct told_group, held_by, FIELD_STRING, "heldBy"),
	FIELD(struct told_group, nodes, FIELD_INT, "nodes"),
	FIELD(struct told_group, desired, FIELD_INT, "desired"),
	FIELD(struct told_group, blocked_until, FIELD_TIME, "blockedUntil"),
};
static const struct record_spec group_record = { "", sizeof(struct told_group), group_fields, 5 };

struct told {
	const char *demand, *headroom, *lead_time, *wait, *held_by, *reason;
	int64_t generation, hot, standby, starting, draining, tick, wished, decided;
	millis changed_at, decided_at;
	struct decoded_list groups, conditions;
};

#define TEXT(member, path_)  FIELD(struct told, member, FIELD_STRING, "status>" path_)
#define WHOLE(member, path_) FIELD(struct told, member, FIELD_INT, "status>" path_)
#define WHEN(member, path_)  FIELD(struct told, member, FIELD_TIME, "status>" path_)
static const struct field told_fields[] = {
	TEXT(demand, "demand"),
	TEXT(headroom, "headroom"),
	TEXT(lead_time, "leadTime"),
	TEXT(wait, "wait"),
	TEXT(held_by, "lastDecision>heldBy"),
	TEXT(reason, "lastDecision>reason"),
	WHOLE(generation, "observedGeneration"),
	WHOLE(hot, "hot"),
	WHOLE(standby, "standby"),
	WHOLE(starting, "starting"),
	WHOLE(draining, "draining"),
	WHOLE(tick, "lastDecision>tick"),
	WHOLE(wished, "lastDecision>wished"),
	WHOLE(decided, "lastDecision>decided"),
	WHEN(changed_at, "lastChange"),
	WHEN(decided_at, "lastDecision>time"),
	{ .path = "status>nodeGroups",
	  .type = FIELD_LIST,
	  .offset = offsetof(struct told, groups),
	  .of = &group_record },
	{ .path = "status>conditions",
	  .type = FIELD_LIST,
	  .offset = offsetof(struct told, conditions),
	  .of = &condition_record },
};
static const struct record_spec told_record = { "", sizeof(struct told), told_fields,
						sizeof told_fields / sizeof *told_fields };

/* Texts live in the arena. */
static struct told read_back(const char *text, size_t len, struct arena *a)
{
	struct decode_plan *plan = decode_plan_new(&told_record);
	struct error e = { 0 };
	struct told t;

	if (!decode_record(plan, text, len, a, &t, &e))
		fail_msg("%s in %s", e.message, text);
	decode_plan_free(plan);
	return t;
}

static struct told tell(struct shown *s, struct conditions *kept, struct arena *a)
{
	CLEANUP(buf_release) struct buf out = { 0 };

	status_object_write(&s->p, 0, kept, &out);
	return read_back(out.text, out.len, a);
}

static const struct told_condition *condition(const struct told *t, const char *type)
{
	const struct told_condition *items = t->conditions.items;

	for (size_t i = 0; i < t->conditions.count; i++)
		if (!strcmp(items[i].type, type))
			return &items[i];
	fail_msg("no condition %s", type);
	return NULL;
}

static void what_is_so_is_told(void **state)
{
	CLEANUP(arena_release) struct arena a = { 0 };
	struct conditions kept = { 0 };
	struct shown s;

	(void)state;
	shown_fill(&s);
	s.decisions[0][1].blocked_until = SHOWN_NOW + MINUTE;
	s.decisions[0][1].held_by = LIMIT_STOCKOUT;
	struct told t = tell(&s, &kept, &a);
	assert_int_equal(t.generation, 3);
	assert_int_equal(t.hot, 4);
	assert_int_equal(t.starting, 2);
	assert_int_equal(t.draining, 1);
	assert_int_equal(t.standby, 3);
	assert_string_equal(t.demand, "3.3");
	assert_string_equal(t.headroom, "0.8");
	assert_string_equal(t.lead_time, "6m20s/10m50s");
	assert_string_equal(t.wait, "2.5s");
	assert_int_equal(t.changed_at, SHOWN_NOW - HOUR);
	assert_int_equal(t.tick, 41);
	assert_int_equal(t.decided_at, SHOWN_NOW);
	assert_int_equal(t.wished, 6);
	assert_int_equal(t.decided, 6);
	assert_string_equal(t.held_by, "none");
	assert_string_equal(t.reason, "6 hot replicas: as wished.");
	const struct told_group *groups = t.groups.items;
	assert_int_equal(t.groups.count, 2);
	assert_string_equal(groups[0].name, "g5-spot");
	assert_int_equal(groups[0].nodes, 5);
	assert_int_equal(groups[0].desired, 6);
	assert_int_equal(groups[0].blocked_until, 0);
	assert_string_equal(groups[1].held_by, "stock-out");
	assert_int_equal(groups[1].blocked_until, SHOWN_NOW + MINUTE);
	assert_int_equal(t.conditions.count, CONDITION_COUNT);
}

struct case_ {
	const char *name;
	void (*change)(struct shown *s);
	const char *type, *status, *reason, *says;
};

static void nothing(struct shown *s)
{
	(void)s;
}

static void observes(struct shown *s)
{
	s->pools[0].mode = MODE_OBSERVE;
}

static void tries(struct shown *s)
{
	s->p.is_dry_run = true;
}

static void signals_are_gone(struct shown *s)
{
	s->plans[0].decision.signals = SIGNALS_GONE;
}

static void budget_binds(struct shown *s)
{
	s->plans[0].decision.held_by = LIMIT_BUDGET;
	s->plans[0].decision.wished = 9;
}

static void misses(struct shown *s)
{
	s->plans[0].decision.own_share_ppm = 74000;
}

static void is_at_risk(struct shown *s)
{
	s->plans[0].decision.objective_state = OBJECTIVE_AT_RISK;
}

static void learns(struct shown *s)
{
	s->plans[0].decision.own_share_ppm = ABSENT;
}

static void has_a_price(struct shown *s)
{
	s->pools[0].violation_cost = 10000;
}

static void one_is_blocked(struct shown *s)
{
	s->decisions[0][0].blocked_until = SHOWN_NOW + 90 * SECOND;
	s->decisions[0][0].held_by = LIMIT_STOCKOUT;
	s->decisions[0][0].refusals = 3;
}

static void all_are_blocked(struct shown *s)
{
	one_is_blocked(s);
	s->decisions[0][1] = s->decisions[0][0];
}

static void quota_blocks(struct shown *s)
{
	all_are_blocked(s);
	s->decisions[0][1].held_by = LIMIT_QUOTA;
}

static void one_cannot_be_asked(struct shown *s)
{
	error_set(&s->live_groups[1].error, ERROR_AUTH, "group g5-od: describe: 403");
}

static void none_can_be_asked(struct shown *s)
{
	one_cannot_be_asked(s);
	error_set(&s->live_groups[0].error, ERROR_TIMEOUT, "group g5-spot: describe: no answer");
}

static void a_refusal_is_an_answer(struct shown *s)
{
	error_set(&s->live_groups[0].error, ERROR_STOCKOUT, "none");
}

static void block_is_over(struct shown *s)
{
	all_are_blocked(s);
	s->decisions[0][0].blocked_until = s->decisions[0][1].blocked_until = SHOWN_NOW;
}

static void node_is_stuck(struct shown *s)
{
	s->live_pools[0].stuck_now = 1;
	s->live_pools[0].stuck_reason = "node i-0abc: no GPU allocatable after 15m";
}

static void pods_fit_nowhere(struct shown *s)
{
	s->live_pools[0].problem[PROBLEM_NO_GROUP] = "5 pods, like x, fit no node group";
}

static const struct case_ cases[] = {
	{ "acts", nothing, "Ready", "True", "Acting", "acted upon" },
	{ "observes", observes, "Ready", "True", "Observing", "never changed" },
	{ "dry run", tries, "Ready", "True", "DryRun", "nothing is changed" },
	{ "fresh", nothing, "SignalsFresh", "True", "Fresh", "all replicas" },
	{ "gone", signals_are_gone, "SignalsFresh", "False", "Gone", "API server's evidence" },
	{ "unlimited", nothing, "Limited", "False", "AsWished", "wished 6 hot replicas, decided 6" },
	{ "limited", budget_binds, "Limited", "True", "Budget", "wished 9 hot replicas, decided 6, held by budget" },
	{ "kept", nothing, "ObjectiveMet", "True", "Kept", "0.20 % late (half-life three days), allowed 1.00 %" },
	{ "at risk", is_at_risk, "ObjectiveMet", "True", "AtRisk",
	  "0.20 % late (half-life three days), allowed 1.00 %" },
	{ "missed", misses, "ObjectiveMet", "False", "Missed", "7.40 % late" },
	{ "learning", learns, "ObjectiveMet", "Unknown", "Learning", "too few" },
	{ "priced", has_a_price, "ObjectiveMet", "Unknown", "PriceDecides", "price" },
	{ "there", nothing, "CapacityAvailable", "True", "Available", "no node group is blocked" },
	{ "fallback", one_is_blocked, "CapacityAvailable", "True", "Fallback",
	  "g5-spot refused repeatedly, tried again at 2026-01-01T00:01:30Z" },
	{ "stock-out", all_are_blocked, "CapacityAvailable", "False", "StockOut", "g5-od refused repeatedly" },
	{ "one fails", one_cannot_be_asked, "CapacityAvailable", "True", "Fallback", "group g5-od: describe: 403" },
	{ "all fail", none_can_be_asked, "CapacityAvailable", "False", "ProviderFails",
	  "group g5-spot: describe: no answer; group g5-od: " },
	{ "an answer", a_refusal_is_an_answer, "CapacityAvailable", "True", "Available", "no node group is blocked" },
	{ "quota", quota_blocks, "CapacityAvailable", "False", "Quota", "g5-od" },
	{ "over", block_is_over, "CapacityAvailable", "True", "Available", "no node group is blocked" },
	{ "no node stuck", nothing, "NodeStuck", "False", "AllGoOn", "" },
	{ "stuck", node_is_stuck, "NodeStuck", "True", "StageOverdue", "node i-0abc: no GPU allocatable after 15m" },
	{ "no group", pods_fit_nowhere, "NoMatchingNodeGroup", "True", "Found", "fit no node group" },
	{ "a group", nothing, "NoMatchingNodeGroup", "False", "NotFound", "" },
};

static void each_condition(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		CLEANUP(arena_release) struct arena a = { 0 };
		struct conditions kept = { 0 };
		struct shown s;

		shown_fill(&s);
		cases[i].change(&s);
		struct told t = tell(&s, &kept, &a);
		const struct told_condition *c = condition(&t, cases[i].type);
		if (strcmp(c->status, cases[i].status) != 0 || strcmp(c->reason, cases[i].reason) != 0 ||
		    !strstr(c->message, cases[i].says))
			fail_msg("%s: %s %s: %s", cases[i].name, c->status, c->reason, c->message);
	}
}

/* `since` moves when the status does, and not with the message. */
static void transitions_are_remembered(void **state)
{
	static const enum limit limits[] = {
		LIMIT_NONE, LIMIT_MAX, LIMIT_BUDGET, LIMIT_BUDGET, LIMIT_NONE, LIMIT_NONE
	};
	static const int changes[] = { 0, 1, 1, 1, 4, 4 };
	struct conditions kept = { 0 };
	struct shown s;

	(void)state;
	shown_fill(&s);
	for (size_t i = 0; i < sizeof limits / sizeof *limits; i++) {
		CLEANUP(arena_release) struct arena a = { 0 };
		s.snapshot.now = SHOWN_NOW + (int64_t)i * MINUTE;
		s.plans[0].decision.held_by = limits[i];
		struct told t = tell(&s, &kept, &a);
		assert_int_equal(condition(&t, "Limited")->since, SHOWN_NOW + changes[i] * MINUTE);
		assert_int_equal(condition(&t, "Ready")->since, SHOWN_NOW);
	}
}

static void a_restart_keeps_them(void **state)
{
	CLEANUP(arena_release) struct arena a = { 0 };
	struct conditions kept = { 0 };
	struct shown s;

	(void)state;
	shown_fill(&s);
	condition_adopt(&kept, "Ready", "True", SHOWN_NOW - DAY);
	condition_adopt(&kept, "SignalsFresh", "False", SHOWN_NOW - DAY);
	condition_adopt(&kept, "OfAnotherProgram", "True", SHOWN_NOW - DAY);
	condition_adopt(&kept, "Limited", "Perhaps", SHOWN_NOW - DAY);
	struct told t = tell(&s, &kept, &a);
	assert_int_equal(condition(&t, "Ready")->since, SHOWN_NOW - DAY);
	assert_int_equal(condition(&t, "SignalsFresh")->since, SHOWN_NOW);
	assert_int_equal(condition(&t, "Limited")->since, SHOWN_NOW);
}

static void a_refused_one_says_why(void **state)
{
	CLEANUP(arena_release) struct arena a = { 0 };
	CLEANUP(buf_release) struct buf out = { 0 }, why = { 0 };
	struct conditions kept = { 0 };

	(void)state;
	for (int i = 0; i < 4000; i++)
		buf_text(&why, "\xc3\xa9\"\n");
	status_refused_write("spec.headroom.max: found '-1'; allowed: 0 or more", 7, SHOWN_NOW, &kept, &out);
	struct told t = read_back(out.text, out.len, &a);
	const struct told_condition *c = condition(&t, "Ready");
	assert_string_equal(c->status, "False");
	assert_string_equal(c->message, "spec.headroom.max: found '-1'; allowed: 0 or more");
	assert_int_equal(t.generation, 7);
	assert_non_null(strstr(out.text, "\"hot\":null"));
	buf_clear(&out);
	status_refused_write(why.text, 7, SHOWN_NOW + DAY, &kept, &out);
	t = read_back(out.text, out.len, &a);
	assert_int_equal(condition(&t, "Ready")->since, SHOWN_NOW);
	assert_in_range(strlen(condition(&t, "Ready")->message), 1000, 32768);
}

/* Nothing known yet must not look like a figure. */
static void absent_figures(void **state)
{
	CLEANUP(arena_release) struct arena a = { 0 };
	struct conditions kept = { 0 };
	struct shown s;

	(void)state;
	shown_fill(&s);
	s.plans[0].decision.ready = 0;
	s.plans[0].decision.lead_cold_p95 = 0;
	s.live_pools[0].changed_at = 0;
	struct told t = tell(&s, &kept, &a);
	assert_string_equal(t.wait, "none hot");
	assert_string_equal(t.lead_time, "");
	assert_int_equal(t.changed_at, 0);
	s.plans[0].decision.backlog_ms = 0;
	s.plans[0].decision.waiting_now = 0;
	t = tell(&s, &kept, &a);
	assert_string_equal(t.wait, "0s");
	assert_string_equal(t.headroom, "-3.3");
}

/* The page that people read has a row for each. */
static void every_condition_is_documented(void **state)
{
	CLEANUP(buf_release) struct buf page = { 0 };
	struct error e = { 0 };
	char row[64];

	(void)state;
	if (!file_read("docs/operate.md", 1 << 20, &page, &e))
		fail_msg("%s", e.message);
	for (int i = 0; i < CONDITION_COUNT; i++) {
		snprintf(row, sizeof row, "\n| %s |", condition_type_name((enum condition_type)i));
		if (!strstr(page.text, row))
			fail_msg("docs/operate.md has no row for %s", row);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_so_is_told),
		cmocka_unit_test(each_condition),
		cmocka_unit_test(transitions_are_remembered),
		cmocka_unit_test(a_restart_keeps_them),
		cmocka_unit_test(a_refused_one_says_why),
		cmocka_unit_test(absent_figures),
		cmocka_unit_test(every_condition_is_documented),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
