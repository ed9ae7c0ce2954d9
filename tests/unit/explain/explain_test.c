/* Explanations: every limit has its words, every number stands in the record, whatever the decision. */
#include "base/random.h"
#include "controller/explain/explain.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

static const struct group_spec groups[] = { { .name = "spot" }, { .name = "on-demand" } };
static const size_t both[] = { 0, 1 };
static const struct pool_spec pools[] = {
	{ .name = "chat", .namespace = "llm", .objective_wait = 2000, .groups = both, .group_count = 2 },
};
static const struct fleet_spec fleet = { groups, 2, pools, 1, NULL };
static const millis now = INT64_C(1715344335000);

static struct pool_decision an_ordinary_decision(void)
{
	return (struct pool_decision){
		.confidence_ppm = 1000000,
		.running_milli = 812000,
		.waiting_milli = 34500,
		.waiting_now = 31,
		.arrived = 120,
		.started = 118,
		.late = 2,
		.ready = 9,
		.on_the_way = 2,
		.slots_milli = 105000,
		.service_ms = 7200,
		.demand_milli = 8100,
		.level_milli = 7900,
		.peak_milli = 9300,
		.lead_cold_p50 = 380000,
		.lead_cold_p95 = 650000,
		.lead_samples = 14,
		.next_serving_ms = 130000,
		.rule = 32,
		.margin_permille = 100,
		.hold_ms = 812000,
		.chase_permille = 250,
		.stock_permille = 200,
		.rule_since = now - HOUR,
		.rule_share_ppm = 7400,
		.rule_gpu_milli = 14871,
		.target_ppm = 8000,
		.objective_ppm = 10000,
		.cheaper_rule = 31,
		.cheaper_share_ppm = 11200,
		.cheaper_gpu_milli = 14100,
		.dearer_rule = ABSENT,
		.deadline_need_milli = ABSENT,
		.low_milli = 11200,
		.high_milli = 13400,
		.wished = 14,
		.decided = 12,
		.held_by = LIMIT_BUDGET,
		.dollars_per_hour = 14520000,
		.budget_per_hour = 15000000,
	};
}

static const char *part(const struct explanation *e, const char *title)
{
	for (size_t i = 0; i < e->count; i++)
		if (!strcmp(e->parts[i].title, title))
			return e->parts[i].text;
	return "";
}

static void a_decision_is_told_in_sentences(void **state)
{
	(void)state;
	struct group_decision asked[2] = {
		{ .cold = 3, .nodes = 9, .nodes_desired = 12 },
		{ .held_by = LIMIT_STOCKOUT, .blocked_until = now + MINUTE, .refusals = 2 }
	};
	struct pool_plan plan = { .decision = an_ordinary_decision(), .groups = asked, .group_count = 2 };
	struct explained x = { &fleet, 0, 4312, now, &plan, 2 * HOUR, NULL, 0, NULL, 0, NULL };
	struct arena a = { 0 };
	struct explanation e = explain_decision(&x, &a);

	assert_string_equal(
		part(&e, "Decided"),
		"12 hot replicas, including those on the way; 14 wished, held by: budget."
		" In spot: start 3 replicas on new machines; 9 nodes there now, 12 after it."
		" on-demand is held by: stock-out; no starts there before 2024-05-10 14:33:15, after 2 refusals"
		" in a row.");
	assert_string_equal(
		part(&e, "Seen"),
		"All signals are fresh. 9 replicas are ready, 2 are on the way. On average 812 sequences were"
		" running and 34.5 requests were waiting; 31 wait now. 118 requests started, 2 of them later than"
		" the objective. 120 requests arrived. Late is what waits longer than 2s.");
	assert_string_equal(part(&e, "Held by"),
			    "The budget of $15.00 an hour; after this plan the pool costs $14.52.");
	plan.decision.signals = SIGNALS_PARTIAL;
	plan.decision.confidence_ppm = 875000;
	e = explain_decision(&x, &a);
	assert_non_null(strstr(part(&e, "Seen"),
			       "Not all of the signals can be relied on. 87.5 % of the readings came and "
			       "add up. 9 replicas are ready"));
	arena_release(&a);
}

/* An average is told as one: "0.23 % came late" of a day with none would be a riddle. And the target is a margin under
 * the objective only where nothing is sunk. */
static void averages_and_targets_are_told_as_they_are(void **state)
{
	(void)state;
	struct pool_plan plan = { .decision = an_ordinary_decision() };
	struct explained x = { &fleet, 0, 4312, now, &plan, 2 * HOUR, NULL, 0, NULL, 0, NULL };
	struct arena a = { 0 };

	plan.decision.own_share_ppm = 7500;
	plan.decision.real_share_ppm = 2300;
	plan.decision.objective_state = OBJECTIVE_AT_RISK;
	struct explanation e = explain_decision(&x, &a);
	assert_non_null(strstr(part(&e, "Rule"), "0.75 % were late, where those three days ago count half."));
	assert_non_null(strstr(part(&e, "Rule"), "Its target is 0.8 %, a margin under the 1 % that"));
	assert_non_null(strstr(part(&e, "Self-test"), "On averages in which a day ago counts half,"));
	assert_non_null(strstr(part(&e, "Self-test"), "0.23 % where one day ago does; 1 % may be."));
	plan.decision.sunk_ppm = 9000;
	plan.decision.target_ppm = 17000;
	plan.decision.tier_saving_permille = -41;
	e = explain_decision(&x, &a);
	assert_non_null(strstr(part(&e, "Rule"), "Its target is 1.7 %: 0.9 % that no rule could have avoided"));
	assert_null(strstr(part(&e, "Rule"), "under the 1 %"));
	assert_non_null(strstr(part(&e, "Rule"), "do not pay: the best rule without them costs less."));
	assert_null(strstr(part(&e, "Rule"), "saved"));
	arena_release(&a);
}

/* What rules would have done on the record does not size it, and says nothing of it. */
static void deadlines_are_not_told_as_a_rule(void **state)
{
	(void)state;
	struct pool_plan plan = { .decision = an_ordinary_decision() };
	struct explained x = { &fleet, 0, 4312, now, &plan, 2 * HOUR, NULL, 0, NULL, 0, NULL };
	struct arena a = { 0 };

	plan.decision.deadline_need_milli = 900;
	struct explanation e = explain_decision(&x, &a);
	assert_non_null(strstr(part(&e, "Rule"), "Its work has deadlines: these size the pool"));
	assert_null(strstr(part(&e, "Rule"), "target"));
	assert_string_equal(part(&e, "Self-test"), "");
	assert_non_null(strstr(part(&e, "Why"), "deadlines of the work that waits ask for 0.9 replicas"));
	arena_release(&a);
}

static void moves_of_engines_are_told(void **state)
{
	(void)state;
	const struct engine_move_record moves[] = {
		{ .asked_at = now - 60 * SECOND,
		  .slot = "gpu-7",
		  .is_wake = true,
		  .why = "code needs 1 engine awake",
		  .outcome = "HTTP status 500",
		  .took = 900 },
		{ .asked_at = now - 30 * SECOND,
		  .slot = "gpu-7",
		  .outcome = "done",
		  .took = 1236,
		  .why = "code idle for 50 s; chat has 3 waiting and no engine awake" },
		{ .asked_at = now, .slot = "gpu-8", .is_wake = true, .why = "code has 2 waiting and no engine awake" },
	};
	struct pool_plan plan = { .decision = an_ordinary_decision() };
	struct explained x = {
		&fleet, 0, 4312, now, &plan, 2 * HOUR, moves, 3, "idle engines sleep only for another", now - HOUR, NULL
	};
	struct arena a = { 0 };
	struct explanation e = explain_decision(&x, &a);

	assert_string_equal(
		part(&e, "Engines"),
		"Wakes on gpu-8 at 14:32:15: code has 2 waiting and no engine awake."
		" Fell asleep on gpu-7 at 14:31:45, in 1.2s: code idle for 50 s; chat has 3 waiting and no"
		" engine awake. Did not wake on gpu-7 at 14:31:15: HTTP status 500; code needs 1 engine awake."
		" Since 2024-05-10 13:32:15 by rule: idle engines sleep only for another.");
	x.waits_for = "chat";
	x.move_count = 0;
	e = explain_decision(&x, &a);
	assert_string_equal(part(&e, "Engines"),
			    "Requests wait and no engine is awake: those of chat have requests, or cannot be read, and "
			    "so never sleep."
			    " Since 2024-05-10 13:32:15 by rule: idle engines sleep only for another.");
	arena_release(&a);
}

static void every_limit_and_state_has_its_words(void **state)
{
	(void)state;
	struct arena a = { 0 };
	struct pool_plan plan = { .decision = an_ordinary_decision() };
	struct explained x = { &fleet, 0, 4312, now, &plan, 0, NULL, 0, NULL, 0, NULL };
	const char *seen[LIMIT_COUNT];

	for (int i = 0; i < LIMIT_COUNT; i++) {
		plan.decision.held_by = i;
		struct explanation e = explain_decision(&x, &a);

		seen[i] = part(&e, "Held by");
		assert_true(strlen(seen[i]) > 10);
		for (int j = 0; j < i; j++)
			assert_string_not_equal(seen[i], seen[j]);
	}
	for (int i = 0; i < SELF_TEST_COUNT; i++) {
		plan.decision.self_test = i;
		struct explanation e = explain_decision(&x, &a);

		assert_true(strlen(part(&e, "Self-test")) > 10);
	}
	const char *told[OBJECTIVE_STATE_COUNT];
	for (int i = 0; i < OBJECTIVE_STATE_COUNT; i++) {
		plan.decision.objective_state = i;
		struct explanation e = explain_decision(&x, &a);

		told[i] = part(&e, "Self-test");
		assert_int_equal(strstr(told[i], "objective") != NULL, i != OBJECTIVE_NONE);
		for (int j = 0; j < i; j++)
			assert_string_not_equal(told[i], told[j]);
	}
	for (int i = 0; i < SLOTS_SOURCE_COUNT; i++) {
		plan.decision.slots_source = i;
		struct explanation e = explain_decision(&x, &a);

		assert_true(!strncmp(part(&e, "Expected"), "A replica is assumed to run 105 sequences", 41));
	}
	plan.decision.unwished = 5;
	for (int i = WISH_CUT_NONE + 1; i < WISH_CUT_COUNT; i++) {
		plan.decision.wish_cut_by = i;
		struct explanation e = explain_decision(&x, &a);

		assert_non_null(strstr(part(&e, "Why"), "5 of the shortfall"));
	}
	for (int i = 0; i < SIGNAL_STATE_COUNT; i++) {
		plan.decision.signals = i;
		struct explanation e = explain_decision(&x, &a);

		assert_true(strlen(part(&e, "Seen")) > 10);
	}
	arena_release(&a);
}

/* Every rendering of every value, each between bars. */
static void collect(const struct record_info *info, const void *record, struct buf *out)
{
	const int64_t *v = record;

	for (size_t i = 0; i < info->count; i++) {
		static const struct field_info share = { "", "ppm", "" };

		buf_text(out, "|");
		explain_value(&info->fields[i], v[i], 0, out);
		buf_text(out, "|");
		if (!strcmp(info->fields[i].unit, "milli") && v[i] != ABSENT && v[i] < INT64_MAX / 1000)
			explain_value(&share, v[i] * 1000, 0, out); /* thousandths as per cent */
		buf_text(out, "|");
	}
}

/* As a whole word, not as a part of a longer number. */
static bool is_known(const char *token, const char *known)
{
	size_t len = strlen(token);

	for (const char *at = known; (at = strstr(at, token)); at++)
		if (at > known && strchr("| ", at[-1]) && strchr("| ", at[len]))
			return true;
	return false;
}

/* A number as it is written: from its first digit (or sign or dollar) to the blank after it. */
static void assert_numbers_are_known(const char *text, const char *known)
{
	for (const char *c = text; (c = strpbrk(c, "0123456789"));) {
		char token[64] = "";
		size_t len = strcspn(c, " ;)(");
		const char *from = c > text && strchr("$-", c[-1]) ? c - 1 : c;

		len += (size_t)(c - from);
		while (len && strchr(".,:", from[len - 1]))
			len--;
		assert_true(len < sizeof token);
		memcpy(token, from, len);
		if (!is_known(token, known))
			fail_msg("'%s' is not in the record: %s", token, text);
		c = from + len;
	}
}

static int64_t any_value(struct random *r, const char *unit)
{
	if (random_next(r) % 6 == 0)
		return strcmp(unit, "time") && strncmp(unit, "enum:", 5) ? ABSENT : 0;
	if (!strncmp(unit, "enum:", 5))
		return (int64_t)(random_next(r) % 5);
	if (!strcmp(unit, "time"))
		return now + (int64_t)(random_next(r) % DAY);
	return (int64_t)(random_next(r) % 7 ? random_next(r) % 3000 : random_next(r) % 90000000);
}

static void scatter(struct random *r, const struct record_info *info, void *record)
{
	int64_t *v = record;

	for (size_t i = 0; i < info->count; i++)
		v[i] = any_value(r, info->fields[i].unit);
}

static void every_number_stands_in_the_record(void **state)
{
	(void)state;
	static const struct field_info wait = { "", "ms", "" };

	for (uint64_t seed = 0; seed < 400; seed++) {
		struct random r = random_stream(seed, "explain");
		struct arena a = { 0 };
		struct buf known = { 0 };
		struct group_decision asked[2] = { 0 };
		struct pool_plan plan = { .groups = asked, .group_count = 2, .price_count = 3 };
		struct explained x = { &fleet, 0, 4312, now, &plan, 0, NULL, 0, NULL, 0, NULL };

		scatter(&r, &pool_decision_info, &plan.decision);
		collect(&pool_decision_info, &plan.decision, &known);
		for (int i = 0; i < 2; i++) {
			scatter(&r, &group_decision_info, &asked[i]);
			collect(&group_decision_info, &asked[i], &known);
		}
		for (int i = 0; i < 3; i++) {
			scatter(&r, &objective_price_info, &plan.prices[i]);
			collect(&objective_price_info, &plan.prices[i], &known);
		}
		buf_text(&known, "|");
		explain_value(&wait, pools[0].objective_wait, 0, &known);
		struct explanation e = explain_decision(&x, &a);
		for (size_t i = 0; i < e.count; i++) {
			assert_numbers_are_known(e.parts[i].text, known.text);
			assert_null(strstr(e.parts[i].text, "{"));
		}
		buf_release(&known);
		arena_release(&a);
	}
}

static void values_have_units(void **state)
{
	(void)state;
	static const struct {
		struct field_info field;
		int64_t value;
		const char *text;
	} cases[] = {
		{ { "", "count", "" }, 12345, "12,345" },
		{ { "", "milli", "" }, 1500, "1.5" },
		{ { "", "milli", "" }, 105000, "105" },
		{ { "", "milli", "" }, 123456, "123.5" },
		{ { "", "milli", "" }, 250, "0.25" },
		{ { "", "ppm", "" }, 7400, "0.74 %" },
		{ { "", "ppm", "" }, 370, "0.037 %" },
		{ { "", "ms", "" }, 380000, "6m20s" },
		{ { "", "us", "" }, 30500, "30.5ms" },
		{ { "", "time", "" }, INT64_C(1715344335000), "2024-05-10 12:32:15" },
		{ { "", "time", "" }, INT64_C(951782400000), "2000-02-29 00:00:00" },
		{ { "", "micro$", "" }, 14520000, "$14.52" },
		{ { "", "enum:limit", "" }, LIMIT_STOCKOUT, "stock-out" },
		{ { "", "count", "" }, ABSENT, "none" },
	};

	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct buf text = { 0 };

		explain_value(&cases[i].field, cases[i].value, 0, &text);
		assert_string_equal(text.text, cases[i].text);
		buf_release(&text);
	}
}

static void json_holds_every_field(void **state)
{
	(void)state;
	struct group_decision asked[2] = { 0 };
	struct scrape_input scrape = { .at = now, .started = ABSENT };
	struct pool_snapshot input = { .scrapes = &scrape, .scrape_count = 1 };
	struct pool_plan plan = { .decision = an_ordinary_decision(), .groups = asked, .group_count = 2 };
	struct explained x = { &fleet, 0, 4312, now, &plan, 0, NULL, 0, NULL, 0, NULL };
	struct buf json = { 0 };

	explain_json(&x, &input, &json);
	for (size_t i = 0; i < pool_decision_info.count; i++) {
		char key[80];

		snprintf(key, sizeof key, "\"%s\":", pool_decision_info.fields[i].name);
		assert_non_null(strstr(json.text, key));
	}
	assert_non_null(strstr(json.text, "\"held_by\":\"budget\""));
	assert_non_null(strstr(json.text, "\"started\":null"));
	assert_non_null(strstr(json.text, "\"dearer_rule\":null"));
	buf_release(&json);
}

static void a_start_is_told_with_what_came_before(void **state)
{
	static const struct {
		const char *refused, *given_up, *text;
		enum limit by;
		enum late_cause cause;
		enum start_kind kind;
	} cases[] = {
		{ "", "", "cold start of 6m40s in g5-od", LIMIT_NONE, LATE_STARTING, START_COLD },
		{ "", "", "standby wake of 6m40s in g5-od", LIMIT_NONE, LATE_STARTING, START_WAKE },
		{ "", "", "reclaim of 6m40s in g5-od", LIMIT_NONE, LATE_STARTING, START_RECLAIM },
		{ "g5-od", "", "cold start of 6m40s in g5-od after a stock-out", LIMIT_STOCKOUT, LATE_STARTING,
		  START_COLD },
		{ "spot", "", "cold start of 6m40s in g5-od after a stock-out in spot", LIMIT_STOCKOUT, LATE_STOCKOUT,
		  START_COLD },
		{ "spot", "", "cold start of 6m40s in g5-od after a lack of quota in spot", LIMIT_QUOTA, LATE_QUOTA,
		  START_COLD },
		{ "", "g5-od", "cold start of 6m40s in g5-od, 2 starts given up in g5-od", LIMIT_NONE, LATE_STARTING,
		  START_COLD },
		{ "", "", "held by max", LIMIT_NONE, LATE_MAX, START_COLD },
	};

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		CLEANUP(buf_release) struct buf text = { 0 };
		struct incident is = { .late = 9,
				       .group = "g5-od",
				       .start_age = 400 * SECOND,
				       .start_kind = cases[i].kind,
				       .refused_by = cases[i].by,
				       .given_up = *cases[i].given_up ? 2 : 0 };

		is.late_by[cases[i].cause] = 9;
		snprintf(is.refused_group, sizeof is.refused_group, "%s", cases[i].refused);
		snprintf(is.given_up_group, sizeof is.given_up_group, "%s", cases[i].given_up);
		explain_incident(&is, &text);
		assert_string_equal(text.text, cases[i].text);
	}
}

static void incidents_have_their_causes(void **state)
{
	(void)state;
	for (int cause = 0; cause < LATE_CAUSE_COUNT; cause++) {
		CLEANUP(buf_release) struct buf text = { 0 };
		struct incident i = { .late = 9, .refused_group = "spot", .refused_by = LIMIT_STOCKOUT };

		i.late_by[cause] = 9;
		explain_incident(&i, &text);
		assert_true(text.len > 0 && text.len <= 45);
		assert_int_equal(strstr(text.text, "spot") != NULL,
				 cause == LATE_STARTING || cause == LATE_STOCKOUT || cause == LATE_QUOTA);
	}
}

/* Its replicas are GPUs and its requests pods; names stay as they are. */
static void the_default_pool_is_told_in_its_words(void **state)
{
	CLEANUP(arena_release) struct arena a = { 0 };
	static const size_t only[] = { 0 };
	const struct group_spec group = { .name = "replica-8" };
	const struct pool_spec pool = {
		.name = "rest", .namespace = "infra", .class = CLASS_ANY, .groups = only, .group_count = 1
	};
	const struct fleet_spec rest = { &group, 1, &pool, 1, NULL };
	struct group_decision asks = { .cold = 8, .nodes_desired = 1 };
	const struct pool_plan plan = { .decision = { .wished = 8, .decided = 8, .held_by = LIMIT_PODS },
					.groups = &asks,
					.group_count = 1 };
	const struct explained x = { .fleet = &rest, .now = now, .plan = &plan };
	const struct explanation e = explain_decision(&x, &a);

	(void)state;
	assert_string_equal(explain_headline(&x, &a),
			    "8 GPUs, including those on the way; 8 wished, held by: waiting-pods. In replica-8: "
			    "start 8 GPUs on new machines; 0 nodes there now, 1 after it.");
	for (size_t i = 0; i < e.count; i++)
		assert_null(strstr(e.parts[i].text, "request"));
	asks = (struct group_decision){
		.move = 1, .move_pods = 2, .move_saves = 1210000, .nodes = 2, .nodes_desired = 1
	};
	assert_non_null(strstr(explain_headline(&x, &a),
			       "In replica-8: empty 1 half-empty node, whose 2 pods fit on other nodes, which saves "
			       "$1.21 an hour; 2 nodes there now, 1 after it."));
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_start_is_told_with_what_came_before),
		cmocka_unit_test(incidents_have_their_causes),
		cmocka_unit_test(a_decision_is_told_in_sentences),
		cmocka_unit_test(averages_and_targets_are_told_as_they_are),
		cmocka_unit_test(deadlines_are_not_told_as_a_rule),
		cmocka_unit_test(moves_of_engines_are_told),
		cmocka_unit_test(every_limit_and_state_has_its_words),
		cmocka_unit_test(every_number_stands_in_the_record),
		cmocka_unit_test(values_have_units),
		cmocka_unit_test(the_default_pool_is_told_in_its_words),
		cmocka_unit_test(json_holds_every_field),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
