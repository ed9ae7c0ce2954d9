/*
 * A small HTTP(S) server on the event loop: routes in a table, answers made
 * at once from memory or sent from a file. Caps on connections, headers,
 * bodies and idle time; nothing that a peer sends can stop the loop.
 */
#pragma once
#include "base/buf.h"
#include "base/net/loop.h"

#include <stdint.h>

struct server;

struct server_request {
	const char *method; /* "GET" also where the peer asked for HEAD */
	const char *path;   /* decoded, without the query */
	const char *body;   /* NUL-terminated, never NULL */
	size_t body_len;
	void *user;	  /* the route's */
	void *connection; /* private */
};

const char *server_query(const struct server_request *q, const char *name);  /* "" for ?name, NULL without */
const char *server_header(const struct server_request *q, const char *name); /* any case, NULL without */

/* What a route fills in. At first: 200, text/plain, empty. */
struct server_answer {
	int status;
	const char *content_type; /* a literal */
	struct buf body;	  /* the server releases it */
	int fd;			  /* a file of `fd_len` bytes in place of the body, closed by the server; else -1 */
	uint64_t fd_len;
	const char *headers[8]; /* further "Name: value"s; literals, or alive until the answer function returns */
};

struct server_route {
	const char *method;
	const char *path; /* exact; or the beginning of one when it ends in an asterisk: "/api/pools/" followed by it */
	void (*answer)(const struct server_request *q, struct server_answer *a);
	void *user;
};

struct server_settings {
	const char *listen;		/* "127.0.0.1:8080", "[::1]:0", ":8080" (all addresses); port 0: a free one */
	const char *tls_cert, *tls_key; /* PEM texts, copied; NULL: plain HTTP */
	const struct server_route *routes; /* must outlive the server; the first that fits answers */
	size_t route_count;
	const char *const *headers; /* added to every answer; NULL-terminated, may be NULL; must outlive the server */
	unsigned max_connections;   /* 0: 128 */
	size_t max_body;	    /* of a request, more is 413; 0: 64 KiB */
	unsigned idle_seconds;	    /* a connection without a byte for so long is closed; 0: 30 */
};

/*
 * NULL with an error: ERROR_INVALID for an address or certificate that is none, ERROR_UNAVAILABLE when the address
 * cannot be had (in use, not ours), ERROR_AUTH for a port that we may not have.
 */
struct server *server_open(struct loop *loop, const struct server_settings *s, struct error *e) MUST_USE;
uint16_t server_port(const struct server *s);
void server_close(struct server *s); /* closes every connection; takes NULL */
