#include "tests/unit/net/scripted_peer.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

struct scripted_peer {
	const struct peer_step *script;
	pthread_t thread;
	int listener, connection;
	int ended; /* readable once peer_close() was called */
	int gone;  /* an eventfd that counts peer_go() */
	int port;
	char url[64];
	char *seen;
	size_t seen_len;
};

static void must(bool is_so, const char *what)
{
	if (is_so)
		return;
	perror(what);
	abort();
}

/* False when the test ended first. */
static bool wait_for(const struct scripted_peer *p, int fd, short events)
{
	struct pollfd fds[2] = { { .fd = fd, .events = events }, { .fd = p->ended, .events = POLLIN } };

	while (poll(fds, 2, -1) < 0)
		must(errno == EINTR, "poll");
	return !fds[1].revents;
}

static void close_connection(struct scripted_peer *p)
{
	if (p->connection >= 0)
		close(p->connection);
	p->connection = -1;
}

static bool accept_next(struct scripted_peer *p)
{
	close_connection(p);
	if (!wait_for(p, p->listener, POLLIN))
		return false;
	p->connection = accept4(p->listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
	return p->connection >= 0;
}

/* Bytes read; 0 when there will be no more. */
static size_t read_some(struct scripted_peer *p, char *into, size_t room)
{
	if (!wait_for(p, p->connection, POLLIN))
		return 0;
	ssize_t n = read(p->connection, into, room);
	return n > 0 ? (size_t)n : 0;
}

static size_t body_length(const char *header)
{
	const char *at = strcasestr(header, "\r\nContent-Length:");

	return at ? strtoul(at + strlen("\r\nContent-Length:"), NULL, 10) : 0;
}

static bool read_request(struct scripted_peer *p)
{
	size_t start = p->seen_len;

	for (;;) {
		const char *blank = p->seen ? strstr(p->seen + start, "\r\n\r\n") : NULL;
		if (blank) {
			size_t header = (size_t)(blank - p->seen) + 4;
			if (p->seen_len >= header + body_length(p->seen + start))
				return true;
		}
		p->seen = realloc(p->seen, p->seen_len + 65537);
		must(p->seen, "memory");
		size_t n = read_some(p, p->seen + p->seen_len, 65536);
		p->seen_len += n;
		p->seen[p->seen_len] = '\0';
		if (!n)
			return false;
	}
}

static bool send_text(struct scripted_peer *p, const char *text)
{
	for (size_t left = strlen(text); left;) {
		if (!wait_for(p, p->connection, POLLOUT))
			return false;
		ssize_t n = send(p->connection, text, left, MSG_NOSIGNAL);
		if (n < 0 && errno == EAGAIN)
			continue;
		if (n < 0)
			return false;
		text += n;
		left -= (size_t)n;
	}
	return true;
}

static bool hold(struct scripted_peer *p)
{
	char ignored[4096];

	while (read_some(p, ignored, sizeof ignored))
		;
	return true;
}

static bool wait_to_go(struct scripted_peer *p)
{
	eventfd_t one;

	return wait_for(p, p->gone, POLLIN) && eventfd_read(p->gone, &one) == 0;
}

static bool reset(struct scripted_peer *p)
{
	struct linger at_once = { .l_onoff = 1 };

	setsockopt(p->connection, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
	close_connection(p);
	return true;
}

/* False when there will be no more steps. What the other side does wrong ends a step, not the script. */
static bool play(struct scripted_peer *p, const struct peer_step *step)
{
	switch (step->verb) {
	case PEER_END:
		return false;
	case PEER_ACCEPT:
		return accept_next(p);
	case PEER_READ:
		read_request(p);
		return true;
	case PEER_SEND:
		send_text(p, step->text);
		return true;
	case PEER_ENDLESS:
		while (send_text(p, step->text))
			;
		return true;
	case PEER_HOLD:
		return hold(p);
	case PEER_WAIT:
		return wait_to_go(p);
	case PEER_RESET:
		return reset(p);
	}
	return false;
}

static void *run(void *user)
{
	struct scripted_peer *p = user;

	for (const struct peer_step *step = p->script; play(p, step); step++)
		;
	close_connection(p);
	close(p->listener);
	return NULL;
}

struct scripted_peer *peer_open(const struct peer_step *script)
{
	struct scripted_peer *p = calloc(1, sizeof *p);
	struct sockaddr_in at = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t size = sizeof at;

	must(p, "memory");
	p->script = script;
	p->connection = -1;
	p->listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	must(p->listener >= 0 && bind(p->listener, (struct sockaddr *)&at, size) == 0, "bind");
	must(listen(p->listener, 16) == 0, "listen");
	must(getsockname(p->listener, (struct sockaddr *)&at, &size) == 0, "getsockname");
	p->port = ntohs(at.sin_port);
	snprintf(p->url, sizeof p->url, "http://127.0.0.1:%d", p->port);
	p->ended = eventfd(0, EFD_CLOEXEC);
	p->gone = eventfd(0, EFD_CLOEXEC | EFD_SEMAPHORE);
	must(p->ended >= 0 && p->gone >= 0, "eventfd");
	must(pthread_create(&p->thread, NULL, run, p) == 0, "thread");
	return p;
}

const char *peer_url(const struct scripted_peer *p)
{
	return p->url;
}

int peer_port(const struct scripted_peer *p)
{
	return p->port;
}

void peer_go(struct scripted_peer *p)
{
	must(eventfd_write(p->gone, 1) == 0, "eventfd");
}

char *peer_close(struct scripted_peer *p)
{
	must(eventfd_write(p->ended, 1) == 0, "eventfd");
	pthread_join(p->thread, NULL);
	char *seen = p->seen ? p->seen : calloc(1, 1);
	close(p->ended);
	close(p->gone);
	free(p);
	return seen;
}
