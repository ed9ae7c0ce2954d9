#include "base/net/server.h"

#include "base/arena.h"
#include "base/log.h"
#include "base/net/listen.h"
#include "base/quantity.h"

#include <microhttpd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define DEFAULT_CONNECTIONS  128U
#define DEFAULT_BODY	     ((size_t)64 << 10)
#define DEFAULT_IDLE_SECONDS 30U
#define CONNECTION_MEMORY    ((size_t)32 << 10) /* a request's header must fit; longer is 431 */
#define TLS_VERSIONS	     "NORMAL:-VERS-ALL:+VERS-TLS1.3:+VERS-TLS1.2"

struct server {
	struct loop *loop;
	struct server_settings settings;
	struct MHD_Daemon *daemon;
	ev_io ready;
	struct timer timeout;
	uint16_t port;
	bool is_open;
	char complaint[256]; /* the last thing that libmicrohttpd said */
};

/* What comes of one request before it can be answered. */
struct exchange {
	struct buf body;
};

/* libmicrohttpd tells through this which connection is ready, and when it wants to be run without any. */
static void run(struct server *s)
{
	MHD_UNSIGNED_LONG_LONG wait = 0;

	MHD_run(s->daemon);
	if (MHD_get_timeout(s->daemon, &wait) == MHD_YES)
		timer_start(s->loop, &s->timeout, (millis)wait, s->timeout.fire);
	else
		timer_stop(&s->timeout);
}

static void on_ready(struct ev_loop *ev, ev_io *w, int events)
{
	(void)ev;
	(void)events;
	run(w->data);
}

static void on_timeout(struct timer *t)
{
	run(t->user);
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

const char *server_header(const struct server_request *q, const char *name)
{
	return MHD_lookup_connection_value(q->connection, MHD_HEADER_KIND, name);
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

static struct MHD_Response *make_response(struct server_answer *a)
{
	if (a->fd >= 0)
		return MHD_create_response_from_fd64(a->fd_len, a->fd);
	if (!a->body.text)
		return MHD_create_response_from_buffer(0, (void *)(uintptr_t) "", MHD_RESPMEM_PERSISTENT);
	return MHD_create_response_from_buffer(a->body.len, a->body.text, MHD_RESPMEM_MUST_FREE);
}

static enum MHD_Result reply(const struct server *s, struct MHD_Connection *c, struct server_answer *a)
{
	if (!buf_ok(&a->body)) {
		buf_release(&a->body);
		a->status = MHD_HTTP_INTERNAL_SERVER_ERROR;
	}
	struct MHD_Response *response = make_response(a);
	if (!response)
		return MHD_NO;
	MHD_add_response_header(response, "Content-Type", a->content_type);
	for (const char *const *h = s->settings.headers; h && *h; h++)
		add_header(response, *h);
	for (size_t i = 0; i < sizeof a->headers / sizeof *a->headers; i++)
		if (a->headers[i])
			add_header(response, a->headers[i]);
	enum MHD_Result result = MHD_queue_response(c, (unsigned)a->status, response);
	MHD_destroy_response(response);
	return result;
}

static struct server_answer refusal(int status, const char *text)
{
	struct server_answer a = { .status = status, .content_type = "text/plain; charset=utf-8", .fd = -1 };

	buf_text(&a.body, text);
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
static enum MHD_Result reply_unrouted(const struct server *s, struct MHD_Connection *c, const char *path)
{
	CLEANUP(buf_release) struct buf allow = { 0 };

	for (size_t i = 0; i < s->settings.route_count; i++) {
		const struct server_route *r = &s->settings.routes[i];
		if (!path_fits(r, path))
			continue;
		add_word(&allow, r->method);
		if (strcmp(r->method, "GET") == 0)
			add_word(&allow, "HEAD");
	}
	struct server_answer a = allow.len ? refusal(405, "this path does not take that method\n")
					   : refusal(404, "there is no such path\n");
	a.headers[0] = allow.text;
	return reply(s, c, &a);
}

static enum MHD_Result route(const struct server *s, struct server_request *q)
{
	for (size_t i = 0; i < s->settings.route_count; i++) {
		const struct server_route *r = &s->settings.routes[i];
		if (strcmp(r->method, q->method) != 0 || !path_fits(r, q->path))
			continue;
		struct server_answer a = { .status = 200, .content_type = "text/plain; charset=utf-8", .fd = -1 };
		q->user = r->user;
		r->answer(q, &a);
		return reply(s, q->connection, &a);
	}
	return reply_unrouted(s, q->connection, q->path);
}

static bool is_announced_too_long(const struct server *s, struct MHD_Connection *c)
{
	const char *length = MHD_lookup_connection_value(c, MHD_HEADER_KIND, "Content-Length");
	int64_t n;

	return length && fixed_parse(length, strlen(length), 0, &n) && (uint64_t)n > s->settings.max_body;
}

/* libmicrohttpd calls once when the header is there, then for each part of the body, then for the answer. */
// NOLINTNEXTLINE(readability-function-size): its parameters are libmicrohttpd's
static enum MHD_Result on_request(void *user, struct MHD_Connection *c, const char *path, const char *method,
				  const char *version, const char *part, size_t *part_len, void **state)
{
	struct server *s = user;
	struct exchange *x = *state;

	(void)version;
	if (!x) {
		if (is_announced_too_long(s, c)) {
			struct server_answer a = refusal(413, "the body is too long\n");
			return reply(s, c, &a);
		}
		*state = x = calloc(1, sizeof *x);
		if (x)
			x->body.cap = s->settings.max_body;
		return x ? MHD_YES : MHD_NO;
	}
	if (*part_len) {
		buf_append(&x->body, part, *part_len);
		*part_len = 0;
		return buf_ok(&x->body) ? MHD_YES : MHD_NO; /* only a closed connection ends an endless body */
	}
	struct server_request q = { .method = strcmp(method, "HEAD") == 0 ? "GET" : method,
				    .path = path,
				    .body = x->body.text ? x->body.text : "",
				    .body_len = x->body.len,
				    .connection = c };
	return route(s, &q);
}

static void on_completed(void *user, struct MHD_Connection *c, void **state, enum MHD_RequestTerminationCode how)
{
	struct exchange *x = *state;

	(void)user;
	(void)c;
	(void)how;
	if (!x)
		return;
	buf_release(&x->body);
	free(x);
	*state = NULL;
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

static struct MHD_Daemon *start(struct server *s, int fd)
{
	const struct server_settings *set = &s->settings;
	struct MHD_OptionItem tls[] = { { MHD_OPTION_HTTPS_MEM_CERT, 0, (void *)(uintptr_t)set->tls_cert },
					{ MHD_OPTION_HTTPS_MEM_KEY, 0, (void *)(uintptr_t)set->tls_key },
					{ MHD_OPTION_HTTPS_PRIORITIES, 0, (void *)(uintptr_t)TLS_VERSIONS },
					{ MHD_OPTION_END, 0, NULL } };
	struct MHD_OptionItem none[] = { { MHD_OPTION_END, 0, NULL } };
	unsigned flags = MHD_USE_EPOLL | MHD_USE_ERROR_LOG | (set->tls_cert ? MHD_USE_TLS : 0U);

	return MHD_start_daemon(flags, 0, NULL, NULL, on_request, s, MHD_OPTION_EXTERNAL_LOGGER, on_complaint, s,
				MHD_OPTION_LISTEN_SOCKET, fd, MHD_OPTION_CONNECTION_LIMIT, set->max_connections,
				MHD_OPTION_CONNECTION_TIMEOUT, set->idle_seconds, MHD_OPTION_CONNECTION_MEMORY_LIMIT,
				CONNECTION_MEMORY, MHD_OPTION_NOTIFY_COMPLETED, on_completed, NULL,
				MHD_OPTION_STRICT_FOR_CLIENT, 1, MHD_OPTION_ARRAY, set->tls_cert ? tls : none,
				MHD_OPTION_END);
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
	return s;
}

static void attach(struct server *s)
{
	const union MHD_DaemonInfo *epoll = MHD_get_daemon_info(s->daemon, MHD_DAEMON_INFO_EPOLL_FD);

	s->is_open = true;
	s->timeout.user = s;
	s->timeout.fire = on_timeout;
	ev_io_init(&s->ready, on_ready, epoll->epoll_fd, EV_READ);
	s->ready.data = s;
	ev_io_start(loop_ev(s->loop), &s->ready);
}

struct server *server_open(struct loop *loop, const struct server_settings *settings, struct error *e)
{
	uint16_t port;
	int fd = listen_open(settings->listen, &port, e);

	if (fd < 0)
		return NULL;
	struct server *s = make(loop, settings);
	s->port = port;
	s->daemon = start(s, fd);
	if (!s->daemon) {
		error_set(e, ERROR_INVALID, "serving on %s: %s", settings->listen,
			  *s->complaint ? s->complaint : "the HTTP server cannot start");
		close(fd);
		free(s);
		return NULL;
	}
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
	ev_io_stop(loop_ev(s->loop), &s->ready);
	timer_stop(&s->timeout);
	MHD_stop_daemon(s->daemon);
	free(s);
}
