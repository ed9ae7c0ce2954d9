#include "controller/cluster/api.h"

#include "base/alloc.h"
#include "base/base64.h"
#include "base/file.h"
#include "base/json.h"
#include "base/log.h"
#include "base/net/process.h"
#include "base/text.h"
#include "controller/cluster/protobuf_answer.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static const struct field cause_fields[] = {
	FIELD(struct api_cause, reason, FIELD_STRING, "reason"),
	FIELD(struct api_cause, field, FIELD_STRING, "field"),
	FIELD(struct api_cause, message, FIELD_STRING, "message"),
};
static const struct record_spec cause_record = { "", sizeof(struct api_cause), cause_fields, 3 };

static const struct field status_fields[] = {
	FIELD(struct api_status, reason, FIELD_STRING, "reason"),
	FIELD(struct api_status, message, FIELD_STRING, "message"),
	FIELD(struct api_status, kind, FIELD_STRING, "details>kind"),
	FIELD(struct api_status, name, FIELD_STRING, "details>name"),
	FIELD(struct api_status, code, FIELD_INT, "code"),
	FIELD(struct api_status, retry_after_seconds, FIELD_INT, "details>retryAfterSeconds"),
	{ .path = "details>causes",
	  .type = FIELD_LIST,
	  .offset = offsetof(struct api_status, causes),
	  .of = &cause_record },
};
const struct record_spec status_record = { "", sizeof(struct api_status), status_fields,
					   sizeof status_fields / sizeof *status_fields };

void status_read(const char *text, size_t len, struct arena *a, struct api_status *out)
{
	struct decode_plan *plan = decode_plan_new(&status_record);
	struct buf json = { 0 };
	struct error e;

	protobuf_status(text, len, &json);
	bool is_protobuf = json.len != 0;
	if (!decode_record(plan, is_protobuf ? json.text : text, is_protobuf ? json.len : len, a, out, &e))
		*out = (struct api_status){ 0 };
	buf_release(&json);
	decode_plan_free(plan);
}

bool status_has_cause(const struct api_status *s, const char *reason)
{
	const struct api_cause *causes = s->causes.items;

	for (size_t i = 0; i < s->causes.count; i++)
		if (causes[i].reason && !strcmp(causes[i].reason, reason))
			return true;
	return false;
}

static enum error_kind kind_of(long code)
{
	switch (code) {
	case 401:
	case 403:
		return ERROR_AUTH;
	case 404:
	case 410:
		return ERROR_NOT_FOUND;
	case 409:
		return ERROR_CONFLICT;
	case 429:
		return ERROR_THROTTLED;
	case 408:
	case 504:
		return ERROR_TIMEOUT;
	default:
		return code >= 500 ? ERROR_UNAVAILABLE : ERROR_INVALID;
	}
}

bool status_error(const struct api_status *s, long code, const char *call, struct error *e)
{
	const char *remedy = "";

	if (code == 401)
		remedy = "; the credentials are not accepted: renew them";
	else if (code == 403)
		remedy = "; give this identity the permission (deploy/base/rbac.yaml has all that Preheat needs)";
	return error_set(e, kind_of(code), "%s: %ld %.250s%s", call, code,
			 s->message && *s->message ? s->message : "without a reason", remedy);
}

/* What an exec plug-in is asked, and what it answers. */

struct exec_answer {
	const char *token, *cert, *key; /* in the arena, NULL when not told */
	millis expires;			/* 0: never told */
};

struct exec_credential {
	const char *api_version, *kind;
	struct exec_answer status;
};

static const struct field credential_fields[] = {
	FIELD(struct exec_credential, api_version, FIELD_STRING, "apiVersion"),
	FIELD(struct exec_credential, kind, FIELD_STRING, "kind"),
	FIELD(struct exec_credential, status.token, FIELD_STRING, "status>token"),
	FIELD(struct exec_credential, status.cert, FIELD_STRING, "status>clientCertificateData"),
	FIELD(struct exec_credential, status.key, FIELD_STRING, "status>clientKeyData"),
	FIELD(struct exec_credential, status.expires, FIELD_TIME, "status>expirationTimestamp"),
};
static const struct record_spec credential_record = { "", sizeof(struct exec_credential), credential_fields,
						      sizeof credential_fields / sizeof *credential_fields };

void api_member(const char *key, const char *value, struct buf *out)
{
	if (!value)
		return;
	json_write_comma(out);
	json_write_text(key, out);
	buf_text(out, ":");
	json_write_text(value, out);
}

/* What goes to it in KUBERNETES_EXEC_INFO: "KUBERNETES_EXEC_INFO={...}". */
static void exec_question(const struct kubeconfig *k, struct buf *out)
{
	CLEANUP(buf_release) struct buf ca = { 0 };

	buf_text(out, "KUBERNETES_EXEC_INFO={\"kind\":\"ExecCredential\"");
	api_member("apiVersion", k->exec.api_version, out);
	buf_text(out, ",\"spec\":{\"interactive\":false");
	if (k->exec.provides_cluster) {
		if (k->tls.ca)
			base64_write(k->tls.ca, strlen(k->tls.ca), &ca);
		buf_text(out, ",\"cluster\":{");
		api_member("server", k->server, out);
		api_member("tls-server-name", k->tls.server_name, out);
		api_member("certificate-authority-data", k->tls.ca ? ca.text : NULL, out);
		api_member("proxy-url", k->proxy, out);
		if (k->tls.is_insecure)
			buf_text(out, ",\"insecure-skip-tls-verify\":true");
		buf_text(out, "}");
	}
	buf_text(out, "}}");
}

/* An ExecCredential of the version asked for. Errors never hold any of it. */
static bool exec_answer_read(const struct kubeconfig *k, const char *text, size_t len, struct arena *a,
			     struct exec_answer *out, struct error *e)
{
	struct decode_plan *plan = decode_plan_new(&credential_record);
	struct exec_credential c;
	struct error hidden;
	bool ok = decode_record(plan, text, len, a, &c, &hidden);

	decode_plan_free(plan);
	if (!ok || !c.kind || strcmp(c.kind, "ExecCredential"))
		return error_set(e, ERROR_AUTH,
				 "%s: the credential plug-in %s printed no ExecCredential: run it by hand", k->source,
				 k->exec.command);
	if (!c.api_version || strcmp(c.api_version, k->exec.api_version))
		return error_set(e, ERROR_AUTH,
				 "%s: the credential plug-in %s answers in another apiVersion than the kubeconfig's "
				 "(%s): update one of them",
				 k->source, k->exec.command, k->exec.api_version);
	if ((!c.status.token && !c.status.cert) || !c.status.cert != !c.status.key)
		return error_set(e, ERROR_AUTH,
				 "%s: the credential plug-in %s gave neither a token nor a certificate with its key",
				 k->source, k->exec.command);
	*out = c.status;
	return true;
}

enum { TOKEN_BYTES = 64 * 1024, ANSWER_BYTES = 256 * 1024 };
#define TOKEN_AGE     MINUTE
#define PLUGIN_TIME   (60 * SECOND)
#define EXPIRES_EARLY (10 * SECOND)

struct credential_wait {
	void (*done)(struct credential_wait *w); /* exactly once, from the loop */
	void *user;
	struct error error;		/* valid inside done() */
	struct credential_shown *shown; /* valid inside done() when there is no error; held for the caller */
	struct credential_wait *next;	/* private */
};

struct credential {
	struct loop *loop;
	const struct clock *clock;
	const struct kubeconfig *k;
	struct credential_shown *shown; /* NULL: nothing at hand */
	millis read_at;			/* of the token's file */
	millis expires;			/* by the wall; 0: it does not */
	struct credential_wait *first, **last;

	struct process process;
	bool is_running;
	struct buf question;
	const char *argv[EXEC_ARGS_MOST + 2], *env[EXEC_ENV_MOST + 2];
	struct timer timer;
	struct retry retry; /* of a plug-in that fails */
	struct error failure;
	millis failed_until; /* monotonic */
};

static struct credential_shown *shown_new(const struct kubeconfig *k)
{
	struct arena a = { 0 };
	struct credential_shown *s = arena_new(&a, struct credential_shown);

	s->arena = a;
	s->tls = k->tls;
	s->holders = 1;
	return s;
}

/* takes NULL */
static void credential_let_go(struct credential_shown *s)
{
	struct arena a;

	if (!s || --s->holders)
		return;
	a = s->arena; /* holds it */
	explicit_bzero((char *)(s->token ? s->token : ""), s->token ? strlen(s->token) : 0);
	arena_release(&a);
}

static struct credential_shown *held(struct credential_shown *s)
{
	assert(s);
	s->holders++;
	return s;
}

static void show(struct credential *c, struct credential_shown *s)
{
	credential_let_go(c->shown);
	c->shown = s;
}

/* `k` must outlive it; `clock` is the machine's, in which credentials expire. */
static struct credential *credential_open(struct loop *loop, const struct clock *clock, const struct kubeconfig *k)
{
	struct credential *c = xcalloc(1, sizeof *c);

	c->loop = loop;
	c->clock = clock;
	c->k = k;
	c->last = &c->first;
	c->retry = retry_make(2 * SECOND, 30 * SECOND, random_stream(1, "credential"));
	if (!k->exec.command && !k->token_file) {
		c->shown = shown_new(k);
		c->shown->token = k->token ? arena_strdup(&c->shown->arena, k->token, strlen(k->token)) : NULL;
	}
	return c;
}

/* nobody may be waiting, nor a plug-in run; takes NULL */
static void credential_close(struct credential *c)
{
	if (!c)
		return;
	assert(!c->first && !c->is_running);
	timer_stop(&c->timer);
	show(c, NULL);
	buf_release(&c->question);
	free(c);
}

/* False with the error when there is no token, or one that cannot be sent. The old one stays. */
static bool read_token(struct credential *c, bool *is_new, struct error *e)
{
	CLEANUP(buf_release) struct buf text = { 0 };

	c->read_at = clock_mono(c->clock);
	if (!file_read(c->k->token_file, TOKEN_BYTES, &text, e)) {
		error_wrap(e, "the token");
		e->kind = ERROR_AUTH;
		return false;
	}
	while (text.len && strchr(" \t\r\n", text.text[text.len - 1]))
		text.text[--text.len] = '\0';
	if (!text.len || strlen(text.text) != text.len || strpbrk(text.text, "\r\n"))
		return error_set(e, ERROR_AUTH, "%s holds no token: one line is allowed", c->k->token_file);
	*is_new = !c->shown || !c->shown->token || strcmp(c->shown->token, text.text);
	if (*is_new) {
		struct credential_shown *s = shown_new(c->k);
		s->token = arena_strdup(&s->arena, text.text, text.len);
		show(c, s);
	}
	explicit_bzero(text.text, text.len);
	return true;
}

static bool is_expired(const struct credential *c)
{
	return c->expires && clock_now(c->clock) >= c->expires;
}

/* a plug-in runs */
static bool credential_is_busy(const struct credential *c)
{
	return c->is_running;
}

/* Held for the caller, or NULL: not at hand, ask. */
static struct credential_shown *credential_at_hand(struct credential *c)
{
	struct error e;
	bool is_new;

	/* The old one may live on while its successor cannot be read. */
	if (c->k->token_file && c->shown && clock_mono(c->clock) - c->read_at >= TOKEN_AGE &&
	    !read_token(c, &is_new, &e))
		log_warn("token-not-read", LOG_E(&e), LOG_END);
	if (c->k->exec.command && !c->k->token_file && is_expired(c))
		show(c, NULL);
	return c->shown ? held(c->shown) : NULL;
}

static void notify_waiters(struct credential *c, const struct error *e)
{
	struct credential_wait *w = c->first;

	c->first = NULL;
	c->last = &c->first;
	while (w) {
		struct credential_wait *next = w->next;
		w->next = NULL;
		w->error = *e;
		w->shown = e->kind == ERROR_NONE ? held(c->shown) : NULL;
		w->done(w);
		w = next;
	}
}

static bool take_answer(struct credential *c, struct error *e)
{
	struct process *p = &c->process;
	struct credential_shown *s;
	struct exec_answer got = { 0 };

	if (p->error.kind == ERROR_NOT_FOUND)
		return error_set(e, ERROR_AUTH, "%s: the credential plug-in %s is not installed%s%.200s", c->k->source,
				 c->k->exec.command, c->k->exec.install_hint ? ": " : "",
				 c->k->exec.install_hint ? c->k->exec.install_hint : "");
	if (p->error.kind != ERROR_NONE) {
		*e = p->error;
		return error_wrap(e, "%s: the credential plug-in %s", c->k->source, c->k->exec.command);
	}
	if (p->exit_code)
		return error_set(e, ERROR_AUTH, "%s: the credential plug-in %s ended with code %d: %.200s",
				 c->k->source, c->k->exec.command, p->exit_code, p->complaint);
	s = shown_new(c->k);
	if (!exec_answer_read(c->k, p->output, p->output_len, &s->arena, &got, e)) {
		credential_let_go(s);
		return false;
	}
	s->token = got.token;
	if (got.cert) {
		s->tls.cert = got.cert;
		s->tls.key = got.key;
		s->tls.cert_file = s->tls.key_file = NULL;
	}
	show(c, s);
	millis left = got.expires - clock_now(c->clock);
	c->expires = got.expires && left > 2 * EXPIRES_EARLY ? got.expires - EXPIRES_EARLY : got.expires;
	return true;
}

static void run_plugin(struct credential *c);

static void exchange_answered(struct process *p)
{
	struct credential *c = p->user;
	struct error e = { 0 };

	c->is_running = false;
	if (p->error.kind == ERROR_CANCELLED) {
		if (c->first)
			run_plugin(c);
		return;
	}
	if (take_answer(c, &e)) {
		retry_reset(&c->retry);
	} else {
		c->failure = e;
		c->failed_until = clock_mono(c->clock) + retry_next(&c->retry, 0);
	}
	notify_waiters(c, &e);
}

static void run_plugin(struct credential *c)
{
	const struct exec_plugin *x = &c->k->exec;
	size_t n = 0;

	c->argv[n++] = x->command;
	for (const char *const *a = x->args; a && *a; a++)
		c->argv[n++] = *a;
	c->argv[n] = NULL;
	buf_clear(&c->question);
	exec_question(c->k, &c->question);
	n = 0;
	for (const char *const *v = x->env; v && *v; v++)
		c->env[n++] = *v;
	c->env[n++] = c->question.text;
	c->env[n] = NULL;
	c->process = (struct process){ .argv = c->argv,
				       .env = c->env,
				       .timeout = PLUGIN_TIME,
				       .max_output = ANSWER_BYTES,
				       .done = exchange_answered,
				       .user = c };
	c->is_running = true;
	process_start(c->loop, &c->process);
}

/* Not from a file or a plug-in that just failed: a broken one is not run for every call. */
static void look_again(struct timer *t)
{
	struct credential *c = t->user;
	struct error e = { 0 };
	bool is_new;

	if (!c->first || c->is_running)
		return;
	if (c->shown && !is_expired(c)) {
		notify_waiters(c, &e);
	} else if (c->k->token_file) {
		read_token(c, &is_new, &e);
		notify_waiters(c, &e);
	} else if (c->k->exec.command && clock_mono(c->clock) < c->failed_until) {
		notify_waiters(c, &c->failure);
	} else if (c->k->exec.command) {
		run_plugin(c);
	}
}

static void credential_ask(struct credential *c, struct credential_wait *w)
{
	w->next = NULL;
	*c->last = w;
	c->last = &w->next;
	if (!c->is_running && !timer_is_running(&c->timer)) {
		c->timer.user = c;
		timer_start(c->loop, &c->timer, 0, look_again);
	}
}

/* It waits no longer: done() does not come. */
static void credential_cancel(struct credential *c, struct credential_wait *w)
{
	struct credential_wait **at = &c->first;

	while (*at && *at != w)
		at = &(*at)->next;
	if (!*at)
		return;
	*at = w->next;
	if (c->last == &w->next)
		c->last = at;
	w->next = NULL;
	if (!c->first && c->is_running)
		process_cancel(&c->process);
}

/* The server answered 401 to it. True: asking again gives another one. */
static bool credential_refused(struct credential *c, const struct credential_shown *s)
{
	struct error e;
	bool is_new = false;

	if (s != c->shown)
		return true;
	if (c->k->token_file)
		return read_token(c, &is_new, &e) && is_new;
	if (!c->k->exec.command)
		return false;
	show(c, NULL);
	return true;
}

/* What a call needs only while it is under way: most of its size, and most calls are at rest. */
struct api_request {
	struct http_request http;
	struct credential_wait wait;
	struct buf url;
	const char *headers[4];
	char content_header[96];
};

enum { IDLE, WAITING /* for a credential */, SENDING, PAUSED /* before the next attempt */, ENDING };

#define RETRY_FIRST   (250)
#define RETRY_LONGEST (5 * SECOND)

struct api {
	struct loop *loop;
	struct http *http;
	const struct clock *clock, *stamps;
	struct clock machine;
	millis server; /* its clock beside clock_mono(), by its last answers: the machine's own may jump */
	int agreed;    /* answers in a row that told so */
	const struct kubeconfig *access;
	struct credential *credential;
	struct api_call *calls;
	size_t active;
	enum api_gate gate;
	char why_not[160];
	millis until; /* writes only before; 0: no limit */
	struct api_counts counts;
	uint64_t seed, streams;
	struct arena texts; /* of the kinds */
	struct api_kind *kinds;
	bool is_near; /* the server is on this machine: packing answers only costs */
};

static void send_call(struct api_call *c);

static bool is_loopback(const char *server)
{
	const char *host = strstr(server, "://");

	host = host ? host + 3 : server;
	return !strncmp(host, "127.", 4) || !strncmp(host, "localhost", 9) || !strncmp(host, "[::1]", 5);
}

struct api *api_open(const struct api_setup *s)
{
	struct api *a = xcalloc(1, sizeof *a);

	a->loop = s->loop;
	a->http = s->http;
	a->clock = s->clock;
	a->machine = clock_open();
	a->access = s->access;
	a->seed = s->seed;
	a->credential = credential_open(s->loop, &a->machine, s->access);
	a->is_near = is_loopback(s->access->server);
	return a;
}

void api_close(struct api *a)
{
	if (!a)
		return;
	assert(!a->active);
	credential_close(a->credential);
	arena_release(&a->texts);
	free(a);
}

size_t api_active(const struct api *a)
{
	return a->active + credential_is_busy(a->credential);
}

const char *api_server(const struct api *a)
{
	return a->access->server;
}

struct loop *api_loop(const struct api *a)
{
	return a->loop;
}

const struct clock *api_clock(const struct api *a)
{
	return a->stamps ? a->stamps : a->clock;
}

void api_stamp_by(struct api *a, const struct clock *clock)
{
	a->stamps = clock;
}

struct api_counts api_counts(const struct api *a)
{
	return a->counts;
}

struct random api_random(struct api *a, const char *purpose)
{
	return random_stream(a->seed + ++a->streams, purpose);
}

const struct api_kind *api_kind_known(const struct api *a, const char *api_version, const char *kind)
{
	for (const struct api_kind *k = a->kinds; k; k = k->next)
		if (!strcmp(k->api_version, api_version) && !strcmp(k->kind, kind))
			return k;
	return NULL;
}

const struct api_kind *api_kind_learn(struct api *a, const struct api_kind *k)
{
	struct api_kind *copy = arena_new(&a->texts, struct api_kind);

	*copy = *k;
	copy->api_version = arena_strdup(&a->texts, k->api_version, strlen(k->api_version));
	copy->kind = arena_strdup(&a->texts, k->kind, strlen(k->kind));
	copy->plural = arena_strdup(&a->texts, k->plural, strlen(k->plural));
	copy->next = a->kinds;
	a->kinds = copy;
	return copy;
}

/* The one place where a writing call is kept back. */
static bool is_barred(const struct api *a, enum api_effect effect)
{
	if (effect == API_WRITE)
		return a->gate != API_GATE_OPEN || (a->until && loop_now(a->loop) >= a->until);
	return effect == API_LEASE && a->gate == API_GATE_SHUT;
}

static void link_call(struct api *a, struct api_call *c)
{
	c->api = a;
	c->previous = NULL;
	c->next = a->calls;
	if (a->calls)
		a->calls->previous = c;
	a->calls = c;
	a->active++;
}

static void unlink_call(struct api *a, struct api_call *c)
{
	if (c->previous)
		c->previous->next = c->next;
	else
		a->calls = c->next;
	if (c->next)
		c->next->previous = c->previous;
	a->active--;
}

/* To look for what is not there, such as a kind that nobody installed, is answered as it should be. */
static bool is_failure(const struct api_call *c)
{
	bool is_looking = !c->method || !strcmp(c->method, "GET");

	return c->error.kind != ERROR_NONE && c->error.kind != ERROR_CANCELLED && !(is_looking && c->status == 404);
}

/* The caller may start the call anew, or free it, inside done(). */
static void finish(struct api_call *c)
{
	struct api *a = c->api;
	struct credential_shown *shown = c->shown;
	struct api_request *request = c->request;
	struct arena arena = c->arena;

	timer_stop(&c->timer);
	unlink_call(a, c);
	c->request = NULL;
	c->shown = NULL;
	c->arena = (struct arena){ 0 };
	c->state = IDLE;
	a->counts.failures += is_failure(c);
	a->counts.barred += c->is_barred;
	c->done(c);
	buf_release(&request->url);
	free(request);
	arena_release(&arena);
	credential_let_go(shown);
}

static void ended(struct timer *t)
{
	finish(t->user);
}

/* Completes from the loop with the error that stands in the call. */
static void end_soon(struct api_call *c)
{
	c->state = ENDING;
	c->status = 0;
	c->response = "";
	c->response_len = 0;
	c->timer.user = c;
	timer_start(c->api->loop, &c->timer, 0, ended);
}

static const char *why_barred(const struct api *a)
{
	return a->gate == API_GATE_OPEN ? "the lease ran out" : a->why_not;
}

static void bar(struct api_call *c)
{
	c->is_barred = true;
	error_set(&c->error, ERROR_CANCELLED, "%s %s: not sent: %s", c->method, c->path, why_barred(c->api));
	end_soon(c);
}

static millis time_left(const struct api_call *c)
{
	return c->deadline ? c->deadline - loop_now(c->api->loop) : INT64_MAX / 4;
}

static void took_too_long(struct timer *t)
{
	struct api_call *c = t->user;

	credential_cancel(c->api->credential, &c->request->wait);
	error_set(&c->error, ERROR_TIMEOUT, "%s %s: the credential plug-in took too long", c->method, c->path);
	end_soon(c);
}

static void have_credential(struct credential_wait *w)
{
	struct api_call *c = w->user;

	timer_stop(&c->timer);
	if (w->error.kind != ERROR_NONE) {
		c->error = w->error;
		end_soon(c);
		return;
	}
	c->shown = w->shown;
	send_call(c);
}

static void wait_for_credential(struct api_call *c)
{
	c->state = WAITING;
	c->request->wait = (struct credential_wait){ .done = have_credential, .user = c };
	c->timer.user = c;
	if (c->deadline)
		timer_start(c->api->loop, &c->timer, time_left(c) > 0 ? time_left(c) : 0, took_too_long);
	credential_ask(c->api->credential, &c->request->wait);
}

static bool pass_chunk(struct http_request *r, const char *bytes, size_t len)
{
	struct api_call *c = r->user;

	if (c->is_cancelled)
		return false;
	c->has_chunks = true;
	c->error = (struct error){ 0 };
	if (c->on_chunk(c, bytes, len))
		return true;
	r->error = c->error;
	return false;
}

enum { DATES_AGREED = 3 };

/* An answer that took long says little, and none says more than to the second. */
static const millis DATES_APART = API_TIMEOUT / 2;

static void note_date(struct api *a, const struct http_request *r)
{
	millis date;

	if (!http_date(http_header(r, "Date"), &date))
		return;
	millis server = date - clock_mono(&a->machine), differs = server - a->server;
	a->agreed = a->agreed && differs < DATES_APART && differs > -DATES_APART ? a->agreed + 1 : 1;
	if (a->agreed > DATES_AGREED)
		a->agreed = DATES_AGREED;
	a->server = server;
}

bool api_clock_ahead(const struct api *a, millis *ahead)
{
	if (a->agreed < DATES_AGREED)
		return false;
	*ahead = clock_now(&a->machine) - clock_mono(&a->machine) - a->server;
	return true;
}

#define PROTOBUF "application/vnd.kubernetes.protobuf"

static void pass_acceptance(struct http_request *r)
{
	struct api_call *c = r->user;

	const char *type = http_header(r, "Content-Type");

	note_date(c->api, r);
	c->is_protobuf = type && !strncmp(type, PROTOBUF, strlen(PROTOBUF));
	if (!c->is_cancelled && c->on_accepted)
		c->on_accepted(c);
}

static void pause_over(struct timer *t)
{
	send_call(t->user);
}

static bool is_worth_again(const struct api_call *c)
{
	bool may = c->effect == API_READ ? !c->is_single : c->is_repeatable;

	if (c->needs_server && !c->status)
		return false;
	return may && c->deadline && !c->has_chunks && !c->is_cancelled && !c->is_barred &&
	       (c->error.kind == ERROR_THROTTLED || c->error.kind == ERROR_UNAVAILABLE ||
		(c->error.kind == ERROR_TIMEOUT && c->status));
}

/* How long until the next attempt; -1: there is none. */
static millis next_attempt(struct api_call *c)
{
	if (c->status == 401 && !c->was_refused && !c->is_cancelled && !c->is_barred) {
		c->was_refused = true;
		return credential_refused(c->api->credential, c->shown) ? 0 : -1;
	}
	if (!is_worth_again(c))
		return -1;
	millis wait = retry_next(&c->retry, c->retry_after);
	return wait < time_left(c) ? wait : -1;
}

static bool try_again(struct api_call *c)
{
	millis wait = next_attempt(c);

	if (wait < 0)
		return false;
	c->api->counts.retries++;
	credential_let_go(c->shown);
	c->shown = NULL;
	arena_clear(&c->arena);
	c->state = PAUSED;
	c->timer.user = c;
	timer_start(c->api->loop, &c->timer, wait, pause_over);
	return true;
}

static void read_refusal(struct api_call *c)
{
	char call[256];

	snprintf(call, sizeof call, "%s %.*s", c->method, (int)strcspn(c->path, "?"), c->path);
	status_read(c->response, c->response_len, &c->arena, &c->answer);
	c->is_expired = c->status == 410;
	c->retry_after = retry_after(http_header(&c->request->http, "Retry-After"), clock_now(&c->api->machine));
	if (!c->retry_after && c->answer.retry_after_seconds > 0 && c->answer.retry_after_seconds < 3600)
		c->retry_after = c->answer.retry_after_seconds * SECOND;
	c->api->counts.throttled += c->status == 429;
	status_error(&c->answer, c->status, call, &c->error);
}

static void answered(struct http_request *r)
{
	struct api_call *c = r->user;

	c->status = r->error.kind == ERROR_NONE ? r->status : 0;
	c->response = r->response;
	c->response_len = r->response_len;
	c->answer = (struct api_status){ 0 };
	c->error = r->error;
	c->retry_after = 0;
	if (r->error.kind == ERROR_NONE && !c->on_chunk) /* what came in parts began long ago */
		note_date(c->api, r);
	bool came_too_late = r->error.kind == ERROR_UNAVAILABLE && is_barred(c->api, c->effect);
	c->is_barred = came_too_late || (c->is_barred && r->error.kind == ERROR_CANCELLED);
	if (r->error.kind == ERROR_NONE && (r->status < 200 || r->status > 299))
		read_refusal(c);
	else if (c->is_barred)
		error_set(&c->error, ERROR_CANCELLED, "%s %s: stopped on its way: %s; it may have been done", c->method,
			  c->path, why_barred(c->api));
	if (!try_again(c))
		finish(c);
}

static void fill_request(struct api_call *c)
{
	const struct api *a = c->api;
	struct api_request *r = c->request;
	size_t n = 0;

	r->headers[n++] = c->takes_protobuf ? "Accept: " PROTOBUF ", application/json" : "Accept: application/json";
	if (c->body) {
		snprintf(r->content_header, sizeof r->content_header, "Content-Type: %s",
			 c->content_type ? c->content_type : "application/json");
		r->headers[n++] = r->content_header;
	}
	r->headers[n] = NULL;
	r->http = (struct http_request){
		.method = c->method,
		.url = r->url.text,
		.headers = r->headers,
		.bearer = c->shown->token,
		.body = c->body,
		.body_len = c->body && !c->body_len ? strlen(c->body) : c->body_len,
		.tls = &c->shown->tls,
		.proxy = a->access->proxy,
		.accepts_gzip = !a->is_near && c->effect == API_READ,
		.is_write = c->effect == API_WRITE,
		.timeout = c->deadline ? time_left(c) : 0,
		.silence_timeout = c->silence,
		.max_response = c->cap ? c->cap : API_RESPONSE_CAP,
		.on_chunk = c->on_chunk ? pass_chunk : NULL,
		.on_accepted = pass_acceptance,
		.done = answered,
		.user = c,
	};
}

static void send_call(struct api_call *c)
{
	struct api *a = c->api;

	if (is_barred(a, c->effect)) {
		bar(c);
		return;
	}
	if (!c->shown)
		c->shown = credential_at_hand(a->credential);
	if (!c->shown) {
		wait_for_credential(c);
		return;
	}
	if (time_left(c) <= 0) {
		error_set(&c->error, ERROR_TIMEOUT, "%s %s: no time left", c->method, c->path);
		end_soon(c);
		return;
	}
	c->state = SENDING;
	c->attempts++;
	a->counts.calls++;
	fill_request(c);
	http_start(a->http, &c->request->http);
}

void api_start(struct api *a, struct api_call *c)
{
	assert(c->state == IDLE);
	c->error = (struct error){ 0 };
	c->answer = (struct api_status){ 0 };
	c->is_expired = c->is_barred = c->is_cancelled = c->was_refused = c->has_chunks = c->is_protobuf = false;
	c->attempts = 0;
	c->retry_after = 0;
	c->status = 0;
	if (!c->method)
		c->method = "GET";
	link_call(a, c);
	c->retry = retry_make(RETRY_FIRST, RETRY_LONGEST, api_random(a, "retry"));
	millis timeout = c->timeout || c->silence ? c->timeout : API_TIMEOUT;
	c->deadline = timeout ? loop_now(a->loop) + timeout : 0;
	c->request = xnew(struct api_request);
	buf_printf(&c->request->url, "%s%s", a->access->server, c->path);
	send_call(c);
}

static void stop(struct api_call *c)
{
	switch (c->state) {
	case SENDING:
		http_cancel(&c->request->http);
		return;
	case WAITING:
		credential_cancel(c->api->credential, &c->request->wait);
		break;
	case PAUSED:
		break;
	default:
		return;
	}
	timer_stop(&c->timer);
	if (c->is_barred) {
		bar(c);
		return;
	}
	error_set(&c->error, ERROR_CANCELLED, "%s %s: cancelled", c->method, c->path);
	end_soon(c);
}

void api_cancel(struct api_call *c)
{
	if (c->state == IDLE)
		return;
	c->is_cancelled = true;
	stop(c);
}

void api_cancel_all(struct api *a)
{
	for (struct api_call *c = a->calls; c; c = c->next)
		api_cancel(c);
}

void api_set_gate(struct api *a, enum api_gate gate, const char *why_not)
{
	a->gate = gate;
	snprintf(a->why_not, sizeof a->why_not, "%s", why_not ? why_not : "");
	for (struct api_call *c = a->calls; c; c = c->next)
		if (is_barred(a, c->effect) && !c->is_barred && c->state != ENDING) {
			c->is_barred = true;
			stop(c);
		}
}

void api_set_until(struct api *a, millis until)
{
	a->until = until;
	http_write_until(a->http, until);
}

static void add_part(struct buf *out, const char *part)
{
	if (!part)
		return;
	buf_text(out, "/");
	uri_segment(part, out);
}

void api_object_path(const struct api_object *o, struct buf *out)
{
	bool is_core = !strchr(o->api_version, '/');

	buf_printf(out, "%s/%s", is_core ? "/api" : "/apis", o->api_version);
	if (o->name_space) {
		buf_text(out, "/namespaces");
		add_part(out, o->name_space);
	}
	add_part(out, o->plural);
	add_part(out, o->name);
	add_part(out, o->subresource);
}

void api_query(struct buf *url, const char *name, const char *value)
{
	if (!value)
		return;
	buf_printf(url, "%c%s=", url->text && strchr(url->text, '?') ? '&' : '?', name);
	uri_escape(value, strlen(value), "", url);
}

void api_time(millis at, struct buf *out)
{
	time_t seconds = (time_t)(at / SECOND);
	struct tm tm;
	char text[32];

	gmtime_r(&seconds, &tm);
	strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%S", &tm);
	buf_printf(out, "%s.%03d000Z", text, (int)(at % SECOND));
}
