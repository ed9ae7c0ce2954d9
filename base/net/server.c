#include "base/net/server_parts.h"

#include "base/log.h"
#include "base/net/listen.h"
#include "base/quantity.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

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

void server_run_soon(struct server *s)
{
	timer_start(s->loop, &s->timeout, 0, on_timeout);
}

/* libmicrohttpd tells through this which connection is ready, and when it wants to be run without any. */
void server_run(struct server *s)
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
