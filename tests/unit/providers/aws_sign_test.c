/* The signer against the published vectors, all of them; none is refused by design. */
#include "base/arena.h"
#include "base/quantity.h"
#include "base/file.h"
#include "base/json.h"
#include "providers/aws/sign.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { CASES = 64 };

struct vector {
	const char *name, *request, *canonical, *to_sign, *signature;
	const char *access_key_id, *secret, *token, *region, *service, *timestamp;
	bool is_normal, signs_body, omits_token;
};

struct vectors {
	struct arena arena;
	struct vector cases[CASES];
	size_t count;
};

static const struct {
	const char *path;
	size_t offset;
} texts[] = {
	{ "request.txt", offsetof(struct vector, request) },
	{ "header-canonical-request.txt", offsetof(struct vector, canonical) },
	{ "header-string-to-sign.txt", offsetof(struct vector, to_sign) },
	{ "header-signature.txt", offsetof(struct vector, signature) },
	{ "context.json>credentials>access_key_id", offsetof(struct vector, access_key_id) },
	{ "context.json>credentials>secret_access_key", offsetof(struct vector, secret) },
	{ "context.json>credentials>token", offsetof(struct vector, token) },
	{ "context.json>region", offsetof(struct vector, region) },
	{ "context.json>service", offsetof(struct vector, service) },
	{ "context.json>timestamp", offsetof(struct vector, timestamp) },
};

static struct vector *vector_named(struct vectors *v, const char *name, size_t len)
{
	for (size_t i = 0; i < v->count; i++)
		if (strlen(v->cases[i].name) == len && memcmp(v->cases[i].name, name, len) == 0)
			return &v->cases[i];
	assert_true(v->count < CASES);
	v->cases[v->count].name = arena_strdup(&v->arena, name, len);
	return &v->cases[v->count++];
}

static bool on_event(void *user, const struct json_event *event, struct error *e)
{
	struct vectors *v = user;
	const char *path = event->path;

	(void)e;
	if (strncmp(path, "cases>", 6) != 0 || !strchr(path + 6, '>'))
		return true;
	path += 6;
	struct vector *c = vector_named(v, path, strcspn(path, ">"));
	path += strcspn(path, ">") + 1;
	for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
		if (event->type == JSON_STRING && strcmp(path, texts[i].path) == 0)
			*(const char **)(void *)((char *)c + texts[i].offset) =
				arena_strdup(&v->arena, event->text, event->len);
	bool is_true = event->len == 4 && event->type == JSON_BOOL;
	c->is_normal |= is_true && strcmp(path, "context.json>normalize") == 0;
	c->signs_body |= is_true && strcmp(path, "context.json>sign_body") == 0;
	c->omits_token |= is_true && strcmp(path, "context.json>omit_session_token") == 0;
	return true;
}

static bool read_vectors(struct vectors *out)
{
	CLEANUP(buf_release) struct buf path = { 0 }, text = { 0 };
	const char *shared = getenv("PREHEAT_SHARED");
	struct error e;

	buf_printf(&path, "%s/contracts/sigv4/vectors.json", shared ? shared : "../shared");
	if (!file_read(path.text, (size_t)1 << 20, &text, &e)) {
		print_message("skipped: no vectors: %s\n", e.message);
		return false;
	}
	struct json *j = json_open("vectors.json", on_event, out);
	assert_true(json_feed(j, text.text, text.len, &e) && json_finish(j, &e));
	json_close(j);
	return true;
}

struct request {
	struct aws_header headers[AWS_HEADERS];
	struct aws_message message;
};

static void add_header(struct request *r, const char *name, const char *value)
{
	r->headers[r->message.header_count++] = (struct aws_header){ name, value };
}

/* Lines that begin with a space go on with the header before. */
static char *read_headers(struct request *r, char *p)
{
	while (*p && *p != '\n') {
		char *colon = strchr(p, ':'), *end = strchr(p, '\n');
		assert_non_null(colon);
		while (end && (end[1] == ' ' || end[1] == '\t'))
			end = strchr(end + 1, '\n');
		*colon = '\0';
		if (end)
			*end = '\0';
		add_header(r, p, colon + 1);
		p = end ? end + 1 : colon + 1 + strlen(colon + 1);
	}
	return *p ? p + 1 : p;
}

static void read_request(const struct vector *v, struct arena *a, struct request *r)
{
	char *text = arena_strdup(a, v->request, strlen(v->request)), *line = strchr(text, '\n');
	char *target = strchr(text, ' ') + 1, *query;

	*line = '\0';
	target[-1] = '\0';
	*strrchr(target, ' ') = '\0';
	query = strchr(target, '?');
	if (query)
		*query++ = '\0';
	*r = (struct request){ .message = { .method = text,
					    .path = target,
					    .query = query ? query : "",
					    .headers = r->headers,
					    .keeps_path = !v->is_normal } };
	r->message.body = read_headers(r, line + 1);
	r->message.body_len = strlen(r->message.body);
}

static void check(const struct vector *v)
{
	CLEANUP(arena_release) struct arena a = { 0 };
	CLEANUP(buf_release) struct buf to_sign = { 0 }, authorization = { 0 };
	struct aws_credentials c = { v->access_key_id, v->secret, v->token };
	struct aws_scope scope = { .region = v->region, .service = v->service };
	char date[AWS_DATE_TEXT], hash[65];
	struct request r;
	int64_t micros;

	assert_true(decimal_parse_time(v->timestamp, strlen(v->timestamp), &micros));
	scope.at = micros / 1000;
	read_request(v, &a, &r);
	add_header(&r, "X-Amz-Date", aws_date_text(scope.at, date));
	if (v->token && !v->omits_token)
		add_header(&r, "X-Amz-Security-Token", v->token);
	if (v->signs_body) {
		snprintf(hash, sizeof hash, "%s", strrchr(v->canonical, '\n') + 1);
		add_header(&r, "x-amz-content-sha256", hash);
	}
	/* It ends in the hash of the canonical request. */
	assert_true(aws_string_to_sign(&r.message, &scope, &to_sign));
	if (strcmp(to_sign.text, v->to_sign) != 0)
		fail_msg("%s:\n%s\nwanted:\n%s\nof:\n%s", v->name, to_sign.text, v->to_sign, v->canonical);
	assert_true(aws_sign(&r.message, &scope, &c, &authorization));
	assert_string_equal(strrchr(authorization.text, '=') + 1, v->signature);
}

static void every_published_vector_holds(void **state)
{
	struct vectors v = { 0 };

	(void)state;
	if (!read_vectors(&v))
		skip();
	assert_int_equal(v.count, 38);
	for (size_t i = 0; i < v.count; i++)
		check(&v.cases[i]);
	arena_release(&v.arena);
}

static void too_much_is_refused(void **state)
{
	CLEANUP(buf_release) struct buf out = { 0 }, query = { 0 };
	struct aws_header headers[AWS_HEADERS + 1];
	struct aws_message m = { .method = "GET", .path = "", .query = "", .headers = headers, .body = "" };
	const struct aws_scope scope = { "eu-west-1", "sts", 0 };

	(void)state;
	for (size_t i = 0; i <= AWS_HEADERS; i++)
		headers[i] = (struct aws_header){ "a", "b" };
	m.header_count = AWS_HEADERS + 1;
	assert_false(aws_string_to_sign(&m, &scope, &out));
	m.header_count = AWS_HEADERS;
	assert_true(aws_string_to_sign(&m, &scope, &out));
	for (int i = 0; i <= AWS_QUERY; i++)
		buf_text(&query, "a&");
	m.query = query.text;
	assert_false(aws_string_to_sign(&m, &scope, &out));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_published_vector_holds),
		cmocka_unit_test(too_much_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
