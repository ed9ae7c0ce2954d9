#include "controller/cluster/review.h"

#include "base/decode.h"
#include "base/json.h"
#include "controller/cluster/verbs_body.h"

#include <string.h>

struct verdict {
	bool is_known, is_allowed, is_denied;
	struct decoded_text who;
	const char *name, *trouble, *reason, *evaluation;
};

static const struct field verdict_fields[] = {
	FIELD(struct verdict, is_known, FIELD_BOOL, "status>authenticated"),
	FIELD(struct verdict, who, FIELD_RAW, "status>user"),
	FIELD(struct verdict, trouble, FIELD_STRING, "status>error"),
	FIELD(struct verdict, is_allowed, FIELD_BOOL, "status>allowed"),
	FIELD(struct verdict, is_denied, FIELD_BOOL, "status>denied"),
	FIELD(struct verdict, reason, FIELD_STRING, "status>reason"),
	FIELD(struct verdict, evaluation, FIELD_STRING, "status>evaluationError"),
};
static const struct record_spec verdict_record = { "", sizeof(struct verdict), verdict_fields,
						   sizeof verdict_fields / sizeof *verdict_fields };

struct person {
	const char *name, *uid;
	struct decoded_text groups, extra;
};

static const struct field person_fields[] = {
	{ .path = "username", .type = FIELD_STRING, .offset = offsetof(struct person, name), .required = true },
	FIELD(struct person, uid, FIELD_STRING, "uid"),
	FIELD(struct person, groups, FIELD_RAW, "groups"),
	FIELD(struct person, extra, FIELD_RAW, "extra"),
};
static const struct record_spec person_record = { "", sizeof(struct person), person_fields,
						  sizeof person_fields / sizeof *person_fields };

static bool decode(const struct record_spec *spec, const char *text, size_t len, struct arena *a, void *out,
		   struct error *e)
{
	struct decode_plan *plan = decode_plan_new(spec);
	bool ok = decode_record(plan, text, len, a, out, e);

	decode_plan_free(plan);
	return ok;
}

static bool read_verdict(const struct api_call *c, struct arena *a, struct verdict *v, struct error *e)
{
	if (c->error.kind != ERROR_NONE) {
		*e = c->error;
		return false;
	}
	return decode(&verdict_record, c->response, c->response_len, a, v, e) ||
	       error_wrap(e, "the API server's answer to %s", c->path);
}

static void wipe(struct buf *b)
{
	if (b->text)
		explicit_bzero(b->text, b->room);
	buf_release(b);
}

static bool read_person(const char *who, size_t len, struct arena *a, struct person *out, struct error *e)
{
	return decode(&person_record, who, len, a, out, e) || error_wrap(e, "the user of a token");
}

static void learn_token(struct token_review *t)
{
	struct verdict v = { 0 };
	struct person who = { 0 };

	if (!read_verdict(&t->call, &t->arena, &v, &t->error))
		return;
	t->why = v.trouble;
	if (!v.is_known || !v.who.text || !read_person(v.who.text, v.who.len, &t->arena, &who, &t->error))
		return;
	t->is_known = true;
	t->name = who.name;
	t->who = arena_strdup(&t->arena, v.who.text, v.who.len);
}

static void token_answered(struct api_call *c)
{
	struct token_review *t = c->user;
	struct arena arena;

	wipe(&t->body);
	learn_token(t);
	arena = t->arena; /* done() may free or start it anew */
	t->arena = (struct arena){ 0 };
	t->done(t);
	arena_release(&arena);
}

void token_review_start(struct api *a, struct token_review *t)
{
	t->error = (struct error){ 0 };
	t->is_known = false;
	t->name = t->who = t->why = NULL;
	buf_text(&t->body, "{\"apiVersion\":\"authentication.k8s.io/v1\",\"kind\":\"TokenReview\",\"spec\":{");
	verbs_member("token", t->token, &t->body);
	buf_text(&t->body, "}}");
	t->token = NULL;
	t->call = (struct api_call){ .method = "POST",
				     .path = "/apis/authentication.k8s.io/v1/tokenreviews",
				     .body = t->body.text,
				     .effect = API_READ,
				     .timeout = REVIEW_TIMEOUT,
				     .done = token_answered,
				     .user = t };
	api_start(a, &t->call);
}

static void access_answered(struct api_call *c)
{
	struct access_review *r = c->user;
	struct verdict v = { 0 };
	struct arena arena;

	buf_release(&r->body);
	if (read_verdict(c, &r->arena, &v, &r->error)) {
		r->is_allowed = v.is_allowed && !v.is_denied;
		r->why = v.reason && *v.reason ? v.reason : v.evaluation;
	}
	arena = r->arena;
	r->arena = (struct arena){ 0 };
	r->done(r);
	arena_release(&arena);
}

static void write_raw(const char *key, struct decoded_text value, struct buf *out)
{
	if (!value.text)
		return;
	json_write_comma(out);
	json_write_text(key, out);
	buf_text(out, ":");
	buf_append(out, value.text, value.len);
}

static void write_access(const struct access_review *r, const struct person *who, struct buf *out)
{
	buf_text(out, "{\"apiVersion\":\"authorization.k8s.io/v1\",\"kind\":\"SubjectAccessReview\",\"spec\":{"
		      "\"nonResourceAttributes\":{");
	verbs_member("path", r->path, out);
	verbs_member("verb", r->verb, out);
	buf_text(out, "}");
	verbs_member("user", who->name, out);
	verbs_member("uid", who->uid, out);
	write_raw("groups", who->groups, out);
	write_raw("extra", who->extra, out);
	buf_text(out, "}}");
}

bool access_review_start(struct api *a, struct access_review *r, struct error *e)
{
	CLEANUP(arena_release) struct arena scratch = { 0 };
	struct person who = { 0 };

	if (!read_person(r->who, strlen(r->who), &scratch, &who, e))
		return false;
	r->error = (struct error){ 0 };
	r->is_allowed = false;
	r->why = NULL;
	write_access(r, &who, &r->body);
	r->who = r->verb = r->path = NULL;
	r->call = (struct api_call){ .method = "POST",
				     .path = "/apis/authorization.k8s.io/v1/subjectaccessreviews",
				     .body = r->body.text,
				     .effect = API_READ,
				     .timeout = REVIEW_TIMEOUT,
				     .done = access_answered,
				     .user = r };
	api_start(a, &r->call);
	return true;
}
