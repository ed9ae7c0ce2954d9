#include "providers/azure/token.h"

#include "base/clock.h"
#include "base/decode.h"
#include "base/file.h"
#include "base/net/http.h"
#include "base/net/retry.h"
#include "base/signature.h"
#include "base/uri.h"
#include "providers/azure/text.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const millis FETCH_DEADLINE = 15 * SECOND, RENEW_BEFORE = 5 * MINUTE;
static const size_t MOST_ANSWER = (size_t)256 << 10;

struct token_slot {
	struct token_slot *next;
	struct tokens *tokens;
	struct azure_place place;
	struct arena arena; /* of the place and the token */
	const char *token;
	millis renew_at, ends_at; /* loop time */
	struct token_wait *waiting;
	struct timer soon, again;
	struct token_request asked;
	struct http_request request;
	bool is_asking;
	int tries;
	millis first_at;
	struct error error;
};

struct tokens {
	struct loop *loop;
	struct http *http;
	const struct http_tls *tls;
	struct clock clock;
	struct token_slot *slots;
};

struct tokens *tokens_open(struct loop *loop, struct http *http, const struct http_tls *tls)
{
	struct tokens *t = calloc(1, sizeof *t);

	if (!t)
		abort();
	*t = (struct tokens){ .loop = loop, .http = http, .tls = tls, .clock = clock_open() };
	return t;
}

static void forget_token(struct token_slot *s)
{
	if (s->token)
		explicit_bzero((char *)(uintptr_t)s->token, strlen(s->token));
	s->token = NULL;
}

void tokens_close(struct tokens *t)
{
	struct token_slot *next;

	if (!t)
		return;
	for (struct token_slot *s = t->slots; s; s = next) {
		assert(!s->waiting && !s->is_asking);
		next = s->next;
		timer_stop(&s->soon);
		forget_token(s);
		arena_release(&s->arena);
		free(s);
	}
	free(t);
}

/* The places of two groups differ only where their clouds do. */
static bool is_at(const struct token_slot *s, const struct azure_place *place)
{
	return strcmp(s->place.audience, place->audience) == 0 && strcmp(s->place.authority, place->authority) == 0;
}

static struct token_slot *find(struct tokens *t, const struct azure_place *place)
{
	struct token_slot *s = t->slots;

	while (s && !is_at(s, place))
		s = s->next;
	if (s)
		return s;
	s = calloc(1, sizeof *s);
	if (!s)
		abort();
	s->tokens = t;
	s->soon.user = s->again.user = s;
	s->place = (struct azure_place){
		.endpoint = arena_strdup(&s->arena, place->endpoint, strlen(place->endpoint)),
		.audience = arena_strdup(&s->arena, place->audience, strlen(place->audience)),
		.authority = arena_strdup(&s->arena, place->authority, strlen(place->authority)),
	};
	s->next = t->slots;
	t->slots = s;
	return s;
}

static bool is_usable(const struct token_slot *s)
{
	return s->token && loop_now(s->tokens->loop) < s->ends_at;
}

static bool is_fresh(const struct token_slot *s)
{
	return s->token && loop_now(s->tokens->loop) < s->renew_at;
}

static bool is_wanted(const struct token_slot *s)
{
	const struct token_wait *w = s->waiting;

	while (w && w->is_cancelled)
		w = w->next;
	return w != NULL;
}

static void tell(struct token_slot *s, bool cancelled_only)
{
	struct token_wait *told = NULL, **end = &told, **at = &s->waiting;

	while (*at) {
		struct token_wait *w = *at;
		if (cancelled_only && !w->is_cancelled) {
			at = &w->next;
			continue;
		}
		*at = w->next;
		w->next = NULL;
		*end = w;
		end = &w->next;
	}
	while (told) {
		struct token_wait *w = told;
		told = w->next;
		w->next = NULL;
		w->slot = NULL;
		w->error = (struct error){ 0 };
		w->token = is_usable(s) && !w->is_cancelled ? s->token : NULL;
		if (w->is_cancelled)
			error_set(&w->error, ERROR_CANCELLED, "cancelled");
		else if (!w->token && s->error.kind != ERROR_NONE)
			w->error = s->error;
		else if (!w->token)
			error_set(&w->error, ERROR_UNAVAILABLE, "no token: it ended before it could be used");
		w->done(w);
	}
}

static void begin(struct token_slot *s);

/* From the loop: whoever went is told, whoever came gets what is there, or it is asked for. */
static void look(struct timer *timer)
{
	struct token_slot *s = timer->user;

	if (s->is_asking && !is_wanted(s)) {
		http_cancel(&s->request);
		return;
	}
	if (!is_wanted(s))
		timer_stop(&s->again);
	tell(s, true);
	if (s->is_asking || timer_is_running(&s->again) || !is_wanted(s))
		return;
	if (is_fresh(s)) {
		tell(s, false);
		return;
	}
	s->tries = 0;
	s->first_at = loop_now(s->tokens->loop);
	begin(s);
}

static void ask_again(struct timer *timer)
{
	begin(timer->user);
}

static void keep(struct token_slot *s, const char *token, millis lives)
{
	millis now = loop_now(s->tokens->loop);
	struct arena fresh = { 0 };
	struct azure_place place = {
		.endpoint = arena_strdup(&fresh, s->place.endpoint, strlen(s->place.endpoint)),
		.audience = arena_strdup(&fresh, s->place.audience, strlen(s->place.audience)),
		.authority = arena_strdup(&fresh, s->place.authority, strlen(s->place.authority)),
	};

	forget_token(s);
	s->token = arena_strdup(&fresh, token, strlen(token));
	arena_release(&s->arena);
	s->arena = fresh;
	s->place = place;
	s->ends_at = now + lives;
	s->renew_at = now + lives - (lives / 2 < RENEW_BEFORE ? lives / 2 : RENEW_BEFORE);
}

static bool read_answer(struct token_slot *s, const struct http_request *r)
{
	CLEANUP(arena_release) struct arena scratch = { 0 };
	const char *token;
	millis lives;

	if (!token_answer_read(r->response, r->response_len, &scratch, &token, &lives, &s->error))
		return false;
	keep(s, token, lives);
	return true;
}

static void answered(struct http_request *r)
{
	struct token_slot *s = r->user;
	bool is_managed = !s->asked.body.len;
	millis wait = -1;

	s->is_asking = false;
	token_request_release(&s->asked);
	if (r->error.kind != ERROR_NONE) {
		s->error = r->error;
	} else if (r->status != 200) {
		token_refusal_read(r->status, r->response, r->response_len, &s->error);
		if (is_managed)
			wait = token_imds_wait(r->status, s->tries, loop_now(s->tokens->loop) - s->first_at);
	} else {
		read_answer(s, r);
	}
	if (r->error.kind == ERROR_CANCELLED) { /* somebody may have come since */
		tell(s, true);
		if (is_wanted(s))
			timer_start(s->tokens->loop, &s->soon, 0, look);
	} else if (wait >= 0 && is_wanted(s)) {
		timer_start(s->tokens->loop, &s->again, wait, ask_again);
	} else {
		tell(s, false);
	}
}

static void begin(struct token_slot *s)
{
	static const char *const form[] = { "Content-Type: application/x-www-form-urlencoded",
					    "Accept: application/json", NULL };
	static const char *const metadata[] = { "Metadata: true", NULL };
	struct azure_environment env = azure_environment_read();

	s->tries++;
	if (!token_request_write(&env, &s->place, clock_now(&s->tokens->clock), &s->asked, &s->error)) {
		token_request_release(&s->asked);
		tell(s, false);
		return;
	}
	bool is_managed = !s->asked.body.len;
	s->is_asking = true;
	s->request = (struct http_request){ .method = is_managed ? "GET" : "POST",
					    .url = s->asked.url.text,
					    .headers = is_managed ? metadata : form,
					    .body = s->asked.body.text,
					    .body_len = s->asked.body.len,
					    .tls = s->tokens->tls,
					    .proxy = is_managed ? "" : NULL,
					    .timeout = FETCH_DEADLINE,
					    .max_response = MOST_ANSWER,
					    .done = answered,
					    .user = s };
	http_start(s->tokens->http, &s->request);
}

void token_ask(struct tokens *t, const struct azure_place *place, struct token_wait *w)
{
	struct token_slot *s = find(t, place);
	struct token_wait **end = &s->waiting;

	assert(!w->slot);
	while (*end)
		end = &(*end)->next;
	*end = w;
	w->next = NULL;
	w->slot = s;
	w->is_cancelled = false;
	timer_start(t->loop, &s->soon, 0, look);
}

void token_cancel(struct token_wait *w)
{
	struct token_slot *s = w->slot;

	if (!s || w->is_cancelled)
		return;
	w->is_cancelled = true;
	timer_start(s->tokens->loop, &s->soon, 0, look);
}

void token_refused(struct tokens *t, const struct azure_place *place, const char *token)
{
	struct token_slot *s = find(t, place);

	if (s->token && strcmp(s->token, token) == 0)
		s->renew_at = s->ends_at = 0;
}

static const size_t MOST_FILE = (size_t)256 << 10;
static const millis ASSERTION_LIVES = 10 * MINUTE, PATIENCE_WITH_410 = 75 * SECOND;
static const char IMDS[] = "http://169.254.169.254";
enum { IMDS_TRIES = 5 };

bool azure_method_choose(const struct azure_environment *env, enum azure_method *out, struct error *e)
{
	const char *asks = env->secret	      ? "AZURE_CLIENT_SECRET"
			   : env->certificate ? "AZURE_CLIENT_CERTIFICATE_PATH"
			   : env->token_file  ? "AZURE_FEDERATED_TOKEN_FILE"
					      : NULL;

	if (asks && (!env->client || !env->tenant))
		return error_set(e, ERROR_AUTH, "%s is set, but %s is not: set it too, or unset the former", asks,
				 env->client ? "AZURE_TENANT_ID" : "AZURE_CLIENT_ID");
	*out = env->secret	  ? AZURE_SECRET
	       : env->certificate ? AZURE_CERTIFICATE
	       : env->token_file  ? AZURE_FEDERATED
				  : AZURE_MANAGED;
	return true;
}

const char *azure_method_name(enum azure_method method)
{
	static const char *const names[] = { "client secret", "client certificate", "workload identity",
					     "managed identity" };

	return names[method];
}

static void add(struct buf *form, const char *key, const char *value)
{
	buf_printf(form, "%s%s=", form->len ? "&" : "", key);
	uri_escape(value, strlen(value), "", form);
}

static bool read_file(const char *variable, const char *path, struct buf *out, struct error *e)
{
	struct error why = { 0 };

	if (!file_read(path, MOST_FILE, out, &why))
		return error_set(e, ERROR_AUTH, "%s: %s", variable, why.message);
	while (out->len && strchr(" \r\n\t", out->text[out->len - 1]))
		out->text[--out->len] = '\0';
	if (!out->len)
		return error_set(e, ERROR_AUTH, "%s: %s: found an empty file", variable, path);
	return true;
}

static void forget(struct buf *secret)
{
	if (secret->text)
		explicit_bzero(secret->text, secret->room);
	buf_release(secret);
}

static void add_assertion(struct buf *form, const char *assertion)
{
	add(form, "client_assertion_type", "urn:ietf:params:oauth:client-assertion-type:jwt-bearer");
	add(form, "client_assertion", assertion);
}

/* RFC 7523, as Entra wants it: the certificate is known by its thumbprint. */
static bool sign_assertion(const struct azure_environment *env, const struct signing_key *key, const char *audience,
			   millis now, struct buf *jwt, struct error *e)
{
	CLEANUP(buf_release) struct buf part = { 0 };
	char id[37];

	buf_text(&part, "{\"alg\":\"RS256\",\"typ\":\"JWT\",\"x5t#S256\":\"");
	signing_key_thumbprint(key, &part);
	buf_text(&part, "\"}");
	base64url_write(part.text, part.len, jwt);
	buf_text(jwt, ".");
	buf_clear(&part);
	uuid_write(id);
	buf_text(&part, "{\"aud\":");
	azure_write_json(audience, strlen(audience), &part);
	buf_text(&part, ",\"iss\":");
	azure_write_json(env->client, strlen(env->client), &part);
	buf_text(&part, ",\"sub\":");
	azure_write_json(env->client, strlen(env->client), &part);
	buf_printf(&part, ",\"jti\":\"%s\",\"nbf\":%lld,\"iat\":%lld,\"exp\":%lld}", id, (long long)(now / SECOND),
		   (long long)(now / SECOND), (long long)((now + ASSERTION_LIVES) / SECOND));
	base64url_write(part.text, part.len, jwt);
	CLEANUP(buf_release) struct buf signature = { 0 };
	if (!signing_key_sign(key, jwt->text, jwt->len, &signature, e))
		return false;
	buf_text(jwt, ".");
	buf_text(jwt, signature.text);
	return true;
}

static bool add_certificate(const struct azure_environment *env, const char *audience, millis now, struct buf *form,
			    struct error *e)
{
	static const char variable[] = "AZURE_CLIENT_CERTIFICATE_PATH";
	struct buf pem = { 0 };
	CLEANUP(buf_release) struct buf jwt = { 0 };
	struct error why = { 0 };

	if (!read_file(variable, env->certificate, &pem, e)) {
		forget(&pem);
		return false;
	}
	struct signing_key *key = signing_key_read(pem.text, pem.len, &why);
	forget(&pem);
	bool ok = key && sign_assertion(env, key, audience, now, &jwt, &why);
	signing_key_free(key);
	if (!ok)
		return error_set(e, ERROR_AUTH, "%s: %s: %s", variable, env->certificate, why.message);
	add_assertion(form, jwt.text);
	return true;
}

static bool add_federated(const struct azure_environment *env, struct buf *form, struct error *e)
{
	struct buf token = { 0 };
	bool ok = read_file("AZURE_FEDERATED_TOKEN_FILE", env->token_file, &token, e);

	if (ok)
		add_assertion(form, token.text);
	forget(&token);
	return ok;
}

static bool write_imds(const struct azure_environment *env, const struct azure_place *place, struct buf *url,
		       struct error *e)
{
	const char *host = env->imds ? env->imds : IMDS;
	size_t len = strlen(host);

	if (env->imds && !azure_url_is_safe(host) && strncmp(host, "http://169.254.", 15) != 0)
		return error_set(e, ERROR_AUTH,
				 "AZURE_POD_IDENTITY_AUTHORITY_HOST: found an address that is neither https, nor link-"
				 "local, nor of this machine");
	while (len && host[len - 1] == '/')
		len--;
	buf_append(url, host, len);
	buf_text(url, "/metadata/identity/oauth2/token?api-version=2018-02-01&resource=");
	uri_escape(place->audience, strlen(place->audience), "", url);
	if (env->client) {
		buf_text(url, "&client_id=");
		uri_escape(env->client, strlen(env->client), "", url);
	}
	return true;
}

bool token_request_write(const struct azure_environment *env, const struct azure_place *place, millis now,
			 struct token_request *out, struct error *e)
{
	CLEANUP(buf_release) struct buf scope = { 0 };
	enum azure_method method;

	if (!azure_method_choose(env, &method, e))
		return false;
	if (method == AZURE_MANAGED)
		return write_imds(env, place, &out->url, e);
	buf_printf(&out->url, "%s/", place->authority);
	uri_segment(env->tenant, &out->url);
	buf_text(&out->url, "/oauth2/v2.0/token");
	buf_printf(&scope, "%s.default", place->audience);
	add(&out->body, "grant_type", "client_credentials");
	add(&out->body, "client_id", env->client);
	add(&out->body, "scope", scope.text);
	if (method == AZURE_CERTIFICATE)
		return add_certificate(env, out->url.text, now, &out->body, e);
	if (method == AZURE_FEDERATED)
		return add_federated(env, &out->body, e);
	add(&out->body, "client_secret", env->secret);
	return true;
}

void token_request_release(struct token_request *r)
{
	buf_release(&r->url);
	forget(&r->body);
}

struct answer_text {
	const char *token, *type, *code, *description;
	int64_t lives;
};

static const struct field answer_fields[] = {
	FIELD(struct answer_text, token, FIELD_STRING, "access_token"),
	FIELD(struct answer_text, type, FIELD_STRING, "token_type"),
	FIELD(struct answer_text, lives, FIELD_COUNT,
	      "expires_in"), /* a text where the machine's own service answers */
};
static const struct record_spec answer_record = { "", sizeof(struct answer_text), answer_fields, 3 };
static const struct field refusal_fields[] = {
	FIELD(struct answer_text, code, FIELD_STRING, "error"),
	FIELD(struct answer_text, description, FIELD_STRING, "error_description"),
};
static const struct record_spec refusal_record = { "", sizeof(struct answer_text), refusal_fields, 2 };

bool token_answer_read(const char *text, size_t len, struct arena *a, const char **token, millis *lives,
		       struct error *e)
{
	struct answer_text t = { 0 };

	if (!azure_decode(&answer_record, text, len, a, &t, e))
		return error_wrap(e, "the answer to a token request");
	if (!t.token || !*t.token || strpbrk(t.token, " \r\n\t"))
		return error_set(e, ERROR_INVALID, "the answer to a token request holds no access_token");
	if (t.type && strcasecmp(t.type, "Bearer") != 0)
		return error_set(e, ERROR_INVALID,
				 "the answer to a token request holds a token of another type than Bearer");
	if (t.lives <= 0 || t.lives > 7 * DAY / SECOND)
		return error_set(e, ERROR_INVALID, "the answer to a token request: expires_in is absent, or cannot be");
	*token = t.token;
	*lives = t.lives * SECOND;
	return true;
}

/* "AADSTS7000215: Invalid client secret provided. ... Trace ID: ..." without what only its support wants. */
void token_refusal_read(long status, const char *text, size_t len, struct error *e)
{
	CLEANUP(arena_release) struct arena scratch = { 0 };
	struct answer_text t = { 0 };
	struct error ignored = { 0 };
	enum error_kind kind = http_status_kind(status);
	char said[300];

	/* What is wrong with a request is wrong with who asks: a person must see to it. */
	if (kind == ERROR_INVALID || kind == ERROR_NONE || kind == ERROR_CONFLICT || kind == ERROR_NOT_FOUND)
		kind = ERROR_AUTH;
	if (!azure_decode(&refusal_record, text, len, &scratch, &t, &ignored) || !t.code) {
		error_set(e, kind, "no token: HTTP status %ld", status);
		return;
	}
	azure_show(t.description ? t.description : "", said, sizeof said);
	char *trace = strstr(said, " Trace ID:");
	if (trace)
		*trace = '\0';
	char code[64];
	azure_show(t.code, code, sizeof code);
	error_set(e, kind, "no token: %s%s%s", code, *said ? ": " : "", said);
}

millis token_imds_wait(long status, int tries, millis since)
{
	static const millis first = 3 * SECOND;

	if (status == 410) /* it is being updated, which takes up to 70 s */
		return since < PATIENCE_WITH_410 ? 5 * SECOND : -1;
	if (status != 404 && status != 429 && status < 500)
		return -1;
	return tries < IMDS_TRIES ? first << (tries > 0 ? tries - 1 : 0) : -1;
}

struct claims_text {
	const char *appid, *azp, *oid, *tid;
};
static const struct field claim_fields[] = {
	FIELD(struct claims_text, appid, FIELD_STRING, "appid"),
	FIELD(struct claims_text, azp, FIELD_STRING, "azp"),
	FIELD(struct claims_text, oid, FIELD_STRING, "oid"),
	FIELD(struct claims_text, tid, FIELD_STRING, "tid"),
};
static const struct record_spec claim_record = { "", sizeof(struct claims_text), claim_fields, 4 };

bool token_claims_read(const char *token, struct arena *a, struct token_claims *out)
{
	CLEANUP(buf_release) struct buf json = { 0 };
	struct claims_text t = { 0 };
	struct error ignored = { 0 };
	const char *begin = strchr(token, '.'), *end = begin ? strchr(begin + 1, '.') : NULL;

	if (!end || !base64url_read(begin + 1, (size_t)(end - begin - 1), &json) || !json.len ||
	    !azure_decode(&claim_record, json.text, json.len, a, &t, &ignored))
		return false;
	*out = (struct token_claims){ .application = t.appid ? t.appid
						     : t.azp ? t.azp
							     : "",
				      .object = t.oid ? t.oid : "",
				      .tenant = t.tid ? t.tid : "" };
	return true;
}
