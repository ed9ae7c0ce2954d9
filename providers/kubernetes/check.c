/* What the API server lets us do, as it tells by reviews: these store nothing. */
#include "base/decode.h"
#include "base/json_write.h"
#include "providers/kubernetes/exchange.h"

#include <string.h>

struct review {
	bool is_allowed;
	const char *reason, *user;
};

static const struct field review_fields[] = {
	FIELD(struct review, is_allowed, FIELD_BOOL, "status>allowed"),
	FIELD(struct review, reason, FIELD_STRING, "status>reason"),
	FIELD(struct review, user, FIELD_STRING, "status>userInfo>username"),
};
static const struct record_spec review_record = { "", sizeof(struct review), review_fields, 3 };

static bool read_review(struct exchange *x, struct review *out)
{
	struct decode_plan *plan = decode_plan_new(&review_record);
	bool ok = decode_record(plan, x->request.response, x->request.response_len, &x->call->arena, out,
				&x->call->error);

	decode_plan_free(plan);
	return ok || error_wrap(&x->call->error, "a review's answer");
}

static void write_member(const char *name, const char *text, struct buf *out)
{
	json_write_comma(out);
	json_write_text(name, out);
	buf_text(out, ":");
	json_write_text(text, out);
}

static void review(struct exchange *x, const char *path, void (*then)(struct exchange *x))
{
	buf_clear(&x->path);
	buf_text(&x->path, path);
	object_ask(x, "POST", then);
}

static void got_right(struct exchange *x);

static void ask_right(struct exchange *x)
{
	const struct object_right *r = &x->provider->kind->rights[x->at];

	if (x->at == x->provider->kind->right_count) {
		object_finish(x);
		return;
	}
	buf_clear(&x->body);
	buf_text(&x->body, "{\"apiVersion\":\"authorization.k8s.io/v1\",\"kind\":\"SelfSubjectAccessReview\","
			   "\"spec\":{\"resourceAttributes\":{");
	write_member("group", r->api_group, &x->body);
	write_member("resource", r->resource, &x->body);
	write_member("subresource", r->subresource, &x->body);
	write_member("verb", r->verb, &x->body);
	write_member("namespace", x->group.name_space, &x->body);
	write_member("name", r->is_of_owner ? x->group.name : "", &x->body);
	buf_text(&x->body, "}}}");
	review(x, "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", got_right);
}

/* "patch nodepools/scale.karpenter.sh", as kubectl auth can-i has it. */
static const char *action_of(struct exchange *x, const struct object_right *r)
{
	CLEANUP(buf_release) struct buf text = { 0 };

	buf_printf(&text, "%s %s%s%s%s%s", r->verb, r->resource, *r->api_group ? "." : "", r->api_group,
		   *r->subresource ? "/" : "", r->subresource);
	return arena_strdup(&x->call->arena, text.text, text.len);
}

static void got_right(struct exchange *x)
{
	const struct object_right *r = &x->provider->kind->rights[x->at];
	struct review said = { 0 };

	if (!read_review(x, &said)) {
		object_finish(x);
		return;
	}
	x->call->permissions[x->at++] = (struct permission){
		.action = action_of(x, r),
		.purpose = r->purpose,
		.state = said.is_allowed ? PERMISSION_GRANTED : PERMISSION_DENIED,
		.message = said.reason ? said.reason : "",
	};
	x->call->permission_count = x->at;
	ask_right(x);
}

static void got_identity(struct exchange *x)
{
	struct review said = { 0 };

	/* Servers before Kubernetes 1.28 do not tell. */
	if (x->request.error.kind == ERROR_NONE && !read_review(x, &said)) {
		object_finish(x);
		return;
	}
	x->call->identity = said.user ? said.user : "whom the API server takes us for, which it does not tell";
	x->is_gone_fine = false;
	ask_right(x);
}

void object_check(struct exchange *x)
{
	x->call->permissions = arena_array(&x->call->arena, struct permission, x->provider->kind->right_count);
	x->at = 0;
	x->is_gone_fine = true;
	buf_clear(&x->body);
	buf_text(&x->body, "{\"apiVersion\":\"authentication.k8s.io/v1\",\"kind\":\"SelfSubjectReview\"}");
	review(x, "/apis/authentication.k8s.io/v1/selfsubjectreviews", got_identity);
}
