/* What provider aks makes of what it sees, with which token; and that its requests are those of the vendor's SDK. */
#include "base/decode.h"
#include "base/file.h"
#include "providers/azure/answer.h"
#include "providers/text.h"
#include "tests/unit/net/scripted_peer.h"
#include "tests/unit/providers/played_arm.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define STOCKED_OUT                                                                            \
	"{\"code\":\"ReconcileVMSSAgentPoolFailed\",\"message\":\"m\",\"details\":[{\"code\":" \
	"\"ZonalAllocationFailed\","                                                           \
	"\"message\":\"none in zone 2.\"}]}"

static void what_is_pending_shows_in_the_description(void **state)
{
	static const struct {
		struct reply operation;
		const char *pool;
		bool is_busy;
		enum error_kind failure; /* ERROR_NONE: none */
	} cases[] = {
		{ { "GET", "/op1", 200, "{\"status\":\"InProgress\"}", { 0 }, 0 },
		  POOL("Succeeded", 3, ""),
		  true,
		  ERROR_NONE },
		{ { "GET", "/op1", 200, "{\"status\":\"Succeeded\"}", { 0 }, 0 },
		  POOL("Succeeded", 3, ""),
		  false,
		  ERROR_NONE },
		{ { "GET", "/op1", 200, "{\"status\":\"Failed\",\"error\":" STOCKED_OUT "}", { 0 }, 0 },
		  POOL("Failed", 3, ""),
		  false,
		  ERROR_STOCKOUT },
		{ { "GET",
		    "/op1",
		    200,
		    "{\"status\":\"Failed\",\"error\":{\"code\":\"X\",\"message\":\"y\"}}",
		    { 0 },
		    0 },
		  POOL("Failed", 3, ""),
		  false,
		  ERROR_UNAVAILABLE },
		{ { "GET", "/op1", 404, "", { 0 }, 0 },
		  POOL("Failed", 3, ",\"status\":{\"provisioningError\":" STOCKED_OUT "}"),
		  false,
		  ERROR_STOCKOUT },
		{ { "GET", "/op1", 403, "", { 0 }, 0 }, POOL("Updating", 3, ""), true, ERROR_NONE },
		{ { "GET", "/op1", 404, "", { 0 }, 0 }, POOL("UpgradingNodeImageVersion", 3, ""), true, ERROR_NONE },
		{ { "GET", "/op1", 404, "", { 0 }, 0 }, POOL("Upgrading", 3, ""), true, ERROR_NONE },
		/* nothing is missing: no launch failed, whatever did */
		{ { "GET", "/op1", 404, "", { 0 }, 0 },
		  POOL("Failed", 2, ",\"status\":{\"provisioningError\":" STOCKED_OUT "}"),
		  false,
		  ERROR_NONE },
	};
	struct stage *s = *state;
	char pending[256];

	played_place(s, "@" OPERATION "?api-version=2017-08-31&t=1", pending, sizeof pending);
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		const struct reply replies[] = {
			{ "GET", "/gpu1", 200, cases[i].pool, { 0 }, 0 },
			{ "GET", "/machines", 200, "{\"value\":[" MACHINE("a") "," MACHINE("b") "]}", { 0 }, 0 },
			cases[i].operation,
			{ 0 },
		};
		struct provider_call c = played_call(s, PROVIDER_DESCRIBE, 0);
		const struct group_description *d = &c.description;
		c.pending = pending;
		if (played_run(s, &c, replies) != ERROR_NONE)
			fail_msg("%zu: %s", i, c.error.message);
		played_expect(s, d->is_busy && !strstr(cases[i].pool, "Succeeded")
					 ? "GET gpu1, GET op1, GET machines, GET gpu1"
					 : "GET gpu1, GET op1, GET machines");
		assert_string_equal(s->seen[1].path, OPERATION);
		assert_string_equal(s->seen[1].version, "2017-08-31");
		assert_int_equal(d->is_busy, cases[i].is_busy);
		assert_int_equal(d->busy_with && strstr(d->busy_with, "Upgrading"),
				 strstr(cases[i].pool, "Upgrading") != NULL);
		assert_int_equal(d->failure_count, cases[i].failure != ERROR_NONE);
		if (d->failure_count) {
			assert_int_equal(d->failures[0].kind, cases[i].failure);
			assert_int_equal(d->failures[0].count, 1);
			assert_string_equal(d->failures[0].zone, cases[i].failure == ERROR_STOCKOUT ? "2" : "");
			assert_string_equal(d->failures[0].instance_type, "Standard_ND96isr_H100_v5");
		}
		provider_call_release(&c);
	}
}

static void a_zone_that_nobody_can_choose_is_the_whole_pool(void **state)
{
	struct stage *s = *state;
	static const struct {
		const char *zones, *zone;
		millis back_off;
	} cases[] = {
		{ "[\"2\"]", "2", HOUR },
		{ "[\"1\",\"2\",\"3\"]", "", 10 * MINUTE },
	};

	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		char more[512];
		snprintf(more, sizeof more,
			 ",\"availabilityZones\":%s,\"status\":{\"provisioningError\":" STOCKED_OUT "}",
			 cases[i].zones);
		char pool[1024];
		snprintf(pool, sizeof pool,
			 "{\"name\":\"gpu1\",\"properties\":{\"count\":1,\"provisioningState\":\"Failed\"%s}}", more);
		const struct reply replies[] = { { "GET", "/gpu1", 200, pool, { 0 }, 0 },
						 { "GET", "/machines", 200, "{\"value\":[]}", { 0 }, 0 },
						 { 0 } };
		struct provider_call c = played_call(s, PROVIDER_DESCRIBE, 0);
		assert_int_equal(played_run(s, &c, replies), ERROR_NONE);
		assert_int_equal(c.description.failure_count, 1);
		assert_string_equal(c.description.failures[0].zone, cases[i].zone);
		assert_int_equal(c.description.failures[0].back_off, cases[i].back_off);
		provider_call_release(&c);
	}
}

static int64_t failure_of(struct stage *s, const char *pool)
{
	const struct reply replies[] = { { "GET", "/gpu1", 200, pool, { 0 }, 0 },
					 { "GET", "/machines", 200, "{\"value\":[]}", { 0 }, 0 },
					 { 0 } };
	struct provider_call c = played_call(s, PROVIDER_DESCRIBE, 0);

	assert_int_equal(played_run(s, &c, replies), ERROR_NONE);
	assert_int_equal(c.description.failure_count, 1);
	int64_t id = c.description.failures[0].id;
	provider_call_release(&c);
	return id;
}

static void a_failure_keeps_its_number_until_the_pool_is_written(void **state)
{
#define FAILED                                                                                         \
	"{\"name\":\"gpu1\",\"properties\":{\"count\":1,\"provisioningState\":\"Failed\",\"status\":{" \
	"\"provisioningError\":" STOCKED_OUT "},\"eTag\":\""
	struct stage *s = *state;
	int64_t first = failure_of(s, FAILED "e1\"}}");

	assert_int_equal(failure_of(s, FAILED "e1\"}}"), first);
	assert_true(failure_of(s, FAILED "e2\"}}") > first);
	first = failure_of(s, FAILED "\"}}"); /* nor without an eTag is it told anew at every look */
	assert_int_equal(failure_of(s, FAILED "\"}}"), first);
}

static void lists_that_make_no_sense_are_refused_whole(void **state)
{
	static const struct {
		const char *machines, *says;
	} cases[] = {
		{ "{\"value\":[" MACHINE("a") "," MACHINE("b") "," MACHINE("a") "]}", "twice" },
		{ "{\"value\":[{}]}", "name" },
		{ "{\"value\":[{\"name\":\"\"}]}", "without a name" },
		{ "{\"value\":{}}", "machines" },
		{ "{}", "machines" },
		{ "<html>", "machines" },
		{ "{\"value\":[],\"nextLink\":\"@/machines\"}", "50 pages" }, /* its own next page */
	};
	struct stage *s = *state;

	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		const struct reply replies[] = { { "GET", "/gpu1", 200, POOL("Succeeded", 2, ""), { 0 }, 0 },
						 { "GET", "/machines", 200, cases[i].machines, { 0 }, 0 },
						 { 0 } };
		struct provider_call c = played_call(s, PROVIDER_DESCRIBE, 0);
		assert_int_equal(played_run(s, &c, replies), ERROR_INVALID);
		if (!strstr(c.error.message, cases[i].says))
			fail_msg("%zu: %s", i, c.error.message);
		assert_int_equal(c.description.machine_count, 0);
		provider_call_release(&c);
	}
}

static void a_token_that_is_refused_is_renewed_once(void **state)
{
	static const struct reply once[] = {
		{ "GET",
		  "/gpu1",
		  401,
		  "{\"error\":{\"code\":\"ExpiredAuthenticationToken\",\"message\":\"x\"}}",
		  { 0 },
		  1 },
		{ "GET", "/gpu1", 200, POOL("Succeeded", 0, ""), { 0 }, 0 },
		{ "GET", "/machines", 200, "{\"value\":[]}", { 0 }, 0 },
		{ 0 },
	};
	static const struct reply always[] = { { "GET", "/gpu1", 401, "", { 0 }, 0 }, { 0 } };
	struct stage *s = *state;
	struct provider_call c = played_call(s, PROVIDER_DESCRIBE, 0);

	assert_int_equal(played_run(s, &c, once), ERROR_NONE);
	played_expect(s, "GET gpu1, GET gpu1, GET machines");
	assert_string_equal(s->seen[1].bearer, "Bearer token2");
	provider_call_release(&c);
	assert_int_equal(played_run(s, &c, always), ERROR_AUTH);
	played_expect(s, "GET gpu1, GET gpu1");
	assert_int_equal(s->tokens, 3);
	provider_call_release(&c);
}

static void one_token_is_asked_for_all_who_wait(void **state)
{
	static const struct reply replies[] = {
		{ "GET", "/gpu1", 200, POOL("Succeeded", 0, ""), { 0 }, 0 },
		{ "GET", "/machines", 200, "{\"value\":[]}", { 0 }, 0 },
		{ 0 },
	};
	enum { CALLS = 5 };
	struct stage *s = *state;
	struct provider_call calls[CALLS];
	int left = CALLS;

	s->replies = replies;
	for (int i = 0; i < CALLS; i++) {
		calls[i] = played_call(s, PROVIDER_DESCRIBE, 0);
		s->ops->start(s->provider, &calls[i]);
	}
	s->ops->cancel(s->provider, &calls[2]);
	while (left) {
		s->is_done = false;
		while (!s->is_done)
			assert_true(loop_once(s->loop));
		left = 0;
		for (int i = 0; i < CALLS; i++)
			left += calls[i].exchange != NULL;
	}
	assert_int_equal(s->tokens, 1);
	for (int i = 0; i < CALLS; i++) {
		assert_int_equal(calls[i].error.kind, i == 2 ? ERROR_CANCELLED : ERROR_NONE);
		provider_call_release(&calls[i]);
	}
}

/* Who gives tokens does not answer: every call ends by its own deadline, or when it is cancelled. */
static void calls_end_though_no_token_comes(void **state)
{
	static const struct peer_step silent[] = {
		{ PEER_ACCEPT, "" }, { PEER_READ, "" }, { PEER_HOLD, "" }, { PEER_END, "" }
	};
	static const struct reply nothing[] = { { 0 } };
	struct stage *s = *state;
	struct scripted_peer *peer = peer_open(silent);
	struct provider_call late = played_call(s, PROVIDER_DESCRIBE, 0), kept = played_call(s, PROVIDER_DESCRIBE, 0);

	setenv("AZURE_AUTHORITY_HOST", peer_url(peer), 1);
	s->ops->start(s->provider, &kept);
	late.timeout = 50;
	assert_int_equal(played_run(s, &late, nothing), ERROR_TIMEOUT);
	assert_non_null(strstr(late.error.message, "token"));
	assert_non_null(kept.exchange);
	s->is_done = false;
	s->ops->cancel(s->provider, &kept);
	while (!s->is_done)
		assert_true(loop_once(s->loop));
	assert_int_equal(kept.error.kind, ERROR_CANCELLED);
	assert_int_equal(s->count, 0);
	provider_call_release(&late);
	provider_call_release(&kept);
	free(peer_close(peer));
}

static void a_refused_credential_is_told_to_all(void **state)
{
	static const char body[] = "{\"error\":\"invalid_client\",\"error_description\":\"AADSTS7000215: Invalid\"}";
	char answer[300];
	const struct peer_step script[] = {
		{ PEER_ACCEPT, "" }, { PEER_READ, "" }, { PEER_SEND, answer }, { PEER_END, "" }
	};
	static const struct reply nothing[] = { { 0 } };
	struct stage *s = *state;
	struct provider_call a = played_call(s, PROVIDER_DESCRIBE, 0), b = played_call(s, PROVIDER_DESCRIBE, 0);

	snprintf(answer, sizeof answer, "HTTP/1.1 401 Unauthorized\r\nContent-Length: %zu\r\n\r\n%s", strlen(body),
		 body);
	struct scripted_peer *peer = peer_open(script);
	setenv("AZURE_AUTHORITY_HOST", peer_url(peer), 1);
	s->ops->start(s->provider, &a);
	played_run(s, &b, nothing);
	while (a.exchange)
		assert_true(loop_once(s->loop));
	assert_int_equal(a.error.kind, ERROR_AUTH);
	assert_int_equal(b.error.kind, ERROR_AUTH);
	assert_non_null(strstr(b.error.message, "AADSTS7000215"));
	provider_call_release(&a);
	provider_call_release(&b);
	char *asked = peer_close(peer);
	assert_non_null(strstr(asked, "client_secret=secret"));
	free(asked);
}

static void permissions_are_told_or_unknown(void **state)
{
	static const struct reply told[] = {
		{ "GET",
		  "/managedClusters/c/providers/Microsoft.Authorization/permissions",
		  200,
		  "{\"value\":[{\"actions\":[\"Microsoft.ContainerService/*/read\"],\"notActions\":[\"*/machines/"
		  "read\"]}]}",
		  { 0 },
		  0 },
		{ 0 },
	};
	static const struct reply denied[] = { { "GET", "/permissions", 403, "", { 0 }, 0 }, { 0 } };
	static const enum permission_state states[] = { PERMISSION_GRANTED, PERMISSION_DENIED, PERMISSION_DENIED,
							PERMISSION_DENIED,  PERMISSION_DENIED, PERMISSION_UNKNOWN,
							PERMISSION_UNKNOWN };
	static const struct reply throttled[] = {
		{ "GET",
		  "/managedClusters/c/providers/Microsoft.Authorization/permissions",
		  200,
		  "{\"value\":[]}",
		  { 0 },
		  0 },
		{ "GET", "/permissions", 429, "", { 0 }, 0 },
		{ 0 },
	};
	struct stage *s = *state;
	struct provider_call c = played_call(s, PROVIDER_CHECK, 0);

	assert_int_equal(played_run(s, &c, throttled), ERROR_THROTTLED);
	assert_int_equal(c.permission_count, 0);
	provider_call_release(&c);
	assert_int_equal(played_run(s, &c, told), ERROR_NONE);
	assert_int_equal(c.permission_count, 7);
	for (size_t i = 0; i < 7; i++)
		assert_int_equal(c.permissions[i].state, states[i]);
	assert_string_equal(s->seen[0].version, "2022-04-01");
	assert_non_null(strstr(c.identity, "client secret"));
	assert_null(strstr(c.identity, "token1"));
	provider_call_release(&c);
	assert_int_equal(played_run(s, &c, denied), ERROR_NONE);
	for (size_t i = 0; i < 7; i++)
		assert_int_equal(c.permissions[i].state, PERMISSION_UNKNOWN);
	provider_call_release(&c);
}

/* The exchanges that the vendor's own SDK was recorded with. */
struct golden_line {
	const char *mode, *method, *url, *body, *match, *type;
};
static const struct field golden_fields[] = {
	FIELD(struct golden_line, mode, FIELD_STRING, "mode"),
	FIELD(struct golden_line, method, FIELD_STRING, "method"),
	FIELD(struct golden_line, url, FIELD_STRING, "url"),
	FIELD(struct golden_line, body, FIELD_STRING, "body"),
	FIELD(struct golden_line, match, FIELD_STRING, "headers>if-match"),
	FIELD(struct golden_line, type, FIELD_STRING, "headers>content-type"),
};
static const struct record_spec golden_record = { "", sizeof(struct golden_line), golden_fields, 6 };
struct golden {
	struct decoded_list exchanges;
};
static const struct field file_fields[] = {
	{ .path = "exchanges", .type = FIELD_LIST, .offset = offsetof(struct golden, exchanges), .of = &golden_record },
};
static const struct record_spec file_record = { "", sizeof(struct golden), file_fields, 1 };

static void expect_golden(const struct stage *s, const struct golden_line *g)
{
	char url[600];

	for (size_t i = 0; i < s->count; i++) {
		const struct seen *n = &s->seen[i];
		snprintf(url, sizeof url, "%s?api-version=%s", n->path, n->version);
		if (!strcmp(n->method, g->method) && !strcmp(url, g->url) && !strcmp(n->body, g->body) &&
		    !strcmp(n->match, g->match ? g->match : "") && !strcmp(n->type, g->type ? g->type : ""))
			return;
	}
	fail_msg("nothing sent is %s %s %s", g->method, g->url, g->body);
}

static void requests_are_those_of_the_vendors_sdk(void **state)
{
	static const struct reply replies[] = {
		{ "GET", "/gpu1", 200, POOL("Succeeded", 2, ""), { 0 }, 0 },
		{ "PUT", "/gpu1", 201, POOL("Updating", 3, ""), GOES_ON, 0 },
		{ "GET", "/op1", 200, "{\"status\":\"Succeeded\"}", { 0 }, 0 },
		{ "GET", "/machines", 200, "{\"value\":[" MACHINE("aks-gpu1-1-vmss00000a") "]}", { 0 }, 0 },
		{ "POST", "/deleteMachines", 202, "", GOES_ON, 0 },
		{ 0 },
	};
	static const char *const ids[] = { "aks-gpu1-1-vmss00000a" };
	static const enum provider_verb verbs[] = { PROVIDER_GROW, PROVIDER_DESCRIBE, PROVIDER_REMOVE };
	struct stage *s = *state;
	const char *shared = getenv("PREHEAT_SHARED");
	CLEANUP(arena_release) struct arena a = { 0 };
	CLEANUP(buf_release) struct buf text = { 0 };
	char path[512], pending[256];
	struct golden golden;
	struct error e = { 0 };

	snprintf(path, sizeof path, "%s/contracts/golden/arm-exchanges.json", shared ? shared : "../shared");
	if (!file_read(path, 1 << 20, &text, &e)) {
		printf("skipped: %s is not there (set PREHEAT_SHARED)\n", path);
		skip();
	}
	assert_true(text_decode(&file_record, text.text, text.len, &a, &golden, &e));
	played_place(s, "@" OPERATION "?api-version=2017-08-31", pending, sizeof pending);
	const struct golden_line *lines = golden.exchanges.items;
	/* our verbs in turn; each golden request of the successful run is among what was sent by then */
	struct stage all = *s;
	all.count = 0;
	for (size_t v = 0; v < 3; v++) {
		struct provider_call c = played_call(s, verbs[v], 3);
		c.pending = pending;
		c.ids = ids;
		c.id_count = 1;
		assert_int_equal(played_run(s, &c, replies), ERROR_NONE);
		for (size_t i = 0; i < s->count; i++) {
			all.seen[all.count] = s->seen[i];
			all.seen[all.count++].body = strdup(s->seen[i].body);
		}
		provider_call_release(&c);
	}
	for (size_t i = 0; i < golden.exchanges.count; i++)
		if (!strcmp(lines[i].mode, "ok"))
			expect_golden(&all, &lines[i]);
	played_forget(&all);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, played_arm_set_up, played_arm_tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(what_is_pending_shows_in_the_description),
		TEST(a_zone_that_nobody_can_choose_is_the_whole_pool),
		TEST(a_failure_keeps_its_number_until_the_pool_is_written),
		TEST(lists_that_make_no_sense_are_refused_whole),
		TEST(a_token_that_is_refused_is_renewed_once),
		TEST(one_token_is_asked_for_all_who_wait),
		TEST(calls_end_though_no_token_comes),
		TEST(a_refused_credential_is_told_to_all),
		TEST(permissions_are_told_or_unknown),
		TEST(requests_are_those_of_the_vendors_sdk),
	};

	return cmocka_run_group_tests_name("aks_seen", tests, NULL, NULL);
}
