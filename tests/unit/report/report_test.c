/* With the argument "--sample FILE" it writes a page of made-up numbers for tests/report/look.sh. */
#include "base/exact.h"
#include "base/file.h"
#include "base/random.h"
#include "controller/report/report.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

enum { POOLS = 2, LARGEST_PAGE = 3 << 20 };

static const struct pool_spec pools[POOLS] = {
	{ .name = "chat",
	  .namespace = "llm",
	  .objective_wait = 2000,
	  .objective_late_ppm = 10000,
	  .max_sequences = 100 },
	{ .name = "</script><b>\"\\",
	  .namespace = "llm",
	  .objective_wait = 2000,
	  .objective_late_ppm = 50000,
	  .max_sequences = 100 },
};
static const struct fleet_spec fleet = { .pools = pools, .pool_count = POOLS };

static struct report *new_report(void)
{
	struct report_run run = {
		.fleet = &fleet,
		.policy = "preheat",
		.setting = "",
		.traffic = "made-up.csv.gz",
		.program = "preheat 0.1.0",
		.seed = 7,
		.start = INT64_C(1715558400000),
		.interval = 15 * SECOND,
		.warm_up = DAY,
	};

	return report_new(&run);
}

/* A wave a day with noise and bursts, in thousandths of a replica. */
static int64_t demand_at(int64_t tick, struct random *r)
{
	double day = (double)(tick % 5760) / 5760, hill = day < 0.5 ? day * 2 : 2 - day * 2;
	double burst = tick % 2003 < 40 ? 6 : 0;

	return (int64_t)(1000 * (3 + 14 * hill * hill + burst + random_uniform(r)));
}

struct made_up {
	struct pool_plan plans[POOLS];
	struct tick_result results[POOLS];
	int64_t hot;
};

static struct pool_decision decision_at(const struct made_up *m, int64_t tick, int64_t demand)
{
	int64_t wished = demand * 13 / 10000 + 1;

	return (struct pool_decision){
		.slots_milli = 100000,
		.demand_milli = demand,
		.ready = m->hot,
		.wished = wished,
		.decided = wished > 16 ? 16 : wished,
		.held_by = wished > 16 ? LIMIT_MAX : LIMIT_NONE,
		.rule = tick / 4000 % 3,
		.margin_permille = 100 + tick / 4000 % 3 * 80,
		.hold_ms = 600000 + tick / 4000 % 3 * 400000,
		.chase_permille = 250,
		.stock_permille = 200,
		.rule_share_ppm = 7400,
		.target_ppm = 10000,
		.waiting_now = demand > m->hot * 1000 ? 30 : 0,
	};
}

static void fill_prices(struct pool_plan *p)
{
	static const int64_t late[] = { 100000, 50000, 20000, 10000, 5000, 2000, 1000 };

	p->price_count = sizeof late / sizeof *late;
	for (size_t i = 0; i < p->price_count; i++)
		p->prices[i] = (struct objective_price){ .late_ppm = late[i],
							 .rule = i == 6 ? ABSENT : (int64_t)i,
							 .dollars_per_hour = 9000000 + 1100000 * (int64_t)(i * i),
							 .gpu_milli = 9000 + 900 * (int64_t)i,
							 .share_ppm = late[i] * 9 / 10 };
}

static void fill_tick(struct made_up *m, int64_t tick, struct random *r)
{
	for (size_t i = 0; i < POOLS; i++) {
		int64_t demand = demand_at(tick + (int64_t)i * 1500, r), short_of = demand / 1000 - m->hot;
		struct pool_decision d = decision_at(m, tick, demand);

		m->plans[i].decision = d;
		fill_prices(&m->plans[i]);
		m->results[i] = (struct tick_result){
			.arrived = demand / 100,
			.started = demand / 100,
			.late = short_of > 0 ? short_of * 3 : 0,
			.waiting = short_of > 0 ? short_of * 10 : 0,
			.running = demand / 10,
			.ready = m->hot,
			.starting = d.decided > m->hot ? d.decided - m->hot : 0,
			.standby = m->hot / 5,
			.lent = tick % 5760 > 4000,
			.draining = d.decided < m->hot,
			.gpu_ms = m->hot * 15000,
			.micro_dollars = m->hot * 5000,
		};
	}
	if (tick % 25 == 0)
		m->hot = m->plans[0].decision.decided;
}

static void run(struct report *r, int64_t ticks, bool every_tick_changes)
{
	struct random stream = random_stream(1, "report");
	struct made_up m = { .hot = 5 };
	struct plan plan = { .pools = m.plans, .pool_count = POOLS };
	struct error e = { 0 };

	for (int64_t tick = 0; tick < ticks; tick++) {
		fill_tick(&m, tick, &stream);
		if (every_tick_changes)
			m.plans[0].decision.decided += tick % 2;
		struct tick_view v = {
			.plan = &plan, .results = m.results, .end = (tick + 1) * 15 * SECOND, .ticks = ticks
		};
		assert_true(report_tick(r, &v, &e));
	}
}

static void add_scores(struct report *r)
{
	struct score score = { .requests = 1403221,
			       .late = 10384,
			       .wait_p50 = 12,
			       .wait_p99 = 1870,
			       .gpu_ms = INT64_C(14871) * HOUR,
			       .micro_dollars = INT64_C(17994) * 1000000,
			       .starts = 812,
			       .removals = 808 };
	struct score worse = score;
	worse.late = 90000;
	struct pool_score scores[POOLS] = { { .whole = score, .scored = score }, { .whole = score, .scored = worse } };
	struct run_result result = { .pools = scores };

	report_result(r, &result, result.pools);
}

static void add_rivals(struct report *r)
{
	static const char *const families[] = { "preheat", "static", "hpa", "keda", "kpa", "hpa + standby", "buffer" };
	struct random stream = random_stream(2, "rivals");

	for (size_t i = 0; i < 7 * 40; i++) {
		double share = exact_exp(-3 - 5 * random_uniform(&stream)),
		       dollars = 14000 - 1600 * exact_log(share) / 4;
		char setting[40];

		snprintf(setting, sizeof setting, "target=%.2f", 0.4 + 0.01 * (double)(i / 7));
		report_add_rival(r, &(struct report_rival){ .family = families[i % 7],
							    .setting = setting,
							    .dollars = dollars * (1 + 0.05 * (double)(i % 7)) +
								       500 * random_uniform(&stream),
							    .gpu_hours = dollars * 1.2,
							    .late_share = i == 41 ? 0 : share });
	}
}

static struct buf written(const struct report *r)
{
	char folder[] = "/tmp/report-test-XXXXXX", path[64];
	struct buf page = { 0 };
	struct error e = { 0 };

	assert_non_null(mkdtemp(folder));
	snprintf(path, sizeof path, "%s/report.html", folder);
	assert_true(report_write(r, path, &e));
	assert_true(file_read(path, LARGEST_PAGE, &page, &e));
	unlink(path);
	rmdir(folder);
	return page;
}

static size_t occurrences(const char *text, const char *word)
{
	size_t n = 0;

	for (const char *at = text; (at = strstr(at, word)); at += strlen(word))
		n++;
	return n;
}

static void a_long_run_stays_small(void **state)
{
	struct report *r = new_report();

	(void)state;
	run(r, 80640, true);
	add_scores(r);
	add_rivals(r);
	struct buf page = written(r);
	assert_true(page.len < LARGEST_PAGE);
	assert_in_range(occurrences(page.text, "\"before\":"), 300, POOLS * REPORT_DECISIONS);
	buf_release(&page);
	report_free(r);
}

static void nothing_from_outside_becomes_markup(void **state)
{
	struct report *r = new_report();

	(void)state;
	run(r, 100, false);
	struct buf page = written(r);
	assert_int_equal(occurrences(page.text, "</script>"), 5);
	assert_null(strstr(page.text, "<b>"));
	assert_non_null(strstr(page.text, "\\u003c/script>\\u003cb>\\u0022\\u005c"));
	buf_release(&page);
	report_free(r);
}

static void the_page_needs_nothing_beside_itself(void **state)
{
	struct report *r = new_report();

	(void)state;
	run(r, 10, false);
	struct buf page = written(r);
	assert_null(strstr(page.text, "<link"));
	assert_null(strstr(page.text, " src="));
	assert_null(strstr(page.text, "@import"));
	assert_null(strstr(page.text, "fetch("));
	buf_release(&page);
	report_free(r);
}

static void sums_are_kept(void **state)
{
	struct report *r = new_report();
	struct made_up m = { 0 };
	struct plan plan = { .pools = m.plans, .pool_count = POOLS };
	struct error e = { 0 };

	(void)state;
	for (int64_t tick = 0; tick < 4001; tick++) {
		struct tick_view v = {
			.plan = &plan, .results = m.results, .end = (tick + 1) * 15 * SECOND, .ticks = 4001
		};
		m.results[0].arrived = tick == 4000 ? 77 : 1;
		assert_true(report_tick(r, &v, &e));
	}
	struct buf page = written(r);
	const char *arrived = strstr(page.text, "\"arrived\":[3,3,3,");
	assert_non_null(arrived);
	assert_non_null(strstr(arrived, ",3,78],\"started\"")); /* 4001 = 1333 * 3 + 2 */
	buf_release(&page);
	report_free(r);
}

static void an_empty_run_and_a_bad_path_are_no_crash(void **state)
{
	struct report *r = new_report();
	struct error e = { 0 };

	(void)state;
	struct buf page = written(r);
	assert_non_null(strstr(page.text, "\"ticks\":[]"));
	buf_release(&page);
	assert_false(report_write(r, "/nonexistent/report.html", &e));
	assert_non_null(strstr(e.message, "/nonexistent/report.html"));
	report_free(r);
	report_free(NULL);
}

static void the_terminal_gets_table_charts_and_hints(void **state)
{
	struct report *r = new_report();
	char *text = NULL;
	size_t len = 0;
	FILE *out = open_memstream(&text, &len);

	(void)state;
	run(r, 5760, false);
	add_scores(r);
	report_print(r, true, out);
	report_print_next(r, "out", out);
	fclose(out);
	assert_int_equal(occurrences(text, "hot capacity"), POOLS);
	assert_int_equal(occurrences(text, "1,403,221"), 2 * POOLS);
	assert_int_equal(occurrences(text, " NO "), 1);
	assert_non_null(strstr(text, "preheat explain --db out/history.db --largest"));
	assert_non_null(strstr(text, "out/report.html"));
	assert_null(strchr(text, '\033'));
	free(text);
	out = open_memstream(&text, &len);
	report_print_next(r, NULL, out);
	fclose(out);
	assert_null(strstr(text, "history.db"));
	assert_non_null(strstr(text, "--out DIR"));
	free(text);
	report_free(r);
}

static int write_sample(const char *path)
{
	struct report *r = new_report();
	struct error e = { 0 };

	run(r, 35000, false);
	add_scores(r);
	add_rivals(r);
	bool is_written = report_write(r, path, &e);
	report_print(r, false, stdout);
	report_free(r);
	if (!is_written)
		fprintf(stderr, "%s\n", e.message);
	return is_written ? 0 : 1;
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_long_run_stays_small),
		cmocka_unit_test(nothing_from_outside_becomes_markup),
		cmocka_unit_test(the_page_needs_nothing_beside_itself),
		cmocka_unit_test(sums_are_kept),
		cmocka_unit_test(the_terminal_gets_table_charts_and_hints),
		cmocka_unit_test(an_empty_run_and_a_bad_path_are_no_crash),
	};

	if (argc == 3 && strcmp(argv[1], "--sample") == 0)
		return write_sample(argv[2]);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
