#include "tests/unit/providers/played_arm.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static bool ends_with(const char *text, const char *end)
{
	size_t len = strlen(text), size = strlen(end);

	return len >= size && strcmp(text + len - size, end) == 0;
}

const char *played_place(const struct stage *s, const char *text, char *room, size_t size)
{
	const char *at = strchr(text, '@');

	if (at)
		snprintf(room, size, "%.*s%s%s", (int)(at - text), text, s->url, at + 1);
	else
		snprintf(room, size, "%s", text);
	return room;
}

static void note(struct stage *s, const struct server_request *q)
{
	struct seen *n = &s->seen[s->count++];
	const char *bearer = server_header(q, "Authorization"), *match = server_header(q, "If-Match");
	const char *type = server_header(q, "Content-Type"), *version = server_query(q, "api-version");

	assert_true(s->count <= REQUESTS_MOST);
	snprintf(n->method, sizeof n->method, "%s", q->method);
	snprintf(n->path, sizeof n->path, "%s", q->path);
	snprintf(n->match, sizeof n->match, "%s", match ? match : "");
	snprintf(n->bearer, sizeof n->bearer, "%s", bearer ? bearer : "");
	snprintf(n->type, sizeof n->type, "%s", type ? type : "");
	snprintf(n->version, sizeof n->version, "%s", version ? version : "");
	n->body = strdup(q->body);
}

static void answer(const struct server_request *q, struct server_answer *a)
{
	struct stage *s = q->user;
	int i = 0;

	a->content_type = "application/json";
	if (ends_with(q->path, "/oauth2/v2.0/token")) {
		buf_printf(&a->body, "{\"token_type\":\"Bearer\",\"expires_in\":3599,\"access_token\":\"token%d\"}",
			   ++s->tokens);
		return;
	}
	note(s, q);
	for (const struct reply *r = s->replies; r->method; r++, i++) {
		if (strcmp(r->method, q->method) != 0 || !ends_with(q->path, r->path) ||
		    (r->times && s->used[i] == r->times))
			continue;
		s->used[i]++;
		a->status = r->status;
		buf_text(&a->body, r->body ? played_place(s, r->body, s->body, sizeof s->body) : "");
		for (int h = 0; h < 3 && r->headers[h]; h++)
			a->headers[h] = played_place(s, r->headers[h], s->headers[h], sizeof s->headers[h]);
		return;
	}
	a->status = 404;
	buf_text(&a->body, "{\"error\":{\"code\":\"NotFound\",\"message\":\"the test plays no such thing\"}}");
}

int played_arm_set_up(void **state)
{
	static const char *const methods[] = { "GET", "PUT", "POST" };
	struct stage *s = calloc(1, sizeof *s);
	struct error e;

	assert_non_null(s);
	s->loop = loop_open();
	s->http = http_open(s->loop, "test", &e);
	for (size_t i = 0; i < 3; i++)
		s->routes[i] = (struct server_route){ methods[i], "/*", answer, s };
	s->server = server_open(
		s->loop, &(struct server_settings){ .listen = "127.0.0.1:0", .routes = s->routes, .route_count = 3 },
		&e);
	assert_non_null(s->server);
	snprintf(s->url, sizeof s->url, "http://127.0.0.1:%d", server_port(s->server));
	setenv("AZURE_TENANT_ID", "tenant", 1);
	setenv("AZURE_CLIENT_ID", "client", 1);
	setenv("AZURE_CLIENT_SECRET", "secret", 1);
	setenv("AZURE_AUTHORITY_HOST", s->url, 1);
	s->ops = provider_find("aks");
	s->provider = s->ops->open(&(struct provider_setup){ .loop = s->loop, .http = s->http }, &e);
	snprintf(
		s->settings, sizeof s->settings,
		"{\"subscription\":\"00000000-0000-0000-0000-000000000000\",\"resourceGroup\":\"rg\",\"cluster\":\"c\","
		"\"pool\":\"gpu1\",\"resourceManager\":\"%s\"}",
		s->url);
	*state = s;
	return 0;
}

void played_forget(struct stage *s)
{
	while (s->count)
		free(s->seen[--s->count].body);
	memset(s->used, 0, sizeof s->used);
}

int played_arm_tear_down(void **state)
{
	struct stage *s = *state;

	played_forget(s);
	s->ops->close(s->provider);
	server_close(s->server);
	http_close(s->http);
	loop_close(s->loop);
	free(s);
	return 0;
}

static void on_done(struct provider_call *c)
{
	((struct stage *)c->user)->is_done = true;
}

struct provider_call played_call(struct stage *s, enum provider_verb verb, int64_t desired)
{
	return (struct provider_call){ .verb = verb,
				       .group = "gpu",
				       .settings = s->settings,
				       .token = "t",
				       .desired = desired,
				       .done = on_done,
				       .user = s };
}

enum error_kind played_run(struct stage *s, struct provider_call *c, const struct reply *replies)
{
	played_forget(s);
	s->replies = replies;
	s->is_done = false;
	s->ops->start(s->provider, c);
	while (!s->is_done)
		assert_true(loop_once(s->loop));
	return c->error.kind;
}

void played_expect(const struct stage *s, const char *expected)
{
	CLEANUP(buf_release) struct buf sent = { 0 };

	buf_text(&sent, "");
	for (size_t i = 0; i < s->count; i++)
		buf_printf(&sent, "%s%s %s", i ? ", " : "", s->seen[i].method, strrchr(s->seen[i].path, '/') + 1);
	assert_string_equal(sent.text, expected);
}
