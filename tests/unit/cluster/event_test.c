#include "controller/cluster/event.h"

#include "base/log.h"
#include "tests/unit/cluster/played_api.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

static struct {
	struct api_call *call;
	int posts, patches;
	char path[512], body[4096];
	long answer; /* 0: none, until asked */
} server;

static void give_answer(struct play_later *l)
{
	struct api_call *c = l->call;

	free(l);
	server.call = NULL;
	play_answer(c, server.answer, server.answer < 300 ? "{}" : play_status((int)server.answer, "Reason", NULL));
}

static void serve(struct api_call *c)
{
	struct play_later *l = calloc(1, sizeof *l);

	assert_null(server.call); /* one at a time */
	assert_int_equal(c->effect, API_WRITE);
	server.call = c;
	server.posts += !strcmp(c->method, "POST");
	server.patches += !strcmp(c->method, "PATCH");
	snprintf(server.path, sizeof server.path, "%s", c->path);
	snprintf(server.body, sizeof server.body, "%s", c->body);
	l->call = c;
	if (server.answer)
		play_later(l, 5, give_answer);
	else
		free(l);
}

static struct events *begin(void)
{
	memset(&server, 0, sizeof server);
	server.answer = 201;
	return events_open(&(struct events_setup){
		.api = play_begin(serve), .controller = "preheat.dev/controller", .instance = "preheat-0" });
}

static void end(struct events *v)
{
	events_close(v);
	play_until(play_now() + 10);
	play_end();
}

static struct event on_pool(const char *note)
{
	return (struct event){ .api_version = "preheat.dev/v1alpha1",
			       .kind = "WarmPool",
			       .name_space = "llm",
			       .name = "chat",
			       .uid = "u-1",
			       .reason = "TriggeredScaleUp",
			       .action = "ScaleUp",
			       .note = note };
}

static void what_is_sent(void **state)
{
	struct events *v = begin();
	struct event t = on_pool("3 \"to\" 5");

	(void)state;
	events_tell(v, &t);
	assert_int_equal(event_counts(v).sent, 0);
	play_until(10);
	assert_int_equal(event_counts(v).sent, 1);
	assert_string_equal(server.path, "/apis/events.k8s.io/v1/namespaces/llm/events");
	static const char *const parts[] = {
		"{\"apiVersion\":\"events.k8s.io/v1\",\"kind\":\"Event\",\"metadata\":{\"name\":\"chat.",
		"\"namespace\":\"llm\"},\"eventTime\":\"20",
		"000Z\",\"type\":\"Normal\",\"reason\":\"TriggeredScaleUp\",\"action\":\"ScaleUp\",\"note\":\"3 "
		"\\\"to\\\" 5\"",
		"\"reportingController\":\"preheat.dev/controller\",\"reportingInstance\":\"preheat-0\"",
		"\"regarding\":{\"apiVersion\":\"preheat.dev/"
		"v1alpha1\",\"kind\":\"WarmPool\",\"namespace\":\"llm\",\"name\":"
		"\"chat\",\"uid\":\"u-1\"}}",
	};
	for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
		if (!strstr(server.body, parts[i]))
			fail_msg("%s is not in %s", parts[i], server.body);
	t = (struct event){ .api_version = "v1",
			    .kind = "Node",
			    .name = "n",
			    .is_warning = true,
			    .reason = "R",
			    .action = "A",
			    .note = "x" };
	events_tell(v, &t);
	play_until(20);
	assert_non_null(strstr(server.path, "/namespaces/default/"));
	assert_non_null(strstr(server.body, "\"type\":\"Warning\""));
	assert_null(strstr(server.body, "\"regarding\":{\"apiVersion\":\"v1\",\"kind\":\"Node\",\"namespace\""));
	end(v);
}

static void equal_ones_become_a_series(void **state)
{
	struct events *v = begin();
	struct event t = on_pool("same");

	(void)state;
	for (int i = 0; i < 100; i++) {
		events_tell(v, &t);
		play_until(play_now() + SECOND);
	}
	/* told over 100 s: the event, and the series a minute later */
	assert_int_equal(server.posts, 1);
	assert_int_equal(server.patches, 1);
	assert_int_equal(event_counts(v).repeated, 99);
	play_until(play_now() + 2 * MINUTE);
	assert_int_equal(server.patches, 2);
	assert_non_null(strstr(server.body, "{\"series\":{\"count\":100,\"lastObservedTime\":\""));
	assert_non_null(strstr(server.path, "/events/chat."));
	/* long after, it is a new event */
	play_until(play_now() + HOUR);
	events_tell(v, &t);
	play_until(play_now() + SECOND);
	assert_int_equal(server.posts, 2);
	end(v);
}

static void a_flood_is_bounded(void **state)
{
	struct events *v = begin();
	char note[32];

	(void)state;
	for (int i = 0; i < 1000; i++) {
		snprintf(note, sizeof note, "number %d", i);
		struct event t = on_pool(note);
		events_tell(v, &t);
	}
	assert_int_equal(event_counts(v).dropped, 1000 - EVENT_QUEUE);
	play_until(10 * SECOND);
	assert_in_range(server.posts, 40, 62);
	play_until(5 * MINUTE);
	assert_int_equal(server.posts, EVENT_QUEUE);
	end(v);
}

static void long_notes_are_cut_at_a_character(void **state)
{
	struct events *v = begin();
	char note[3000];

	(void)state;
	for (size_t i = 0; i + 3 < sizeof note; i += 3)
		memcpy(note + i, "\xe2\x82\xac", 4); /* the euro sign */
	struct event t = on_pool(note);
	events_tell(v, &t);
	play_until(10);
	const char *from = strstr(server.body, "\"note\":\"") + 8;
	assert_int_equal(strcspn(from, "\""), 1023);
	end(v);
}

static void refusals_stop_nothing(void **state)
{
	static const struct {
		long status;
		int64_t sent, failed;
	} cases[] = { { 409, 1, 0 }, { 403, 0, 1 }, { 404, 0, 0 }, { 422, 0, 1 }, { 503, 0, 1 } };

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct events *v = begin();
		struct event t = on_pool("x"), u = on_pool("y");
		server.answer = cases[i].status;
		events_tell(v, &t);
		play_until(10);
		assert_int_equal(event_counts(v).sent, cases[i].sent);
		assert_int_equal(event_counts(v).failed, cases[i].failed);
		server.answer = 201;
		events_tell(v, &u);
		play_until(20);
		assert_int_equal(event_counts(v).sent, cases[i].sent + 1);
		end(v);
	}
}

static void closed_with_a_call_under_way(void **state)
{
	struct events *v = begin();
	struct event t = on_pool("x");

	(void)state;
	server.answer = 0;
	events_tell(v, &t);
	assert_non_null(server.call);
	end(v);
}

/* Whoever closed it may still be told of something, and asked for the counts. */
static void none_is_told(void **state)
{
	struct event t = on_pool("x");

	(void)state;
	events_tell(NULL, &t);
	assert_int_equal(event_counts(NULL).told, 0);
	events_close(NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_sent),		 cmocka_unit_test(equal_ones_become_a_series),
		cmocka_unit_test(a_flood_is_bounded),	 cmocka_unit_test(long_notes_are_cut_at_a_character),
		cmocka_unit_test(refusals_stop_nothing), cmocka_unit_test(closed_with_a_call_under_way),
		cmocka_unit_test(none_is_told),
	};

	log_level_set(LEVEL_ERROR);
	return cmocka_run_group_tests_name("event", tests, NULL, NULL);
}
