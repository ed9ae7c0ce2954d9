#include "tests/unit/providers/played_account.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static const char *shown(const struct server_request *q, struct buf *out)
{
	const char *version = strstr(q->body, "&Version=");

	if (strcmp(q->path, "/") != 0)
		buf_printf(out, "%s %s%s%s", q->method, q->path, q->body_len ? " " : "", q->body);
	else
		buf_printf(out, "%.*s%s", (int)(version - q->body) - 7, q->body + 7,
			   version + strlen("&Version=") + strcspn(version + strlen("&Version="), "&"));
	return out->text;
}

static void answer(const struct server_request *q, struct server_answer *a)
{
	CLEANUP(buf_release) struct buf text = { 0 };
	struct scene *s = q->user;
	const struct played_line *l = s->script;
	const char *request = shown(q, &text);
	int name = (int)strcspn(request, "&");

	if (!l->request || strcmp(l->request, request) != 0) {
		buf_printf(&s->unexpected, "\n  came:     %s\n  expected: %s", request,
			   l->request ? l->request : "nothing");
		a->status = 500;
		return;
	}
	s->script++;
	if (l->status) {
		a->status = l->status;
		a->headers[0] = l->status == 429 ? "Retry-After: 9" : NULL;
		const char *colon = strchr(l->answer, ':');
		buf_printf(&a->body,
			   "<ErrorResponse><Error><Code>%.*s</Code><Message>%s</Message></Error></ErrorResponse>",
			   colon ? (int)(colon - l->answer) : (int)strlen(l->answer), l->answer,
			   colon ? colon + 1 : "");
	} else if (strstr(q->body, "&Version=2016-11-15")) { /* EC2 has no result inside */
		buf_printf(&a->body, "<%.*sResponse>%s</%.*sResponse>", name, request, l->answer, name, request);
	} else if (strcmp(q->path, "/") == 0) {
		buf_printf(&a->body, "<%.*sResponse><%.*sResult>%s</%.*sResult></%.*sResponse>", name, request, name,
			   request, l->answer, name, request, name, request);
	} else {
		buf_text(&a->body, l->answer);
	}
}

int account_set_up(void **state)
{
	struct scene *s = calloc(1, sizeof *s);
	struct error e;

	assert_non_null(s);
	setenv("AWS_ACCESS_KEY_ID", "AKIDEXAMPLE", 1);
	setenv("AWS_SECRET_ACCESS_KEY", "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY", 1);
	unsetenv("AWS_SESSION_TOKEN");
	unsetenv("AWS_CA_BUNDLE");
	s->loop = loop_open();
	s->http = http_open(s->loop, "test", &e);
	s->routes[0] = (struct server_route){ "POST", "/", answer, s };
	s->routes[1] = (struct server_route){ "GET", "/clusters/*", answer, s };
	s->routes[2] = (struct server_route){ "POST", "/clusters/*", answer, s };
	s->server = server_open(
		s->loop, &(struct server_settings){ .listen = "127.0.0.1:0", .routes = s->routes, .route_count = 3 },
		&e);
	assert_non_null(s->server);
	snprintf(s->url, sizeof s->url, "http://127.0.0.1:%d", server_port(s->server));
	s->provider = provider_find("eks")->open(&(struct provider_setup){ s->loop, s->http, NULL }, &e);
	*state = s;
	return 0;
}

int account_tear_down(void **state)
{
	struct scene *s = *state;

	provider_call_release(&s->call);
	provider_find("eks")->close(s->provider);
	server_close(s->server);
	http_close(s->http);
	loop_close(s->loop);
	buf_release(&s->settings);
	buf_release(&s->unexpected);
	free(s);
	return 0;
}

static void on_done(struct provider_call *c)
{
	((struct scene *)c->user)->is_done = true;
}

void account_settle(struct scene *s, const char *rest)
{
	buf_clear(&s->settings);
	buf_printf(&s->settings, "{\"region\":\"eu-west-1\",\"endpoint\":\"%s\"%s%s}", s->url, *rest ? "," : "", rest);
}

enum error_kind account_run(struct scene *s, struct provider_call call, const struct played_line *script)
{
	provider_call_release(&s->call);
	s->call = call;
	s->call.group = call.group ? call.group : "g";
	s->call.token = call.token ? call.token : "token-1";
	s->call.settings = s->settings.text;
	s->call.done = on_done;
	s->call.user = s;
	s->script = script;
	s->is_done = false;
	provider_find("eks")->start(s->provider, &s->call);
	while (!s->is_done)
		assert_true(loop_once(s->loop));
	if (s->unexpected.len)
		fail_msg("%s: %s%s", provider_verb_name(call.verb), s->call.error.message, s->unexpected.text);
	if (s->script->request)
		fail_msg("%s: %s: did not come: %s", provider_verb_name(call.verb), s->call.error.message,
			 s->script->request);
	return s->call.error.kind;
}
