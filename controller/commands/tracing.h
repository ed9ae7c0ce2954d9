/* Where traces go, as OpenTelemetry's environment variables say (OTEL_EXPORTER_OTLP_ENDPOINT and its kin). */
#pragma once
#include "base/arena.h"
#include "base/net/otlp.h"

struct tracing {
	struct otlp *otlp; /* NULL: no endpoint is told, or tracing is off */
	struct http_tls tls;
	struct arena arena;
};

/* `instance` is this replica. False with the variable, what was found and what is allowed. */
bool tracing_open(struct tracing *t, struct loop *loop, struct http *http, const char *instance,
		  struct error *e) MUST_USE;
/* Sends what is left, for two seconds at most, and closes. */
void tracing_close(struct tracing *t, struct loop *loop);
