#include "controller/cluster/verbs.h"

#include "tests/unit/cluster/played_api.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

static struct api_call *call;
static char body[2048], who[1024], why[256], name[256], message[600];
static int done;
static bool is_yes;
static enum error_kind kind;

static void serve(struct api_call *c)
{
	call = c;
	snprintf(body, sizeof body, "%s", c->body);
	assert_string_equal(c->method, "POST");
	assert_int_equal(c->effect, API_READ); /* passes the gate of a follower and of a dry run */
	assert_int_equal(c->timeout, REVIEW_TIMEOUT);
}

static void note(const struct error *e, bool yes, const char *said)
{
	done++;
	kind = e->kind;
	is_yes = yes;
	snprintf(message, sizeof message, "%s", e->message);
	snprintf(why, sizeof why, "%s", said ? said : "");
}

static void token_done(struct token_review *t)
{
	note(&t->error, t->is_known, t->why);
	snprintf(who, sizeof who, "%s", t->who ? t->who : "");
	snprintf(name, sizeof name, "%s", t->name ? t->name : "");
	free(t);
}

static void access_done(struct access_review *r)
{
	note(&r->error, r->is_allowed, r->why);
	free(r);
}

static void review_token(const char *token, long status, const char *answer)
{
	struct api *api = play_begin(serve);
	struct token_review *t = calloc(1, sizeof *t);

	t->token = token;
	t->done = token_done;
	done = 0;
	token_review_start(api, t);
	assert_int_equal(done, 0);
	play_answer(call, status, answer ? answer : play_status((int)status, "Forbidden", NULL));
	assert_int_equal(done, 1);
	play_end();
}

static void tokens(void **state)
{
	static const struct {
		long status;
		const char *answer;
		bool is_yes;
		enum error_kind kind;
		const char *name, *who, *why;
	} cases[] = {
		{ 201,
		  "{\"kind\":\"TokenReview\",\"status\":{\"authenticated\":true,\"user\":{\"username\":\"u\","
		  "\"groups\":"
		  "[\"g\"],\"extra\":{\"k/x\":[\"1\"]}},\"audiences\":[\"a\"]}}",
		  true, ERROR_NONE, "u", "{\"username\":\"u\",\"groups\":[\"g\"],\"extra\":{\"k/x\":[\"1\"]}}", "" },
		{ 201, "{\"status\":{\"user\":{},\"error\":\"token has expired\"}}", false, ERROR_NONE, "", "",
		  "token has expired" },
		{ 201, "{\"status\":{\"authenticated\":false,\"user\":{\"username\":\"u\"}}}", false, ERROR_NONE, "",
		  "", "" },
		{ 201, "{\"status\":{\"authenticated\":true}}", false, ERROR_NONE, "", "", "" },
		{ 201, "{\"status\":{\"authenticated\":true,\"user\":{}}}", false, ERROR_INVALID, "", "", "" },
		{ 201, "{\"status\":{\"authenticated\":\"true\"}}", false, ERROR_INVALID, "", "", "" },
		{ 201, "{}", false, ERROR_NONE, "", "", "" },
		{ 201, "nonsense", false, ERROR_INVALID, "", "", "" },
		{ 201, "", false, ERROR_INVALID, "", "", "" },
		{ 403, NULL, false, ERROR_AUTH, "", "", "" },
		{ 500, NULL, false, ERROR_UNAVAILABLE, "", "", "" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		review_token("s3cret", cases[i].status, cases[i].answer);
		if (kind != cases[i].kind || is_yes != cases[i].is_yes)
			print_error("case %zu: %s\n", i, message);
		assert_int_equal(kind, cases[i].kind);
		assert_int_equal(is_yes, cases[i].is_yes);
		assert_string_equal(name, cases[i].name);
		assert_string_equal(who, cases[i].who);
		assert_string_equal(why, cases[i].why);
		assert_null(strstr(message, "s3cret"));
		assert_string_equal(body,
				    "{\"apiVersion\":\"authentication.k8s.io/v1\",\"kind\":\"TokenReview\",\"spec\":"
				    "{\"token\":\"s3cret\"}}");
	}
}

static bool review_access(const char *person, long status, const char *answer)
{
	struct api *api = play_begin(serve);
	struct access_review *r = calloc(1, sizeof *r);
	struct error e = { 0 };

	r->who = person;
	r->verb = "get";
	r->path = "/api/v1/pools";
	r->done = access_done;
	done = 0;
	if (!access_review_start(api, r, &e)) {
		assert_int_equal(e.kind, ERROR_INVALID);
		free(r);
		play_end();
		return false;
	}
	play_answer(call, status, answer ? answer : play_status((int)status, "Forbidden", NULL));
	assert_int_equal(done, 1);
	play_end();
	return true;
}

static void accesses(void **state)
{
	static const struct {
		long status;
		const char *answer;
		bool is_yes;
		enum error_kind kind;
		const char *why;
	} cases[] = {
		{ 201, "{\"status\":{\"allowed\":true,\"reason\":\"RBAC: allowed\"}}", true, ERROR_NONE,
		  "RBAC: allowed" },
		{ 201, "{\"status\":{\"allowed\":false}}", false, ERROR_NONE, "" },
		{ 201, "{\"status\":{\"allowed\":true,\"denied\":true}}", false, ERROR_NONE, "" },
		{ 201, "{\"status\":{\"allowed\":false,\"reason\":\"\",\"evaluationError\":\"no such role\"}}", false,
		  ERROR_NONE, "no such role" },
		{ 201, "{\"status\":{}}", false, ERROR_NONE, "" },
		{ 201, "{\"status\":{\"allowed\":\"yes\"}}", false, ERROR_INVALID, "" },
		{ 403, NULL, false, ERROR_AUTH, "" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		assert_true(review_access("{\"uid\":\"7\",\"username\":\"u\\\"\",\"groups\":[\"g\",\"h\"],\"extra\":"
					  "{\"k/x\":[\"1\"]},\"new\":{}}",
					  cases[i].status, cases[i].answer));
		assert_int_equal(kind, cases[i].kind);
		assert_int_equal(is_yes, cases[i].is_yes);
		assert_string_equal(why, cases[i].why);
		assert_string_equal(body,
				    "{\"apiVersion\":\"authorization.k8s.io/v1\",\"kind\":\"SubjectAccessReview\","
				    "\"spec\":{\"nonResourceAttributes\":{\"path\":\"/api/v1/pools\",\"verb\":"
				    "\"get\"},\"user\":\"u\\\"\",\"uid\":\"7\",\"groups\":[\"g\",\"h\"],\"extra\":"
				    "{\"k/x\":[\"1\"]}}}");
	}
	assert_true(review_access("{\"username\":\"u\"}", 201, "{\"status\":{\"allowed\":true}}"));
	assert_string_equal(body,
			    "{\"apiVersion\":\"authorization.k8s.io/v1\",\"kind\":\"SubjectAccessReview\",\"spec\":{"
			    "\"nonResourceAttributes\":{\"path\":\"/api/v1/pools\",\"verb\":\"get\"},\"user\":\"u\"}}");
}

static void who_is_nobody_is_not_asked_for(void **state)
{
	static const char *const cases[] = { "", "{}", "[]", "null", "{\"username\":3}", "{\"groups\":[\"g\"]}", "{" };

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
		assert_false(review_access(cases[i], 0, NULL));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(tokens),
		cmocka_unit_test(accesses),
		cmocka_unit_test(who_is_nobody_is_not_asked_for),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
