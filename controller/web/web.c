#include "controller/web/web.h"

#include "base/alloc.h"
#include "base/terminal.h"
#include "base/quantity.h"
#include "controller/web/metrics.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* --- alive and ready --- */

static const struct published_watch *unsynced(const struct published *p)
{
	for (size_t i = 0; i < p->watch_count; i++)
		if (!p->watches[i].is_synced)
			return &p->watches[i];
	return NULL;
}

static bool is_fine(struct buf *why, const char *text)
{
	buf_text(why, text);
	return true;
}

static millis later(millis a, millis b)
{
	return a > b ? a : b;
}

bool health_is_alive(const struct published *p, millis now_mono, struct buf *why)
{
	/* An API server that is away is waited for: a restart would not bring it back. */
	if (!p || p->is_stopping || !p->tick_due_mono || unsynced(p))
		return is_fine(why, "ok");
	millis began = later(p->tick_begun_mono, p->tick_due_mono);
	if (now_mono - began <= HEALTH_INTERVALS * p->tick_interval)
		return is_fine(why, "ok");
	bool in_tick = p->tick_begun_mono > p->tick_ended_mono;
	buf_printf(why, "wedged: a tick is due every %s, and ", human_duration(p->tick_interval).text);
	if (p->tick_begun_mono >= p->tick_due_mono)
		buf_printf(why, "the last one began %s ago%s", human_duration(now_mono - p->tick_begun_mono).text,
			   in_tick ? " and is not over" : "");
	else
		buf_printf(why, "none has begun since one was due %s ago",
			   human_duration(now_mono - p->tick_due_mono).text);
	if (p->tick_waits_for)
		buf_printf(why, "; it waits for %s", p->tick_waits_for);
	return false;
}

static bool is_missing(const struct published *p, struct buf *why)
{
	const struct published_watch *w = unsynced(p);

	if (p->is_stopping) {
		buf_text(why, "stopping");
	} else if (p->history_error.kind != ERROR_NONE) {
		buf_printf(why, "%s", p->history_error.message);
	} else if (p->obstacle) {
		buf_text(why, p->obstacle);
	} else if (w) {
		buf_printf(why, "%s have not been read from the API server", w->resource);
		if (w->trouble)
			buf_printf(why, ": %s", w->trouble);
	} else if (p->role == ROLE_FOLLOWER && p->leader && *p->leader && !p->is_history_spare) {
		/* Whoever updates us one by one waits: the one that holds the history must not be stopped before. */
		buf_printf(why, "copying the history of %s, %lld ticks behind", p->leader,
			   (long long)p->history_lag_ticks);
	} else if (p->role != ROLE_FOLLOWER && p->fleet && p->fleet->pool_count && !p->ticks) {
		buf_text(why, "no decision yet");
	} else {
		return false;
	}
	return true;
}

bool health_is_ready(const struct published *p, struct buf *why)
{
	CLEANUP(buf_release) struct buf missing = { 0 };

	if (!p || !p->fleet || is_missing(p, &missing)) {
		buf_printf(why, "not ready: %s", missing.len ? missing.text : "starting");
		return false;
	}
	if (p->role == ROLE_FOLLOWER && p->leader && *p->leader)
		buf_printf(why, "ready: following %s, %lld ticks behind", p->leader, (long long)p->history_lag_ticks);
	else if (p->role == ROLE_FOLLOWER)
		buf_text(why, "ready: no leader yet");
	else
		buf_printf(why, "ready: leading%s%s", p->fleet->pool_count ? "" : ", no pools to decide on",
			   p->is_dry_run ? ", dry run: nothing is changed" : "");
	return true;
}

/* --- the server --- */

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
	int64_t way = number(server_query(q, "way"), REPLICA_NEXT);
	struct error e = { 0 };
	int64_t last = -1;

	if (!is_key(w, server_query(q, "key"))) {
		refuse(a, 403, "the key stands in the annotation preheat.dev/address of the Lease");
		return;
	}
	if (way < REPLICA_NEXT || way > REPLICA_PAST) {
		refuse(a, 400, "way: allowed: 0, 1 and 2");
		return;
	}
	a->content_type = "application/octet-stream";
	const struct replica_tail at = { number(tick, -1), (uint32_t)number(crc, 0), (enum replica_way)way };
	bool is_told = w->export(w->export_user, &at, &a->body, &last, &e);
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
	struct web *w = xcalloc(1, sizeof *w);

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
