#include "base/net/server.h"

#include "base/alloc.h"
#include "base/arena.h"
#include "base/log.h"
#include "base/quantity.h"
#include "base/text.h"

#include <arpa/inet.h>
#include <assert.h>
#include <errno.h>
#include <gnutls/abstract.h>
#include <gnutls/x509.h>
#include <microhttpd.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/queue.h>
#include <sys/socket.h>
#include <unistd.h>

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
	LIST_ENTRY(peer) link;
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
	int refusal_status;
	bool is_dropped;
	LIST_ENTRY(server_wait) link; /* while it waits */
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
	LIST_HEAD(, peer) peers;
	LIST_HEAD(, server_wait) waits;
	LIST_HEAD(, server_stream) streams;
};

#define DEFAULT_CONNECTIONS	128U
#define DEFAULT_BODY		((size_t)64 << 10)
#define DEFAULT_IDLE_SECONDS	30U
#define DEFAULT_REQUEST_SECONDS 30U
#define CONNECTION_MEMORY	((size_t)32 << 10) /* a request's header must fit; longer is 431 */
#define TLS_VERSIONS		"NORMAL:-VERS-ALL:+VERS-TLS1.3:+VERS-TLS1.2"

/* libmicrohttpd hands no pointer of ours to the call-back that picks a certificate; but only run_once() brings it
 * about. */
static const struct server *shaking;

static void on_timeout(struct timer *t);

/* for what libmicrohttpd was told outside of it: it wakes nobody itself */
static void run_soon(struct server *s)
{
	timer_start(s->loop, &s->timeout, 0, on_timeout);
}

/* libmicrohttpd tells through this which connection is ready, and when it wants to be run without any. */
static void run_once(struct server *s)
{
	MHD_UNSIGNED_LONG_LONG wait = 0;

	shaking = s;
	s->has_gone = false;
	MHD_run(s->daemon);
	if (s->has_gone) /* it listens again in its next run, and would not ask for that one */
		run_soon(s);
	else if (MHD_get_timeout(s->daemon, &wait) == MHD_YES)
		timer_start(s->loop, &s->timeout, (millis)wait, on_timeout);
	else
		timer_stop(&s->timeout);
}

static void on_timeout(struct timer *t)
{
	run_once(t->user);
}

static void on_ready(struct ev_loop *ev, ev_io *w, int events)
{
	(void)ev;
	(void)events;
	run_once(w->data);
}

static void cut_off_the_slow(struct timer *t);

static void look_at(struct server *s, millis at)
{
	millis now = loop_now(s->loop);

	if (timer_is_running(&s->due) && s->due_at <= at)
		return;
	s->due_at = at;
	timer_start(s->loop, &s->due, at > now ? at - now : 0, cut_off_the_slow);
}

/* Its end of the socket is closed, so that libmicrohttpd finds the connection ended and cleans up. */
static void cut_off_the_slow(struct timer *t)
{
	struct server *s = t->user;
	millis now = loop_now(s->loop), next = 0;
	struct peer *p;

	LIST_FOREACH(p, &s->peers, link)
	{
		if (p->until && p->until <= now) {
			p->until = 0;
			shutdown(p->fd, SHUT_RDWR);
		}
		if (p->until && (!next || p->until < next))
			next = p->until;
	}
	if (next)
		look_at(s, next);
}

static void expect(struct peer *p, unsigned seconds)
{
	p->until = seconds ? loop_now(p->server->loop) + (millis)seconds * SECOND : 0;
	if (p->until)
		look_at(p->server, p->until);
}

/* 0: nothing */
static void peer_expects(struct MHD_Connection *c, unsigned seconds)
{
	const union MHD_ConnectionInfo *of = MHD_get_connection_info(c, MHD_CONNECTION_INFO_SOCKET_CONTEXT);

	if (of && of->socket_context)
		expect(of->socket_context, seconds);
}

/* A peer that is too slow, or says nothing, is cut off. */
static void peer_notified(void *user, struct MHD_Connection *c, void **context,
			  enum MHD_ConnectionNotificationCode what)
{
	struct server *s = user;
	struct peer *p = *context;

	if (what == MHD_CONNECTION_NOTIFY_CLOSED) {
		if (p)
			LIST_REMOVE(p, link);
		free(p);
		*context = NULL;
		s->has_gone = true;
		return;
	}
	p = xnew(struct peer);
	p->server = s;
	p->fd = MHD_get_connection_info(c, MHD_CONNECTION_INFO_CONNECTION_FD)->connect_fd;
	LIST_INSERT_HEAD(&s->peers, p, link);
	*context = p;
	expect(p, s->settings.request_seconds);
}

static void wake(struct server_stream *s)
{
	if (!s->is_waiting)
		return;
	s->is_waiting = false;
	MHD_resume_connection(s->connection);
	run_soon(s->server);
}

/* libmicrohttpd asks for more; without any the connection rests until there is. */
static ssize_t give(void *user, uint64_t position, char *out, size_t room)
{
	struct server_stream *s = user;
	size_t len = s->unsent.len < room ? s->unsent.len : room;

	(void)position;
	if (s->is_over)
		return MHD_CONTENT_READER_END_WITH_ERROR;
	if (!len) {
		s->is_waiting = true;
		MHD_suspend_connection(s->connection);
		return 0;
	}
	memcpy(out, s->unsent.text, len);
	buf_drop(&s->unsent, len);
	return (ssize_t)len;
}

static void end(void *user)
{
	struct server_stream *s = user;

	LIST_REMOVE(s, link);
	buf_release(&s->unsent);
	s->ended(s);
}

/* An answer that goes on; NULL when it cannot be made. */
static struct MHD_Response *stream_begin(struct server *server, struct MHD_Connection *c, struct server_answer *a)
{
	struct server_stream *s = a->stream;

	s->connection = c;
	s->unsent = a->body;
	s->unsent.cap = SERVER_STREAM_MOST;
	s->server = server;
	LIST_INSERT_HEAD(&server->streams, s, link);
	a->body = (struct buf){ 0 };
	struct MHD_Response *response = MHD_create_response_from_callback(MHD_SIZE_UNKNOWN, 4096, give, s, end);
	if (!response)
		end(s);
	return response;
}

void server_stream_end(struct server_stream *s)
{
	/* Its end of the socket is closed, so that libmicrohttpd finds the connection ended. */
	const union MHD_ConnectionInfo *of =
		s->is_over ? NULL : MHD_get_connection_info(s->connection, MHD_CONNECTION_INFO_CONNECTION_FD);

	s->is_over = true;
	if (of)
		shutdown(of->connect_fd, SHUT_RDWR);
	wake(s);
}

void server_stream_send(struct server_stream *s, const char *text, size_t len)
{
	buf_append(&s->unsent, text, len);
	if (buf_ok(&s->unsent))
		wake(s);
	else
		server_stream_end(s);
}

static void add_header(struct MHD_Response *response, const char *line)
{
	const char *colon = strchr(line, ':');
	CLEANUP(buf_release) struct buf name = { 0 };

	if (!colon)
		return;
	buf_append(&name, line, (size_t)(colon - line));
	MHD_add_response_header(response, name.text, colon + 1 + strspn(colon + 1, " "));
}

/* What an answer says itself is not said for it. */
static bool says(const struct server_answer *a, const char *line)
{
	size_t len = strcspn(line, ":") + 1;

	for (size_t i = 0; i < sizeof a->headers / sizeof *a->headers; i++)
		if (a->headers[i] && strncasecmp(a->headers[i], line, len) == 0)
			return true;
	return false;
}

static void add_headers(const struct server *s, struct MHD_Response *response, const struct server_answer *a)
{
	MHD_add_response_header(response, "Content-Type", a->content_type);
	for (const char *const *h = s->settings.headers; h && *h; h++)
		if (!says(a, *h))
			add_header(response, *h);
	for (size_t i = 0; i < sizeof a->headers / sizeof *a->headers; i++)
		if (a->headers[i])
			add_header(response, a->headers[i]);
}

/* NULL when it cannot be made; `a` is used up either way. */
static struct MHD_Response *make_response(struct server *s, struct MHD_Connection *c, struct server_answer *a)
{
	struct MHD_Response *response;

	if (!a->stream && !buf_ok(&a->body)) {
		buf_release(&a->body);
		a->status = MHD_HTTP_INTERNAL_SERVER_ERROR;
	}
	if (a->stream)
		response = stream_begin(s, c, a);
	else if (a->fd >= 0)
		response = MHD_create_response_from_fd64(a->fd_len, a->fd);
	else if (!a->body.text)
		response = MHD_create_response_from_buffer(0, (void *)(uintptr_t) "", MHD_RESPMEM_PERSISTENT);
	else
		response = MHD_create_response_from_buffer(a->body.len, a->body.text, MHD_RESPMEM_MUST_FREE);
	if (response)
		add_headers(s, response, a);
	if (a->stream)
		peer_expects(c, s->settings.stream_seconds);
	return response;
}

static enum MHD_Result queue_response(struct MHD_Connection *c, int status, struct MHD_Response *response)
{
	if (!response)
		return MHD_NO;
	enum MHD_Result result = MHD_queue_response(c, (unsigned)status, response);
	MHD_destroy_response(response);
	return result;
}

static enum MHD_Result reply(struct server *s, struct MHD_Connection *c, struct server_answer *a)
{
	struct MHD_Response *response = make_response(s, c, a);

	return queue_response(c, a->status, response);
}

/* An answer of the server's own. */
static struct server_answer refusal_of(const struct server *s, int status, const char *text)
{
	struct server_answer a = { .status = status, .content_type = "text/plain; charset=utf-8", .fd = -1 };

	if (s->settings.refuse)
		s->settings.refuse(&a, text);
	else
		buf_printf(&a.body, "%s\n", text);
	return a;
}

static bool path_fits(const struct server_route *r, const char *path)
{
	size_t len = strlen(r->path);

	if (len && r->path[len - 1] == '*')
		return strncmp(r->path, path, len - 1) == 0;
	return strcmp(r->path, path) == 0;
}

static void add_word(struct buf *list, const char *word)
{
	if (list->text && strstr(list->text, word))
		return;
	buf_printf(list, "%s%s", list->len ? ", " : "Allow: ", word);
}

/* No route: the path is unknown, or known with other methods. */
static enum MHD_Result reply_unrouted(struct server *s, struct MHD_Connection *c, const char *path)
{
	CLEANUP(buf_release) struct buf allow = { 0 };

	for (size_t i = 0; i < s->settings.route_count; i++) {
		const struct server_route *r = &s->settings.routes[i];
		if (!r->method || !path_fits(r, path))
			continue;
		add_word(&allow, r->method);
		if (strcmp(r->method, "GET") == 0)
			add_word(&allow, "HEAD");
	}
	struct server_answer a = allow.len ? refusal_of(s, 405, "this path does not take that method")
					   : refusal_of(s, 404, "there is no such path");
	a.headers[0] = allow.text;
	return reply(s, c, &a);
}

static enum MHD_Result answer_by_route(struct server *s, struct server_request *q)
{
	for (size_t i = 0; i < s->settings.route_count; i++) {
		const struct server_route *r = &s->settings.routes[i];
		if ((r->method && strcmp(r->method, q->method) != 0) || !path_fits(r, q->path))
			continue;
		struct server_answer a = { .status = 200, .content_type = "text/plain; charset=utf-8", .fd = -1 };
		q->user = r->user;
		r->answer(q, &a);
		return reply(s, q->connection, &a);
	}
	return reply_unrouted(s, q->connection, q->path);
}

const char *server_query(const struct server_request *q, const char *name)
{
	const char *value = NULL;
	size_t len;

	if (MHD_lookup_connection_value_n(q->connection, MHD_GET_ARGUMENT_KIND, name, strlen(name), &value, &len) !=
	    MHD_YES)
		return NULL;
	return value ? value : "";
}

struct pairs {
	struct server_pair *items;
	size_t count, room;
};

static enum MHD_Result take_pair(void *user, enum MHD_ValueKind kind, const char *name, const char *value)
{
	struct pairs *p = user;

	(void)kind;
	if (p->count < p->room)
		p->items[p->count] = (struct server_pair){ name, value ? value : "" };
	p->count++;
	return MHD_YES;
}

size_t server_query_pairs(const struct server_request *q, struct server_pair *pairs, size_t room)
{
	struct pairs p = { pairs, 0, room };

	MHD_get_connection_values(q->connection, MHD_GET_ARGUMENT_KIND, take_pair, &p);
	return p.count;
}

const char *server_header(const struct server_request *q, const char *name)
{
	return MHD_lookup_connection_value(q->connection, MHD_HEADER_KIND, name);
}

/* What a request's header says of where it ends and whom it asks. */
struct framing {
	int hosts, lengths, encodings;
	bool is_chunked, is_broken;
};

/* libmicrohttpd takes for a name whatever stands before the colon, and adds to it the rest of a folded line. */
static bool is_name(const char *name)
{
	return *name && name[strspn(name, "!#$%&'*+-.^_`|~0123456789abcdefghijklmnopqrstuvwxyz"
					  "ABCDEFGHIJKLMNOPQRSTUVWXYZ")] == '\0';
}

static int counts_as(const char *name, const char *wanted, struct framing *f)
{
	size_t len = strlen(wanted);

	if (strncasecmp(name, wanted, len) != 0)
		return 0;
	f->is_broken |= name[len] != '\0';
	return 1;
}

static enum MHD_Result look_at_header(void *user, enum MHD_ValueKind kind, const char *name, const char *value)
{
	struct framing *f = user;
	int encodings = counts_as(name, "Transfer-Encoding", f);

	(void)kind;
	f->is_broken |= !is_name(name) || (value && strpbrk(value, "\r\n"));
	f->hosts += strcasecmp(name, "Host") == 0;
	f->lengths += counts_as(name, "Content-Length", f);
	f->encodings += encodings;
	f->is_chunked |= encodings && value && strcasecmp(value, "chunked") == 0;
	return MHD_YES;
}

/* Whoever stands before us could see its end, or its host, elsewhere (RFC 9112, 3.2 and 6.3). */
static bool is_ambiguous(struct MHD_Connection *c, const char *version)
{
	struct framing f = { 0 };

	MHD_get_connection_values(c, MHD_HEADER_KIND, look_at_header, &f);
	return f.is_broken || f.hosts > 1 || f.lengths + f.encodings > 1 || (f.encodings && !f.is_chunked) ||
	       (f.encodings && strcmp(version, MHD_HTTP_VERSION_1_1) != 0);
}

static bool is_announced_too_long(const struct server *s, struct MHD_Connection *c)
{
	const char *length = MHD_lookup_connection_value(c, MHD_HEADER_KIND, "Content-Length");
	int64_t n;

	return length && fixed_parse(length, strlen(length), 0, &n) && (uint64_t)n > s->settings.max_body;
}

static enum MHD_Result reply_too_many(struct server *s, struct MHD_Connection *c, millis wait)
{
	struct server_answer a = refusal_of(s, 429, "too many requests: try again later");
	char after[48];

	snprintf(after, sizeof after, "Retry-After: %lld", (long long)((wait + SECOND - 1) / SECOND));
	a.headers[0] = after;
	return reply(s, c, &a);
}

static void go_on(struct server_wait *w)
{
	LIST_REMOVE(w, link);
	w->stage = EXCHANGE_DECIDED;
	MHD_resume_connection(w->connection);
}

void server_decide(struct server_wait *w, struct server_answer *refusal)
{
	if (refusal) {
		w->refusal = make_response(w->server, w->connection, refusal);
		w->refusal_status = refusal->status;
		w->is_dropped = !w->refusal;
	}
	go_on(w);
	run_soon(w->server);
}

static struct server_request request_of(const struct server_wait *w, const char *method, const char *path)
{
	return (struct server_request){ .method = strcmp(method, "HEAD") == 0 ? "GET" : method,
					.path = path,
					.body = w->body.text ? w->body.text : "",
					.body_len = w->body.len,
					.connection = w->connection };
}

/* The header is there. */
static enum MHD_Result request_begin(struct server *s, struct MHD_Connection *c, const struct server_request *q,
				     const char *version, struct server_wait *w)
{
	const union MHD_ConnectionInfo *from = MHD_get_connection_info(c, MHD_CONNECTION_INFO_CLIENT_ADDRESS);
	millis wait = rates_take(s->rates, from ? from->client_addr : NULL, loop_now(s->loop));
	struct server_answer a = { .status = 403, .content_type = "text/plain; charset=utf-8", .fd = -1 };

	if (wait)
		return reply_too_many(s, c, wait);
	if (is_ambiguous(c, version)) {
		a = refusal_of(s, 400, "the request can be read in two ways");
		a.headers[0] = "Connection: close"; /* what comes behind it is no request */
		return reply(s, c, &a);
	}
	if (is_announced_too_long(s, c)) {
		a = refusal_of(s, 413, "the body is too long");
		return reply(s, c, &a);
	}
	switch (s->settings.admit ? s->settings.admit(s->settings.admit_user, q, w, &a) : SERVER_ADMITS) {
	case SERVER_ADMITS:
		w->stage = EXCHANGE_BODY;
		return MHD_YES;
	case SERVER_REFUSES:
		return reply(s, c, &a);
	case SERVER_WAITS:
		break;
	}
	peer_expects(c, 0);
	LIST_INSERT_HEAD(&s->waits, w, link);
	MHD_suspend_connection(c);
	return MHD_YES;
}

/* libmicrohttpd calls again as at first, because nothing was answered then. */
static enum MHD_Result decided(struct server_wait *w)
{
	struct MHD_Response *refusal = w->refusal;

	if (w->is_dropped)
		return MHD_NO;
	w->stage = EXCHANGE_BODY;
	peer_expects(w->connection, w->server->settings.request_seconds);
	if (!refusal)
		return MHD_YES;
	w->refusal = NULL;
	return queue_response(w->connection, w->refusal_status, refusal);
}

/* libmicrohttpd calls once when the header is there, then for each part of the body, then for the answer. */
// NOLINTNEXTLINE(readability-function-size): its parameters are libmicrohttpd's
static enum MHD_Result on_request(void *user, struct MHD_Connection *c, const char *path, const char *method,
				  const char *version, const char *part, size_t *part_len, void **state)
{
	struct server *s = user;
	struct server_wait *w = *state;

	if (!w) {
		*state = w = xnew(struct server_wait);
		w->server = s;
		w->connection = c;
		w->body.cap = s->settings.max_body;
		struct server_request q = request_of(w, method, path);
		return request_begin(s, c, &q, version, w);
	}
	if (w->stage == EXCHANGE_DECIDED)
		return decided(w);
	if (*part_len) {
		buf_append(&w->body, part, *part_len);
		*part_len = 0;
		return buf_ok(&w->body) ? MHD_YES : MHD_NO; /* only a closed connection ends an endless body */
	}
	struct server_request q = request_of(w, method, path);
	peer_expects(c, s->settings.answer_seconds);
	return answer_by_route(s, &q);
}

static void on_completed(void *user, struct MHD_Connection *c, void **state, enum MHD_RequestTerminationCode how)
{
	struct server *s = user;
	struct server_wait *w = *state;

	(void)how;
	peer_expects(c, s->settings.request_seconds);
	if (!w)
		return;
	if (w->refusal)
		MHD_destroy_response(w->refusal);
	buf_release(&w->body);
	free(w);
	*state = NULL;
}

#define CHAIN_MOST	  (sizeof((struct tls_pair *)NULL)->chain / sizeof *((struct tls_pair *)NULL)->chain)
#define HANDSHAKE_LONGEST (5 * MINUTE)

// NOLINTNEXTLINE(readability-function-size): its parameters are GnuTLS's
static int pick_pair(gnutls_session_t session, const struct gnutls_cert_retr_st *asked, gnutls_pcert_st **chain,
		     unsigned *chain_count, gnutls_ocsp_data_st **staples, unsigned *staple_count,
		     gnutls_privkey_t *key, unsigned *flags)
{
	struct tls_pair *pair = shaking ? shaking->pairs : NULL;

	(void)session;
	(void)asked;
	if (!pair)
		return -1;
	*chain = pair->chain;
	*chain_count = pair->chain_count;
	*staples = NULL;
	*staple_count = 0;
	*key = pair->key;
	*flags = 0;
	return 0;
}

static void free_pair(struct tls_pair *p)
{
	for (unsigned i = 0; i < p->chain_count; i++)
		gnutls_pcert_deinit(&p->chain[i]);
	if (p->key)
		gnutls_privkey_deinit(p->key);
	free(p);
}

/* Whether the key is the first certificate's. */
static int compare(struct tls_pair *p)
{
	unsigned char ids[2][64];
	size_t lens[2] = { sizeof ids[0], sizeof ids[1] };
	gnutls_pubkey_t of_key;
	int code = gnutls_pubkey_init(&of_key);

	if (code < 0)
		return code;
	code = gnutls_pubkey_import_privkey(of_key, p->key, 0, 0);
	if (code >= 0)
		code = gnutls_pubkey_get_key_id(of_key, GNUTLS_KEYID_USE_SHA256, ids[0], &lens[0]);
	if (code >= 0)
		code = gnutls_pubkey_get_key_id(p->chain[0].pubkey, GNUTLS_KEYID_USE_SHA256, ids[1], &lens[1]);
	gnutls_pubkey_deinit(of_key);
	if (code >= 0 && (lens[0] != lens[1] || memcmp(ids[0], ids[1], lens[0]) != 0))
		code = GNUTLS_E_CERTIFICATE_KEY_MISMATCH;
	return code < 0 ? code : 0;
}

static int fill_pair(struct tls_pair *p, const gnutls_datum_t *cert, const gnutls_datum_t *key)
{
	unsigned count = CHAIN_MOST;
	int code = gnutls_pcert_list_import_x509_raw(p->chain, &count, cert, GNUTLS_X509_FMT_PEM, 0);

	if (code < 0)
		return code;
	p->chain_count = count;
	code = gnutls_privkey_init(&p->key);
	if (code >= 0)
		code = gnutls_privkey_import_x509_raw(p->key, key, GNUTLS_X509_FMT_PEM, NULL, 0);
	return code < 0 ? code : compare(p);
}

/* Handshakes under way may hold a pair that was replaced; none lasts that long. */
static void drop_old(struct server *s)
{
	struct tls_pair **at = s->pairs ? &s->pairs->next : &s->pairs;

	while (*at) {
		struct tls_pair *p = *at;
		if (loop_now(s->loop) - p->retired < HANDSHAKE_LONGEST) {
			at = &p->next;
			continue;
		}
		*at = p->next;
		free_pair(p);
	}
}

bool server_renew_tls(struct server *s, const char *cert, const char *key, struct error *e)
{
	const gnutls_datum_t cert_text = { (unsigned char *)(uintptr_t)cert, (unsigned)strlen(cert) };
	const gnutls_datum_t key_text = { (unsigned char *)(uintptr_t)(key ? key : ""),
					  (unsigned)strlen(key ? key : "") };
	struct tls_pair *p = xcalloc(1, sizeof *p);

	int code = fill_pair(p, &cert_text, &key_text);
	if (code < 0) {
		free_pair(p);
		return error_set(e, ERROR_INVALID, "the TLS certificate and its key: %s", gnutls_strerror(code));
	}
	if (s->pairs)
		s->pairs->retired = loop_now(s->loop);
	p->next = s->pairs;
	s->pairs = p;
	drop_old(s);
	return true;
}

#define BACKLOG 128

struct place {
	char host[64];
	char port[8];
};

static bool not_an_address(const char *where, struct error *e)
{
	char shown[QUOTE_ROOM];

	return error_set(e, ERROR_INVALID,
			 "%s is not a valid listen address; use HOST:PORT, such as 127.0.0.1:8080, [::1]:8080 or :8080",
			 quote(shown, where, strlen(where)));
}

static bool split(const char *where, struct place *out, struct error *e)
{
	const char *colon = strrchr(where, ':');
	size_t host_len = colon ? (size_t)(colon - where) : 0;
	int64_t port;
	bool has_brackets = host_len >= 2 && where[0] == '[' && where[host_len - 1] == ']';
	const char *host = has_brackets ? where + 1 : where;

	host_len -= has_brackets ? 2 : 0;
	if (!colon || host_len >= sizeof out->host || strlen(colon + 1) >= sizeof out->port ||
	    (!has_brackets && memchr(host, ':', host_len)) || !fixed_parse(colon + 1, strlen(colon + 1), 0, &port) ||
	    port > UINT16_MAX)
		return not_an_address(where, e);
	memcpy(out->host, host, host_len);
	out->host[host_len] = '\0';
	memcpy(out->port, colon + 1, strlen(colon + 1) + 1);
	return true;
}

static int cannot(const char *where, const char *what, int number, struct error *e)
{
	enum error_kind kind = number == EACCES || number == EPERM ? ERROR_AUTH : ERROR_UNAVAILABLE;
	const char *remedy = number == EADDRINUSE ? ", another program listens there: stop it or choose another port"
			     : number == EADDRNOTAVAIL ? ", this machine has no such address"
			     : number == EACCES	       ? ", choose a port of 1024 or more"
						       : "";

	error_set(e, kind, "listening on %s: %s: %s%s", where, what, strerror(number), remedy);
	return -1;
}

static int open_socket(const char *where, const struct addrinfo *at, struct error *e)
{
	int on = 1, off = 0;
	int fd = socket(at->ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

	if (fd < 0)
		return cannot(where, "socket", errno, e);
	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
	if (at->ai_family == AF_INET6)
		setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof off);
	if (bind(fd, at->ai_addr, at->ai_addrlen) == 0 && listen(fd, BACKLOG) == 0)
		return fd;
	cannot(where, "cannot be used", errno, e);
	close(fd);
	return -1;
}

/* All addresses: both families on one socket where the machine knows both. */
static int open_family(const char *where, const struct place *p, int family, struct error *e)
{
	const char *host = !*p->host			       ? (family == AF_INET6 ? "::" : "0.0.0.0")
			   : strcmp(p->host, "localhost") == 0 ? "127.0.0.1"
							       : p->host;
	struct addrinfo want = { .ai_family = family,
				 .ai_socktype = SOCK_STREAM,
				 .ai_flags = AI_NUMERICHOST | AI_NUMERICSERV };
	struct addrinfo *at = NULL;

	if (getaddrinfo(host, p->port, &want, &at) != 0) {
		not_an_address(where, e);
		return -1;
	}
	int fd = open_socket(where, at, e);
	freeaddrinfo(at);
	return fd;
}

int listen_open(const char *where, uint16_t *port, struct error *e)
{
	union {
		struct sockaddr any;
		struct sockaddr_in v4;
		struct sockaddr_in6 v6;
	} at = { .v6 = { 0 } };
	socklen_t len = sizeof at;
	struct place p;

	if (!split(where, &p, e))
		return -1;
	int fd = open_family(where, &p, *p.host ? AF_UNSPEC : AF_INET6, e);
	if (fd < 0 && !*p.host && e->kind == ERROR_UNAVAILABLE)
		fd = open_family(where, &p, AF_INET, e);
	if (fd < 0)
		return -1;
	getsockname(fd, &at.any, &len);
	*port = ntohs(at.any.sa_family == AF_INET6 ? at.v6.sin6_port : at.v4.sin_port);
	return fd;
}

bool listen_check(const char *where, bool *is_loopback, struct error *e)
{
	struct in_addr v4;
	struct in6_addr v6;
	struct place p;

	if (!split(where, &p, e))
		return false;
	if (inet_pton(AF_INET, p.host, &v4) == 1)
		*is_loopback = ntohl(v4.s_addr) >> 24 == IN_LOOPBACKNET;
	else if (inet_pton(AF_INET6, p.host, &v6) == 1)
		*is_loopback = IN6_IS_ADDR_LOOPBACK(&v6);
	else if (!*p.host || strcmp(p.host, "localhost") == 0)
		*is_loopback = *p.host;
	else
		return not_an_address(where, e);
	return true;
}

PRINTF(2, 0) static void on_complaint(void *user, const char *fmt, va_list ap)
{
	struct server *s = user;

	vsnprintf(s->complaint, sizeof s->complaint, fmt, ap);
	s->complaint[strcspn(s->complaint, "\r\n")] = '\0';
	if (s->is_open) /* what strangers send is no event of ours */
		log_debug("server-complaint", LOG_S("text", s->complaint), LOG_END);
}

static enum MHD_Result on_connect(void *user, const struct sockaddr *from, socklen_t len)
{
	struct server *s = user;

	(void)len;
	return rates_take(s->connects, from, loop_now(s->loop)) ? MHD_NO : MHD_YES;
}

static struct MHD_Daemon *start(struct server *s, int fd)
{
	const struct server_settings *set = &s->settings;
	struct MHD_OptionItem tls[] = { { MHD_OPTION_HTTPS_CERT_CALLBACK2, 0, (void *)pick_pair },
					{ MHD_OPTION_HTTPS_PRIORITIES, 0, (void *)(uintptr_t)TLS_VERSIONS },
					{ MHD_OPTION_END, 0, NULL } };
	struct MHD_OptionItem none[] = { { MHD_OPTION_END, 0, NULL } };
	unsigned flags =
		MHD_USE_EPOLL | MHD_USE_ERROR_LOG | MHD_ALLOW_SUSPEND_RESUME | (set->tls_cert ? MHD_USE_TLS : 0U);

	return MHD_start_daemon(flags, 0, on_connect, s, on_request, s, MHD_OPTION_EXTERNAL_LOGGER, on_complaint, s,
				MHD_OPTION_LISTEN_SOCKET, fd, MHD_OPTION_CONNECTION_LIMIT, set->max_connections,
				MHD_OPTION_PER_IP_CONNECTION_LIMIT, set->max_per_address, MHD_OPTION_CONNECTION_TIMEOUT,
				set->idle_seconds, MHD_OPTION_CONNECTION_MEMORY_LIMIT, CONNECTION_MEMORY,
				MHD_OPTION_NOTIFY_COMPLETED, on_completed, s, MHD_OPTION_NOTIFY_CONNECTION,
				peer_notified, s, MHD_OPTION_STRICT_FOR_CLIENT, 1, MHD_OPTION_ARRAY,
				set->tls_cert ? tls : none, MHD_OPTION_END);
}

static struct server *make(struct loop *loop, const struct server_settings *settings)
{
	struct server *s = xcalloc(1, sizeof *s);

	s->loop = loop;
	s->settings = *settings;
	s->settings.max_connections = settings->max_connections ? settings->max_connections : DEFAULT_CONNECTIONS;
	s->settings.max_body = settings->max_body ? settings->max_body : DEFAULT_BODY;
	s->settings.idle_seconds = settings->idle_seconds ? settings->idle_seconds : DEFAULT_IDLE_SECONDS;
	s->settings.request_seconds = settings->request_seconds ? settings->request_seconds : DEFAULT_REQUEST_SECONDS;
	s->rates = rates_new(settings->rate, settings->rate_per_address);
	s->connects = rates_new(settings->connects, settings->connects_per_address);
	s->timeout.user = s->due.user = s;
	return s;
}

static void release(struct server *s)
{
	for (struct tls_pair *p = s->pairs, *next; p; p = next) {
		next = p->next;
		free_pair(p);
	}
	rates_free(s->rates);
	rates_free(s->connects);
	free(s);
}

struct server *server_open(struct loop *loop, const struct server_settings *settings, struct error *e)
{
	uint16_t port;
	int fd = listen_open(settings->listen, &port, e);

	if (fd < 0)
		return NULL;
	struct server *s = make(loop, settings);
	s->port = port;
	bool ok = !settings->tls_cert || server_renew_tls(s, settings->tls_cert, settings->tls_key, e);
	if (ok && !(s->daemon = start(s, fd)))
		ok = error_set(e, ERROR_INVALID, "%s", *s->complaint ? s->complaint : "the HTTP server cannot start");
	if (!ok) {
		error_wrap(e, "serving on %s", settings->listen);
		close(fd);
		release(s);
		return NULL;
	}
	s->settings.tls_cert = s->settings.tls_key = NULL; /* the caller's, and secret */
	s->is_open = true;
	ev_io_init(&s->ready, on_ready, MHD_get_daemon_info(s->daemon, MHD_DAEMON_INFO_EPOLL_FD)->epoll_fd, EV_READ);
	s->ready.data = s;
	ev_io_start(loop_ev(s->loop), &s->ready);
	return s;
}

uint16_t server_port(const struct server *s)
{
	return s->port;
}

void server_close(struct server *s)
{
	struct server_stream *stream;
	struct server_wait *w;

	if (!s)
		return;
	s->is_open = false;
	ev_io_stop(loop_ev(s->loop), &s->ready);
	/* libmicrohttpd cannot be stopped over those that wait; they end without an answer. */
	while ((w = LIST_FIRST(&s->waits))) {
		w->is_dropped = true;
		go_on(w);
	}
	LIST_FOREACH(stream, &s->streams, link)
	{
		stream->is_over = true;
		wake(stream);
	}
	MHD_stop_daemon(s->daemon);
	timer_stop(&s->timeout);
	timer_stop(&s->due);
	release(s);
}
