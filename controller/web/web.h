/*
 * What the controller serves over HTTP: /metrics, /healthz, /readyz and an
 * index. Reads the published value at the moment of the request.
 */
#pragma once
#include "base/buf.h"
#include "base/net/server.h"
#include "controller/web/published.h"
#include "state/replica.h"

struct web;

/* Listens; until something is shown it is alive and not ready. NULL with the error of server_open. */
struct web *web_open(struct loop *loop, const char *listen, struct error *e) MUST_USE;
uint16_t web_port(const struct web *w);
/*
 * /replica for followers that know `key` (copied): `export` fills the batch that is asked for and tells the newest
 * tick. ERROR_CONFLICT becomes 409, anything else 503.
 */
typedef bool web_export_fn(void *user, const struct replica_tail *at, struct buf *out, int64_t *last, struct error *e);
void web_serve_replica(struct web *w, const char *key, web_export_fn *export, void *user);
/* What is served from now on; must outlive it. NULL: nothing yet. */
void web_show(struct web *w, const struct published *p);
void web_close(struct web *w); /* takes NULL */

/*
 * Whether the controller lives and whether it is ready, from the published
 * value. Waits are asynchronous, so a tick that hangs on an effect is seen
 * here while the loop still answers; a thread that is wholly blocked is
 * noticed because nothing answers within the probe's time-out.
 */

enum { HEALTH_INTERVALS = 5 }; /* ticks that may be missing before the loop counts as wedged */

/* False: `why` says what hangs, in one line. `now_mono` is clock_mono. NULL: starting, alive. */
bool health_is_alive(const struct published *p, millis now_mono, struct buf *why);
/* False: `why` says what is missing. True: `why` says in which role. */
bool health_is_ready(const struct published *p, struct buf *why);
