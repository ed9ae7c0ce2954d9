/* What `preheat cost --alternatives` says, summed for the first screen. */
#include "controller/web/alternatives.h"

#include "base/buf.h"
#include "controller/policy/fields.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <cmocka.h>

static void row(struct buf *to, const char *pool, const char *fleet, int day, const char *dollars, const char *late)
{
	buf_printf(to,
		   "%s{\"namespace\":\"llm\",\"pool\":\"%s\",\"fleet\":\"%s\",\"from\":\"2024-01-%02dT00:00:00Z\","
		   "\"dollars\":%s,\"saved_dollars\":null,\"gpu_hours\":1,\"requests\":100,\"late\":%s,\"setting\":%s,"
		   "\"model_fits\":true}",
		   to->len > 1 ? "," : "", pool, fleet, day, dollars, late,
		   strcmp(fleet, "recorded") != 0 ? "\"target=0.8\"" : "null");
}

static const struct alternative_fleet *find(const struct alternatives *a, const char *pool, const char *fleet)
{
	for (size_t i = 0; i < a->fleet_count; i++)
		if (!strcmp(a->fleets[i].pool, pool) && !strcmp(a->fleets[i].fleet, fleet))
			return &a->fleets[i];
	fail_msg("no %s %s", pool, fleet);
	return NULL;
}

/* Ten days of chat beside an HPA, of which the first is not known; code was never modelled. */
static void sums_are_of_the_same_days(void **state)
{
	CLEANUP(arena_release) struct arena a = { 0 };
	CLEANUP(buf_release) struct buf text = { 0 };
	struct error e = { 0 };

	(void)state;
	buf_text(&text, "[");
	for (int day = 1; day <= 10; day++)
		row(&text, "chat", "recorded", day, "10.5", "1");
	for (int day = 2; day <= 10; day++)
		row(&text, "chat", "autoscaler", day, "12.75", day == 9 ? "null" : "2");
	for (int day = 1; day <= 10; day++)
		row(&text, "code", "recorded", day, "4", "0");
	buf_text(&text, "]");
	const struct alternatives *r = alternatives_question.read(text.text, text.len, &a, &e);
	assert_non_null(r);
	assert_int_equal(r->fleet_count, 3);
	const struct alternative_fleet *was = find(r, "chat", "recorded"), *hpa = find(r, "chat", "autoscaler");
	assert_int_equal(was->month.micro_dollars, 105000000);
	assert_int_equal(was->week.micro_dollars, 73500000);
	assert_int_equal(was->month.late, 10);
	assert_null(was->setting);
	assert_int_equal(hpa->month.micro_dollars, 9 * 12750000);
	assert_int_equal(hpa->month.recorded, 9 * 10500000);
	assert_int_equal(hpa->month.late, ABSENT);
	assert_int_equal(hpa->week.requests, 700);
	assert_string_equal(hpa->setting, "target=0.8");
	assert_int_equal(r->day_count, 9);
	for (size_t i = 0; i < r->day_count; i++)
		assert_int_equal(r->days[i].micro_dollars, 12750000 + 4000000);
}

static void what_is_no_answer_is_refused(void **state)
{
	static const char no_requests[] = "[{\"namespace\":\"a\",\"pool\":\"b\",\"fleet\":\"recorded\",\"from\":"
					  "\"2024-01-01T00:00:00Z\",\"dollars\":1,\"requests\":null}]";
	static const char *const texts[] = { "[{\"pool\":\"chat\"}]", "[{", "{}]", no_requests };
	CLEANUP(arena_release) struct arena a = { 0 };

	(void)state;
	for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
		struct error e = { 0 };
		assert_null(alternatives_question.read(texts[i], strlen(texts[i]), &a, &e));
		assert_int_not_equal(e.kind, ERROR_NONE);
	}
	const struct alternatives *none = alternatives_question.read("[]", 2, &a, &(struct error){ 0 });
	assert_true(none && !none->fleet_count && !none->day_count);
}

static void a_pool_without_prices_has_no_dollars(void **state)
{
	static const char rows[] = "[{\"namespace\":\"a\",\"pool\":\"b\",\"fleet\":\"recorded\",\"from\":"
				   "\"2024-01-01T00:00:00Z\",\"dollars\":null,\"requests\":7}]";
	CLEANUP(arena_release) struct arena a = { 0 };
	struct error e = { 0 };

	(void)state;
	const struct alternatives *r = alternatives_question.read(rows, strlen(rows), &a, &e);
	assert_non_null(r);
	assert_int_equal(r->fleets[0].month.micro_dollars, 0);
	assert_int_equal(r->fleets[0].month.requests, 7);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(sums_are_of_the_same_days),
		cmocka_unit_test(what_is_no_answer_is_refused),
		cmocka_unit_test(a_pool_without_prices_has_no_dollars),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
