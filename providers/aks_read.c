#include "providers/aks_exchange.h"

#include <string.h>

enum { PAGES_MOST = 50 };

static bool went_well(struct exchange *x, const struct arm_request *r)
{
	if (r->error.kind == ERROR_NONE && !x->was_cancelled)
		return true;
	aks_fail(x, r);
	return false;
}

static bool read_pool(struct exchange *x, const struct arm_request *r)
{
	struct provider_call *c = x->call;
	bool is_spot;

	x->pool_text = arena_strdup(&c->arena, r->http.response, r->http.response_len);
	if (!azure_pool_read(x->pool_text, strlen(x->pool_text), &c->arena, &x->pool, &c->error))
		return error_wrap(&c->error, "answer");
	if (!azure_pool_is_ours(&x->pool, &c->error))
		return error_wrap(&c->error, "agent pool %s", x->settings.pool);
	is_spot = !strcmp(x->pool.priority, "Spot");
	x->pool_failed = azure_pool_has_failed(&x->pool) && x->pool.problem &&
			 azure_failure_of(x->pool.problem, x->pool.problem_len, is_spot, &x->pool_failure);
	return true;
}

static void pool_answered(struct arm_request *r)
{
	struct exchange *x = r->user;

	if (!went_well(x, r))
		return;
	if (read_pool(x, r))
		x->next(x);
	else
		aks_finish(x);
}

void aks_read_pool(struct exchange *x, void (*next)(struct exchange *x))
{
	x->next = next;
	x->request.body = x->request.if_match = NULL;
	aks_ask(x, "GET", x->pool_url, pool_answered);
}

static void machines_answered(struct arm_request *r)
{
	struct exchange *x = r->user;
	struct provider_call *c = x->call;
	const char *next;

	if (!went_well(x, r))
		return;
	if (!azure_machines_read(r->http.response, r->http.response_len, &c->arena, &x->machines, &next, &c->error))
		error_wrap(&c->error, "answer");
	else if (*next && !(azure_url_is_safe(next) && azure_url_is_below(next, x->place.endpoint)))
		error_set(&c->error, ERROR_INVALID, "machines: the next page is not where the Resource Manager is");
	else if (*next && ++x->pages >= PAGES_MOST)
		error_set(&c->error, ERROR_INVALID, "machines: found more than %d pages", PAGES_MOST);
	if (c->error.kind != ERROR_NONE)
		aks_finish(x);
	else if (*next)
		aks_ask(x, "GET", next, machines_answered);
	else
		x->next(x);
}

void aks_read_machines(struct exchange *x, void (*next)(struct exchange *x))
{
	x->next = next;
	x->machines = (struct azure_machines){ 0 };
	x->pages = 0;
	x->request.body = x->request.if_match = NULL;
	aks_ask(x, "GET", x->machines_url, machines_answered);
}

static void pending_answered(struct arm_request *r)
{
	struct exchange *x = r->user;
	struct provider_call *c = x->call;
	struct azure_operation o = { 0 };

	/* Forgotten by now, or not for us to see: the pool itself tells what became of it. */
	if (r->error.kind == ERROR_NOT_FOUND || r->error.kind == ERROR_AUTH || r->error.kind == ERROR_INVALID) {
		if (r->http.status && !x->was_cancelled) {
			x->next(x);
			return;
		}
	}
	if (!went_well(x, r))
		return;
	if (!azure_operation_read(r->http.status, r->http.response, r->http.response_len, &c->arena, &o, &c->error)) {
		error_wrap(&c->error, "answer");
		aks_finish(x);
		return;
	}
	x->operation_open = !o.is_over;
	x->operation_ended_at = o.ended_at;
	x->operation_failed =
		o.has_failed && o.problem &&
		azure_failure_of(o.problem, o.problem_len, !strcmp(x->pool.priority, "Spot"), &x->operation_failure);
	x->next(x);
}

void aks_read_pending(struct exchange *x, void (*next)(struct exchange *x))
{
	const char *url = x->call->pending;

	x->next = next;
	x->request.body = x->request.if_match = NULL;
	if (url && *url && azure_url_is_safe(url) && azure_url_is_below(url, x->place.endpoint))
		aks_ask(x, "GET", arena_strdup(&x->call->arena, url, strlen(url)), pending_answered);
	else
		next(x);
}
