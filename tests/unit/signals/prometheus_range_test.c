#include "signals/prometheus_range.h"
#include "tests/unit/signals/played_http.h"

#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { MOST_POINTS = 11000, READINGS = 20000 };

static const millis FROM = INT64_C(1700000000000), STEP = 15 * SECOND;

/* A server on which each step has one replica with two running and one waiting, and finishes half a request. */
struct place {
	struct clock clock;
	const struct http_request *request;
	int64_t asked, refusals; /* of refusals: with 503, before it answers */
	const char *failing, *body;
	int status;
	int64_t gap_from, gap_to; /* steps that nobody was read in */
	struct pool_reading *readings;
	size_t count;
	struct prometheus_range_report report;
	struct error error;
	bool is_done;
};

static int64_t number(const struct place *p, const char *name)
{
	char room[64];

	return (int64_t)(strtod(played_query(p->request, name, room, sizeof room), NULL) * 1000 + .5);
}

static void write_series(const struct place *p, const char *labels, const char *value, struct buf *out)
{
	int64_t from = number(p, "start"), to = number(p, "end"), step = number(p, "step");
	bool has_one = false;

	assert_true((to - from) / step + 1 <= MOST_POINTS);
	buf_printf(out, "{\"metric\":{%s},\"values\":[", labels);
	for (int64_t at = from; at <= to; at += step) {
		int64_t index = (at - FROM) / STEP;
		if (index >= p->gap_from && index < p->gap_to)
			continue;
		buf_printf(out, "%s[%" PRId64 ".%03" PRId64 ",\"%s\"]", has_one ? "," : "", at / 1000, at % 1000,
			   value);
		has_one = true;
	}
	buf_text(out, "]}");
}

static void write_answer(const struct place *p, const char *query, struct buf *out)
{
	buf_text(out, "{\"status\":\"success\",\"data\":{\"resultType\":\"matrix\",\"result\":[");
	if (strstr(query, "kube_pod_status_ready"))
		write_series(p, "", "2", out);
	else if (strstr(query, "count(count"))
		write_series(p, "", "1", out);
	else if (strstr(query, "num_requests_running"))
		write_series(p, "", "2", out);
	else if (strstr(query, "num_requests_waiting"))
		write_series(p, "", "1", out);
	else if (strstr(query, "request_success"))
		write_series(p, "", "0.5", out);
	else if (strstr(query, "admission_rejections"))
		write_series(p, "", "0.25", out);
	else if (strstr(query, "queue_time_seconds_count"))
		write_series(p, "", "1", out);
	if (strstr(query, "queue_time_seconds_bucket")) {
		write_series(p, "\"le\":\"1.0\"", "0.5", out);
		buf_text(out, ",");
		write_series(p, "\"le\":\"3.0\"", "0.75", out);
		buf_text(out, ",");
		write_series(p, "\"le\":\"+Inf\"", "1", out);
	}
	buf_text(out, "]},\"warnings\":[\"partial\"]}");
}

static void answer(void *user, const struct http_request *r, struct played_answer *a)
{
	struct place *p = user;
	char room[4096];
	const char *query = played_query(r, "query", room, sizeof room);

	p->request = r;
	p->asked++;
	if (p->refusals > 0) {
		p->refusals--;
		a->status = 503;
	} else if (p->failing && strstr(query, p->failing)) {
		a->status = p->status;
		buf_text(&a->body, p->body);
	} else {
		write_answer(p, query, &a->body);
	}
}

static void on_reading(void *user, const struct pool_reading *r)
{
	struct place *p = user;

	assert_true(p->count < READINGS);
	p->readings[p->count++] = *r;
}

static void on_done(void *user, const struct prometheus_range_report *report, const struct error *e)
{
	struct place *p = user;

	assert_false(p->is_done);
	p->is_done = true;
	p->report = *report;
	p->error = *e;
}

static struct place *place_open(void)
{
	struct place *p = calloc(1, sizeof *p);

	assert_non_null(p);
	p->readings = calloc(READINGS, sizeof *p->readings);
	assert_non_null(p->readings);
	p->clock = clock_open_by_hand(1700000000000);
	played_begin(&p->clock, answer, p);
	return p;
}

static void run(struct place *p, int64_t steps)
{
	const struct prometheus_range_settings s = { .url = "http://10.0.0.9:9090",
						     .engine = ENGINE_VLLM,
						     .objective_us = 2000000,
						     .from = FROM,
						     .to = FROM + (steps - 1) * STEP,
						     .step = STEP,
						     .interval = STEP };
	const struct prometheus_range_events events = { on_reading, on_done, p };

	prometheus_range_start(NULL, NULL, &s, &events);
	played_turn(10 * MINUTE);
	assert_true(p->is_done);
}

static void place_close(struct place *p)
{
	played_end();
	free(p->readings);
	free(p);
}

static void a_range_comes_in_pieces_and_in_order(void **state)
{
	struct place *p = place_open();
	int64_t completed = 0, late = 0, refused = 0;

	(void)state;
	p->gap_from = 6000;
	p->gap_to = 6100;
	run(p, 12001);
	if (p->error.kind != ERROR_NONE)
		fail_msg("%s", p->error.message);
	assert_int_equal(p->count, 11901);
	assert_int_equal(p->report.readings, 11901);
	assert_int_equal(p->report.missing, 100);
	assert_string_equal(p->report.warning, "partial");
	for (size_t i = 0; i < p->count; i++) {
		const struct pool_reading *r = &p->readings[i];
		assert_int_equal(r->at, FROM + (millis)(i < 6000 ? i : i + 100) * STEP);
		assert_int_equal(r->running, 2);
		assert_int_equal(r->waiting, 1);
		assert_int_equal(r->fresh, 1);
		assert_int_equal(r->expected, 2); /* by kube-state-metrics */
		assert_int_equal(r->started, 1);  /* for want of first tokens */
		completed += r->completed;
		late += r->late;
		refused += r->refused;
	}
	assert_int_equal(refused, 11901 / 4);
	assert_int_equal(completed, 11901 / 2); /* halves add up */
	assert_in_range(late, 4462, 4463);	/* 1 - .625 of each, interpolated at 2 s between 1 and 3 */
	place_close(p);
}

static void what_fails_for_a_while_is_asked_again(void **state)
{
	struct place *p = place_open();

	(void)state;
	p->refusals = 3;
	run(p, 10);
	assert_int_equal(p->error.kind, ERROR_NONE);
	assert_int_equal(p->report.partial.kind, ERROR_NONE);
	assert_int_equal(p->count, 10);
	place_close(p);
}

static void a_quantity_that_fails_is_named_and_not_told(void **state)
{
	struct place *p = place_open();

	(void)state;
	p->failing = "queue_time_seconds_bucket";
	p->status = 422;
	p->body = "{\"status\":\"error\",\"errorType\":\"execution\",\"error\":\"too many samples\"}";
	run(p, 10);
	assert_int_equal(p->error.kind, ERROR_NONE);
	assert_non_null(strstr(p->report.partial.message, "queue wait: "));
	assert_non_null(strstr(p->report.partial.message, "too many samples"));
	assert_int_equal(p->count, 10);
	assert_int_equal(p->readings[3].late, READING_UNKNOWN);
	place_close(p);
}

static void without_levels_there_is_nothing(void **state)
{
	static const struct {
		const char *body, *says;
	} cases[] = {
		{ "{\"status\":\"success\",\"data\":{\"resultType\":\"matrix\",\"result\":[{\"metric\":{},\"values\":["
		  "[1700000007,\"1\"]]}]}}",
		  "a sample beside the steps" },
		{ "{\"status\":\"success\",\"data\":{\"resultType\":\"matrix\",\"result\":[{\"metric\":{\"a\":\"1\"},"
		  "\"values\":["
		  "[1700000000,\"1\"]]},{\"metric\":{\"a\":\"2\"},\"values\":[[1700000000,\"1\"]]}]}}",
		  "several series" },
		{ "<html>", "not JSON" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct place *p = place_open();
		p->failing =
			"sum(max by (namespace, pod, instance) (sum by (namespace, pod, instance, job, prometheus, "
			"prometheus_replica) (max without (tp_rank, pp_rank, moe_ep_rank) (vllm:num_requests_waiting";
		p->status = 200;
		p->body = cases[i].body;
		run(p, 10);
		if (p->error.kind != ERROR_INVALID || !strstr(p->error.message, cases[i].says) ||
		    !strstr(p->error.message, "waiting requests: "))
			fail_msg("%s: %s", cases[i].says, p->error.message);
		assert_int_equal(p->count, 0);
		place_close(p);
	}
}

static void queries_are_printed_with_their_names(void **state)
{
	const struct prometheus_range_settings s = { .engine = ENGINE_SGLANG, .step = MINUTE, .interval = 15 * SECOND };
	CLEANUP(buf_release) struct buf text = { 0 };

	(void)state;
	prometheus_range_print(&s, &text);
	assert_non_null(strstr(text.text, "# running requests\nsum(max by (namespace, pod, instance) ("));
	assert_non_null(strstr(text.text, "increase(sglang:num_requests_total{}[60s])"));
	assert_non_null(strstr(text.text, "# replicas ready, by kube-state-metrics\nsum("));
	assert_null(strstr(text.text, "* 60 / 60"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_range_comes_in_pieces_and_in_order),
		cmocka_unit_test(what_fails_for_a_while_is_asked_again),
		cmocka_unit_test(a_quantity_that_fails_is_named_and_not_told),
		cmocka_unit_test(without_levels_there_is_nothing),
		cmocka_unit_test(queries_are_printed_with_their_names),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
