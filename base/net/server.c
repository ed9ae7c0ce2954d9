#include "base/net/server.h"

#include "base/arena.h"
#include "base/log.h"
#include "base/net/listen.h"
#include "base/quantity.h"

#include <assert.h>
#include <gnutls/abstract.h>
#include <gnutls/x509.h>
#include <microhttpd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <unistd.h>

/* What the files of the HTTP server share. */

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

static void server_run(struct server *s);
static void peer_expects(struct MHD_Connection *c, unsigned seconds);
static void peer_notified(void *user, struct MHD_Connection *c, void **context,
			  enum MHD_ConnectionNotificationCode what);
static void server_drop_waits(struct server *s);
static enum MHD_Result server_on_request(void *user, struct MHD_Connection *c, const char *path, const char *method,
					 const char *version, const char *part, size_t *part_len, void **state);
static void server_on_completed(void *user, struct MHD_Connection *c, void **state,
				enum MHD_RequestTerminationCode how);
static struct MHD_Response *server_stream_begin(struct server *server, struct MHD_Connection *c,
						struct server_answer *a);
static void server_end_streams(struct server *server);
static void server_tls_is_of(struct server *s);
static int server_tls_pick(gnutls_session_t session, const struct gnutls_cert_retr_st *asked, gnutls_pcert_st **chain,
			   unsigned *chain_count, gnutls_ocsp_data_st **staples, unsigned *staple_count,
			   gnutls_privkey_t *key, unsigned *flags);
static void server_tls_release(struct server *s);
static bool server_tls_load(struct server *s, const char *cert, const char *key, struct error *e);

#define DEFAULT_CONNECTIONS	128U
#define DEFAULT_BODY		((size_t)64 << 10)
#define DEFAULT_IDLE_SECONDS	30U
#define DEFAULT_REQUEST_SECONDS 30U
#define CONNECTION_MEMORY	((size_t)32 << 10) /* a request's header must fit; longer is 431 */
#define TLS_VERSIONS		"NORMAL:-VERS-ALL:+VERS-TLS1.3:+VERS-TLS1.2"

static void on_timeout(struct timer *t)
{
	server_run(t->user);
}

/* for what libmicrohttpd was told outside of it: it wakes nobody itself */
static void server_run_soon(struct server *s)
{
	timer_start(s->loop, &s->timeout, 0, on_timeout);
}

/* libmicrohttpd tells through this which connection is ready, and when it wants to be run without any. */
static void server_run(struct server *s)
{
	MHD_UNSIGNED_LONG_LONG wait = 0;

	server_tls_is_of(s);
	s->has_gone = false;
	MHD_run(s->daemon);
	if (s->has_gone) /* it listens again in its next run, and would not ask for that one */
		server_run_soon(s);
	else if (MHD_get_timeout(s->daemon, &wait) == MHD_YES)
		timer_start(s->loop, &s->timeout, (millis)wait, on_timeout);
	else
		timer_stop(&s->timeout);
}

static void on_ready(struct ev_loop *ev, ev_io *w, int events)
{
	(void)ev;
	(void)events;
	server_run(w->data);
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

static void on_complaint(void *user, const char *fmt, va_list ap) PRINTF(2, 0);
static void on_complaint(void *user, const char *fmt, va_list ap)
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
	struct MHD_OptionItem tls[] = { { MHD_OPTION_HTTPS_CERT_CALLBACK2, 0, (void *)server_tls_pick },
					{ MHD_OPTION_HTTPS_PRIORITIES, 0, (void *)(uintptr_t)TLS_VERSIONS },
					{ MHD_OPTION_END, 0, NULL } };
	struct MHD_OptionItem none[] = { { MHD_OPTION_END, 0, NULL } };
	unsigned flags =
		MHD_USE_EPOLL | MHD_USE_ERROR_LOG | MHD_ALLOW_SUSPEND_RESUME | (set->tls_cert ? MHD_USE_TLS : 0U);

	return MHD_start_daemon(flags, 0, on_connect, s, server_on_request, s, MHD_OPTION_EXTERNAL_LOGGER, on_complaint,
				s, MHD_OPTION_LISTEN_SOCKET, fd, MHD_OPTION_CONNECTION_LIMIT, set->max_connections,
				MHD_OPTION_PER_IP_CONNECTION_LIMIT, set->max_per_address, MHD_OPTION_CONNECTION_TIMEOUT,
				set->idle_seconds, MHD_OPTION_CONNECTION_MEMORY_LIMIT, CONNECTION_MEMORY,
				MHD_OPTION_NOTIFY_COMPLETED, server_on_completed, s, MHD_OPTION_NOTIFY_CONNECTION,
				peer_notified, s, MHD_OPTION_STRICT_FOR_CLIENT, 1, MHD_OPTION_ARRAY,
				set->tls_cert ? tls : none, MHD_OPTION_END);
}

static struct server *make(struct loop *loop, const struct server_settings *settings)
{
	struct server *s = calloc(1, sizeof *s);

	if (!s) {
		fputs("out of memory\n", stderr);
		abort();
	}
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
	server_tls_release(s);
	rates_free(s->rates);
	rates_free(s->connects);
	free(s);
}

static void attach(struct server *s)
{
	const union MHD_DaemonInfo *epoll = MHD_get_daemon_info(s->daemon, MHD_DAEMON_INFO_EPOLL_FD);

	s->is_open = true;
	ev_io_init(&s->ready, on_ready, epoll->epoll_fd, EV_READ);
	s->ready.data = s;
	ev_io_start(loop_ev(s->loop), &s->ready);
}

static bool begin(struct server *s, int fd, struct error *e)
{
	if (s->settings.tls_cert && !server_tls_load(s, s->settings.tls_cert, s->settings.tls_key, e))
		return false;
	s->daemon = start(s, fd);
	return s->daemon ||
	       error_set(e, ERROR_INVALID, "%s", *s->complaint ? s->complaint : "the HTTP server cannot start");
}

struct server *server_open(struct loop *loop, const struct server_settings *settings, struct error *e)
{
	uint16_t port;
	int fd = listen_open(settings->listen, &port, e);

	if (fd < 0)
		return NULL;
	struct server *s = make(loop, settings);
	s->port = port;
	if (!begin(s, fd, e)) {
		error_wrap(e, "serving on %s", settings->listen);
		close(fd);
		release(s);
		return NULL;
	}
	s->settings.tls_cert = s->settings.tls_key = NULL; /* the caller's, and secret */
	attach(s);
	return s;
}

uint16_t server_port(const struct server *s)
{
	return s->port;
}

void server_close(struct server *s)
{
	if (!s)
		return;
	s->is_open = false;
	ev_io_stop(loop_ev(s->loop), &s->ready);
	server_drop_waits(s); /* libmicrohttpd cannot be stopped over them */
	server_end_streams(s);
	MHD_stop_daemon(s->daemon);
	timer_stop(&s->timeout);
	timer_stop(&s->due);
	release(s);
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

static struct MHD_Response *answer_make(struct server_answer *a)
{
	if (a->fd >= 0)
		return MHD_create_response_from_fd64(a->fd_len, a->fd);
	if (!a->body.text)
		return MHD_create_response_from_buffer(0, (void *)(uintptr_t) "", MHD_RESPMEM_PERSISTENT);
	return MHD_create_response_from_buffer(a->body.len, a->body.text, MHD_RESPMEM_MUST_FREE);
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
static struct MHD_Response *server_response(const struct server *s, struct server_answer *a)
{
	if (!buf_ok(&a->body)) {
		buf_release(&a->body);
		a->status = MHD_HTTP_INTERNAL_SERVER_ERROR;
	}
	struct MHD_Response *response = answer_make(a);
	if (response)
		add_headers(s, response, a);
	return response;
}

static struct MHD_Response *begin_stream(struct server *s, struct MHD_Connection *c, struct server_answer *a)
{
	struct MHD_Response *response = server_stream_begin(s, c, a);

	if (response)
		add_headers(s, response, a);
	peer_expects(c, s->settings.stream_seconds);
	return response;
}

/* server_answer.c */
static enum MHD_Result server_reply(struct server *s, struct MHD_Connection *c, struct server_answer *a)
{
	struct MHD_Response *response = a->stream ? begin_stream(s, c, a) : server_response(s, a);

	if (!response)
		return MHD_NO;
	enum MHD_Result result = MHD_queue_response(c, (unsigned)a->status, response);
	MHD_destroy_response(response);
	return result;
}

/* An answer of the server's own. */
static struct server_answer server_refusal(const struct server *s, int status, const char *text)
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
	struct server_answer a = allow.len ? server_refusal(s, 405, "this path does not take that method")
					   : server_refusal(s, 404, "there is no such path");
	a.headers[0] = allow.text;
	return server_reply(s, c, &a);
}

enum MHD_Result server_route(struct server *s, struct server_request *q)
{
	for (size_t i = 0; i < s->settings.route_count; i++) {
		const struct server_route *r = &s->settings.routes[i];
		if ((r->method && strcmp(r->method, q->method) != 0) || !path_fits(r, q->path))
			continue;
		struct server_answer a = { .status = 200, .content_type = "text/plain; charset=utf-8", .fd = -1 };
		q->user = r->user;
		r->answer(q, &a);
		return server_reply(s, q->connection, &a);
	}
	return reply_unrouted(s, q->connection, q->path);
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

	for (struct peer *p = s->peers; p; p = p->next) {
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

static void forget(struct peer *p)
{
	if (p->previous)
		p->previous->next = p->next;
	else
		p->server->peers = p->next;
	if (p->next)
		p->next->previous = p->previous;
	free(p);
}

/* server_peer.c: a peer that is too slow, or says nothing, is cut off. */
static void peer_notified(void *user, struct MHD_Connection *c, void **context,
			  enum MHD_ConnectionNotificationCode what)
{
	struct server *s = user;

	if (what == MHD_CONNECTION_NOTIFY_CLOSED) {
		if (*context)
			forget(*context);
		*context = NULL;
		s->has_gone = true;
		return;
	}
	struct peer *p = calloc(1, sizeof *p);
	if (!p)
		abort();
	p->server = s;
	p->fd = MHD_get_connection_info(c, MHD_CONNECTION_INFO_CONNECTION_FD)->connect_fd;
	p->next = s->peers;
	if (p->next)
		p->next->previous = p;
	s->peers = p;
	*context = p;
	expect(p, s->settings.request_seconds);
}

static bool is_announced_too_long(const struct server *s, struct MHD_Connection *c)
{
	const char *length = MHD_lookup_connection_value(c, MHD_HEADER_KIND, "Content-Length");
	int64_t n;

	return length && fixed_parse(length, strlen(length), 0, &n) && (uint64_t)n > s->settings.max_body;
}

static enum MHD_Result reply_too_many(struct server *s, struct MHD_Connection *c, millis wait)
{
	struct server_answer a = server_refusal(s, 429, "too many requests: try again later");
	char after[48];

	snprintf(after, sizeof after, "Retry-After: %lld", (long long)((wait + SECOND - 1) / SECOND));
	a.headers[0] = after;
	return server_reply(s, c, &a);
}

static void add_wait(struct server_wait *w)
{
	w->next = w->server->waits;
	if (w->next)
		w->next->previous = w;
	w->server->waits = w;
}

static void remove_wait(struct server_wait *w)
{
	if (w->previous)
		w->previous->next = w->next;
	else
		w->server->waits = w->next;
	if (w->next)
		w->next->previous = w->previous;
	w->next = w->previous = NULL;
}

static void go_on(struct server_wait *w)
{
	remove_wait(w);
	w->stage = EXCHANGE_DECIDED;
	MHD_resume_connection(w->connection);
}

void server_decide(struct server_wait *w, struct server_answer *refusal)
{
	if (refusal) {
		w->refusal_status = (unsigned)refusal->status;
		w->refusal = server_response(w->server, refusal);
		w->is_dropped = !w->refusal;
	}
	go_on(w);
	server_run_soon(w->server);
}

/* All that wait end without an answer. */
static void server_drop_waits(struct server *s)
{
	while (s->waits) {
		s->waits->is_dropped = true;
		go_on(s->waits);
	}
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
				     struct server_wait *w)
{
	const union MHD_ConnectionInfo *from = MHD_get_connection_info(c, MHD_CONNECTION_INFO_CLIENT_ADDRESS);
	millis wait = rates_take(s->rates, from ? from->client_addr : NULL, loop_now(s->loop));
	struct server_answer a = { .status = 403, .content_type = "text/plain; charset=utf-8", .fd = -1 };

	if (wait)
		return reply_too_many(s, c, wait);
	if (is_announced_too_long(s, c)) {
		a = server_refusal(s, 413, "the body is too long");
		return server_reply(s, c, &a);
	}
	switch (s->settings.admit ? s->settings.admit(s->settings.admit_user, q, w, &a) : SERVER_ADMITS) {
	case SERVER_ADMITS:
		w->stage = EXCHANGE_BODY;
		return MHD_YES;
	case SERVER_REFUSES:
		return server_reply(s, c, &a);
	case SERVER_WAITS:
		break;
	}
	peer_expects(c, 0);
	add_wait(w);
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
	enum MHD_Result result = MHD_queue_response(w->connection, w->refusal_status, refusal);
	MHD_destroy_response(refusal);
	return result;
}

static struct server_wait *meet(struct server *s, struct MHD_Connection *c)
{
	struct server_wait *w = calloc(1, sizeof *w);

	if (!w)
		abort();
	w->server = s;
	w->connection = c;
	w->body.cap = s->settings.max_body;
	return w;
}

/* libmicrohttpd calls once when the header is there, then for each part of the body, then for the answer. */
// NOLINTNEXTLINE(readability-function-size): its parameters are libmicrohttpd's
static enum MHD_Result server_on_request(void *user, struct MHD_Connection *c, const char *path, const char *method,
					 const char *version, const char *part, size_t *part_len, void **state)
{
	struct server *s = user;
	struct server_wait *w = *state;

	(void)version;
	if (!w) {
		*state = w = meet(s, c);
		struct server_request q = request_of(w, method, path);
		return request_begin(s, c, &q, w);
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
	return server_route(s, &q);
}

static void server_on_completed(void *user, struct MHD_Connection *c, void **state, enum MHD_RequestTerminationCode how)
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

static void wake(struct server_stream *s)
{
	if (!s->is_waiting)
		return;
	s->is_waiting = false;
	MHD_resume_connection(s->connection);
	server_run_soon(s->server);
}

static void stream_forget(struct server_stream *s)
{
	if (s->previous)
		s->previous->next = s->next;
	else
		s->server->streams = s->next;
	if (s->next)
		s->next->previous = s->previous;
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
	memmove(s->unsent.text, s->unsent.text + len, s->unsent.len - len + 1);
	s->unsent.len -= len;
	return (ssize_t)len;
}

static void end(void *user)
{
	struct server_stream *s = user;

	stream_forget(s);
	buf_release(&s->unsent);
	s->ended(s);
}

/* server_stream.c: an answer that goes on; NULL when it cannot be made. */
static struct MHD_Response *server_stream_begin(struct server *server, struct MHD_Connection *c,
						struct server_answer *a)
{
	struct server_stream *s = a->stream;

	s->connection = c;
	s->unsent = a->body;
	s->unsent.cap = SERVER_STREAM_MOST;
	s->server = server;
	s->next = server->streams;
	if (s->next)
		s->next->previous = s;
	server->streams = s;
	a->body = (struct buf){ 0 };
	struct MHD_Response *response = MHD_create_response_from_callback(MHD_SIZE_UNKNOWN, 4096, give, s, end);
	if (!response)
		end(s);
	return response;
}

/* Its end of the socket is closed, so that libmicrohttpd finds the connection ended. */
static void cut_off(struct server_stream *s)
{
	const union MHD_ConnectionInfo *of = MHD_get_connection_info(s->connection, MHD_CONNECTION_INFO_CONNECTION_FD);

	s->is_over = true;
	if (of)
		shutdown(of->connect_fd, SHUT_RDWR);
}

void server_stream_send(struct server_stream *s, const char *text, size_t len)
{
	buf_append(&s->unsent, text, len);
	if (!buf_ok(&s->unsent) && !s->is_over)
		cut_off(s);
	wake(s);
}

/* All end, cut short. */
static void server_end_streams(struct server *server)
{
	for (struct server_stream *s = server->streams; s; s = s->next) {
		s->is_over = true;
		wake(s);
	}
}

#define CHAIN_MOST	  (sizeof((struct tls_pair *)NULL)->chain / sizeof *((struct tls_pair *)NULL)->chain)
#define HANDSHAKE_LONGEST (5 * MINUTE)

/* libmicrohttpd hands no pointer of ours to this call-back; but only server_run() brings it about. */
static const struct server *shaking;

/* whose handshakes those are until the next call */
static void server_tls_is_of(struct server *s)
{
	shaking = s;
}

// NOLINTNEXTLINE(readability-function-size): its parameters are GnuTLS's
static int server_tls_pick(gnutls_session_t session, const struct gnutls_cert_retr_st *asked, gnutls_pcert_st **chain,
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

static void server_tls_release(struct server *s)
{
	for (struct tls_pair *p = s->pairs, *next; p; p = next) {
		next = p->next;
		free_pair(p);
	}
	s->pairs = NULL;
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

/* server_tls.c */
static bool server_tls_load(struct server *s, const char *cert, const char *key, struct error *e)
{
	const gnutls_datum_t cert_text = { (unsigned char *)(uintptr_t)cert, (unsigned)strlen(cert) };
	const gnutls_datum_t key_text = { (unsigned char *)(uintptr_t)(key ? key : ""),
					  (unsigned)strlen(key ? key : "") };
	struct tls_pair *p = calloc(1, sizeof *p);

	if (!p)
		abort();
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

bool server_renew_tls(struct server *s, const char *cert, const char *key, struct error *e)
{
	return server_tls_load(s, cert, key, e);
}
