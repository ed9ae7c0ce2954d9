/* A cloud that somebody models, for tests and demonstrations: JSON over HTTP, docs/providers.md. */
#include "base/clock.h"
#include "base/decode.h"
#include "base/json_write.h"
#include "base/net/http.h"
#include "base/net/retry.h"
#include "base/uri.h"
#include "providers/provider.h"
#include "providers/simulated_answer.h"

#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

static const millis READ_DEADLINE = 10 * SECOND, CHANGE_DEADLINE = 30 * SECOND;
static const size_t MOST_ANSWER = (size_t)4 << 20;
enum {
	ABILITIES = PROVIDER_NAMES_VICTIMS | PROVIDER_HAS_STANDBY | PROVIDER_BUYS_STANDBY | PROVIDER_STOPS_NAMED |
		    PROVIDER_CANCELS
};

struct provider {
	struct loop *loop;
	struct http *http;
	size_t active;
};

struct settings {
	const char *endpoint, *group;
};

struct exchange {
	struct provider *provider;
	struct provider_call *call;
	struct timer refused; /* tells from the loop what was wrong before anything was sent */
	struct http_request request;
	struct buf url, body;
};

static const struct field setting_fields[] = {
	{ .path = "endpoint", .type = FIELD_STRING, .offset = offsetof(struct settings, endpoint), .required = true },
	FIELD(struct settings, group, FIELD_STRING, "group"),
};
static const struct record_spec setting_record = { "", sizeof(struct settings), setting_fields,
						   sizeof setting_fields / sizeof *setting_fields };

static bool read_settings(struct provider_call *c, struct settings *out)
{
	struct decode_plan *plan = decode_plan_new(&setting_record);
	const char *text = c->settings ? c->settings : "{}";
	bool ok = decode_record(plan, text, strlen(text), &c->arena, out, &c->error);

	decode_plan_free(plan);
	if (!ok)
		return error_wrap(&c->error, "settings of simulated");
	if (strncmp(out->endpoint, "http://", 7) != 0 && strncmp(out->endpoint, "https://", 8) != 0)
		return error_set(&c->error, ERROR_INVALID,
				 "settings of simulated: endpoint is a URL like http://127.0.0.1:9000");
	if (!out->group || !*out->group)
		out->group = c->group;
	return true;
}

static bool is_change(enum provider_verb verb)
{
	return verb != PROVIDER_DESCRIBE && verb != PROVIDER_CHECK;
}

static void write_url(const struct settings *s, enum provider_verb verb, struct buf *out)
{
	size_t len = strlen(s->endpoint);

	while (len && s->endpoint[len - 1] == '/')
		len--;
	buf_append(out, s->endpoint, len);
	buf_text(out, "/v1/groups/");
	uri_segment(s->group, out);
	if (is_change(verb))
		buf_printf(out, "/%s", provider_verb_name(verb));
}

static void write_body(const struct provider_call *c, struct buf *out)
{
	buf_text(out, "{\"token\":");
	json_write_text(c->token, out);
	if (c->verb == PROVIDER_GROW || c->verb == PROVIDER_CANCEL)
		buf_printf(out, ",\"desired\":%" PRId64, c->desired);
	if (c->verb == PROVIDER_STANDBY)
		buf_printf(out, ",\"size\":%" PRId64, c->desired);
	if (c->verb == PROVIDER_REMOVE || c->verb == PROVIDER_STOP || c->verb == PROVIDER_CANCEL) {
		buf_text(out, ",\"machines\":[");
		for (size_t i = 0; i < c->id_count; i++) {
			json_write_comma(out);
			json_write_text(c->ids[i], out);
		}
		buf_text(out, "]");
	}
	buf_text(out, "}");
}

static bool is_sound(struct provider_call *c)
{
	if (is_change(c->verb) && (!c->token || !*c->token))
		return error_set(&c->error, ERROR_INVALID, "a call that changes something needs a token");
	if (c->desired < 0)
		return error_set(&c->error, ERROR_INVALID, "%" PRId64 " machines cannot be asked for", c->desired);
	for (size_t i = 0; i < c->id_count; i++)
		if (!c->ids[i] || !*c->ids[i])
			return error_set(&c->error, ERROR_INVALID, "a machine without an id was named");
	return true;
}

static void finish(struct exchange *x)
{
	struct provider_call *c = x->call;

	if (c->error.kind != ERROR_NONE) {
		c->description = (struct group_description){ 0 };
		error_wrap(&c->error, "group %s: %s", c->group, provider_verb_name(c->verb));
	}
	c->exchange = NULL;
	x->provider->active--;
	buf_release(&x->url);
	buf_release(&x->body);
	free(x);
	c->done(c); /* may start it anew, and may free it */
}

static void on_refused(struct timer *t)
{
	finish(t->user);
}

/* It asks nobody who they are: whoever sees a group may change it. */
static void tell_rights(struct provider_call *c)
{
	static const struct permission rights[] = {
		{ "describe", "sees the group", PERMISSION_GRANTED, PERMISSION_ALWAYS, "" },
		{ "grow, remove, stop, standby, cancel", "changes it", PERMISSION_UNKNOWN, PERMISSION_ALWAYS,
		  "a modelled cloud does not tell what it will let us do" },
	};

	c->identity = "nobody: a modelled cloud asks for no credentials";
	c->permissions = arena_array(&c->arena, struct permission, 2);
	memcpy(c->permissions, rights, sizeof rights);
	c->permission_count = 2;
}

static void on_answer(struct http_request *r)
{
	struct exchange *x = r->user;
	struct provider_call *c = x->call;

	if (r->error.kind != ERROR_NONE) {
		c->error = r->error;
	} else if (http_status_kind(r->status) != ERROR_NONE) {
		struct clock now = clock_open();
		simulated_read_refusal(r->status, r->response, r->response_len, &c->error);
		c->retry_after = retry_after(http_header(r, "Retry-After"), clock_now(&now));
	} else if (c->verb == PROVIDER_CHECK) {
		tell_rights(c);
	} else if (c->verb == PROVIDER_DESCRIBE &&
		   !simulated_read_group(r->response, r->response_len, &c->arena, &c->description, &c->error)) {
		error_wrap(&c->error, "answer");
	}
	c->description.abilities = ABILITIES;
	c->description.lacks = "";
	finish(x);
}

static void send(struct exchange *x, const struct settings *s)
{
	static const char *const headers[] = { "Content-Type: application/json", "Accept: application/json", NULL };
	struct provider_call *c = x->call;
	bool changes = is_change(c->verb);

	write_url(s, c->verb, &x->url);
	if (changes)
		write_body(c, &x->body);
	x->request = (struct http_request){ .method = changes ? "POST" : "GET",
					    .url = x->url.text,
					    .headers = changes ? headers : headers + 1,
					    .body = x->body.text,
					    .body_len = x->body.len,
					    .timeout = c->timeout ? c->timeout
						       : changes  ? CHANGE_DEADLINE
								  : READ_DEADLINE,
					    .max_response = MOST_ANSWER,
					    .done = on_answer,
					    .user = x };
	http_start(x->provider->http, &x->request);
}

static void simulated_start(struct provider *p, struct provider_call *c)
{
	struct exchange *x = calloc(1, sizeof *x);
	struct settings s = { 0 };

	if (!x)
		abort();
	assert(!c->exchange);
	provider_call_release(c);
	c->error = (struct error){ 0 };
	c->retry_after = 0;
	x->provider = p;
	x->call = c;
	x->refused.user = x;
	c->exchange = x;
	p->active++;
	if (is_sound(c) && read_settings(c, &s))
		send(x, &s);
	else
		timer_start(p->loop, &x->refused, 0, on_refused);
}

static void simulated_cancel(struct provider *p, struct provider_call *c)
{
	struct exchange *x = c->exchange;

	(void)p;
	if (!x)
		return;
	if (x->request.transfer)
		http_cancel(&x->request);
	else
		error_set(&c->error, ERROR_CANCELLED, "cancelled");
}

static struct provider *simulated_open(const struct provider_setup *s, struct error *e)
{
	struct provider *p = calloc(1, sizeof *p);

	(void)e;
	if (!p)
		abort();
	p->loop = s->loop;
	p->http = s->http;
	return p;
}

static void simulated_close(struct provider *p)
{
	assert(!p || !p->active);
	free(p);
}

const struct provider_ops provider_simulated = {
	.name = "simulated",
	.abilities = ABILITIES,
	.open = simulated_open,
	.close = simulated_close,
	.start = simulated_start,
	.cancel = simulated_cancel,
};
