#include "controller/cluster/api.h"

#include "base/log.h"
#include "tests/unit/net/scripted_peer.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cmocka.h>

/* An API client against a peer that follows a script. */
static struct {
	struct loop *loop;
	struct http *http;
	struct clock clock;
	struct kubeconfig access;
	struct api *api;
	struct scripted_peer *peer;
	int done;
	bool is_inside; /* of api_start() */
	struct error error;
	char response[512];
} world;

static void begin(const struct peer_step *script)
{
	struct error e;

	memset(&world, 0, sizeof world);
	world.loop = loop_open();
	world.http = http_open(world.loop, "preheat/1.2.3", &e);
	world.clock = clock_open();
	world.peer = peer_open(script);
	world.access.source = "test";
	world.access.server = peer_url(world.peer);
	world.access.name_space = "default";
	world.access.proxy = "";
}

static void start(struct api_call *c)
{
	if (!world.api)
		world.api = api_open(&(struct api_setup){ .loop = world.loop,
							  .http = world.http,
							  .clock = &world.clock,
							  .access = &world.access,
							  .seed = 3 });
	world.is_inside = true;
	api_start(world.api, c);
	world.is_inside = false;
}

static void done(struct api_call *c)
{
	assert_false(world.is_inside);
	world.done++;
	world.error = c->error;
	snprintf(world.response, sizeof world.response, "%s", c->response);
}

static void finish(struct api_call *c)
{
	int before = world.done;

	c->done = done;
	start(c);
	while (world.done == before)
		loop_once(world.loop);
}

/* What the peer read, to be freed. */
static char *end(void)
{
	while (api_active(world.api))
		loop_once(world.loop);
	api_close(world.api);
	while (http_active(world.http))
		loop_once(world.loop);
	char *seen = peer_close(world.peer);
	http_close(world.http);
	loop_close(world.loop);
	return seen;
}

static int count(const char *text, const char *part)
{
	int n = 0;

	for (; (text = strstr(text, part)); text += strlen(part))
		n++;
	return n;
}

#define ANSWER(status, more, body)                                                           \
	{ PEER_ACCEPT, NULL }, { PEER_READ, NULL },                                          \
	{                                                                                    \
		PEER_SEND, "HTTP/1.1 " status " X\r\nConnection: close\r\n" more "\r\n" body \
	}
#define END                    \
	{                      \
		PEER_END, NULL \
	}
#define REFUSAL(code) "{\"kind\":\"Status\",\"message\":\"because\",\"reason\":\"R\",\"code\":" code "}"

static void what_goes_out(void **state)
{
	static const struct peer_step script[] = { ANSWER("200", "Content-Length: 2\r\n", "ok"), END };
	struct api_call c = { .path = "/api/v1/nodes?limit=5" };

	(void)state;
	begin(script);
	world.access.token = "SECRET-1";
	finish(&c);
	assert_int_equal(world.error.kind, ERROR_NONE);
	assert_string_equal(world.response, "ok");
	char *seen = end();
	assert_non_null(strstr(seen, "GET /api/v1/nodes?limit=5 HTTP/1.1"));
	assert_non_null(strstr(seen, "User-Agent: preheat/1.2.3"));
	assert_non_null(strstr(seen, "Authorization: Bearer SECRET-1"));
	assert_non_null(strstr(seen, "Accept: application/json"));
	free(seen);
}

/* Each answer, and the error that it means; how often it is sent. */
static void refusals(void **state)
{
	static const struct {
		const char *status;
		long code;
		enum error_kind kind;
	} cases[] = {
		{ "400", 400, ERROR_INVALID },	   { "401", 401, ERROR_AUTH },	    { "403", 403, ERROR_AUTH },
		{ "404", 404, ERROR_NOT_FOUND },   { "409", 409, ERROR_CONFLICT },  { "410", 410, ERROR_NOT_FOUND },
		{ "422", 422, ERROR_INVALID },	   { "429", 429, ERROR_THROTTLED }, { "500", 500, ERROR_UNAVAILABLE },
		{ "503", 503, ERROR_UNAVAILABLE }, { "504", 504, ERROR_TIMEOUT },
	};

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		char text[512];
		snprintf(text, sizeof text,
			 "HTTP/1.1 %s X\r\nConnection: close\r\nRetry-After: 7\r\nContent-Length: %zu\r\n\r\n%s",
			 cases[i].status, strlen(REFUSAL("1")), REFUSAL("1"));
		struct peer_step script[] = { { PEER_ACCEPT, NULL }, { PEER_READ, NULL }, { PEER_SEND, text }, END };
		struct api_call c = { .method = "POST", .path = "/x?token=SECRET", .body = "{}", .effect = API_WRITE };
		begin(script);
		finish(&c);
		if (world.error.kind != cases[i].kind || c.status != cases[i].code || c.attempts != 1 ||
		    c.retry_after != 7 * SECOND || c.is_expired != (cases[i].code == 410))
			fail_msg("%s: %s", cases[i].status, world.error.message);
		if (!strstr(world.error.message, "because") || !strstr(world.error.message, "POST /x: ") ||
		    strstr(world.error.message, "SECRET"))
			fail_msg("%s", world.error.message);
		free(end());
	}
}

static void reads_are_tried_again(void **state)
{
	static const struct peer_step script[] = { ANSWER("503", "Content-Length: 0\r\n", ""),
						   { PEER_ACCEPT, NULL },
						   { PEER_RESET, NULL },
						   ANSWER("429", "Content-Length: 0\r\n", ""),
						   ANSWER("200", "Content-Length: 2\r\n", "ok"),
						   END };
	struct api_call c = { .path = "/x" };

	(void)state;
	begin(script);
	finish(&c);
	assert_int_equal(world.error.kind, ERROR_NONE);
	assert_true(c.attempts >= 3);
	assert_true(api_counts(world.api).retries >= 2);
	assert_int_equal(api_counts(world.api).throttled, 1);
	free(end());
	/* but not where it was told not to be */
	begin(script);
	struct api_call once = { .path = "/x", .is_single = true };
	finish(&once);
	assert_int_equal(world.error.kind, ERROR_UNAVAILABLE);
	assert_int_equal(once.attempts, 1);
	free(end());
	/* and no longer than its time */
	static const struct peer_step busy[] = { ANSWER("429", "Retry-After: 20\r\nContent-Length: 0\r\n", ""), END };
	begin(busy);
	struct api_call late = { .path = "/x", .timeout = 10 * SECOND };
	finish(&late);
	assert_int_equal(world.error.kind, ERROR_THROTTLED);
	assert_int_equal(late.attempts, 1);
	free(end());
}

static char folder[64];

static const char *put(const char *name, const char *text, mode_t mode)
{
	static char path[2][128];
	static int turn;
	char *p = path[turn++ % 2];

	snprintf(p, sizeof *path, "%s/%s", folder, name);
	FILE *f = fopen(p, "w");
	assert_non_null(f);
	fputs(text, f);
	fclose(f);
	chmod(p, mode);
	return p;
}

static int make_folder(void **state)
{
	(void)state;
	snprintf(folder, sizeof folder, "/tmp/api.XXXXXX");
	return mkdtemp(folder) ? 0 : -1;
}

static int remove_folder(void **state)
{
	static const char *const names[] = { "token", "plugin", "runs" };
	char path[128];

	(void)state;
	for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
		snprintf(path, sizeof path, "%s/%s", folder, names[i]);
		remove(path);
	}
	return rmdir(folder);
}

/* The token rotates: a 401 has the file read again before its minute is over. */
static void a_token_file(void **state)
{
	static const struct peer_step script[] = { ANSWER("200", "Content-Length: 2\r\n", "ok"),
						   ANSWER("401", "Content-Length: 0\r\n", ""),
						   ANSWER("200", "Content-Length: 2\r\n", "ok"),
						   ANSWER("401", "Content-Length: 0\r\n", ""), END };
	struct api_call c = { .path = "/x" };

	(void)state;
	begin(script);
	world.access.token_file = put("token", "first\n", 0600);
	finish(&c);
	assert_int_equal(world.error.kind, ERROR_NONE);
	put("token", "second", 0600);
	finish(&c);
	assert_int_equal(world.error.kind, ERROR_NONE);
	assert_int_equal(c.attempts, 2);
	finish(&c); /* the same token again helps nothing */
	assert_int_equal(world.error.kind, ERROR_AUTH);
	assert_int_equal(c.attempts, 1);
	char *seen = end();
	assert_int_equal(count(seen, "Bearer first\r\n"), 2);
	assert_int_equal(count(seen, "Bearer second\r\n"), 2);
	free(seen);
	static const char *const bad[] = { "", "\n\n", "two\nlines" };
	for (size_t i = 0; i < 3; i++) {
		static const struct peer_step silent[] = { END };
		begin(silent);
		world.access.token_file = put("token", bad[i], 0600);
		c = (struct api_call){ .path = "/x" };
		finish(&c);
		assert_int_equal(world.error.kind, ERROR_AUTH);
		assert_non_null(strstr(world.error.message, "holds no token"));
		free(end());
	}
}

static void use_plugin(const char *text)
{
	static const char *const none[] = { NULL };
	char runs[128];

	snprintf(runs, sizeof runs, "%s/runs", folder);
	remove(runs);
	world.access.exec = (struct exec_plugin){ .command = text ? put("plugin", text, 0700) : "/nowhere/plugin",
						  .api_version = "client.authentication.k8s.io/v1",
						  .args = none,
						  .env = none,
						  .install_hint = "get it from us" };
}

static void a_plugin(void **state)
{
	static const struct peer_step script[] = { ANSWER("200", "Content-Length: 2\r\n", "ok"),
						   ANSWER("200", "Content-Length: 2\r\n", "ok"),
						   ANSWER("401", "Content-Length: 0\r\n", ""),
						   ANSWER("200", "Content-Length: 2\r\n", "ok"), END };
	struct api_call c = { .path = "/x" };

	(void)state;
	begin(script);
	use_plugin("#!/bin/sh\necho run >>${0%/*}/runs\nn=$(wc -l <${0%/*}/runs)\ntest \"$KUBERNETES_EXEC_INFO\" || "
		   "exit 1\n"
		   "cat "
		   "<<END\n{\"apiVersion\":\"client.authentication.k8s.io/v1\",\"kind\":\"ExecCredential\",\"status\":{"
		   "\"token\":\"t-$n\",\"expirationTimestamp\":\"2999-01-01T00:00:00Z\"}}\nEND\n");
	for (int i = 0; i < 3; i++) {
		finish(&c);
		assert_int_equal(world.error.kind, ERROR_NONE);
	}
	char *seen = end();
	assert_int_equal(count(seen, "Bearer t-1\r\n"), 3);
	assert_int_equal(count(seen, "Bearer t-2\r\n"), 1);
	free(seen);
}

static void plugins_that_fail(void **state)
{
	static const struct {
		const char *text, *message;
	} cases[] = {
		{ NULL, "is not installed: get it from us" },
		{ "#!/bin/sh\necho no session >&2\nexit 3\n", "ended with code 3: no session" },
		{ "#!/bin/sh\necho SECRET\n", "printed no ExecCredential" },
		{ "#!/bin/sh\necho "
		  "'{\"apiVersion\":\"client.authentication.k8s.io/v1beta1\",\"kind\":\"ExecCredential\","
		  "\"status\":{\"token\":\"SECRET\"}}'\n",
		  "another apiVersion" },
		{ "#!/bin/sh\necho "
		  "'{\"apiVersion\":\"client.authentication.k8s.io/v1\",\"kind\":\"ExecCredential\",\"status\":{"
		  "\"clientKeyData\":\"SECRET\"}}'\n",
		  "neither a token nor a certificate" },
		{ "#!/bin/sh\nhead -c 400000 /dev/zero\n", "plug-in" },
	};
	static const struct peer_step silent[] = { END };

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct api_call c = { .path = "/x" };
		begin(silent);
		use_plugin(cases[i].text);
		finish(&c);
		if (!strstr(world.error.message, cases[i].message) || strstr(world.error.message, "SECRET"))
			fail_msg("case %zu: %s", i, world.error.message);
		free(end());
	}
}

static void an_expired_credential_is_asked_for_again(void **state)
{
	static const struct peer_step script[] = { ANSWER("200", "Content-Length: 2\r\n", "ok"),
						   ANSWER("200", "Content-Length: 2\r\n", "ok"), END };
	struct api_call c = { .path = "/x" };

	(void)state;
	begin(script);
	use_plugin("#!/bin/sh\necho run >>${0%/*}/runs\nn=$(wc -l <${0%/*}/runs)\ncat <<END\n{\"apiVersion\":"
		   "\"client.authentication.k8s.io/v1\",\"kind\":\"ExecCredential\",\"status\":{\"token\":\"t-$n\","
		   "\"expirationTimestamp\":\"2001-01-01T00:00:00Z\"}}\nEND\n");
	finish(&c);
	finish(&c);
	char *seen = end();
	assert_int_equal(count(seen, "Bearer t-2\r\n"), 1);
	free(seen);
}

static void the_gate(void **state)
{
	static const struct peer_step script[] = { ANSWER("200", "Content-Length: 2\r\n", "ok"), END };
	static const struct {
		enum api_gate gate;
		bool passes[3]; /* read, write, lease */
	} cases[] = {
		{ API_GATE_OPEN, { true, true, true } },
		{ API_GATE_LEASE_ONLY, { true, false, true } },
		{ API_GATE_SHUT, { true, false, false } },
	};

	(void)state;
	for (size_t i = 0; i < 3; i++)
		for (int effect = 0; effect < 3; effect++) {
			struct api_call c = {
				.method = "POST", .path = "/x", .body = "{}", .effect = (enum api_effect)effect
			};
			begin(script);
			world.api = api_open(&(struct api_setup){ .loop = world.loop,
								  .http = world.http,
								  .clock = &world.clock,
								  .access = &world.access });
			api_set_gate(world.api, cases[i].gate, "for a reason");
			finish(&c);
			assert_int_equal(c.is_barred, !cases[i].passes[effect]);
			assert_int_equal(world.error.kind, cases[i].passes[effect] ? ERROR_NONE : ERROR_CANCELLED);
			if (c.is_barred)
				assert_string_equal(world.error.message, "POST /x: not sent: for a reason");
			char *seen = end();
			assert_int_equal(count(seen, "POST"), cases[i].passes[effect]);
			free(seen);
		}
}

static void no_writes_after_the_lease(void **state)
{
	static const struct peer_step script[] = { ANSWER("200", "Content-Length: 2\r\n", "ok"), END };

	(void)state;
	for (int is_late = 0; is_late < 2; is_late++) {
		struct api_call c = { .method = "POST", .path = "/x", .body = "{}", .effect = API_WRITE };
		begin(script);
		world.api = api_open(&(struct api_setup){
			.loop = world.loop, .http = world.http, .clock = &world.clock, .access = &world.access });
		api_set_until(world.api, loop_now(world.loop) + (is_late ? 0 : MINUTE));
		finish(&c);
		assert_int_equal(c.is_barred, is_late);
		if (is_late)
			assert_string_equal(world.error.message, "POST /x: not sent: the lease ran out");
		free(end());
	}
}

static void closing_the_gate_stops_what_is_on_its_way(void **state)
{
	static const struct peer_step script[] = {
		{ PEER_ACCEPT, NULL }, { PEER_READ, NULL }, { PEER_HOLD, NULL }, END
	};
	struct api_call write = { .method = "POST", .path = "/w", .body = "{}", .effect = API_WRITE, .done = done };
	struct api_call read = { .path = "/r", .done = done };

	(void)state;
	begin(script);
	start(&write);
	start(&read);
	for (int i = 0; i < 3; i++)
		loop_poll(world.loop);
	api_set_gate(world.api, API_GATE_LEASE_ONLY, "the lease was lost");
	assert_int_equal(world.done, 0); /* never inside a call */
	while (!world.done)
		loop_once(world.loop);
	assert_true(write.is_barred);
	assert_int_equal(write.error.kind, ERROR_CANCELLED);
	assert_non_null(strstr(write.error.message, "the lease was lost"));
	assert_false(read.is_barred);
	api_cancel(&read);
	while (world.done < 2)
		loop_once(world.loop);
	assert_int_equal(read.error.kind, ERROR_CANCELLED);
	free(end());
}

/* One write waits for its next attempt, another for the plug-in: both end when the gate closes. */
static void the_gate_closes_on_those_that_wait(void **state)
{
	static const struct peer_step script[] = { ANSWER("503", "Retry-After: 5\r\nContent-Length: 0\r\n", ""), END };
	struct api_call c = {
		.method = "PUT", .path = "/w", .body = "{}", .effect = API_WRITE, .is_repeatable = true, .done = done
	};

	(void)state;
	begin(script);
	start(&c);
	while (!api_counts(world.api).retries)
		loop_once(world.loop);
	api_set_gate(world.api, API_GATE_LEASE_ONLY, "why");
	while (!world.done)
		loop_once(world.loop);
	assert_string_equal(c.error.message, "PUT /w: not sent: why");
	free(end());
	c = (struct api_call){ .method = "PUT", .path = "/w", .body = "{}", .effect = API_WRITE, .done = done };
	begin(script);
	use_plugin("#!/bin/sh\nsleep 60\n");
	start(&c);
	api_set_gate(world.api, API_GATE_LEASE_ONLY, "why");
	while (world.done < 1)
		loop_once(world.loop);
	assert_string_equal(c.error.message, "PUT /w: not sent: why");
	free(end());
}

static bool refuse_chunk(struct api_call *c, const char *bytes, size_t len)
{
	(void)bytes;
	return error_set(&c->error, ERROR_INVALID, "%zu bytes that I do not like", len);
}

static void deadlines_and_caps(void **state)
{
	static const struct peer_step hold[] = { { PEER_ACCEPT, NULL }, { PEER_READ, NULL }, { PEER_HOLD, NULL }, END };
	static const struct peer_step drip[] = { ANSWER("200", "Transfer-Encoding: chunked\r\n", "1\r\nx\r\n"),
						 { PEER_HOLD, NULL },
						 END };
	static const struct peer_step endless[] = { ANSWER("200", "", "x"), { PEER_ENDLESS, "0123456789abcdef" }, END };
	struct api_call slow = { .path = "/x", .timeout = 50 },
			silent = { .path = "/x", .silence = 60, .is_single = true },
			big = { .path = "/x", .cap = 1000 }, refused = { .path = "/x", .on_chunk = refuse_chunk };

	(void)state;
	begin(hold);
	finish(&slow);
	assert_int_equal(world.error.kind, ERROR_TIMEOUT);
	free(end());
	begin(drip);
	finish(&silent);
	assert_int_equal(world.error.kind, ERROR_TIMEOUT);
	free(end());
	begin(endless);
	finish(&big);
	assert_int_equal(world.error.kind, ERROR_INVALID);
	free(end());
	begin(endless);
	finish(&refused);
	assert_non_null(strstr(world.error.message, "bytes that I do not like"));
	free(end());
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_goes_out),
		cmocka_unit_test(refusals),
		cmocka_unit_test(reads_are_tried_again),
		cmocka_unit_test(a_token_file),
		cmocka_unit_test(a_plugin),
		cmocka_unit_test(plugins_that_fail),
		cmocka_unit_test(an_expired_credential_is_asked_for_again),
		cmocka_unit_test(the_gate),
		cmocka_unit_test(no_writes_after_the_lease),
		cmocka_unit_test(closing_the_gate_stops_what_is_on_its_way),
		cmocka_unit_test(the_gate_closes_on_those_that_wait),
		cmocka_unit_test(deadlines_and_caps),
	};

	log_level_set(LEVEL_ERROR);
	return cmocka_run_group_tests_name("api", tests, make_folder, remove_folder);
}
