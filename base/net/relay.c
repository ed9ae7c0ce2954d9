#include "base/net/relay.h"

#include "base/alloc.h"
#include "base/arena.h"
#include "base/buf.h"
#include "base/net/server.h"
#include "base/text.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/queue.h>
#include <sys/socket.h>
#include <unistd.h>

/* Of the world. */
static const millis HEADER_WITHIN = 30 * SECOND, CONNECT_WITHIN = 3 * SECOND, LINGER = 2 * SECOND, LOOK = 250,
		    AGAIN = 250;

enum { CHUNK = 32 << 10, ACCEPTS = 64, TLS_HANDSHAKE = 0x16 };

enum stage {
	STAGE_HEADER,	  /* is being read */
	STAGE_HELD,	  /* for a server */
	STAGE_CONNECTING, /* to one */
	STAGE_PASSING,
	STAGE_LINGERING, /* all is said; the peer may read it before its end of the connection goes */
};

/* A peer's connection, and the one to a server that belongs to it. */
struct passage {
	LIST_ENTRY(passage) link;
	struct relay *relay;
	enum stage stage;
	millis since; /* loop_now: in this stage; of one that is held, since it was first */
	millis retry_at;
	int client, server; /* -1: none */
	ev_io client_io, server_io;
	struct buf request, answer; /* read, and not yet passed on */
	bool client_ended, server_ended, is_answered;
	bool is_half_closed; /* while held: it said all it will, and was told that we go on */
	bool asks_upgrade;   /* and was not answered yet */
	bool is_refused_upgrade;
	struct relay_target to;
};

struct relay {
	struct loop *loop;
	struct relay_settings settings;
	char name[160];
	int fd; /* -1: ended */
	uint16_t port;
	ev_io io;
	struct timer look;
	struct relay_target *targets;
	size_t target_count, count, waiting;
	LIST_HEAD(, passage) passages;
};

static bool is_waiting(const struct passage *p)
{
	return p->stage == STAGE_HELD || p->stage == STAGE_CONNECTING;
}

static void go_to(struct passage *p, enum stage stage)
{
	struct relay *r = p->relay;
	bool was = is_waiting(p);

	p->stage = stage;
	if (is_waiting(p) != was) {
		p->since = loop_now(r->loop);
		r->waiting += was ? (size_t)-1 : 1;
		if (r->settings.changed)
			r->settings.changed(r->settings.user);
	} else if (!was) {
		p->since = loop_now(r->loop);
	}
}

static void watch(struct relay *r, ev_io *io, int fd, int events)
{
	if ((io->events & (EV_READ | EV_WRITE)) == events && ev_is_active(io))
		return;
	ev_io_stop(loop_ev(r->loop), io);
	ev_io_set(io, fd, events);
	if (events)
		ev_io_start(loop_ev(r->loop), io);
}

static void close_server(struct passage *p)
{
	if (p->server < 0)
		return;
	ev_io_stop(loop_ev(p->relay->loop), &p->server_io);
	close(p->server);
	p->server = -1;
}

static void drop(struct passage *p)
{
	struct relay *r = p->relay;

	go_to(p, STAGE_LINGERING);
	close_server(p);
	ev_io_stop(loop_ev(r->loop), &p->client_io);
	close(p->client);
	LIST_REMOVE(p, link);
	r->count--;
	buf_release(&p->request);
	buf_release(&p->answer);
	free(p);
}

/* --- bytes --- */

enum io_result { IO_FINE, IO_ENDED, IO_BROKEN };

static enum io_result take(int fd, struct buf *into)
{
	char bytes[CHUNK];
	size_t room = into->len < sizeof bytes ? sizeof bytes - into->len : 0;
	ssize_t got = room ? recv(fd, bytes, room, 0) : 1;

	if (!room)
		return IO_FINE;
	if (got < 0)
		return errno == EAGAIN || errno == EINTR ? IO_FINE : IO_BROKEN;
	buf_append(into, bytes, (size_t)got);
	return got ? IO_FINE : IO_ENDED;
}

static enum io_result give(int fd, struct buf *from)
{
	while (from->len) {
		ssize_t put = send(fd, from->text, from->len, MSG_NOSIGNAL);
		if (put < 0)
			return errno == EAGAIN || errno == EINTR ? IO_FINE : IO_BROKEN;
		buf_drop(from, (size_t)put);
	}
	return IO_FINE;
}

/* --- the end of one --- */

/* What the peer sent and nobody read would reset the connection, and what it was told might be lost. */
static void linger(struct passage *p)
{
	close_server(p);
	buf_clear(&p->request);
	shutdown(p->client, SHUT_WR);
	go_to(p, STAGE_LINGERING);
	watch(p->relay, &p->client_io, p->client, EV_READ);
}

static void refuse(struct passage *p, const char *status, const char *why)
{
	bool is_busy = !strncmp(status, "503", 3);
	CLEANUP(buf_release) struct buf body = { 0 };

	buf_printf(&body, "{\"error\":{\"message\":\"%s: %s\",\"type\":\"server_error\",\"code\":%.3s}}\n",
		   p->relay->name, why, status);
	buf_clear(&p->answer);
	buf_printf(&p->answer,
		   "HTTP/1.1 %s\r\nContent-Type: application/json\r\nContent-Length: %zu\r\n%sConnection: close\r\n"
		   "\r\n%s",
		   status, body.len, is_busy ? "Retry-After: 5\r\n" : "", body.text);
	if (give(p->client, &p->answer) == IO_BROKEN || p->answer.len)
		drop(p);
	else
		linger(p);
}

static void refuse_full(struct passage *p)
{
	refuse(p, "503 Service Unavailable", "too many requests wait");
}

static void refuse_ended(struct passage *p)
{
	refuse(p, "503 Service Unavailable", "another replica of Preheat holds requests now");
}

/* --- passing on --- */

static void settle(struct passage *p)
{
	struct relay *r = p->relay;
	bool has_room = p->answer.len < CHUNK && !p->server_ended;
	bool takes = p->request.len < CHUNK && !p->client_ended;
	bool gives = p->answer.len && !p->asks_upgrade;

	if (p->server_ended && !p->answer.len) {
		linger(p);
		return;
	}
	watch(r, &p->client_io, p->client, (takes ? EV_READ : 0) | (gives ? EV_WRITE : 0));
	watch(r, &p->server_io, p->server, (has_room ? EV_READ : 0) | (p->request.len ? EV_WRITE : 0));
}

static bool from_client(struct passage *p)
{
	enum io_result got = take(p->client, &p->request);

	if (p->is_refused_upgrade)
		buf_clear(&p->request);
	if (got == IO_BROKEN) {
		drop(p);
		return false;
	}
	p->client_ended |= got == IO_ENDED;
	/* A server may answer before it has read all, and close its end. */
	if (give(p->server, &p->request) == IO_BROKEN) {
		p->client_ended = true;
		buf_clear(&p->request);
	}
	/* To most engines the end of what is asked is the end of who asks. */
	if (p->client_ended && !p->request.len && !p->is_half_closed)
		shutdown(p->server, SHUT_WR);
	return true;
}

/* Of one that asked to upgrade. Where the server answers in HTTP, the connection is good for that answer alone, as any
 * other. False: the line with the status is not there yet. */
static bool read_status(struct passage *p)
{
	const char *stop = p->answer.len ? memmem(p->answer.text, p->answer.len, "\r\n", 2) : NULL;
	struct buf out = { 0 };

	if (!stop && !p->server_ended && p->answer.len < CHUNK)
		return false;
	p->asks_upgrade = false;
	if (!stop || (p->answer.len > 12 && !memcmp(p->answer.text + 8, " 101", 4)))
		return true;
	size_t line = (size_t)(stop - p->answer.text) + 2;
	p->is_refused_upgrade = true;
	buf_append(&out, p->answer.text, line);
	buf_text(&out, "Connection: close\r\n");
	buf_append(&out, p->answer.text + line, p->answer.len - line);
	buf_release(&p->answer);
	p->answer = out;
	return true;
}

static bool from_server(struct passage *p)
{
	enum io_result got = p->server_ended ? IO_ENDED : take(p->server, &p->answer);

	p->is_answered |= p->answer.len > 0;
	p->server_ended |= got != IO_FINE;
	if (p->server_ended && !p->is_answered) {
		refuse(p, "502 Bad Gateway", "the engine ended the connection before it answered");
		return false;
	}
	if (p->asks_upgrade && !read_status(p))
		return true;
	if (give(p->client, &p->answer) == IO_BROKEN) {
		drop(p);
		return false;
	}
	return true;
}

static void pass(struct passage *p)
{
	if (from_client(p) && from_server(p)) /* what a server that ended has said is still given */
		settle(p);
}

/* --- to a server --- */

static size_t passages_to(const struct relay *r, const struct relay_target *t)
{
	const struct passage *p;
	size_t count = 0;

	LIST_FOREACH(p, &r->passages, link)
	count += p->server >= 0 && p->to.port == t->port && !strcmp(p->to.address, t->address);
	return count;
}

static const struct relay_target *least_busy(const struct relay *r)
{
	size_t best = 0, fewest = SIZE_MAX;

	for (size_t i = 0; i < r->target_count; i++) {
		size_t count = passages_to(r, &r->targets[i]);
		if (count < fewest) {
			fewest = count;
			best = i;
		}
	}
	return &r->targets[best];
}

static void set_up(int fd)
{
	int on = 1, idle = 30;

	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
	/* Answers may pause for minutes; a peer that is gone is found all the same. */
	setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
	setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &idle, sizeof idle);
	setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &idle, sizeof idle);
}

static int connect_to(const struct relay_target *t)
{
	union {
		struct sockaddr any;
		struct sockaddr_in v4;
		struct sockaddr_in6 v6;
	} at = { .v6 = { 0 } };
	bool is_v6 = strchr(t->address, ':');
	int fd = socket(is_v6 ? AF_INET6 : AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

	if (fd < 0)
		return -1;
	at.any.sa_family = is_v6 ? AF_INET6 : AF_INET;
	*(is_v6 ? &at.v6.sin6_port : &at.v4.sin_port) = htons(t->port);
	if (inet_pton(at.any.sa_family, t->address, is_v6 ? (void *)&at.v6.sin6_addr : &at.v4.sin_addr) == 1 &&
	    (connect(fd, &at.any, is_v6 ? sizeof at.v6 : sizeof at.v4) == 0 || errno == EINPROGRESS)) {
		set_up(fd);
		return fd;
	}
	close(fd);
	return -1;
}

/* Nothing of it was sent. */
static void try_later(struct passage *p)
{
	close_server(p);
	p->retry_at = loop_now(p->relay->loop) + AGAIN;
	go_to(p, STAGE_HELD);
	watch(p->relay, &p->client_io, p->client, 0);
}

static void try_server(struct passage *p)
{
	struct relay *r = p->relay;

	if (p->stage != STAGE_HELD || !r->target_count || loop_now(r->loop) < p->retry_at)
		return;
	p->to = *least_busy(r);
	p->server = connect_to(&p->to);
	if (p->server < 0) {
		try_later(p);
		return;
	}
	p->retry_at = loop_now(r->loop) + CONNECT_WITHIN;
	go_to(p, STAGE_CONNECTING);
	watch(r, &p->server_io, p->server, EV_WRITE);
}

static void connected(struct passage *p)
{
	int failure = 0;
	socklen_t len = sizeof failure;

	getsockopt(p->server, SOL_SOCKET, SO_ERROR, &failure, &len);
	if (failure) {
		try_later(p);
		return;
	}
	go_to(p, STAGE_PASSING);
	pass(p);
}

/* --- the header --- */

/* METHOD TARGET HTTP/1.x */
static bool is_request_line(const char *line, size_t len)
{
	const char *first = memchr(line, ' ', len), *last = memrchr(line, ' ', len);

	return first && first > line && last > first + 1 && len - (size_t)(last - line) == 9 &&
	       !memchr(first + 1, ' ', (size_t)(last - first) - 1) &&
	       (!memcmp(last, " HTTP/1.1", 9) || !memcmp(last, " HTTP/1.0", 9));
}

static bool is_named(const char *line, size_t len, const char *name)
{
	size_t n = strlen(name);

	return len > n && line[n] == ':' && !strncasecmp(line, name, n);
}

/* The one upgrade that engines offer. Others are an offer of the client's, of HTTP/2 mostly, which an engine may pass
 * over. */
static bool is_websocket(const char *line, size_t len)
{
	static const char name[] = "websocket";
	const char *at = line + strlen("Upgrade:"), *end = line + len;

	while (at < end && (*at == ' ' || *at == '\t'))
		at++;
	while (end > at && (end[-1] == ' ' || end[-1] == '\t'))
		end--;
	return (size_t)(end - at) == sizeof name - 1 && !strncasecmp(at, name, sizeof name - 1);
}

/* Of the connection that brought it, not of the request. */
static bool is_of_connection(const char *line, size_t len)
{
	static const char *const names[] = { "Connection", "Keep-Alive", "Upgrade", "HTTP2-Settings" };

	for (size_t i = 0; i < sizeof names / sizeof *names; i++)
		if (is_named(line, len, names[i]))
			return true;
	return false;
}

bool relay_rewrite(struct buf *request, size_t header, bool *is_upgrade)
{
	struct buf out = { 0 };
	bool is_fine = true;
	const char *end = request->text + header - 2; /* of the last line */

	*is_upgrade = false;
	for (const char *line = request->text; line < end;) {
		const char *stop = memmem(line, (size_t)(end - line), "\r\n", 2);
		size_t len = (size_t)(stop - line);
		bool is_first = line == request->text;
		is_fine &=
			is_first ? is_request_line(line, len) : *line != ' ' && *line != '\t' && memchr(line, ':', len);
		is_fine &= !memchr(line, '\n', len) && !memchr(line, '\r', len) && !memchr(line, '\0', len);
		*is_upgrade |= !is_first && is_named(line, len, "Upgrade") && is_websocket(line, len);
		if (is_first || !is_of_connection(line, len))
			buf_append(&out, line, len + 2);
		line = stop + 2;
	}
	buf_text(&out, "Connection: close\r\n\r\n");
	buf_append(&out, request->text + header, request->len - header);
	if (*is_upgrade || !is_fine) {
		buf_release(&out);
		return is_fine;
	}
	buf_release(request);
	*request = out;
	return true;
}

static void read_header(struct passage *p)
{
	enum io_result got = take(p->client, &p->request);
	const char *end = p->request.len ? memmem(p->request.text, p->request.len, "\r\n\r\n", 4) : NULL;

	if (got != IO_FINE) {
		drop(p);
	} else if (p->request.len && *p->request.text == TLS_HANDSHAKE) {
		refuse(p, "400 Bad Request", "this is TLS, and the Service is plain HTTP");
	} else if (!end) {
		if (p->request.len >= RELAY_HEADER)
			refuse(p, "431 Request Header Fields Too Large", "the header is larger than 32 KiB");
	} else if (!strncmp(p->request.text, "PRI * HTTP/2.0\r\n", 16)) {
		refuse(p, "505 HTTP Version Not Supported", "HTTP/1.1 only, while no engine is awake");
	} else if (!relay_rewrite(&p->request, (size_t)(end - p->request.text) + 4, &p->asks_upgrade)) {
		refuse(p, "400 Bad Request", "this is not an HTTP/1.1 request");
	} else {
		go_to(p, STAGE_HELD);
		watch(p->relay, &p->client_io, p->client, 0);
		try_server(p);
	}
}

/* --- events --- */

static void drain(struct passage *p)
{
	struct buf nowhere = { 0 };
	enum io_result got = take(p->client, &nowhere);

	buf_release(&nowhere);
	if (got != IO_FINE)
		drop(p);
}

static void on_client(struct ev_loop *ev, ev_io *io, int events)
{
	struct passage *p = io->data;

	(void)ev;
	(void)events;
	if (p->stage == STAGE_HEADER)
		read_header(p);
	else if (p->stage == STAGE_PASSING)
		pass(p);
	else if (p->stage == STAGE_LINGERING)
		drain(p);
}

static void on_server(struct ev_loop *ev, ev_io *io, int events)
{
	struct passage *p = io->data;

	(void)ev;
	(void)events;
	if (p->stage == STAGE_CONNECTING)
		connected(p);
	else
		pass(p);
}

/* Whoever is gone resets the connection at what it is told; who only has no more to say reads on. HTTP/1.0 knows no
 * answer before the answer. */
static bool answers(struct passage *p)
{
	static const char go_on[] = "HTTP/1.1 100 Continue\r\n\r\n";
	const char *stop = memmem(p->request.text, p->request.len, "\r\n", 2);

	if (p->is_half_closed)
		return true;
	p->is_half_closed =
		stop[-1] == '1' && send(p->client, go_on, sizeof go_on - 1, MSG_NOSIGNAL) == (ssize_t)sizeof go_on - 1;
	return p->is_half_closed;
}

static bool is_gone(struct passage *p)
{
	struct pollfd of = { .fd = p->client, .events = POLLRDHUP };

	if (poll(&of, 1, 0) != 1)
		return false;
	return of.revents & (POLLHUP | POLLERR) || !answers(p);
}

static void look_at(struct passage *p, millis now)
{
	millis here = now - p->since;

	if (p->stage == STAGE_HEADER && here > HEADER_WITHIN)
		refuse(p, "408 Request Timeout", "the header did not come within 30 s");
	else if (p->stage == STAGE_LINGERING && here > LINGER)
		drop(p);
	else if ((is_waiting(p) || (p->stage == STAGE_PASSING && p->is_half_closed)) && is_gone(p))
		drop(p);
	else if (is_waiting(p) && here > p->relay->settings.hold)
		refuse(p, "503 Service Unavailable", "no engine was awake in time");
	else if (p->stage == STAGE_CONNECTING && now >= p->retry_at)
		try_later(p);
	else
		try_server(p);
}

static void look(struct timer *t)
{
	struct relay *r = t->user;
	struct passage *p = LIST_FIRST(&r->passages), *next;

	for (; p; p = next) {
		next = LIST_NEXT(p, link);
		look_at(p, loop_now(r->loop));
	}
	if (r->count)
		timer_start(r->loop, &r->look, LOOK, look);
}

static void add(struct relay *r, int fd)
{
	struct passage *p = xnew(struct passage);

	p->relay = r;
	p->client = fd;
	p->server = -1;
	p->since = loop_now(r->loop);
	ev_io_init(&p->client_io, on_client, fd, EV_READ);
	ev_io_init(&p->server_io, on_server, -1, EV_READ);
	p->client_io.data = p->server_io.data = p;
	LIST_INSERT_HEAD(&r->passages, p, link);
	r->count++;
	set_up(fd);
	if (r->count > (r->settings.most ? r->settings.most : RELAY_MOST))
		refuse_full(p);
	else
		ev_io_start(loop_ev(r->loop), &p->client_io);
	if (!timer_is_running(&r->look))
		timer_start(r->loop, &r->look, LOOK, look);
}

static void resume(struct timer *t)
{
	struct relay *r = t->user;

	if (r->fd >= 0)
		ev_io_start(loop_ev(r->loop), &r->io);
	look(t);
}

static void on_connection(struct ev_loop *ev, ev_io *io, int events)
{
	struct relay *r = io->data;

	(void)events;
	for (int i = 0; i < ACCEPTS; i++) {
		int fd = accept4(r->fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
		if (fd >= 0) {
			add(r, fd);
			continue;
		}
		if (errno == EMFILE || errno == ENFILE || errno == ENOMEM || errno == ENOBUFS) {
			ev_io_stop(ev, io); /* it would be ready for ever */
			timer_start(r->loop, &r->look, LOOK, resume);
		}
		return;
	}
}

/* --- */

struct relay *relay_open(struct loop *loop, const struct relay_settings *s, struct error *e)
{
	struct relay *r = xnew(struct relay);
	char where[80];

	r->loop = loop;
	r->settings = *s;
	r->fd = -1;
	snprintf(r->name, sizeof r->name, "%s", s->name);
	for (unsigned port = s->first; r->fd < 0 && port <= s->last; port++) {
		snprintf(where, sizeof where, "%s:%u", s->host, port);
		r->fd = listen_open(where, &r->port, e);
	}
	if (r->fd < 0) {
		free(r);
		return NULL;
	}
	r->look.user = r;
	ev_io_init(&r->io, on_connection, r->fd, EV_READ);
	r->io.data = r;
	ev_io_start(loop_ev(loop), &r->io);
	return r;
}

uint16_t relay_port(const struct relay *r)
{
	return r->port;
}

size_t relay_waiting(const struct relay *r)
{
	return r->waiting;
}

size_t relay_passing(const struct relay *r)
{
	const struct passage *p;
	size_t count = 0;

	LIST_FOREACH(p, &r->passages, link)
	count += p->stage == STAGE_PASSING;
	return count;
}

void relay_aim(struct relay *r, const struct relay_target *targets, size_t count)
{
	struct passage *p, *next;

	r->targets = xrealloc(r->targets, count + 1, sizeof *targets);
	if (count)
		memcpy(r->targets, targets, count * sizeof *targets);
	r->target_count = count;
	for (p = LIST_FIRST(&r->passages); p; p = next) {
		next = LIST_NEXT(p, link);
		try_server(p);
	}
}

void relay_end(struct relay *r)
{
	struct passage *p, *next;

	if (r->fd < 0)
		return;
	ev_io_stop(loop_ev(r->loop), &r->io);
	close(r->fd);
	r->fd = -1;
	for (p = LIST_FIRST(&r->passages); p; p = next) {
		next = LIST_NEXT(p, link);
		if (p->stage == STAGE_HEADER || is_waiting(p))
			refuse_ended(p);
	}
}

void relay_close(struct relay *r)
{
	struct passage *p, *next;

	if (!r)
		return;
	r->settings.changed = NULL;
	relay_end(r);
	for (p = LIST_FIRST(&r->passages); p; p = next) {
		next = LIST_NEXT(p, link);
		drop(p);
	}
	timer_stop(&r->look);
	free(r->targets);
	free(r);
}
