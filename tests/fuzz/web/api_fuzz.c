/*
 * Any request: a first line of method, path and query, then the body. The
 * answer is an error that says something, or what needs no history; a body
 * of a what-if is refused or holds texts without an end in them.
 */
#include "base/json.h"
#include "controller/web/what_if.h"
#include "controller/web/api_call.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len);

static void require(bool holds)
{
	if (!holds)
		abort();
}

static bool any_value(void *user, const struct json_event *v, struct error *e)
{
	(void)user;
	(void)v;
	(void)e;
	return true;
}

static void require_json(const struct buf *text)
{
	struct json *j = json_open("answer", any_value, NULL);
	struct error e = { 0 };

	require(json_feed(j, text->text, text->len, &e) && json_finish(j, &e));
	json_close(j);
}

static size_t split(char *query, struct server_pair *pairs)
{
	size_t count = 0;
	char *rest = NULL;

	for (char *at = strtok_r(query, "&", &rest); at && count < PAIRS_MAX; at = strtok_r(NULL, "&", &rest)) {
		char *equals = strchr(at, '=');

		if (equals)
			*equals = '\0';
		pairs[count++] = (struct server_pair){ at, equals ? equals + 1 : "" };
	}
	return count;
}

static void check_body(const char *body, size_t len)
{
	CLEANUP(arena_release) struct arena a = { 0 };
	struct what_if_body b;
	struct error e = { 0 };

	if (what_if_body_read(body, len, &a, &b, &e))
		require(!b.pool || strlen(b.pool) < WHAT_IF_NAME);
	else
		require(*e.message);
}

static void check_time(const char *text)
{
	const struct history_span span = { 0, 100, INT64_C(1704067200000), INT64_C(1704153600000) };
	millis at;

	if (api_parse_time(&span, text, &at))
		require(at >= 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
	static struct web_api *api;
	struct server_pair pairs[PAIRS_MAX];
	char *text = malloc(len + 1);
	struct api_reply reply;

	if (!api)
		api = web_api_open(&(struct web_api_setup){ .history = "no-such-folder/history.db", .version = "0" });
	require(text);
	memcpy(text, bytes, len);
	text[len] = '\0';
	char *body = text + strcspn(text, "\n"), *path = text + strcspn(text, " \n");
	body = *body ? (*body = '\0', body + 1) : body;
	path = *path ? (*path = '\0', path + 1) : path;
	char *query = strchr(path, '?');
	if (query)
		*query++ = '\0';
	struct api_request r = { .method = text, .path = path, .pairs = pairs, .body = body, .body_len = strlen(body) };
	check_time(query ? query : "");
	check_body(body, r.body_len);
	r.pair_count = query ? split(query, pairs) : 0;
	if (strcmp(path, "/api/v1/events") != 0) {
		api_serve(api, &r, &reply);
		require(reply.status >= 200 && reply.status <= 503);
		require_json(&reply.body);
		buf_release(&reply.body);
		buf_release(&reply.allow);
	}
	free(text);
	return 0;
}
