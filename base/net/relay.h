/*
 * A door in front of servers that are not there yet: HTTP/1.1 requests are held until somebody says where servers are,
 * then passed on byte by byte, both ways, as they come. Of a request only its header is read, and only to say
 * "Connection: close" in it: each connection carries one request, so that the next one finds the servers by itself.
 *
 * Nothing of a body is in memory while a request is held: the peer's kernel keeps it. A request whose server is gone
 * before it answered a byte gets 502, and is not sent again: it may have been worked on.
 */
#pragma once
#include "base/buf.h"
#include "base/error.h"
#include "base/net/loop.h"

#include <stddef.h>
#include <stdint.h>

struct relay;

struct relay_target {
	char address[46]; /* of an IPv4 or IPv6 host, without brackets */
	uint16_t port;
};

struct relay_settings {
	const char *name;	 /* whose requests these are, for answers; copied */
	const char *host;	 /* "" for all addresses, "127.0.0.1", "[::1]" */
	uint16_t first, last;	 /* the first of these ports that is free; 0, 0: any */
	millis hold;		 /* longest, of the world; then 503 */
	size_t most;		 /* connections; more get 503; 0: RELAY_MOST */
	void (*changed)(void *); /* from the loop: relay_waiting() is another; relay_close() not from there */
	void *user;
};

enum { RELAY_MOST = 1000 };
#define RELAY_HEADER ((size_t)32 << 10) /* a longer one is 431 */

/* NULL with an error: ERROR_UNAVAILABLE where none of the ports is free. */
struct relay *relay_open(struct loop *loop, const struct relay_settings *s, struct error *e) MUST_USE;
uint16_t relay_port(const struct relay *r);
/* Where requests go from now on, each to the one with the fewest; none: they are held. Copied. */
void relay_aim(struct relay *r, const struct relay_target *targets, size_t count);
size_t relay_waiting(const struct relay *r); /* requests that are held, or on their way to a server */
size_t relay_passing(const struct relay *r); /* of which a server has its header */
/* No new ones; those held get 503, those that a server has go on. */
void relay_end(struct relay *r);
void relay_close(struct relay *r); /* cuts what is left; takes NULL */

/* Says "Connection: close", once, in a request whose header is so long, the empty line included, and takes away what it
 * says of its connection; one that becomes a WebSocket (*is_upgrade) stays as it is. False, and nothing is changed: it
 * is no HTTP/1.1 request. */
bool relay_rewrite(struct buf *request, size_t header, bool *is_upgrade) MUST_USE;
