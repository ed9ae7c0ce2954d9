#include "providers/aws/keyring.h"

#include "base/clock.h"
#include "base/file.h"
#include "base/net/retry.h"
#include "base/text.h"
#include "providers/text.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

enum fetch_step { FETCH_WEB_IDENTITY, FETCH_CONTAINER, FETCH_SESSION, FETCH_ROLE, FETCH_INSTANCE };

struct aws_keyring {
	struct loop *loop;
	struct http *http;
	const struct aws_environment *env;
	const struct http_tls *tls;
	struct aws_wait *waiting; /* in order */
	struct timer serve;
	millis clock_offset; /* of AWS's clock to ours */

	struct arena held; /* of the grant */
	struct aws_grant grant;
	millis refresh_at;
	bool has_grant;
	struct retry retry;
	struct error failure; /* of the last fetch, until `failed_until` of the loop's clock */
	millis failed_until;

	bool is_fetching;
	enum fetch_step step;
	struct arena grants; /* of the one that is fetched */
	struct http_request request;
	const char *headers[4], *session;
	struct buf url, body, line;
};

static void fetch(struct aws_keyring *k, const char *region);

static const millis EARLY = 5 * MINUTE, EARLY_JITTER = MINUTE;
static const millis FIRST_PAUSE = SECOND, LONGEST_PAUSE = MINUTE;
/* Signatures are refused from five minutes on. */
static const millis SKEW_MOST = 4 * MINUTE;

static void serve(struct timer *t);

struct aws_keyring *aws_keyring_open(struct loop *loop, struct http *http, const struct aws_environment *env,
				     const struct http_tls *tls)
{
	struct aws_keyring *k = calloc(1, sizeof *k);
	struct clock now = clock_open();

	if (!k)
		abort();
	k->loop = loop;
	k->http = http;
	k->env = env;
	k->tls = tls;
	k->serve.user = k;
	k->retry = retry_make(FIRST_PAUSE, LONGEST_PAUSE, random_stream((uint64_t)clock_now(&now), "aws-credentials"));
	return k;
}

/* Nothing of a key stays in memory that is given back. */
static void wipe(struct arena *a, struct aws_grant *g)
{
	const char *const texts[] = { g->credentials.secret_access_key, g->credentials.session_token };

	for (size_t i = 0; i < 2; i++)
		if (texts[i])
			explicit_bzero((void *)(uintptr_t)texts[i], strlen(texts[i]));
	arena_release(a);
	*g = (struct aws_grant){ 0 };
}

void aws_keyring_close(struct aws_keyring *k)
{
	if (!k)
		return;
	assert(!k->waiting && !k->is_fetching);
	timer_stop(&k->serve);
	wipe(&k->held, &k->grant);
	arena_release(&k->grants);
	buf_release(&k->url);
	buf_release(&k->body);
	buf_release(&k->line);
	free(k);
}

millis aws_keyring_now(const struct aws_keyring *k)
{
	struct clock now = clock_open();

	return clock_now(&now) + k->clock_offset;
}

bool aws_keyring_set_clock(struct aws_keyring *k, const char *date)
{
	millis at;

	if (!http_date(date, &at))
		return false;
	millis ahead = at - aws_keyring_now(k);
	if (ahead > -SKEW_MOST && ahead < SKEW_MOST)
		return false;
	k->clock_offset += ahead;
	return true;
}

/* Ends all who wait, or only those who were cancelled; they may ask anew. `e` NULL: with the credentials. */
static void tell(struct aws_keyring *k, bool is_for_all, const struct error *e)
{
	struct aws_wait *told = NULL, **end = &told, **at = &k->waiting;

	while (*at) {
		struct aws_wait *w = *at;
		if (!is_for_all && !w->is_cancelled) {
			at = &w->next;
			continue;
		}
		*at = w->next;
		w->next = NULL;
		*end = w;
		end = &w->next;
	}
	while (told) {
		struct aws_wait *w = told;
		told = w->next;
		if (w->is_cancelled)
			error_set(&w->error, ERROR_CANCELLED, "cancelled");
		else if (e)
			w->error = *e;
		else
			w->credentials = &k->grant.credentials;
		w->granted(w); /* may ask again, and may free it */
	}
}

static bool all_cancelled(const struct aws_keyring *k)
{
	for (const struct aws_wait *w = k->waiting; w; w = w->next)
		if (!w->is_cancelled)
			return false;
	return true;
}

/* Credentials that still hold, even if it is time to fetch others. */
static bool still_holds(const struct aws_keyring *k)
{
	return k->has_grant && (!k->grant.expires_at || k->grant.expires_at > aws_keyring_now(k));
}

static void serve(struct timer *t)
{
	struct aws_keyring *k = t->user;

	if (k->is_fetching) { /* goes on for the others */
		if (!all_cancelled(k))
			tell(k, false, NULL);
		return;
	}
	tell(k, false, NULL);
	if (!k->waiting || k->is_fetching)
		return;
	if (k->has_grant && (!k->refresh_at || aws_keyring_now(k) < k->refresh_at)) {
		tell(k, true, NULL);
	} else if (k->failure.kind != ERROR_NONE && loop_now(k->loop) < k->failed_until) {
		tell(k, true, still_holds(k) ? NULL : &k->failure);
	} else {
		k->is_fetching = true;
		arena_release(&k->grants);
		fetch(k, k->waiting->region);
	}
}

/* The outcome; the grant's texts live in k->grants. */
static void fetched(struct aws_keyring *k, const struct aws_grant *grant, const struct error *e)
{
	k->is_fetching = false;
	if (grant) {
		wipe(&k->held, &k->grant);
		k->held = k->grants;
		k->grants = (struct arena){ 0 };
		k->grant = *grant;
		k->has_grant = true;
		k->refresh_at = 0;
		if (grant->expires_at) {
			millis jitter = (millis)(random_next(&k->retry.random) % (uint64_t)EARLY_JITTER);
			k->refresh_at = grant->expires_at - EARLY - jitter;
		}
		k->failure.kind = ERROR_NONE;
		retry_reset(&k->retry);
		tell(k, true, NULL);
	} else if (e->kind == ERROR_CANCELLED) {
		timer_start(k->loop, &k->serve, 0, serve); /* somebody else may have come meanwhile */
	} else {
		k->failure = *e;
		k->failed_until = loop_now(k->loop) + retry_next(&k->retry, 0);
		tell(k, true, still_holds(k) ? NULL : &k->failure);
	}
}

void aws_keyring_ask(struct aws_keyring *k, const char *region, struct aws_wait *w)
{
	struct aws_wait **at = &k->waiting;

	while (*at)
		at = &(*at)->next;
	*at = w;
	w->next = NULL;
	w->is_cancelled = false;
	w->region = region;
	w->credentials = NULL;
	w->error = (struct error){ 0 };
	timer_start(k->loop, &k->serve, 0, serve);
}

void aws_keyring_cancel(struct aws_keyring *k, struct aws_wait *w)
{
	w->is_cancelled = true;
	if (k->is_fetching && all_cancelled(k))
		http_cancel(&k->request);
	else
		timer_start(k->loop, &k->serve, 0, serve);
}

void aws_keyring_refused(struct aws_keyring *k, const char *access_key_id)
{
	if (!k->has_grant || strcmp(k->grant.credentials.access_key_id, access_key_id) != 0)
		return; /* fetched anew meanwhile */
	k->has_grant = false;
	k->failure.kind = ERROR_NONE;
}

static const millis TOKEN_SERVICE_DEADLINE = 10 * SECOND, LOCAL_DEADLINE = 2 * SECOND;
static const size_t MOST_ANSWER = (size_t)256 << 10, MOST_FILE = (size_t)256 << 10;
static const char instance_endpoint[] = "http://169.254.169.254", container_endpoint[] = "http://169.254.170.2";

static void on_answer(struct http_request *r);

static void fail(struct aws_keyring *k, const struct error *cause, const char *source)
{
	struct error e = *cause;

	if (e.kind != ERROR_CANCELLED)
		error_wrap(&e, "AWS credentials of %s", source);
	fetched(k, NULL, &e);
}

static const char *source_of(enum fetch_step step)
{
	return step == FETCH_WEB_IDENTITY ? "a web identity"
	       : step == FETCH_CONTAINER  ? "Pod Identity"
					  : "the instance metadata service (nothing else is configured)";
}

/* A token that a file holds, without the line's end. */
static bool read_token(const char *path, struct buf *out, struct error *e)
{
	if (!file_read(path, MOST_FILE, out, e)) {
		if (e->kind == ERROR_NOT_FOUND)
			e->kind = ERROR_AUTH;
		return false;
	}
	while (out->len && strchr(" \t\r\n", out->text[out->len - 1]))
		out->text[--out->len] = '\0';
	for (size_t i = 0; i < out->len; i++)
		if ((unsigned char)out->text[i] < 0x20 || out->text[i] == 0x7f)
			return error_set(e, ERROR_AUTH, "%s holds more than one line", path);
	return out->len || error_set(e, ERROR_AUTH, "%s is empty", path);
}

static void send(struct aws_keyring *k, const char *method, millis timeout)
{
	bool is_local = k->step != FETCH_WEB_IDENTITY;

	k->request = (struct http_request){ .method = method,
					    .url = k->url.text,
					    .headers = k->headers,
					    .body = k->body.len ? k->body.text : NULL,
					    .body_len = k->body.len,
					    .tls = k->tls,
					    .proxy = is_local ? "" : NULL,
					    .timeout = timeout,
					    .max_response = MOST_ANSWER,
					    .done = on_answer,
					    .user = k };
	http_start(k->http, &k->request);
}

static void begin(struct aws_keyring *k, enum fetch_step step)
{
	k->step = step;
	buf_clear(&k->url);
	buf_clear(&k->body);
	buf_clear(&k->line);
	memset(k->headers, 0, sizeof k->headers);
}

static bool write_web_identity(struct aws_keyring *k, const char *region, struct error *e)
{
	CLEANUP(buf_release) struct buf token = { 0 };

	if (!read_token(k->env->web_identity_token_file, &token, e) ||
	    !aws_endpoint(k->env, NULL, AWS_STS, k->env->region ? k->env->region : region, &k->url, e))
		return false;
	buf_text(&k->url, "/");
	aws_form_begin("AssumeRoleWithWebIdentity", "2011-06-15", &k->body);
	aws_form_text("RoleArn", k->env->role_arn, &k->body);
	aws_form_text("RoleSessionName", k->env->role_session_name ? k->env->role_session_name : "preheat", &k->body);
	aws_form_text("WebIdentityToken", token.text, &k->body);
	k->headers[0] = "Content-Type: application/x-www-form-urlencoded";
	return true;
}

static bool write_container(struct aws_keyring *k, struct error *e)
{
	CLEANUP(buf_release) struct buf token = { 0 };
	const struct aws_environment *env = k->env;

	if (env->container_full_uri)
		buf_text(&k->url, env->container_full_uri);
	else
		buf_printf(&k->url, "%s%s", container_endpoint, env->container_relative_uri);
	if (!aws_is_credential_url(k->url.text))
		return error_set(e, ERROR_AUTH,
				 "AWS_CONTAINER_CREDENTIALS_FULL_URI is neither https:// nor an address of this "
				 "machine, 169.254.170.2, 169.254.170.23 or [fd00:ec2::23]");
	if (env->container_token_file && !read_token(env->container_token_file, &token, e))
		return false;
	if (token.len || env->container_token) {
		buf_printf(&k->line, "Authorization: %s", token.len ? token.text : env->container_token);
		k->headers[0] = k->line.text;
	}
	return true;
}

static void write_instance(struct aws_keyring *k, const char *path)
{
	const char *base = k->env->metadata_endpoint ? k->env->metadata_endpoint : instance_endpoint;
	size_t len = strlen(base);

	while (len && base[len - 1] == '/')
		len--;
	buf_append(&k->url, base, len);
	buf_text(&k->url, path);
	if (k->session) {
		buf_printf(&k->line, "X-aws-ec2-metadata-token: %s", k->session);
		k->headers[0] = k->line.text;
	}
}

/* False: there is no such file or profile, and none was named. */
static bool try_profile(struct aws_keyring *k)
{
	CLEANUP(buf_release) struct buf path = { 0 }, text = { 0 };
	const struct aws_environment *env = k->env;
	struct aws_grant grant = { 0 };
	struct error e = { 0 };

	if (env->credentials_file)
		buf_text(&path, env->credentials_file);
	else if (env->home)
		buf_printf(&path, "%s/.aws/credentials", env->home);
	else
		return false;
	if (file_read(path.text, MOST_FILE, &text, &e) &&
	    aws_read_profile(text.text ? text.text : "", text.len, env->profile ? env->profile : "default", &k->grants,
			     &grant, &e)) {
		if (text.text)
			explicit_bzero(text.text, text.len);
		fetched(k, &grant, NULL);
		return true;
	}
	if (e.kind == ERROR_NOT_FOUND && !env->profile)
		return false;
	e.kind = ERROR_AUTH;
	fail(k, &e, path.text);
	return true;
}

static void take_environment(struct aws_keyring *k)
{
	const struct aws_environment *env = k->env;
	struct aws_grant grant = { .credentials = { text_keep(&k->grants, env->access_key_id),
						    text_keep(&k->grants, env->secret_access_key),
						    text_keep(&k->grants, text_or_empty(env->session_token)) } };
	struct error e;

	if (env->access_key_id && env->secret_access_key) {
		fetched(k, &grant, NULL);
		return;
	}
	error_set(&e, ERROR_AUTH, "only one of AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY is set");
	fail(k, &e, "the environment");
}

static void fetch(struct aws_keyring *k, const char *region)
{
	const struct aws_environment *env = k->env;
	struct error e = { 0 };

	if (env->access_key_id || env->secret_access_key) {
		take_environment(k);
	} else if (env->role_arn && env->web_identity_token_file) {
		begin(k, FETCH_WEB_IDENTITY);
		if (write_web_identity(k, region, &e))
			send(k, "POST", TOKEN_SERVICE_DEADLINE);
		else
			fail(k, &e, source_of(k->step));
	} else if (try_profile(k)) {
		return;
	} else if (env->container_full_uri || env->container_relative_uri) {
		begin(k, FETCH_CONTAINER);
		if (write_container(k, &e))
			send(k, "GET", LOCAL_DEADLINE);
		else
			fail(k, &e, source_of(k->step));
	} else if (env->metadata_disabled && strcmp(env->metadata_disabled, "true") == 0) {
		error_set(&e, ERROR_AUTH,
			  "no AWS credentials: no AWS_ACCESS_KEY_ID, no AWS_ROLE_ARN with AWS_WEB_IDENTITY_TOKEN_FILE, "
			  "no "
			  "shared credentials file, no AWS_CONTAINER_CREDENTIALS_FULL_URI, and "
			  "AWS_EC2_METADATA_DISABLED; annotate the service account with a role");
		fetched(k, NULL, &e);
	} else {
		begin(k, FETCH_SESSION);
		k->session = NULL;
		write_instance(k, "/latest/api/token");
		k->headers[0] = "X-aws-ec2-metadata-token-ttl-seconds: 21600";
		send(k, "PUT", LOCAL_DEADLINE);
	}
}

/* Only codes and short sentences: what else the answer holds may be a secret. */
static void read_refusal(struct http_request *r, struct error *e)
{
	struct aws_refusal refusal;
	enum error_kind kind;

	aws_read_refusal(r->response, r->response_len, NULL, &refusal);
	kind = aws_refusal_kind(&refusal, r->status);
	if (kind == ERROR_INVALID || kind == ERROR_NOT_FOUND)
		kind = ERROR_AUTH;
	if (*refusal.code)
		error_set(e, kind, "%s: %s", refusal.code, refusal.message);
	else
		error_set(e, kind, "HTTP status %ld", r->status);
}

/* The first line of an answer in plain text; NULL where it is none. */
static const char *first_line(struct aws_keyring *k, const struct http_request *r)
{
	size_t len = strcspn(r->response, "\r\n");

	for (size_t i = 0; i < len; i++)
		if ((unsigned char)r->response[i] <= 0x20 || (unsigned char)r->response[i] >= 0x7f)
			return NULL;
	return len && len < 4096 ? arena_strdup(&k->grants, r->response, len) : NULL;
}

static void go_on_with_instance(struct aws_keyring *k, const char *told)
{
	CLEANUP(buf_release) struct buf path = { 0 };
	struct error e;

	if (!told) {
		error_set(&e, ERROR_AUTH, "an answer that makes no sense, or the instance has no role");
		fail(k, &e, source_of(k->step));
		return;
	}
	buf_text(&path, "/latest/meta-data/iam/security-credentials/");
	if (k->step == FETCH_SESSION)
		k->session = told;
	else
		uri_segment(told, &path);
	begin(k, k->step == FETCH_SESSION ? FETCH_ROLE : FETCH_INSTANCE);
	write_instance(k, path.text);
	send(k, "GET", LOCAL_DEADLINE);
}

static void on_answer(struct http_request *r)
{
	struct aws_keyring *k = r->user;
	struct aws_grant grant = { 0 };
	struct error e = r->error;

	if (k->body.len)
		explicit_bzero(k->body.text, k->body.len); /* a token */
	if (e.kind == ERROR_NONE && http_status_kind(r->status) != ERROR_NONE)
		read_refusal(r, &e);
	if (k->step == FETCH_SESSION && (e.kind == ERROR_TIMEOUT || e.kind == ERROR_UNAVAILABLE))
		e.kind = ERROR_AUTH; /* a pod mostly cannot reach it: a person must give a role */
	bool is_step = k->step == FETCH_SESSION || k->step == FETCH_ROLE;
	if (e.kind == ERROR_NONE && is_step) {
		go_on_with_instance(k, first_line(k, r));
		return;
	}
	bool ok = e.kind == ERROR_NONE &&
		  (k->step == FETCH_WEB_IDENTITY
			   ? aws_read_web_identity(r->response, r->response_len, &k->grants, &grant, &e)
			   : aws_read_container(r->response, r->response_len, &k->grants, &grant, &e));
	if (ok)
		fetched(k, &grant, NULL);
	else
		fail(k, &e, source_of(k->step));
}
