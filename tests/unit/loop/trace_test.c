/* One scale-up, seen by whoever collects its spans. */
#include "base/net/otlp.h"
#include "controller/loop/controller_state.h"
#include "controller/loop/trace.h"
#include "tests/unit/net/scripted_peer.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

enum { SPANS = 6, ID = 16 };

struct seen_span {
	char trace[33], id[ID + 1], parent[ID + 1];
	bool has_failed;
};

static void take(const char *at, const char *key, size_t len, char *out)
{
	const char *found = strstr(at, key), *next = strstr(at + 1, "{\"traceId\"");

	out[0] = '\0';
	if (found && (!next || found < next))
		snprintf(out, len + 1, "%s", found + strlen(key));
}

/* The span of this name. */
static struct seen_span span_named(const char *body, const char *name)
{
	char wanted[100];
	struct seen_span s = { 0 };

	snprintf(wanted, sizeof wanted, "\"name\":\"%s\"", name);
	for (const char *at = strstr(body, "{\"traceId\""); at; at = strstr(at + 1, "{\"traceId\"")) {
		const char *next = strstr(at + 1, "{\"traceId\""), *found = strstr(at, wanted);
		if (!found || (next && found > next))
			continue;
		take(at, "\"traceId\":\"", 32, s.trace);
		take(at, "\"spanId\":\"", ID, s.id);
		take(at, "\"parentSpanId\":\"", ID, s.parent);
		const char *failed = strstr(at, "\"code\":2");
		s.has_failed = failed && (!next || failed < next);
		return s;
	}
	fail_msg("no span %s in %s", name, body);
	return s;
}

static struct pool_spec pool = { .name = "chat", .namespace = "llm" };
static struct group_spec group = { .name = "g5", .provider = "eks" };

static void fill(struct controller *c, struct live_pool *live, struct pool_plan *plan)
{
	c->manifest.fleet.pools = &pool;
	c->manifest.fleet.pool_count = 1;
	c->manifest.fleet.groups = &group;
	c->manifest.fleet.group_count = 1;
	static struct live_pool *pools[1];

	pools[0] = live;
	c->pools = pools;
	c->plan.pools = plan;
	c->plan.pool_count = 1;
	snprintf(live->key, sizeof live->key, "llm/chat");
	c->settings.trace_seed = 7;
}

/* What happens in a scale-up: a tick, the call that it leads to, which fails, a stage minutes later. */
static void buy_a_machine(struct controller *c)
{
	const struct node_group g = { .index = 0 };
	const struct start s = { .asked_at = 1000000, .machine = "i-1" };
	const struct start refill = { .asked_at = 1000000, .machine = "i-2", .kind = START_REFILL };
	const struct start adopted = { .asked_at = 5, .is_adopted = true };
	const struct event_input stage = { .what = EVENT_STAGE, .stage = STAGE_IMAGE, .value = 60000 };
	const struct event_input serving = { .what = EVENT_SERVING };
	struct provider_call call = { .verb = PROVIDER_GROW, .token = "one", .desired = 3 };

	c->snapshot.now = 1000000;
	trace_tick(c, 1500);
	error_set(&call.error, ERROR_STOCKOUT, "none left");
	trace_call(c, &g, &call, 1000020);
	c->snapshot.now = 1015000;
	trace_start(c, &s, &stage, 1100000);
	trace_start(c, &s, &serving, 1200000);
	trace_start(c, &refill, &serving, 1150000);
	trace_start(c, &adopted, &stage, 1100000);
}

static void a_scale_up_is_one_trace(void **state)
{
	const struct peer_step script[] = { { PEER_ACCEPT, NULL },
					    { PEER_READ, NULL },
					    { PEER_SEND, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}" },
					    { PEER_HOLD, NULL },
					    { PEER_END, NULL } };
	struct scripted_peer *peer = peer_open(script);
	struct clock clock = clock_open_by_hand(1000050);
	struct loop *loop = loop_open();
	struct error e = { 0 };
	struct http *http = http_open(loop, "preheat/test", &e);
	struct live_pool live = { 0 };
	struct pool_plan plan = { .decision = { .waiting_now = ABSENT } };
	static struct controller c;

	(void)state;
	c = (struct controller){ .clock = &clock };
	fill(&c, &live, &plan);
	buy_a_machine(&c); /* without a collector: nothing, and no harm */
	c.settings.traces = otlp_open(
		loop, http,
		&(struct otlp_settings){ .url = peer_url(peer), .service = "s", .version = "1", .instance = "i" }, &e);
	assert_non_null(c.settings.traces);
	buy_a_machine(&c);
	otlp_flush(c.settings.traces);
	while (!otlp_is_idle(c.settings.traces))
		loop_once(loop);
	assert_int_equal(otlp_counts(c.settings.traces).sent, SPANS);
	otlp_close(c.settings.traces);
	http_close(http);
	loop_close(loop);
	char *seen = peer_close(peer);
	struct seen_span tick = span_named(seen, "tick"), decision = span_named(seen, "decide chat");
	struct seen_span asked = span_named(seen, "grow g5"), stage = span_named(seen, "stage image"),
			 start = span_named(seen, "start chat"), refill = span_named(seen, "refill chat");
	const struct seen_span *all[] = { &decision, &asked, &stage, &start, &refill };
	for (size_t i = 0; i < sizeof all / sizeof *all; i++)
		assert_string_equal(all[i]->trace, tick.trace);
	assert_string_equal(tick.parent, "");
	assert_string_equal(decision.parent, tick.id);
	assert_string_equal(asked.parent, tick.id);
	assert_string_equal(stage.parent, decision.id);
	assert_string_equal(start.parent, decision.id);
	assert_true(asked.has_failed);
	assert_false(stage.has_failed);
	assert_null(strstr(seen, "preheat.waiting")); /* nothing told of it */
	free(seen);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(a_scale_up_is_one_trace) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
