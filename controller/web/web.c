#include "controller/web/web.h"

#include "base/quantity.h"
#include "controller/web/health.h"
#include "controller/web/metrics.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { KEY_MAX = 64 };

struct web {
	struct server *server;
	const struct published *shown;
	struct server_route routes[6];
	char key[KEY_MAX + 1], last[64];
	web_export_fn *export;
	void *export_user;
};

static void answer_verdict(struct server_answer *a, bool is_well)
{
	a->status = is_well ? 200 : 503;
	buf_text(&a->body, "\n");
}

static void answer_alive(const struct server_request *q, struct server_answer *a)
{
	const struct web *w = q->user;

	answer_verdict(
		a, health_is_alive(w->shown, w->shown && w->shown->clock ? clock_mono(w->shown->clock) : 0, &a->body));
}

static void answer_ready(const struct server_request *q, struct server_answer *a)
{
	const struct web *w = q->user;

	answer_verdict(a, health_is_ready(w->shown, &a->body));
}

static void answer_metrics(const struct server_request *q, struct server_answer *a)
{
	const struct web *w = q->user;
	static const struct published nothing;

	a->content_type = "text/plain; version=0.0.4; charset=utf-8";
	metrics_write(w->shown ? w->shown : &nothing, &a->body);
}

static void answer_index(const struct server_request *q, struct server_answer *a)
{
	const struct web *w = q->user;

	if (*q->path && strcmp(q->path, "/") != 0) {
		a->status = 404;
		buf_text(&a->body, "not found; there is: ");
	} else {
		buf_printf(&a->body, "Preheat %s\n\n", w->shown && w->shown->version ? w->shown->version : "");
	}
	buf_text(&a->body, "/metrics, /healthz, /readyz\n");
}

static void refuse(struct server_answer *a, int status, const char *why)
{
	a->status = status;
	buf_clear(&a->body);
	buf_text(&a->body, why);
	buf_text(&a->body, "\n");
}

/* In time that does not tell how much of it is right. */
static bool is_key(const struct web *w, const char *key)
{
	size_t len = strlen(w->key);
	unsigned differs = !key || !len || strlen(key) != len;

	for (size_t i = 0; !differs && i < len; i++)
		differs |= (unsigned)(key[i] ^ w->key[i]);
	return !differs;
}

/* A whole number, negative too; `other` for anything else. */
static int64_t number(const char *text, int64_t other)
{
	bool is_negative = text && *text == '-';
	int64_t value;

	if (!text || !fixed_parse(text + is_negative, strlen(text + is_negative), 0, &value))
		return other;
	return is_negative ? -value : value;
}

static void answer_replica(const struct server_request *q, struct server_answer *a)
{
	struct web *w = q->user;
	const char *tick = server_query(q, "tick"), *crc = server_query(q, "crc");
	struct error e = { 0 };
	int64_t last = -1;

	if (!is_key(w, server_query(q, "key"))) {
		refuse(a, 403, "the key stands in the annotation preheat.dev/address of the Lease");
		return;
	}
	a->content_type = "application/octet-stream";
	bool is_told = w->export(w->export_user, number(tick, -1), (uint32_t)number(crc, 0), &a->body, &last, &e);
	snprintf(w->last, sizeof w->last, "Preheat-Last-Tick: %" PRId64, last < 0 ? 0 : last);
	a->headers[0] = w->last; /* also with a refusal: whose history is the longer one */
	if (!is_told) {
		a->content_type = "text/plain";
		refuse(a, e.kind == ERROR_CONFLICT ? 409 : 503, e.message);
		return;
	}
}

struct web *web_open(struct loop *loop, const char *listen, struct error *e)
{
	struct web *w = calloc(1, sizeof *w);

	if (!w)
		abort();
	w->routes[0] = (struct server_route){ "GET", "/metrics", answer_metrics, w };
	w->routes[1] = (struct server_route){ "GET", "/healthz", answer_alive, w };
	w->routes[2] = (struct server_route){ "GET", "/readyz", answer_ready, w };
	w->routes[3] = (struct server_route){ "GET", "/replica", answer_replica, w };
	w->routes[4] = (struct server_route){ "GET", "/", answer_index, w };
	w->routes[5] = (struct server_route){ "GET", "/*", answer_index, w };
	w->server = server_open(loop,
				&(struct server_settings){ .listen = listen,
							   .routes = w->routes,
							   .route_count = sizeof w->routes / sizeof *w->routes,
							   .max_connections = 256,
							   .max_per_address = 64 }, /* probes find room */
				e);
	if (!w->server) {
		free(w);
		return NULL;
	}
	return w;
}

uint16_t web_port(const struct web *w)
{
	return server_port(w->server);
}

void web_show(struct web *w, const struct published *p)
{
	w->shown = p;
}

void web_serve_replica(struct web *w, const char *key, web_export_fn *export, void *user)
{
	snprintf(w->key, sizeof w->key, "%s", key);
	w->export = export;
	w->export_user = user;
}

void web_close(struct web *w)
{
	if (!w)
		return;
	server_close(w->server);
	free(w);
}
