#include "providers/azure/token.h"

#include "base/file.h"
#include "base/net/http.h"
#include "base/signature.h"
#include "base/text.h"
#include "providers/azure/answer.h"
#include "providers/text.h"

#include <stdio.h>
#include <string.h>

static const size_t MOST_FILE = (size_t)256 << 10;
static const millis ASSERTION_LIVES = 10 * MINUTE, PATIENCE_WITH_410 = 75 * SECOND;
static const char IMDS[] = "http://169.254.169.254";
enum { IMDS_TRIES = 5 };

enum method { SECRET, CERTIFICATE, FEDERATED, MANAGED };

/* The first for which the environment has anything. */
static enum method method_of(const struct azure_environment *env)
{
	return env->secret ? SECRET : env->certificate ? CERTIFICATE : env->token_file ? FEDERATED : MANAGED;
}

const char *token_method_name(const struct azure_environment *env)
{
	static const char *const names[] = { "client secret", "client certificate", "workload identity",
					     "managed identity" };
	enum method m = method_of(env);

	return names[env->client && env->tenant ? m : MANAGED];
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
	static const char *const variables[] = { "AZURE_CLIENT_SECRET", "AZURE_CLIENT_CERTIFICATE_PATH",
						 "AZURE_FEDERATED_TOKEN_FILE" };
	enum method method = method_of(env);

	if (method == MANAGED)
		return write_imds(env, place, &out->url, e);
	if (!env->client || !env->tenant)
		return error_set(e, ERROR_AUTH, "%s is set, but %s is not: set it too, or unset the former",
				 variables[method], env->client ? "AZURE_TENANT_ID" : "AZURE_CLIENT_ID");
	buf_printf(&out->url, "%s/", place->authority);
	uri_segment(env->tenant, &out->url);
	buf_text(&out->url, "/oauth2/v2.0/token");
	buf_printf(&scope, "%s.default", place->audience);
	add(&out->body, "grant_type", "client_credentials");
	add(&out->body, "client_id", env->client);
	add(&out->body, "scope", scope.text);
	if (method == CERTIFICATE)
		return add_certificate(env, out->url.text, now, &out->body, e);
	if (method == FEDERATED)
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
static const struct record_spec answer_record = RECORD(struct answer_text, answer_fields);
static const struct field refusal_fields[] = {
	FIELD(struct answer_text, code, FIELD_STRING, "error"),
	FIELD(struct answer_text, description, FIELD_STRING, "error_description"),
};
static const struct record_spec refusal_record = RECORD(struct answer_text, refusal_fields);

bool token_answer_read(const char *text, size_t len, struct arena *a, const char **token, millis *lives,
		       struct error *e)
{
	struct answer_text t = { 0 };

	if (!text_decode(&answer_record, text, len, a, &t, e))
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
	if (!text_decode(&refusal_record, text, len, &scratch, &t, &ignored) || !t.code) {
		error_set(e, kind, "no token: HTTP status %ld", status);
		return;
	}
	text_show(t.description, SIZE_MAX, said, sizeof said);
	char *trace = strstr(said, " Trace ID:");
	if (trace)
		*trace = '\0';
	char code[64];
	text_show(t.code, SIZE_MAX, code, sizeof code);
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
static const struct record_spec claim_record = RECORD(struct claims_text, claim_fields);

bool token_claims_read(const char *token, struct arena *a, struct token_claims *out)
{
	CLEANUP(buf_release) struct buf json = { 0 };
	struct claims_text t = { 0 };
	struct error ignored = { 0 };
	const char *begin = strchr(token, '.'), *end = begin ? strchr(begin + 1, '.') : NULL;

	if (!end || !base64url_read(begin + 1, (size_t)(end - begin - 1), &json) || !json.len ||
	    !text_decode(&claim_record, json.text, json.len, a, &t, &ignored))
		return false;
	*out = (struct token_claims){ .application = t.appid ? t.appid
						     : t.azp ? t.azp
							     : "",
				      .object = t.oid ? t.oid : "",
				      .tenant = t.tid ? t.tid : "" };
	return true;
}
