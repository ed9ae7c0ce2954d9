/*
 * Questions to a Prometheus server, or to whatever answers its HTTP API
 * (Thanos, Mimir, VictoriaMetrics). One call is one query; several may be
 * under way at once. Whoever starts a call owns its memory until done(),
 * which comes exactly once, always from the loop and never inside the start.
 * Nothing is repeated here.
 */
#pragma once
#include "signals/reach.h"
#include "signals/prometheus_answer.h"

struct prometheus;

/* `url` as the manifest has it, a path in front of /api/v1 included; copied, as is what `reach` names. */
struct prometheus *prometheus_open(struct loop *loop, struct http *http, const char *url,
				   const struct reach_settings *reach);
void prometheus_close(struct prometheus *p); /* no call may be under way; takes NULL */
/* The URL without a user in it; for messages. */
const char *prometheus_url(const struct prometheus *p);

/* As Prometheus has it by default: a range with more points a series is refused. */
enum { PROMETHEUS_POINTS = 11000 };

struct prometheus_call {
	/* Filled in by the caller; must outlive the call. */
	const char *query;     /* PromQL */
	millis at;	       /* of an instant query; 0: the server's own now */
	millis from, to, step; /* step > 0: a range query instead, both ends included */
	millis timeout;	       /* > 0, in the world's time; the server is told of it, too */
	size_t most_samples, most_bytes;
	prometheus_fn *on_sample;
	void (*done)(struct prometheus_call *c); /* may start c anew, or free it */
	void *user;

	/*
	 * Valid inside done(). ERROR_NONE: all of it was told. Else what came before the error was told, too; the kind
	 * is that of the HTTP status, of the API's errorType, or of base/net/http.h; the message names the server and,
	 * where it gave one, its reason.
	 */
	struct error error;
	struct prometheus_notes notes;

	/* Private; zeroed at first. */
	struct prometheus *prometheus;
	struct http_request request;
	struct prometheus_answer *answer;
	struct reach_shown shown;
	struct buf url;
	struct timer refused;
	size_t bytes;
	bool is_active;
};

void prometheus_start(struct prometheus *p, struct prometheus_call *c);
void prometheus_cancel(struct prometheus_call *c); /* completes as ERROR_CANCELLED; nothing when it is not under way */
