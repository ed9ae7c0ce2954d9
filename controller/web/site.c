#include "controller/web/site.h"

#include "base/alloc.h"
#include "base/signature.h"
#include "base/file.h"
#include "base/log.h"
#include "base/net/server.h"
#include "controller/web/refusal.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

struct site {
	struct site_settings settings;
	struct loop *loop;
	bool is_near; /* on a loopback address */
	struct server *server;
	const char *headers[16];
	struct clock clock;
	struct authz *authz;
	struct timer look;  /* at the files */
	struct sha256 seen; /* what stood in them last */
	bool is_broken;	    /* and made no pair */
};

/* What stands in the two files; wiped by the caller. */
struct tls_texts {
	struct buf cert, key;
};

/* --- the TLS files --- */

enum { FILE_LONGEST = 256 * 1024 };

#define LOOK_EVERY (10 * SECOND) /* a kubelet takes a minute to bring a Secret's change; this adds little */

static void tls_texts_wipe(struct tls_texts *t)
{
	struct buf *both[] = { &t->cert, &t->key };

	for (size_t i = 0; i < 2; i++) {
		if (both[i]->text)
			explicit_bzero(both[i]->text, both[i]->room);
		buf_release(both[i]);
	}
}

static bool tls_texts_read(const struct site *s, struct tls_texts *out, struct error *e)
{
	struct tls_texts t = { 0 };

	if (!file_read(s->settings.cert_file, FILE_LONGEST, &t.cert, e) ||
	    !file_read(s->settings.key_file, FILE_LONGEST, &t.key, e)) {
		tls_texts_wipe(&t);
		return false;
	}
	buf_text(&t.cert, ""); /* never NULL */
	buf_text(&t.key, "");
	*out = t;
	return true;
}

static struct sha256 tls_texts_digest(const struct tls_texts *t)
{
	struct sha256 cert = sha256_of(t->cert.text, t->cert.len);

	return sha256_keyed(cert.bytes, sizeof cert.bytes, t->key.text, t->key.len);
}

/* A pair is written file by file, and a folder may be swapped between our two reads: what makes no pair is looked at
 * again, and told once. */
static void failed(struct site *s, const struct error *e)
{
	if (!s->is_broken)
		log_warn("tls-not-renewed", LOG_S("cert", s->settings.cert_file), LOG_S("key", s->settings.key_file),
			 LOG_E(e), LOG_S("kept", "the pair before"), LOG_END);
	s->is_broken = true;
}

static void look(struct timer *t)
{
	struct site *s = t->user;
	struct tls_texts texts = { 0 };
	struct error e = { 0 };

	timer_start(s->loop, &s->look, LOOK_EVERY, look);
	if (!tls_texts_read(s, &texts, &e)) {
		failed(s, &e);
		return;
	}
	struct sha256 now = tls_texts_digest(&texts);
	if (memcmp(&now, &s->seen, sizeof now) == 0) {
		s->is_broken = false;
	} else if (server_renew_tls(s->server, texts.cert.text, texts.key.text, &e)) {
		s->seen = now;
		s->is_broken = false;
		log_info("tls-renewed", LOG_S("cert", s->settings.cert_file), LOG_END);
	} else {
		failed(s, &e);
	}
	tls_texts_wipe(&texts);
}

/* Looks at the files from then on. */
static void site_watch_files(struct site *s)
{
	s->look.user = s;
	timer_start(s->loop, &s->look, LOOK_EVERY, look);
}

/* --- the site --- */

static const char content_policy[] =
	"Content-Security-Policy: default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
	"connect-src 'self'; font-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

/* Nothing is loaded but from here, nothing is shown inside another page, nothing is kept by the browser. */
static const char *const headers[] = {
	content_policy,
	"X-Content-Type-Options: nosniff",
	"X-Frame-Options: DENY",
	"Referrer-Policy: no-referrer",
	"Permissions-Policy: camera=(), display-capture=(), geolocation=(), microphone=(), payment=(), usb=()",
	"Cross-Origin-Opener-Policy: same-origin",
	"Cross-Origin-Resource-Policy: same-origin",
	"Cache-Control: no-store",
};
static const char tls_header[] = "Strict-Transport-Security: max-age=31536000";

static_assert(sizeof headers / sizeof *headers + 2 <= sizeof((struct site *)NULL)->headers / sizeof *headers,
	      "a site has room for all, one more under TLS, and the end");

static bool check(const struct site_settings *s, bool *is_near, struct error *e)
{
	if (!listen_check(s->listen, is_near, e))
		return false;
	if (!s->cert_file != !s->key_file)
		return error_set(e, ERROR_INVALID,
				 "a TLS certificate and its key belong together; do: give both "
				 "--tls-cert-file and --tls-private-key-file, or neither");
	if (*is_near || (s->ask && s->cert_file))
		return true;
	if (!s->ask)
		return error_set(e, ERROR_INVALID,
				 "%.100s is not a loopback address, and there is no API server to ask who may look; "
				 "do: listen on 127.0.0.1:PORT or [::1]:PORT",
				 s->listen);
	return error_set(
		e, ERROR_INVALID,
		"%.100s is not a loopback address: tokens are sent there, which needs TLS; do: give "
		"--tls-cert-file and --tls-private-key-file, or listen on 127.0.0.1:8081 (kubectl port-forward "
		"reaches it)",
		s->listen);
}

bool site_check(const struct site_settings *s, struct error *e)
{
	bool is_near;

	return check(s, &is_near, e);
}

static void choose_headers(struct site *s)
{
	size_t count = sizeof headers / sizeof *headers;

	memcpy(s->headers, headers, sizeof headers);
	if (s->settings.cert_file && !s->is_near) /* "localhost" belongs to others, too */
		s->headers[count] = tls_header;
}

/* With the status that the server has set. */
static void refuse(struct server_answer *a, const char *message)
{
	a->content_type = "application/json";
	refusal_write(a->status, message, &a->body);
}

/* On loopback all peers share an address. */
static struct server_settings server_settings_of(struct site *s, const struct tls_texts *tls)
{
	bool is_near = s->is_near;

	return (struct server_settings){
		.listen = s->settings.listen,
		.tls_cert = tls->cert.text,
		.tls_key = tls->key.text,
		.routes = s->settings.routes,
		.route_count = s->settings.route_count,
		.headers = s->headers,
		.admit = authz_admit,
		.admit_user = s->authz,
		.refuse = refuse,
		.max_connections = 256,
		.max_per_address = is_near ? 0 : 64,
		.connects = { .per_second = is_near ? 0 : 100, .burst = 300 },
		.connects_per_address = { .per_second = is_near ? 0 : 20, .burst = 100 },
		.rate = { .per_second = is_near ? 2000 : 500, .burst = is_near ? 4000 : 1000 },
		.rate_per_address = { .per_second = is_near ? 0 : 50, .burst = 200 },
		.idle_seconds = 60,
		.request_seconds = 20,
		.answer_seconds = 120,
		.stream_seconds = 600, /* then the browser comes again, and is asked again who it is */
	};
}

static bool serve(struct site *s, struct error *e)
{
	struct tls_texts tls = { 0 };

	if (s->settings.cert_file) {
		if (!tls_texts_read(s, &tls, e))
			return false;
		s->seen = tls_texts_digest(&tls);
	}
	struct server_settings settings = server_settings_of(s, &tls);
	s->server = server_open(s->loop, &settings, e);
	tls_texts_wipe(&tls);
	if (s->server && s->settings.cert_file)
		site_watch_files(s);
	return s->server;
}

struct site *site_open(struct loop *loop, const struct site_settings *settings, struct error *e)
{
	bool is_near;

	if (!check(settings, &is_near, e))
		return NULL;
	struct site *s = xcalloc(1, sizeof *s);
	s->is_near = is_near;
	s->settings = *settings;
	s->loop = loop;
	s->clock = clock_open();
	if (is_near)
		s->settings.ask = NULL;
	s->authz = authz_open(&(struct authz_settings){
		.clock = &s->clock, .ask = s->settings.ask, .ask_user = s->settings.ask_user });
	choose_headers(s);
	if (serve(s, e))
		return s;
	site_close(s);
	return NULL;
}

uint16_t site_port(const struct site *s)
{
	return server_port(s->server);
}

bool site_asks_for_tokens(const struct site *s)
{
	return s->settings.ask;
}

void site_close(struct site *s)
{
	if (!s)
		return;
	timer_stop(&s->look);
	authz_close(s->authz);
	server_close(s->server);
	free(s);
}

/* --- the page's files --- */

const struct page_asset *page_asset(const char *path)
{
	for (size_t i = 0; i < page_asset_count; i++)
		if (!strcmp(page_assets[i].path, path))
			return &page_assets[i];
	return NULL;
}

static bool takes_gzip(const struct server_request *q)
{
	const char *accepted = server_header(q, "Accept-Encoding");
	const char *gzip = accepted ? strstr(accepted, "gzip") : NULL;

	if (!gzip)
		return false;
	gzip += strlen("gzip");
	gzip += strspn(gzip, " \t");
	/* "gzip;q=0" and "gzip; q=0.000" refuse it. */
	if (*gzip != ';')
		return true;
	gzip += 1 + strspn(gzip + 1, " \t");
	return strncmp(gzip, "q=0", 3) != 0 || strcspn(gzip + 3, "123456789") < strcspn(gzip + 3, ",");
}

static bool has_it(const struct server_request *q, const struct page_asset *p)
{
	const char *known = server_header(q, "If-None-Match");

	return known && (!strcmp(known, "*") || strstr(known, p->etag + strlen("ETag: ")) != NULL);
}

void page_answer(const struct server_request *q, struct server_answer *a)
{
	const struct page_asset *p = page_asset(*q->path ? q->path : "/");

	if (!p) {
		a->status = 404;
		buf_text(&a->body, "no such file; the page is at /\n");
		return;
	}
	a->content_type = p->content_type;
	a->headers[0] = p->etag;
	a->headers[1] = "Cache-Control: no-cache"; /* kept, but asked for again: a new release shows at once */
	a->headers[2] = "Vary: Accept-Encoding";
	if (has_it(q, p)) {
		a->status = 304;
	} else if (takes_gzip(q)) {
		a->headers[3] = "Content-Encoding: gzip";
		buf_append(&a->body, p->gzip, p->gzip_size);
	} else {
		buf_append(&a->body, p->plain, p->plain_size);
	}
}
