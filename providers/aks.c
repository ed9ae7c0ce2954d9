/* Agent pools of AKS through the Azure Resource Manager, docs/providers.md. */
#include "base/clock.h"
#include "base/quote.h"
#include "base/uri.h"
#include "providers/aks_exchange.h"
#include "providers/azure/text.h"

#include <assert.h>
#include <ctype.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

static const millis READ_DEADLINE = 30 * SECOND, CHANGE_DEADLINE = 60 * SECOND, CANCEL_DEADLINE = 150 * SECOND;
static const millis PAUSE = 5 * SECOND, LEAST_PAUSE = 50;

static const struct field setting_fields[] = {
	{ .path = "subscription",
	  .type = FIELD_STRING,
	  .offset = offsetof(struct aks_settings, subscription),
	  .required = true },
	{ .path = "resourceGroup",
	  .type = FIELD_STRING,
	  .offset = offsetof(struct aks_settings, resource_group),
	  .required = true },
	{ .path = "cluster", .type = FIELD_STRING, .offset = offsetof(struct aks_settings, cluster), .required = true },
	FIELD(struct aks_settings, pool, FIELD_STRING, "pool"),
	FIELD(struct aks_settings, resource_manager, FIELD_STRING, "resourceManager"),
};
static const struct record_spec setting_record = { "", sizeof(struct aks_settings), setting_fields,
						   sizeof setting_fields / sizeof *setting_fields };

static bool is_name(const char *text, const char *more, size_t most)
{
	size_t len = strlen(text);

	if (!len || len > most)
		return false;
	for (size_t i = 0; i < len; i++)
		if (!isalnum((unsigned char)text[i]) && !strchr(more, text[i]))
			return false;
	return true;
}

static bool check_name(const char *key, const char *text, const char *more, size_t most, struct error *e)
{
	char shown[QUOTE_ROOM];

	return is_name(text, more, most) ||
	       error_set(e, ERROR_INVALID, "%s: found %s; allowed: 1 to %zu letters, digits%s%s", key,
			 quote(shown, text, strlen(text)), most, *more ? " and " : "", more);
}

static bool check_settings(const struct aks_settings *s, struct error *e)
{
	return check_name("subscription", s->subscription, "-", 36, e) &&
	       check_name("resourceGroup", s->resource_group, "-_.()", 90, e) &&
	       check_name("cluster", s->cluster, "-_", 63, e) && check_name("pool", s->pool, "", 12, e);
}

static bool read_settings(struct exchange *x)
{
	struct provider_call *c = x->call;
	const char *text = c->settings ? c->settings : "{}";
	struct azure_environment env = azure_environment_read();
	struct aks_settings s = { 0 };

	if (!azure_decode(&setting_record, text, strlen(text), &c->arena, &s, &c->error))
		return error_wrap(&c->error, "settings of aks");
	if (!s.pool || !*s.pool)
		s.pool = c->group;
	if (s.resource_manager && !*s.resource_manager)
		s.resource_manager = NULL;
	if (!check_settings(&s, &c->error) ||
	    !azure_place_find(&env, s.resource_manager, &c->arena, &x->place, &c->error))
		return error_wrap(&c->error, "settings of aks");
	x->settings = s;
	return true;
}

static const char *write_url(struct exchange *x, const char *rest)
{
	CLEANUP(buf_release) struct buf url = { 0 };
	const struct aks_settings *s = &x->settings;

	buf_printf(&url, "%s/subscriptions/", x->place.endpoint);
	uri_segment(s->subscription, &url);
	buf_text(&url, "/resourceGroups/");
	uri_segment(s->resource_group, &url);
	buf_text(&url, "/providers/Microsoft.ContainerService/managedClusters/");
	uri_segment(s->cluster, &url);
	buf_text(&url, "/agentPools/");
	uri_segment(s->pool, &url);
	buf_printf(&url, "%s?api-version=" AKS_API, rest);
	return arena_strdup(&x->call->arena, url.text, url.len);
}

static bool is_sound(struct provider_call *c)
{
	bool changes = c->verb != PROVIDER_DESCRIBE && c->verb != PROVIDER_CHECK;

	if (changes && (!c->token || !*c->token))
		return error_set(&c->error, ERROR_INVALID, "a call that changes something needs a token");
	if (c->desired < 0)
		return error_set(&c->error, ERROR_INVALID, "%" PRId64 " machines cannot be asked for", c->desired);
	for (size_t i = 0; i < c->id_count; i++)
		if (!c->ids[i] || !*c->ids[i])
			return error_set(&c->error, ERROR_INVALID, "a machine without an id was named");
	return true;
}

void aks_finish(struct exchange *x)
{
	struct provider_call *c = x->call;

	if (x->was_cancelled)
		error_set(&c->error, ERROR_CANCELLED, "cancelled");
	if (c->error.kind != ERROR_NONE)
		error_wrap(&c->error, "group %s: %s", c->group, provider_verb_name(c->verb));
	if (c->error.kind != ERROR_NONE || c->verb != PROVIDER_DESCRIBE)
		c->description = (struct group_description){ 0 };
	c->exchange = NULL;
	x->provider->active--;
	timer_stop(&x->timer);
	buf_release(&x->body);
	free(x);
	c->done(c); /* may start it anew, and may free it */
}

void aks_ask(struct exchange *x, const char *method, const char *url, void (*answered)(struct arm_request *))
{
	millis left = x->ends_at - loop_now(x->provider->arm.loop);

	x->request.method = method;
	x->request.url = url;
	x->request.timeout = left > 1 ? left : 1;
	x->request.done = answered;
	x->request.user = x;
	arm_start(&x->provider->arm, &x->place, &x->request);
}

static void on_time(struct timer *t)
{
	struct exchange *x = t->user;

	if (x->was_cancelled || !x->next)
		aks_finish(x);
	else
		x->next(x);
}

void aks_pace(struct exchange *x, const struct arm_request *r)
{
	x->pause = r->retry_after < 0 ? PAUSE : r->retry_after > LEAST_PAUSE ? r->retry_after : LEAST_PAUSE;
}

void aks_wait(struct exchange *x, void (*next)(struct exchange *x))
{
	millis left = x->ends_at - loop_now(x->provider->arm.loop);

	x->next = x->pause < left ? next : NULL;
	if (!x->next)
		error_set(&x->call->error, ERROR_TIMEOUT, "AKS still works on the pool (%s)", x->pool.state);
	timer_start(x->provider->arm.loop, &x->timer, x->next ? x->pause : 0, on_time);
}

void aks_fail(struct exchange *x, const struct arm_request *r)
{
	x->call->error = r->error;
	if (r->error.kind == ERROR_THROTTLED && r->retry_after > 0)
		x->call->retry_after = r->retry_after;
	aks_finish(x);
}

static void begin(struct exchange *x)
{
	static const millis deadlines[PROVIDER_VERB_COUNT] = {
		[PROVIDER_DESCRIBE] = READ_DEADLINE,  [PROVIDER_GROW] = CHANGE_DEADLINE,
		[PROVIDER_REMOVE] = CHANGE_DEADLINE,  [PROVIDER_STOP] = CHANGE_DEADLINE,
		[PROVIDER_STANDBY] = CHANGE_DEADLINE, [PROVIDER_CANCEL] = CANCEL_DEADLINE,
		[PROVIDER_CHECK] = READ_DEADLINE,
	};
	struct provider_call *c = x->call;

	x->ends_at = loop_now(x->provider->arm.loop) + (c->timeout ? c->timeout : deadlines[c->verb]);
	x->pool_url = write_url(x, "");
	x->machines_url = write_url(x, "/machines");
	if (c->verb == PROVIDER_DESCRIBE)
		aks_begin_describe(x);
	else if (c->verb == PROVIDER_CHECK)
		aks_begin_check(x);
	else
		aks_begin_change(x);
}

static void aks_start(struct provider *p, struct provider_call *c)
{
	struct exchange *x = calloc(1, sizeof *x);

	if (!x)
		abort();
	assert(!c->exchange);
	provider_call_release(c);
	c->error = (struct error){ 0 };
	c->retry_after = 0;
	x->provider = p;
	x->call = c;
	x->timer.user = x;
	c->exchange = x;
	p->active++;
	if (is_sound(c) && read_settings(x))
		begin(x);
	else
		timer_start(p->arm.loop, &x->timer, 0, on_time);
}

static void aks_cancel(struct provider *p, struct provider_call *c)
{
	struct exchange *x = c->exchange;

	if (!x || x->was_cancelled)
		return;
	x->was_cancelled = true;
	if (x->request.is_active)
		arm_cancel(&x->request);
	else
		timer_start(p->arm.loop, &x->timer, 0, on_time);
}

static struct provider *aks_open(const struct provider_setup *s, struct error *e)
{
	struct provider *p = calloc(1, sizeof *p);
	struct azure_environment env = azure_environment_read();

	(void)e;
	if (!p)
		abort();
	p->arm = (struct arm){ .loop = s->loop, .http = s->http, .tls = { .ca_file = env.ca_file } };
	p->arm.tokens = tokens_open(s->loop, s->http, &p->arm.tls);
	return p;
}

static void aks_close(struct provider *p)
{
	if (!p)
		return;
	assert(!p->active);
	tokens_close(p->arm.tokens);
	for (struct aks_memory *m = p->memories, *next; m; m = next) {
		next = m->next;
		free(m->key);
		free(m->failed_write);
		free(m);
	}
	for (struct aks_budget *b = p->budgets, *next; b; b = next) {
		next = b->next;
		free(b->subscription);
		free(b);
	}
	free(p);
}

const struct provider_ops provider_aks = {
	.name = "aks",
	.abilities = PROVIDER_NAMES_VICTIMS | PROVIDER_HAS_STANDBY | PROVIDER_STOPS_NAMED | PROVIDER_CANCELS,
	.open = aks_open,
	.close = aks_close,
	.start = aks_start,
	.cancel = aks_cancel,
};
