#include "base/log.h"
#include "base/net/otlp.h"
#include "tests/unit/net/scripted_peer.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#define ANSWER(status, headers) "HTTP/1.1 " status "\r\n" headers "Content-Length: 2\r\n\r\n{}"

struct traced {
	struct loop *loop;
	struct http *http;
	struct otlp *otlp;
	struct scripted_peer *peer;
};

static char logged[4096];

static void keep_line(void *user, enum log_level level, const char *line)
{
	(void)user;
	(void)level;
	strncat(logged, line, sizeof logged - strlen(logged) - 1);
}

static void open_traced(struct traced *t, const struct peer_step *script)
{
	static const char *const headers[] = { "api-key: s3cret", NULL };
	static const char *const resource[] = { "k8s.cluster.name=prod", "no value", NULL };
	static char url[64];
	struct error e = { 0 };

	logged[0] = '\0';
	log_set_up(&(struct log_setup){ .least = LEVEL_INFO, .write = keep_line });
	t->peer = peer_open(script);
	t->loop = loop_open();
	t->http = http_open(t->loop, "preheat/test", &e);
	snprintf(url, sizeof url, "%s/v1/traces", peer_url(t->peer));
	t->otlp = otlp_open(t->loop, t->http,
			    &(struct otlp_settings){ .url = url,
						     .headers = headers,
						     .service = "preheat",
						     .version = "1.0",
						     .instance = "a",
						     .resource = resource },
			    &e);
	assert_non_null(t->otlp);
}

static char *close_traced(struct traced *t)
{
	otlp_close(t->otlp);
	while (http_active(t->http))
		loop_once(t->loop);
	http_close(t->http);
	loop_close(t->loop);
	assert_null(strstr(logged, "s3cret"));
	return peer_close(t->peer);
}

static void add(struct traced *t, const char *name, const char *failure)
{
	const struct otlp_attribute attributes[] = { { "pool", "llm/\"chat\"", 0 }, { "desired", NULL, -3 } };

	otlp_add(t->otlp, &(struct otlp_span){ .trace = { 1, 2 },
					       .id = 3,
					       .parent = failure ? 4 : 0,
					       .name = name,
					       .kind = OTLP_CLIENT,
					       .from = 1700000000000,
					       .to = 1700000000250,
					       .attributes = attributes,
					       .attribute_count = 2,
					       .failure = failure });
}

static void finish(struct traced *t)
{
	otlp_flush(t->otlp);
	while (!otlp_is_idle(t->otlp))
		loop_once(t->loop);
}

static void spans_arrive_as_otlp_has_them(void **state)
{
	const struct peer_step script[] = { { PEER_ACCEPT, NULL },
					    { PEER_READ, NULL },
					    { PEER_SEND, ANSWER("200 OK", "") },
					    { PEER_HOLD, NULL },
					    { PEER_END, NULL } };
	struct traced t;

	(void)state;
	open_traced(&t, script);
	add(&t, "tick", NULL);
	add(&t, "call", "stock-out");
	finish(&t);
	assert_int_equal(otlp_counts(t.otlp).sent, 2);
	char *seen = close_traced(&t);
	assert_non_null(strstr(seen, "POST /v1/traces HTTP/1.1\r\n"));
	assert_non_null(strstr(seen, "\r\nContent-Type: application/json\r\n"));
	assert_non_null(strstr(seen, "\r\napi-key: s3cret\r\n"));
	const char *body = strstr(seen, "\r\n\r\n") + 4;
	const char *attributes = "\"attributes\":[{\"key\":\"pool\",\"value\":{\"stringValue\":\"llm/\\\"chat\\\"\"}},"
				 "{\"key\":\"desired\",\"value\":{\"intValue\":\"-3\"}}]";
	char wanted[2048];
	snprintf(wanted, sizeof wanted,
		 "{\"resourceSpans\":[{\"resource\":{\"attributes\":["
		 "{\"key\":\"service.name\",\"value\":{\"stringValue\":\"preheat\"}},"
		 "{\"key\":\"service.version\",\"value\":{\"stringValue\":\"1.0\"}},"
		 "{\"key\":\"service.instance.id\",\"value\":{\"stringValue\":\"a\"}},"
		 "{\"key\":\"k8s.cluster.name\",\"value\":{\"stringValue\":\"prod\"}}]},"
		 "\"scopeSpans\":[{\"scope\":{\"name\":\"preheat\",\"version\":\"1.0\"},\"spans\":["
		 "{\"traceId\":\"00000000000000010000000000000002\",\"spanId\":\"0000000000000003\",\"name\":\"tick\","
		 "\"kind\":3,"
		 "\"startTimeUnixNano\":\"1700000000000000000\",\"endTimeUnixNano\":\"1700000000250000000\",%s,"
		 "\"status\":{}},"
		 "{\"traceId\":\"00000000000000010000000000000002\",\"spanId\":\"0000000000000003\","
		 "\"parentSpanId\":\"0000000000000004\",\"name\":\"call\",\"kind\":3,"
		 "\"startTimeUnixNano\":\"1700000000000000000\",\"endTimeUnixNano\":\"1700000000250000000\",%s,"
		 "\"status\":{\"code\":2,\"message\":\"stock-out\"}}]}]}]}",
		 attributes, attributes);
	assert_string_equal(body, wanted);
	free(seen);
}

static void what_may_pass_is_tried_again(void **state)
{
	const struct peer_step script[] = { { PEER_ACCEPT, NULL },
					    { PEER_READ, NULL },
					    { PEER_SEND, ANSWER("503 Service Unavailable", "") },
					    { PEER_READ, NULL },
					    { PEER_SEND, ANSWER("200 OK", "") },
					    { PEER_HOLD, NULL },
					    { PEER_END, NULL } };
	struct traced t;

	(void)state;
	open_traced(&t, script);
	add(&t, "tick", NULL);
	finish(&t);
	assert_int_equal(otlp_counts(t.otlp).sent, 1);
	assert_int_equal(otlp_counts(t.otlp).failed, 1);
	assert_int_equal(otlp_counts(t.otlp).dropped, 0);
	assert_non_null(strstr(logged, "\"event\":\"traces-not-sent\""));
	free(close_traced(&t));
}

static void what_is_refused_is_dropped_and_told_once(void **state)
{
	const struct peer_step script[] = { { PEER_ACCEPT, NULL },
					    { PEER_READ, NULL },
					    { PEER_SEND, ANSWER("400 Bad Request", "") },
					    { PEER_READ, NULL },
					    { PEER_SEND, ANSWER("401 Unauthorized", "") },
					    { PEER_HOLD, NULL },
					    { PEER_END, NULL } };
	struct traced t;

	(void)state;
	open_traced(&t, script);
	add(&t, "tick", NULL);
	finish(&t);
	add(&t, "tick", NULL);
	finish(&t);
	assert_int_equal(otlp_counts(t.otlp).sent, 0);
	assert_int_equal(otlp_counts(t.otlp).dropped, 2);
	char *first = strstr(logged, "traces-not-sent");
	assert_non_null(first);
	assert_null(strstr(first + 1, "traces-not-sent"));
	free(close_traced(&t));
}

static void a_collector_that_hangs_costs_a_queue_and_no_more(void **state)
{
	const struct peer_step script[] = {
		{ PEER_ACCEPT, NULL }, { PEER_READ, NULL }, { PEER_HOLD, NULL }, { PEER_END, NULL }
	};
	struct traced t;

	(void)state;
	open_traced(&t, script);
	for (int i = 0; i < OTLP_BATCH + OTLP_QUEUE + 7; i++)
		add(&t, "tick", NULL);
	assert_int_equal(otlp_counts(t.otlp).dropped, 7);
	free(close_traced(&t));
}

static void an_endpoint_that_is_none_is_refused(void **state)
{
	struct error e = { 0 };

	(void)state;
	assert_null(otlp_open(NULL, NULL, &(struct otlp_settings){ .url = "collector:4317" }, &e));
	assert_int_equal(e.kind, ERROR_INVALID);
	assert_non_null(strstr(e.message, "'collector:4317'"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(spans_arrive_as_otlp_has_them),
		cmocka_unit_test(what_may_pass_is_tried_again),
		cmocka_unit_test(what_is_refused_is_dropped_and_told_once),
		cmocka_unit_test(a_collector_that_hangs_costs_a_queue_and_no_more),
		cmocka_unit_test(an_endpoint_that_is_none_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
