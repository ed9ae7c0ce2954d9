#include "providers/aks_exchange.h"
#include "providers/azure/rights.h"
#include "providers/azure/token.h"

#include <string.h>

enum scope { CLUSTER, SUBSCRIPTION, SCOPES };

static const struct {
	const char *action, *purpose;
	enum scope scope;
	enum permission_need need;
} needs[] = {
#define RIGHT(action, scope, need, purpose) { action, purpose, scope, need },
#include "providers/aks_right.def"
#undef RIGHT
};
enum { NEEDS = sizeof needs / sizeof *needs };

static void fill(struct exchange *x, enum scope scope, const struct azure_rights *rights, const char *why)
{
	struct provider_call *c = x->call;

	for (size_t i = 0; i < NEEDS; i++) {
		if (needs[i].scope != scope)
			continue;
		c->permissions[i] = (struct permission){
			.action = needs[i].action,
			.purpose = needs[i].purpose,
			.state = !rights				       ? PERMISSION_UNKNOWN
				 : azure_rights_allow(rights, needs[i].action) ? PERMISSION_GRANTED
									       : PERMISSION_DENIED,
			.need = needs[i].need,
			.message = why,
		};
	}
}

static void identify(struct exchange *x, const char *token)
{
	struct provider_call *c = x->call;
	CLEANUP(buf_release) struct buf text = { 0 };
	struct token_claims claims;
	struct azure_environment env = azure_environment_read();
	enum azure_method method = AZURE_MANAGED;
	struct error ignored = { 0 };

	if (c->identity && *c->identity)
		return;
	(void)!azure_method_choose(&env, &method, &ignored);
	buf_text(&text, azure_method_name(method));
	if (!token || !token_claims_read(token, &c->arena, &claims))
		buf_text(&text, ", by a token that does not say whose it is");
	else
		buf_printf(&text, ": application %s, object %s, tenant %s", claims.application, claims.object,
			   claims.tenant);
	c->identity = arena_strdup(&c->arena, text.text, text.len);
}

/* The answer, or why there is none: that alone is no failure, as whoever may do all else need not see roles. */
static bool read_rights(struct exchange *x, const struct arm_request *r, enum scope scope)
{
	struct provider_call *c = x->call;
	struct azure_rights rights;
	bool is_told = r->error.kind == ERROR_NONE, may_not = r->http.status && r->error.kind != ERROR_THROTTLED;

	if (x->was_cancelled || (!is_told && !may_not)) {
		aks_fail(x, r);
		return false;
	}
	identify(x, r->http.bearer);
	if (!is_told) {
		fill(x, scope, NULL, arena_strdup(&c->arena, r->error.message, strlen(r->error.message)));
		return true;
	}
	if (!azure_rights_read(r->http.response, r->http.response_len, &c->arena, &rights, &c->error)) {
		error_wrap(&c->error, "answer");
		aks_finish(x);
		return false;
	}
	fill(x, scope, &rights,
	     scope == CLUSTER ? "by the roles that Azure tells of, on the cluster"
			      : "by the roles that Azure tells of, on the subscription");
	return true;
}

static void subscription_answered(struct arm_request *r)
{
	struct exchange *x = r->user;

	if (!read_rights(x, r, SUBSCRIPTION))
		return;
	x->call->permission_count = NEEDS;
	aks_finish(x);
}

static const char *rights_url(struct exchange *x, const char *end)
{
	static const char rest[] = "/providers/Microsoft.Authorization/permissions?api-version=2022-04-01";
	CLEANUP(buf_release) struct buf url = { 0 };

	buf_append(&url, x->pool_url, (size_t)(end - x->pool_url));
	buf_text(&url, rest);
	return arena_strdup(&x->call->arena, url.text, url.len);
}

static void cluster_answered(struct arm_request *r)
{
	struct exchange *x = r->user;

	if (read_rights(x, r, CLUSTER))
		aks_ask(x, "GET", rights_url(x, strstr(x->pool_url, "/resourceGroups/")), subscription_answered);
}

void aks_begin_check(struct exchange *x)
{
	struct provider_call *c = x->call;

	c->permissions = arena_array(&c->arena, struct permission, NEEDS);
	aks_ask(x, "GET", rights_url(x, strstr(x->pool_url, "/agentPools/")), cluster_answered);
}
