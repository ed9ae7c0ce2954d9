#include "providers/kubernetes/group.h"

#include "base/json_write.h"
#include "base/uri.h"
#include "providers/kubernetes/exchange.h"

#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

static const millis READ_DEADLINE = 15 * SECOND, CHANGE_DEADLINE = 30 * SECOND;
enum { PAGE_SIZE = 500, PAGES_MOST = 100 };

bool is_object_name(const char *name)
{
	size_t len = name ? strlen(name) : 0;

	return len > 0 && len <= 253 && strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789-.") == len && name[0] != '.';
}

void object_finish(struct exchange *x)
{
	struct provider_call *c = x->call;

	if (c->error.kind != ERROR_NONE) {
		c->description = (struct group_description){ 0 };
		error_wrap(&c->error, "group %s: %s", c->group, provider_verb_name(c->verb));
	}
	c->exchange = NULL;
	x->provider->active--;
	timer_stop(&x->at_once);
	buf_release(&x->path);
	buf_release(&x->body);
	free(x);
	c->done(c); /* may start it anew, and may free it */
}

static void answered(struct cluster_call *r)
{
	struct exchange *x = r->user;

	x->is_asking = false;
	x->call->retry_after = r->retry_after;
	if (x->is_cancelled)
		error_set(&x->call->error, ERROR_CANCELLED, "cancelled");
	else if (r->error.kind != ERROR_NONE && !(x->is_gone_fine && r->error.kind == ERROR_NOT_FOUND))
		x->call->error = r->error;
	if (x->call->error.kind != ERROR_NONE)
		object_finish(x);
	else
		x->then(x);
}

void object_ask(struct exchange *x, const char *method, void (*then)(struct exchange *))
{
	bool is_review = x->call->verb == PROVIDER_CHECK, changes = strcmp(method, "GET") != 0 && !is_review;
	millis left = x->ends_at - loop_now(x->provider->loop);

	if (left <= 0) {
		error_set(&x->call->error, ERROR_TIMEOUT, "not over in its time");
		object_finish(x);
		return;
	}
	x->then = then;
	x->is_asking = true;
	x->request = (struct cluster_call){ .method = method,
					    .path = x->path.text,
					    .body = x->body.len ? x->body.text : NULL,
					    .content_type = is_review ? NULL : "application/merge-patch+json",
					    .changes = changes,
					    .timeout = left,
					    .done = answered,
					    .user = x };
	x->provider->cluster.start(x->provider->cluster.user, &x->request);
}

static void get(struct exchange *x, const char *path, void (*then)(struct exchange *))
{
	buf_clear(&x->path);
	buf_clear(&x->body);
	buf_text(&x->path, path);
	object_ask(x, "GET", then);
}

static bool fails(struct exchange *x, bool ok, const char *what)
{
	if (ok)
		return false;
	error_wrap(&x->call->error, "%s", what);
	object_finish(x);
	return true;
}

static int by_number(const void *a, const void *b)
{
	const struct launch_failure *left = a, *right = b;

	return (left->id > right->id) - (left->id < right->id);
}

/* Times are whole seconds: those of one are one failure of several machines. */
static size_t merge_failures(struct launch_failure *f, size_t count)
{
	size_t kept = 0;

	if (count)
		qsort(f, count, sizeof *f, by_number);
	for (size_t i = 0; i < count; i++)
		if (kept && f[kept - 1].id == f[i].id)
			f[kept - 1].count += f[i].count;
		else
			f[kept++] = f[i];
	return kept;
}

static int by_age(const void *a, const void *b)
{
	const struct machine *left = a, *right = b;
	int age = (left->launched_at > right->launched_at) - (left->launched_at < right->launched_at);

	return age ? age : strcmp(left->id, right->id);
}

int64_t machines_there(const struct machine_list *list)
{
	int64_t count = 0;

	for (size_t i = 0; i < list->count; i++)
		count += list->machines[i].state != MACHINE_TERMINATING;
	return count;
}

static void describe(struct exchange *x)
{
	struct group_description *d = &x->call->description;
	int64_t size = x->provider->kind->has_owner ? x->owner.replicas
						    : wish_settle(wish_of(x->provider, x->call->group), &x->list);

	if (x->list.count)
		qsort(x->list.machines, x->list.count, sizeof *x->list.machines, by_age);
	*d = (struct group_description){ .min = x->owner.min,
					 .max = x->owner.max,
					 .desired = size,
					 .machines = x->list.machines,
					 .machine_count = x->list.count,
					 .failures = x->list.failures,
					 .abilities = x->provider->kind->abilities,
					 .lacks = "" };
	d->failure_count = merge_failures(d->failures, x->list.failure_count);
	object_finish(x);
}

static void listed(struct exchange *x)
{
	if (x->call->verb == PROVIDER_DESCRIBE) {
		describe(x);
		return;
	}
	change_shrink(x);
}

static void got_page(struct exchange *x);

static void get_page(struct exchange *x)
{
	buf_clear(&x->path);
	buf_clear(&x->body);
	buf_printf(&x->path, "%s?limit=%d&labelSelector=", x->group.list, PAGE_SIZE);
	uri_escape(x->group.selector, strlen(x->group.selector), "", &x->path);
	if (x->list.more && x->list.more[0]) {
		buf_text(&x->path, "&continue=");
		uri_escape(x->list.more, strlen(x->list.more), "", &x->path);
	}
	object_ask(x, "GET", got_page);
}

static void got_page(struct exchange *x)
{
	bool ok = machine_list_read(x->provider->kind->kind, x->request.response, x->request.response_len,
				    &x->call->arena, &x->list, &x->call->error);

	if (ok && x->list.more[0] && ++x->pages == PAGES_MOST)
		ok = error_set(&x->call->error, ERROR_INVALID, "a list without end");
	if (fails(x, ok, "its machines"))
		return;
	if (x->list.more[0])
		get_page(x);
	else
		listed(x);
}

static void got_owner(struct exchange *x)
{
	const struct object_provider *kind = x->provider->kind;
	struct error *e = &x->call->error;
	bool ok = owner_read(kind->kind, x->request.response, x->request.response_len, &x->call->arena, &x->owner, e) &&
		  kind->accepts(&x->owner, e);

	if (fails(x, ok, x->group.owner_plural))
		return;
	if (x->call->verb == PROVIDER_GROW)
		change_grow(x);
	else
		get_page(x);
}

static void begin(struct exchange *x)
{
	if (x->call->verb == PROVIDER_CHECK)
		object_check(x);
	else if (x->provider->kind->has_owner)
		get(x, x->group.owner, got_owner);
	else
		get_page(x);
}

static void got_version(struct exchange *x)
{
	const char *version = NULL;
	struct error *e = &x->call->error;
	bool ok = preferred_version_read(x->request.response, x->request.response_len, &x->call->arena, &version, e) &&
		  x->provider->kind->find(x->call, version, &x->group, e);

	if (!fails(x, ok, x->group.probe))
		begin(x);
}

static void fire(struct timer *t)
{
	struct exchange *x = t->user;

	if (x->call->error.kind != ERROR_NONE || x->is_told)
		object_finish(x);
	else if (x->group.probe && x->call->verb != PROVIDER_CHECK)
		get(x, x->group.probe, got_version);
	else
		begin(x);
}

static bool is_read(const struct provider_call *c)
{
	return c->verb == PROVIDER_DESCRIBE || c->verb == PROVIDER_CHECK;
}

static bool is_sound(const struct provider *p, struct provider_call *c)
{
	static const enum provider_verb all[] = { PROVIDER_DESCRIBE, PROVIDER_CHECK, PROVIDER_GROW, PROVIDER_CANCEL,
						  PROVIDER_REMOVE };
	bool is_known = false, changes = !is_read(c);

	for (size_t i = 0; i < 4 + (size_t)((p->kind->abilities & PROVIDER_NAMES_VICTIMS) != 0); i++)
		is_known |= c->verb == all[i];
	if (!is_known)
		return error_set(&c->error, ERROR_INVALID, "such a group knows no %s", provider_verb_name(c->verb));
	if (changes && (!c->token || !*c->token))
		return error_set(&c->error, ERROR_INVALID, "a call that changes something needs a token");
	if (c->desired < 0)
		return error_set(&c->error, ERROR_INVALID, "%" PRId64 " machines cannot be asked for", c->desired);
	for (size_t i = 0; i < c->id_count; i++)
		if (!is_object_name(c->ids[i]))
			return error_set(&c->error, ERROR_INVALID, "a machine was named that can be none");
	return true;
}

void object_provider_start(struct provider *p, struct provider_call *c)
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
	x->at_once.user = x;
	x->ends_at = loop_now(p->loop) + (c->timeout ? c->timeout : is_read(c) ? READ_DEADLINE : CHANGE_DEADLINE);
	c->exchange = x;
	p->active++;
	if (is_sound(p, c) && p->kind->find(c, NULL, &x->group, &c->error) && !p->kind->has_owner && !is_read(c)) {
		wish_change(wish_of(p, c->group), c);
		x->is_told = true;
	}
	timer_start(p->loop, &x->at_once, 0, fire);
}

void object_provider_cancel(struct provider *p, struct provider_call *c)
{
	struct exchange *x = c->exchange;

	if (!x)
		return;
	x->is_cancelled = true;
	if (x->is_asking)
		p->cluster.cancel(p->cluster.user, &x->request);
	else
		error_set(&c->error, ERROR_CANCELLED, "cancelled");
}

struct provider *object_provider_open(const struct object_provider *kind, const struct provider_setup *s,
				      struct error *e)
{
	if (!s->cluster) {
		error_set(e, ERROR_INVALID, "there is no cluster whose objects could be scaled");
		return NULL;
	}
	struct provider *p = calloc(1, sizeof *p);
	if (!p)
		abort();
	p->kind = kind;
	p->loop = s->loop;
	p->cluster = *s->cluster;
	return p;
}

void object_provider_close(struct provider *p)
{
	assert(!p->active);
	wishes_free(p);
	free(p);
}
