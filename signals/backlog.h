/*
 * How many requests wait for a pool outside of its replicas: a PromQL
 * expression, an endpoint picker, or a number in a JSON document, asked for
 * every interval. A value that is older than READING_GAP intervals is none.
 */
#pragma once
#include "base/clock.h"
#include "signals/prometheus.h"
#include "signals/reading.h"

struct backlog;

enum backlog_kind {
	BACKLOG_PROMQL, /* `expression` of the Prometheus server at `url`; one series */
	BACKLOG_PICKER, /* of the inference pool `expression`, on the metrics page at `url` */
	BACKLOG_JSON,	/* the number at the path `expression` (base/json_number.h) of the document at `url` */
};

/* Texts are copied. */
struct backlog_settings {
	enum backlog_kind kind;
	const char *url, *expression;
	struct reach_settings reach;
	millis interval, deadline; /* of the controller's clock; of one answer */
};

/* `clock` must outlive it. Asked at once, and then every interval. */
struct backlog *backlog_open(struct loop *loop, struct http *http, const struct clock *clock,
			     const struct backlog_settings *settings);
void backlog_close(struct backlog *q); /* takes NULL; a call in flight ends by itself */
/* READING_NOT_TOLD: nothing that is recent enough is known. */
int64_t backlog_waiting(const struct backlog *q);
/* Of the last answer; ERROR_NONE: it was understood, or none came yet. Valid until the loop runs. */
const struct error *backlog_trouble(const struct backlog *q);
/* Does what is due by the clock; its own timer calls it. */
void backlog_advance(struct backlog *q);
