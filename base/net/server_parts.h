/* What the files of the HTTP server share. */
#pragma once
#include "base/net/rate.h"
#include "base/net/server.h"
#include "base/net/server_stream.h"

#include <gnutls/abstract.h>
#include <microhttpd.h>

/* A certificate with its chain and key, as handshakes take it. */
struct tls_pair {
	gnutls_pcert_st chain[8];
	unsigned chain_count;
	gnutls_privkey_t key;
	millis retired; /* when another took its place */
	struct tls_pair *next;
};

/* A connection, as long as it is open. */
struct peer {
	struct server *server;
	struct peer *next, *previous;
	int fd;
	millis until; /* by then what is waited for must have come; 0: nothing is */
};

enum exchange_stage {
	EXCHANGE_WAITS,	  /* for server_decide() */
	EXCHANGE_DECIDED, /* and about to go on */
	EXCHANGE_BODY	  /* let in */
};

/* One request from its header to its answer. */
struct server_wait {
	struct server *server;
	struct MHD_Connection *connection;
	enum exchange_stage stage;
	struct MHD_Response *refusal; /* decided: NULL lets it in */
	unsigned refusal_status;
	bool is_dropped;
	struct server_wait *next, *previous; /* of those that wait */
	struct buf body;
};

struct server {
	struct loop *loop;
	struct server_settings settings;
	struct MHD_Daemon *daemon;
	ev_io ready;
	struct timer timeout, due;
	millis due_at;
	uint16_t port;
	bool is_open;
	bool has_gone;	     /* a connection, in this run */
	char complaint[256]; /* the last thing that libmicrohttpd said */
	struct rates *rates, *connects;
	struct tls_pair *pairs; /* the first is in use; handshakes may still hold others */
	struct peer *peers;
	struct server_wait *waits;
	struct server_stream *streams;
};

/* Serves what is ready; the only place from which libmicrohttpd calls us. */
void server_run(struct server *s);
void server_run_soon(struct server *s); /* for what libmicrohttpd was told outside of it: it wakes nobody itself */

/* server_request.c: from its header to its answer */
enum MHD_Result server_on_request(void *user, struct MHD_Connection *c, const char *path, const char *method,
				  const char *version, const char *part, size_t *part_len, void **state);
void server_on_completed(void *user, struct MHD_Connection *c, void **state, enum MHD_RequestTerminationCode how);
/* All that wait end without an answer. */
void server_drop_waits(struct server *s);

/* server_answer.c */
enum MHD_Result server_reply(struct server *s, struct MHD_Connection *c, struct server_answer *a);
/* NULL when it cannot be made; `a` is used up either way. */
struct MHD_Response *server_response(const struct server *s, struct server_answer *a);
/* An answer of the server's own. */
struct server_answer server_refusal(const struct server *s, int status, const char *text);
enum MHD_Result server_route(struct server *s, struct server_request *q);

/* server_stream.c: an answer that goes on; NULL when it cannot be made. */
struct MHD_Response *server_stream_begin(struct server *server, struct MHD_Connection *c, struct server_answer *a);
/* All end, cut short. */
void server_end_streams(struct server *server);

/* server_peer.c: a peer that is too slow, or says nothing, is cut off. */
void peer_notified(void *user, struct MHD_Connection *c, void **context, enum MHD_ConnectionNotificationCode what);
void peer_expects(struct MHD_Connection *c, unsigned seconds); /* 0: nothing */

/* server_tls.c */
bool server_tls_load(struct server *s, const char *cert, const char *key, struct error *e) MUST_USE;
void server_tls_release(struct server *s);
/* For MHD_OPTION_HTTPS_CERT_CALLBACK2. */
int server_tls_pick(gnutls_session_t session, const struct gnutls_cert_retr_st *asked, gnutls_pcert_st **chain,
		    unsigned *chain_count, gnutls_ocsp_data_st **staples, unsigned *staple_count, gnutls_privkey_t *key,
		    unsigned *flags);
void server_tls_is_of(struct server *s); /* whose handshakes those are until the next call */
