/*
 * How many requests wait for a pool outside of its replicas: a PromQL
 * expression, an endpoint picker, or a number in a JSON document, asked for
 * every interval. A value that is older than READING_GAP intervals is none.
 */
#pragma once
#include "base/buf.h"
#include "base/clock.h"
#include "base/error.h"
#include "signals/prometheus.h"
#include "signals/pool_reading.h"

#include <stddef.h>
#include <stdint.h>

struct external_queue;

enum external_queue_kind {
	EXTERNAL_QUEUE_PROMQL, /* `expression` of the Prometheus server at `url`; one series */
	EXTERNAL_QUEUE_PICKER, /* of the inference pool `expression`, on the metrics page at `url` */
	EXTERNAL_QUEUE_JSON,   /* the number at the path `expression` (base/json_number.h) of the document at `url` */
};

/* Texts are copied. */
struct external_queue_settings {
	enum external_queue_kind kind;
	const char *url, *expression;
	struct http_auth_settings reach;
	millis interval, deadline; /* of the controller's clock; of one answer */
};

/* `clock` must outlive it. Asked at once, and then every interval. */
struct external_queue *external_queue_open(struct loop *loop, struct http *http, const struct clock *clock,
					   const struct external_queue_settings *settings);
void external_queue_close(struct external_queue *q); /* takes NULL; a call in flight ends by itself */
/* READING_UNKNOWN: nothing that is recent enough is known. */
int64_t external_queue_waiting(const struct external_queue *q);
/* Of the last answer; ERROR_NONE: it was understood, or none came yet. Valid until the loop runs. */
const struct error *external_queue_trouble(const struct external_queue *q);
/* The number of an endpoint picker as PromQL, for a picker that Prometheus scrapes. */
void endpoint_picker_query(const char *pool, struct buf *out);
