#include "controller/cluster/credential.h"

#include "base/buf.h"
#include "base/clock.h"
#include "base/decode.h"
#include "base/file.h"
#include "base/json.h"
#include "base/log.h"
#include "base/millis.h"
#include "base/net/process.h"
#include "base/net/retry.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

/* What an exec plug-in is asked, and what it answers. */

struct exec_answer {
	const char *token, *cert, *key; /* in the arena, NULL when not told */
	millis expires;			/* 0: never told */
};

static void exec_question(const struct kubeconfig *k, struct buf *out);
static bool exec_answer_read(const struct kubeconfig *k, const char *text, size_t len, struct arena *a,
			     struct exec_answer *out, struct error *e);

enum { TOKEN_BYTES = 64 * 1024, ANSWER_BYTES = 256 * 1024 };
#define TOKEN_AGE     MINUTE
#define PLUGIN_TIME   (60 * SECOND)
#define EXPIRES_EARLY (10 * SECOND)

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

void credential_let_go(struct credential_shown *s)
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

struct credential *credential_open(struct loop *loop, const struct clock *clock, const struct kubeconfig *k)
{
	struct credential *c = calloc(1, sizeof *c);

	if (!c)
		abort();
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

void credential_close(struct credential *c)
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

bool credential_is_busy(const struct credential *c)
{
	return c->is_running;
}

struct credential_shown *credential_at_hand(struct credential *c)
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

static void tell_all(struct credential *c, const struct error *e)
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

static void answered(struct process *p)
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
	tell_all(c, &e);
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
				       .done = answered,
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
		tell_all(c, &e);
	} else if (c->k->token_file) {
		read_token(c, &is_new, &e);
		tell_all(c, &e);
	} else if (c->k->exec.command && clock_mono(c->clock) < c->failed_until) {
		tell_all(c, &c->failure);
	} else if (c->k->exec.command) {
		run_plugin(c);
	}
}

void credential_ask(struct credential *c, struct credential_wait *w)
{
	w->next = NULL;
	*c->last = w;
	c->last = &w->next;
	if (!c->is_running && !timer_is_running(&c->timer)) {
		c->timer.user = c;
		timer_start(c->loop, &c->timer, 0, look_again);
	}
}

void credential_cancel(struct credential *c, struct credential_wait *w)
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

bool credential_refused(struct credential *c, const struct credential_shown *s)
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

static void write_member(const char *key, const char *value, struct buf *out)
{
	if (!value)
		return;
	json_write_comma(out);
	json_write_text(key, out);
	buf_text(out, ":");
	json_write_text(value, out);
}

static void write_base64(const char *text, struct buf *out)
{
	static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
	size_t len = strlen(text);

	for (size_t i = 0; i < len; i += 3) {
		size_t n = len - i < 3 ? len - i : 3;
		unsigned bits = (unsigned)(unsigned char)text[i] << 16;
		if (n > 1)
			bits |= (unsigned)(unsigned char)text[i + 1] << 8;
		if (n > 2)
			bits |= (unsigned char)text[i + 2];
		buf_printf(out, "%c%c%c%c", digits[bits >> 18], digits[bits >> 12 & 63],
			   n > 1 ? digits[bits >> 6 & 63] : '=', n > 2 ? digits[bits & 63] : '=');
	}
}

/* What goes to it in KUBERNETES_EXEC_INFO: "KUBERNETES_EXEC_INFO={...}". */
static void exec_question(const struct kubeconfig *k, struct buf *out)
{
	CLEANUP(buf_release) struct buf ca = { 0 };

	buf_text(out, "KUBERNETES_EXEC_INFO={\"kind\":\"ExecCredential\"");
	write_member("apiVersion", k->exec.api_version, out);
	buf_text(out, ",\"spec\":{\"interactive\":false");
	if (k->exec.provides_cluster) {
		if (k->tls.ca)
			write_base64(k->tls.ca, &ca);
		buf_text(out, ",\"cluster\":{");
		write_member("server", k->server, out);
		write_member("tls-server-name", k->tls.server_name, out);
		write_member("certificate-authority-data", k->tls.ca ? ca.text : NULL, out);
		write_member("proxy-url", k->proxy, out);
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
