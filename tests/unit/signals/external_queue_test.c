#include "base/arena.h"
#include "signals/external_queue.h"
#include "tests/unit/signals/played_http.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static const millis EVERY = 15 * SECOND;

struct place {
	struct clock clock;
	struct external_queue *queue;
	const char *body;
	int status;
	char query[4096];
};

static void answer(void *user, const struct http_request *r, struct played_answer *a)
{
	struct place *p = user;

	played_query(r, "query", p->query, sizeof p->query);
	a->status = p->status;
	buf_text(&a->body, p->body);
}

static struct place *place_open(enum external_queue_kind kind, const char *expression,
				const struct http_auth_settings *auth)
{
	struct place *p = calloc(1, sizeof *p);

	assert_non_null(p);
	p->clock = clock_open_by_hand(1700000000000);
	played_begin(&p->clock, answer, p);
	p->queue = external_queue_open(NULL, NULL, &p->clock,
				       &(struct external_queue_settings){
					       .kind = kind,
					       .url = kind == EXTERNAL_QUEUE_PROMQL
							      ? "http://me:word@10.0.0.9:9090"
							      : "http://me:word@10.0.0.9:9090/q?key=secret",
					       .expression = expression,
					       .reach = auth ? *auth : (struct http_auth_settings){ 0 },
					       .interval = EVERY,
					       .deadline = 5 * SECOND,
				       });
	return p;
}

static int64_t ask(struct place *p, const char *body)
{
	p->body = body;
	played_settle();
	clock_turn(&p->clock, EVERY);
	return external_queue_waiting(p->queue);
}

static void place_close(struct place *p)
{
	external_queue_close(p->queue);
	played_settle();
	played_end();
	free(p);
}

static void expect_trouble(const struct place *p, enum error_kind kind, const char *says)
{
	const struct error *e = external_queue_trouble(p->queue);

	if (e->kind != kind || !strstr(e->message, says) || strstr(e->message, "word") || strstr(e->message, "secret"))
		fail_msg("wanted kind %d, '%s', got kind %d, '%s'", (int)kind, says, (int)e->kind, e->message);
}

#define VECTOR(values) "{\"status\":\"success\",\"data\":{\"resultType\":\"vector\",\"result\":[" values "]}}"
#define SERIES(value)  "{\"metric\":{},\"value\":[1700000000,\"" value "\"]}"

static void an_expression_has_one_series(void **state)
{
	struct place *p = place_open(EXTERNAL_QUEUE_PROMQL, "sum(x{y=\"z\"}) + 1", NULL);

	(void)state;
	assert_int_equal(external_queue_waiting(p->queue), READING_UNKNOWN);
	assert_int_equal(ask(p, VECTOR(SERIES("12.6"))), 13);
	assert_string_equal(p->query, "sum(x{y=\"z\"}) + 1");
	expect_trouble(p, ERROR_NONE, "");
	assert_int_equal(ask(p, VECTOR(SERIES("0"))), 0);
	assert_int_equal(
		ask(p, "{\"status\":\"success\",\"data\":{\"resultType\":\"scalar\",\"result\":[1700000000,\"4\"]}}"),
		4);
	assert_int_equal(ask(p, VECTOR("")), 4); /* the last that is known, for three intervals */
	expect_trouble(p, ERROR_NOT_FOUND, "the expression gave 0 series; allowed: one: where nothing means an empty");
	assert_int_equal(ask(p, VECTOR(SERIES("1") "," SERIES("2"))), 4);
	expect_trouble(p, ERROR_NOT_FOUND, "2 series; allowed: one: put sum() around it");
	assert_int_equal(ask(p, VECTOR(SERIES("NaN"))), READING_UNKNOWN);
	expect_trouble(p, ERROR_INVALID, "'NaN' is not a number");
	ask(p, VECTOR(SERIES("-3")));
	expect_trouble(p, ERROR_INVALID, "'-3' is less than nothing");
	ask(p, VECTOR(SERIES("1.1e8")));
	expect_trouble(p, ERROR_INVALID, "more than 100000000 requests cannot be");
	p->status = 422;
	ask(p, "{\"status\":\"error\",\"errorType\":\"bad_data\",\"error\":\"parse error\"}");
	expect_trouble(p, ERROR_INVALID, "HTTP status 422: parse error");
	p->status = 0;
	assert_int_equal(ask(p, VECTOR(SERIES("2"))), 2);
	place_close(p);
}

#define NEW "llm_d_epp_flow_control_queue_size{fairness_id=\"a\",inference_pool=\"chat\",priority=\"0\"} "
#define OLD "inference_extension_flow_control_queue_size{fairness_id=\"a\",priority=\"0\"} "

static void a_picker_tells_its_pool(void **state)
{
	struct place *p = place_open(EXTERNAL_QUEUE_PICKER, "chat", NULL);

	(void)state;
	assert_int_equal(ask(p,
			     NEW "3\nllm_d_epp_flow_control_queue_size{fairness_id=\"b\",inference_pool=\"chat\"} 4\n"
				 "llm_d_epp_flow_control_queue_size{inference_pool=\"other\"} 50\n" OLD "9\n"),
			 7);
	assert_int_equal(ask(p, OLD "9\n"), 9);
	assert_int_equal(ask(p, "llm_d_epp_flow_control_pool_saturation{inference_pool=\"chat\"} 1.0\n"), 0);
	expect_trouble(p, ERROR_NONE, "");
	ask(p, "llm_d_epp_ready_endpoints{name=\"chat\"} 3\n");
	expect_trouble(p, ERROR_NOT_FOUND, "of the inference pool 'chat'; is flow control on");
	ask(p, NEW "NaN\n");
	expect_trouble(p, ERROR_INVALID, "llm_d_epp_flow_control_queue_size: the value 'NaN' is not a number");
	ask(p, NEW "3");
	expect_trouble(p, ERROR_INVALID, "the page ends within it");
	p->status = 401;
	ask(p, "");
	expect_trouble(p, ERROR_AUTH, "/q: HTTP status 401");
	place_close(p);
	CLEANUP(buf_release) struct buf query = { 0 };
	endpoint_picker_query("a\"b", &query);
	assert_non_null(strstr(query.text, "sum(llm_d_epp_flow_control_queue_size{inference_pool=\"a\\\"b\"}) or "));
	assert_non_null(strstr(query.text, "or 0 * count(llm_d_epp_flow_control_pool_saturation{"));
}

static void a_document_holds_the_number(void **state)
{
	struct place *p = place_open(EXTERNAL_QUEUE_JSON, "messages_ready", NULL);

	(void)state;
	assert_int_equal(ask(p, "{\"messages\":9,\"messages_ready\":5}"), 5);
	ask(p, "{\"messages\":9}");
	expect_trouble(p, ERROR_NOT_FOUND, "/q: messages_ready is not in the answer");
	p->status = 503;
	for (int i = 0; i < 3; i++)
		ask(p, "");
	assert_int_equal(external_queue_waiting(p->queue), READING_UNKNOWN);
	expect_trouble(p, ERROR_UNAVAILABLE, "/q: HTTP status 503");
	place_close(p);
	p = place_open(EXTERNAL_QUEUE_JSON, "n", &(struct http_auth_settings){ .bearer_token_file = "/nowhere/token" });
	ask(p, "{\"n\":1}");
	expect_trouble(p, ERROR_AUTH, "/nowhere/token");
	place_close(p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_expression_has_one_series),
		cmocka_unit_test(a_picker_tells_its_pool),
		cmocka_unit_test(a_document_holds_the_number),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
