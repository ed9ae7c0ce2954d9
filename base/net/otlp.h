/*
 * Sends OpenTelemetry spans to a collector: OTLP over HTTP with JSON bodies,
 * as the OpenTelemetry protocol 1.x has it. Spans are gathered and sent in
 * batches; what a collector that is away cannot take is dropped and counted,
 * so that tracing never holds up nor fills whoever is traced.
 */
#pragma once
#include "base/clock.h"
#include "base/net/http.h"

#include <stdint.h>

struct otlp;

/* Batches: the defaults of OpenTelemetry's batch span processor. */
enum { OTLP_BATCH = 512, OTLP_QUEUE = 2048 };
#define OTLP_EVERY    (5 * SECOND)
#define OTLP_DEADLINE (10 * SECOND)

/* Copied, but for tls and clock, which must outlive the exporter. */
struct otlp_settings {
	const char *url;	     /* of the traces: "http://localhost:4318/v1/traces" */
	const char *const *headers;  /* "Name: value"s, NULL-terminated; may hold secrets; may be NULL */
	const struct http_tls *tls;  /* may be NULL */
	const char *service;	     /* service.name */
	const char *version;	     /* service.version, and of the scope */
	const char *instance;	     /* service.instance.id */
	const char *const *resource; /* further "key=value"s, NULL-terminated; may be NULL */
	uint64_t seed;		     /* of the jitter between tries */
};

struct otlp_trace_id {
	uint64_t high, low; /* not both 0 */
};

enum otlp_kind { OTLP_INTERNAL = 1, OTLP_CLIENT = 3 };

/* An attribute: a text, or an integer where it is NULL. */
struct otlp_attribute {
	const char *key, *text;
	int64_t integer;
};

struct otlp_span {
	struct otlp_trace_id trace;
	uint64_t id, parent; /* parent 0: the root */
	const char *name;
	enum otlp_kind kind;
	millis from, to; /* since the Unix epoch */
	const struct otlp_attribute *attributes;
	size_t attribute_count;
	const char *failure; /* what went wrong; NULL: nothing did */
};

struct otlp_counts {
	int64_t sent;	 /* spans that the collector took */
	int64_t dropped; /* spans that found no room, or that it did not take */
	int64_t failed;	 /* tries to send that failed */
};

/* ERROR_INVALID for a URL that is none; NULL on failure. */
struct otlp *otlp_open(struct loop *loop, struct http *http, const struct otlp_settings *s, struct error *e);
void otlp_add(struct otlp *o, const struct otlp_span *span); /* copied; sent within OTLP_EVERY */
void otlp_flush(struct otlp *o);			     /* sends what there is now */
bool otlp_is_idle(const struct otlp *o);		     /* nothing gathered, nothing under way */
struct otlp_counts otlp_counts(const struct otlp *o);
/* Drops what was not sent. The exporter is freed from the loop, once no request is under way; takes NULL. */
void otlp_close(struct otlp *o);
