#include "providers/aws/call.h"

#include "base/alloc.h"
#include "base/net/retry.h"
#include "providers/aws/sign.h"

#include <stdlib.h>
#include <string.h>

#undef getenv /* who we are to AWS, its webhook and its users tell by the environment; read once */

static const char *variable(struct arena *a, const char *name)
{
	const char *value = getenv(name);

	return value && *value ? arena_strdup(a, value, strlen(value)) : NULL;
}

static void read_environment(struct arena *a, struct aws_environment *out)
{
	*out = (struct aws_environment){
		.region = variable(a, "AWS_REGION"),
		.access_key_id = variable(a, "AWS_ACCESS_KEY_ID"),
		.secret_access_key = variable(a, "AWS_SECRET_ACCESS_KEY"),
		.session_token = variable(a, "AWS_SESSION_TOKEN"),
		.role_arn = variable(a, "AWS_ROLE_ARN"),
		.role_session_name = variable(a, "AWS_ROLE_SESSION_NAME"),
		.web_identity_token_file = variable(a, "AWS_WEB_IDENTITY_TOKEN_FILE"),
		.container_full_uri = variable(a, "AWS_CONTAINER_CREDENTIALS_FULL_URI"),
		.container_relative_uri = variable(a, "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI"),
		.container_token = variable(a, "AWS_CONTAINER_AUTHORIZATION_TOKEN"),
		.container_token_file = variable(a, "AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE"),
		.profile = variable(a, "AWS_PROFILE"),
		.credentials_file = variable(a, "AWS_SHARED_CREDENTIALS_FILE"),
		.home = variable(a, "HOME"),
		.metadata_endpoint = variable(a, "AWS_EC2_METADATA_SERVICE_ENDPOINT"),
		.metadata_disabled = variable(a, "AWS_EC2_METADATA_DISABLED"),
		.endpoint = variable(a, "AWS_ENDPOINT_URL"),
		.endpoint_eks = variable(a, "AWS_ENDPOINT_URL_EKS"),
		.endpoint_autoscaling = variable(a, "AWS_ENDPOINT_URL_AUTO_SCALING"),
		.endpoint_ec2 = variable(a, "AWS_ENDPOINT_URL_EC2"),
		.endpoint_sts = variable(a, "AWS_ENDPOINT_URL_STS"),
		.ca_bundle = variable(a, "AWS_CA_BUNDLE"),
	};
	if (!out->region)
		out->region = variable(a, "AWS_DEFAULT_REGION");
}

struct aws {
	struct loop *loop;
	struct http *http;
	struct arena arena;
	struct aws_environment env;
	struct http_tls tls;
	struct aws_keyring *keyring;
};

struct aws *aws_open(struct loop *loop, struct http *http)
{
	struct aws *a = xcalloc(1, sizeof *a);

	a->loop = loop;
	a->http = http;
	read_environment(&a->arena, &a->env);
	a->tls.ca_file = a->env.ca_bundle;
	a->keyring = aws_keyring_open(loop, http, &a->env, &a->tls);
	return a;
}

void aws_close(struct aws *a)
{
	if (!a)
		return;
	aws_keyring_close(a->keyring);
	arena_release(&a->arena);
	free(a);
}

millis aws_now(const struct aws *a)
{
	return aws_keyring_now(a->keyring);
}

static void finish(struct aws_call *c)
{
	c->is_waiting = false;
	buf_release(&c->url);
	buf_release(&c->host);
	for (size_t i = 0; i < sizeof c->lines / sizeof *c->lines; i++)
		buf_release(&c->lines[i]);
	c->done(c);
}

/* The part of a URL that stands in Host, as libcurl writes it: without the port that the scheme has anyway. */
static void write_host(const char *url, struct buf *out)
{
	const char *host = strstr(url, "://") + 3;
	size_t len = strcspn(host, "/");
	const char *port = strncmp(url, "https", 5) == 0 ? ":443" : ":80";
	size_t port_len = strlen(port);

	if (len > port_len && memcmp(host + len - port_len, port, port_len) == 0)
		len -= port_len;
	buf_append(out, host, len);
}

static const char *content_type(const struct aws_call *c)
{
	return c->service == AWS_EKS ? "application/json" : "application/x-www-form-urlencoded";
}

static void add_line(struct aws_call *c, size_t index, const char *name, const char *value)
{
	buf_clear(&c->lines[index]);
	buf_printf(&c->lines[index], "%s: %s", name, value);
	c->headers[index] = c->lines[index].text;
}

static bool sign(struct aws_call *c, const struct aws_credentials *credentials)
{
	CLEANUP(buf_release) struct buf authorization = { 0 }, path = { 0 };
	const struct aws_scope scope = { c->region, aws_service_name(c->service), aws_now(c->aws) };
	const char *at = strstr(c->url.text, "://") + 3, *query = strchr(at, '?');
	struct aws_header headers[4];
	char date[AWS_DATE_TEXT];
	at += strcspn(at, "/");
	buf_append(&path, at, strcspn(at, "?"));
	struct aws_message m = { .method = c->method,
				 .path = path.text,
				 .query = query ? query + 1 : "",
				 .headers = headers,
				 .body = c->body ? c->body : "",
				 .body_len = c->body ? strlen(c->body) : 0 };

	headers[m.header_count++] = (struct aws_header){ "Host", c->host.text };
	headers[m.header_count++] = (struct aws_header){ "X-Amz-Date", aws_date_text(scope.at, date) };
	if (*credentials->session_token)
		headers[m.header_count++] = (struct aws_header){ "X-Amz-Security-Token", credentials->session_token };
	if (c->body)
		headers[m.header_count++] = (struct aws_header){ "Content-Type", content_type(c) };
	if (!aws_sign(&m, &scope, credentials, &authorization))
		return error_set(&c->error, ERROR_INTERNAL, "a request that cannot be signed");
	memset(c->headers, 0, sizeof c->headers);
	for (size_t i = 1; i < m.header_count; i++)
		add_line(c, i - 1, headers[i].name, headers[i].value);
	add_line(c, m.header_count - 1, "Authorization", authorization.text);
	return true;
}

static void on_answer(struct http_request *r);

static void send(struct aws_wait *w)
{
	struct aws_call *c = w->user;

	c->is_waiting = false;
	if (c->error.kind == ERROR_NONE)
		c->error = w->error;
	if (c->error.kind != ERROR_NONE || !sign(c, w->credentials)) {
		finish(c);
		return;
	}
	snprintf(c->key_id, sizeof c->key_id, "%s", w->credentials->access_key_id);
	c->request = (struct http_request){ .method = c->method,
					    .url = c->url.text,
					    .headers = c->headers,
					    .body = c->body,
					    .body_len = c->body ? strlen(c->body) : 0,
					    .is_write = c->is_write,
					    .tls = &c->aws->tls,
					    .timeout = c->timeout,
					    .max_response = c->max_response,
					    .done = on_answer,
					    .user = c };
	http_start(c->aws->http, &c->request);
}

static void ask(struct aws_call *c)
{
	c->is_waiting = true;
	aws_keyring_ask(c->aws->keyring, c->region, &c->wait);
}

static bool is_one_of(const char *code, const char *const *codes)
{
	while (*codes && strcmp(code, *codes) != 0)
		codes++;
	return *codes != NULL;
}

/* Whether to send it once more, with what was learned: the credentials are over, or our clock is wrong. */
static bool can_be_mended(struct aws_call *c, const char *date)
{
	static const char *const expiries[] = { "ExpiredToken", "ExpiredTokenException", "RequestExpired", NULL };
	static const char *const skews[] = { "RequestTimeTooSkewed",	  "RequestExpired",	   "AuthFailure",
					     "InvalidSignatureException", "SignatureDoesNotMatch", NULL };
	bool was_skewed = is_one_of(c->refusal.code, skews) && aws_keyring_set_clock(c->aws->keyring, date);

	if (c->was_repeated)
		return false;
	if (is_one_of(c->refusal.code, expiries) && !was_skewed)
		aws_keyring_refused(c->aws->keyring, c->key_id);
	else if (!was_skewed)
		return false;
	c->was_repeated = true;
	return true;
}

static void on_answer(struct http_request *r)
{
	struct aws_call *c = r->user;

	c->error = r->error;
	c->response = r->response;
	c->response_len = r->response_len;
	if (r->error.kind == ERROR_NONE && !http_date(http_header(r, "Date"), &c->answered_at))
		c->answered_at = 0;
	if (r->error.kind == ERROR_NONE && http_status_kind(r->status) != ERROR_NONE) {
		aws_read_refusal(r->response, r->response_len, http_header(r, "x-amzn-errortype"), &c->refusal);
		if (can_be_mended(c, http_header(r, "Date"))) {
			c->refusal = (struct aws_refusal){ 0 };
			ask(c);
			return;
		}
		enum error_kind kind = aws_refusal_kind(&c->refusal, r->status);
		if (*c->refusal.code)
			error_set(&c->error, kind, "%s%s%s", c->refusal.code, *c->refusal.message ? ": " : "",
				  c->refusal.message);
		else
			error_set(&c->error, kind, "HTTP status %ld", r->status);
		c->retry_after = retry_after(http_header(r, "Retry-After"), aws_now(c->aws));
	}
	finish(c);
}

void aws_start(struct aws *a, struct aws_call *c)
{
	c->aws = a;
	c->error = (struct error){ 0 };
	c->refusal = (struct aws_refusal){ 0 };
	c->retry_after = c->answered_at = 0;
	c->response = "";
	c->response_len = 0;
	c->was_repeated = false;
	c->wait = (struct aws_wait){ .granted = send, .user = c };
	if (aws_endpoint(&a->env, c->endpoint, c->service, c->region, &c->url, &c->error)) {
		buf_text(&c->url, c->path);
		write_host(c->url.text, &c->host);
	}
	ask(c);
}

void aws_cancel(struct aws_call *c)
{
	if (c->is_waiting)
		aws_keyring_cancel(c->aws->keyring, &c->wait);
	else if (c->request.transfer)
		http_cancel(&c->request);
}
