/*
 * A small HTTP(S) server on the event loop: routes in a table, answers made
 * at once from memory or sent from a file. Caps on connections, headers,
 * bodies, rates and time; nothing that a peer sends can stop the loop. What
 * could be read in two ways is answered 400 and the connection closed: two
 * hosts or lengths, a length and an encoding, another encoding than chunked,
 * a name that is none.
 */
#pragma once
#include "base/buf.h"
#include "base/error.h"
#include "base/net/loop.h"
#include "base/net/retry.h"

#include <stdint.h>
#include <sys/queue.h>

struct server;
struct server_stream;
struct server_wait;

struct server_request {
	const char *method; /* "GET" also where the peer asked for HEAD */
	const char *path;   /* decoded, without the query */
	const char *body;   /* NUL-terminated, never NULL */
	size_t body_len;
	void *user;	  /* the route's */
	void *connection; /* private */
};

const char *server_query(const struct server_request *q, const char *name); /* "" for ?name, NULL without */
struct server_pair {
	const char *name, *value; /* value "" for ?name; alive as long as the request */
};
/* All that stands in the query, in its order and repeated as it is there; what has no room is counted only. */
size_t server_query_pairs(const struct server_request *q, struct server_pair *pairs, size_t room);
const char *server_header(const struct server_request *q, const char *name); /* any case, NULL without */

/* What a route fills in. At first: 200, text/plain, empty. */
struct server_answer {
	int status;
	const char *content_type; /* a literal */
	struct buf body;	  /* the server releases it */
	int fd;			  /* a file of `fd_len` bytes in place of the body, closed by the server; else -1 */
	uint64_t fd_len;
	struct server_stream *stream; /* goes on after the body; NULL: the body is all */
	const char *headers[8];	      /* further "Name: value"s; literals, or alive until the answer function returns */
};

/* Who is let in, asked for each request once its header is there and before anything of its body is read. */
enum server_verdict {
	SERVER_ADMITS,
	SERVER_REFUSES, /* with the answer that was filled in; of status 403 at first */
	SERVER_WAITS,	/* server_decide() comes, once, from the loop */
};
/* NULL lets it in; else the answer, whose body the server takes. Not after server_close(). */
void server_decide(struct server_wait *w, struct server_answer *refusal);

struct server_route {
	const char *method; /* NULL: any, and the answer refuses those that it does not take */
	const char *path; /* exact; or the beginning of one when it ends in an asterisk: "/api/pools/" followed by it */
	void (*answer)(const struct server_request *q, struct server_answer *a);
	void *user;
};

struct server_settings {
	const char *listen;		/* "127.0.0.1:8080", "[::1]:0", ":8080" (all addresses); port 0: a free one */
	const char *tls_cert, *tls_key; /* PEM texts, copied; NULL: plain HTTP */
	const struct server_route *routes; /* must outlive the server; the first that fits answers */
	size_t route_count;
	const char *const *headers; /* added to every answer that does not say them itself; NULL-terminated, may be
				       NULL; must outlive the server */
	enum server_verdict (*admit)(void *user, const struct server_request *q, struct server_wait *w,
				     struct server_answer *a); /* NULL: everybody */
	void *admit_user;
	void (*refuse)(struct server_answer *a, const char *text); /* writes what the server refuses by itself; NULL: as
								      text */
	unsigned max_connections;				   /* 0: 128 */
	unsigned max_per_address;				   /* connections; 0: max_connections */
	struct rate connects, connects_per_address; /* new connections; more are closed: a handshake is dear */
	struct rate rate, rate_per_address;	    /* of requests; more is 429 */
	size_t max_body;			    /* of a request, more is 413; 0: 64 KiB */
	unsigned idle_seconds;			    /* a connection without a byte for so long is closed; 0: 30 */
	/* A whole request must have come so long after the connection, or the answer before; 0: 30. */
	unsigned request_seconds;
	unsigned answer_seconds; /* an answer must be taken in that time; 0: as long as bytes flow */
	unsigned stream_seconds; /* one that goes on ends after so long; 0: never */
};

/*
 * NULL with an error: ERROR_INVALID for an address or certificate that is none, ERROR_UNAVAILABLE when the address
 * cannot be used (in use, not ours), ERROR_AUTH for a port that we may not have.
 */
struct server *server_open(struct loop *loop, const struct server_settings *s, struct error *e) MUST_USE;
uint16_t server_port(const struct server *s);
/* The pair that handshakes take from now on; connections stay. On failure (ERROR_INVALID) the one before stays, too. */
bool server_renew_tls(struct server *s, const char *cert, const char *key, struct error *e) MUST_USE;
void server_close(struct server *s); /* closes every connection; takes NULL */

/*
 * An answer that goes on: text is sent as it comes, until the peer leaves,
 * is too slow, or the server closes. Everything is called from the loop.
 */

struct server_stream {
	/* Filled in by the route, with server_answer.stream; the memory is the server's until ended(), which comes
	 * once and may free it. */
	void (*ended)(struct server_stream *s);
	void *user;

	void *connection; /* private, from here on; zeroed at first */
	struct buf unsent;
	bool is_waiting, is_over;
	struct server *server;
	LIST_ENTRY(server_stream) link;
};

/* What a peer does not take grows up to so much; then it is cut off. */
#define SERVER_STREAM_MOST ((size_t)64 << 10)

/* Not after ended(). */
void server_stream_send(struct server_stream *s, const char *text, size_t len);
/* Whoever reads it comes again, or is gone. ended() comes from the loop. */
void server_stream_end(struct server_stream *s);
/* A listening socket from a text such as "127.0.0.1:8080", "[::1]:0", ":8080" (all addresses). */

/* The socket, not blocking, for the caller to close, and the port it got; -1 with an error as of server_open(). */
int listen_open(const char *where, uint16_t *port, struct error *e) MUST_USE;
/* Whether only this machine reaches it: "127.0.0.1:80", "[::1]:80", "localhost:80". False for what is no address. */
bool listen_check(const char *where, bool *is_loopback, struct error *e) MUST_USE;
