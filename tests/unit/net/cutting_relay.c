#include "tests/unit/net/cutting_relay.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

enum { PAIRS = 32, FIRST_PAIR = 2 };

struct cutting_relay {
	pthread_t thread;
	int listener, ended, port;
	size_t left, handed;
	bool goes_on, has_cut;
	char url[64];
	int pairs[PAIRS][2]; /* the client's and the server's socket; -1: none */
};

static void must(bool is_so, const char *what)
{
	if (is_so)
		return;
	perror(what);
	abort();
}

static struct sockaddr_in loopback(int port)
{
	return (struct sockaddr_in){ .sin_family = AF_INET,
				     .sin_port = htons((unsigned short)port),
				     .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
}

static void end_pair(int pair[2])
{
	for (int i = 0; i < 2; i++) {
		if (pair[i] >= 0)
			close(pair[i]);
		pair[i] = -1;
	}
}

static void accept_one(struct cutting_relay *r)
{
	int client = accept(r->listener, NULL, NULL), at = 0;
	struct sockaddr_in to = loopback(r->port);

	must(client >= 0, "accept");
	while (at < PAIRS && r->pairs[at][0] >= 0)
		at++;
	if (at == PAIRS || (r->has_cut && !r->goes_on)) {
		close(client);
		return;
	}
	r->pairs[at][0] = client;
	r->pairs[at][1] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	must(connect(r->pairs[at][1], (struct sockaddr *)&to, sizeof to) == 0, "connect");
}

static void hand_on(struct cutting_relay *r, int pair[2], int from)
{
	bool is_counted = from == 0 && !r->has_cut;
	char bytes[16384];
	size_t most = is_counted && r->left < sizeof bytes ? r->left : sizeof bytes;
	ssize_t n = most ? read(pair[from], bytes, most) : 0;

	if (n > 0 && send(pair[!from], bytes, (size_t)n, MSG_NOSIGNAL) != n)
		n = 0;
	if (is_counted && n > 0) {
		r->left -= (size_t)n;
		r->handed += (size_t)n;
	}
	if (is_counted && !r->left)
		r->has_cut = true;
	if (n <= 0 || (is_counted && r->has_cut))
		end_pair(pair);
}

static void *serve(void *user)
{
	struct cutting_relay *r = user;

	for (;;) {
		struct pollfd fds[FIRST_PAIR + 2 * PAIRS] = { { .fd = r->ended, .events = POLLIN },
							      { .fd = r->listener, .events = POLLIN } };
		for (int i = 0; i < 2 * PAIRS; i++)
			fds[FIRST_PAIR + i] = (struct pollfd){ .fd = r->pairs[i / 2][i % 2], .events = POLLIN };
		must(poll(fds, FIRST_PAIR + 2 * PAIRS, -1) > 0, "poll");
		if (fds[0].revents)
			return NULL;
		for (int i = 0; i < 2 * PAIRS; i++)
			if (fds[FIRST_PAIR + i].revents && r->pairs[i / 2][i % 2] >= 0)
				hand_on(r, r->pairs[i / 2], i % 2);
		if (fds[1].revents)
			accept_one(r);
	}
}

struct cutting_relay *cutting_relay_open(int port, size_t bytes, bool goes_on)
{
	struct cutting_relay *r = calloc(1, sizeof *r);
	struct sockaddr_in own = loopback(0);
	socklen_t len = sizeof own;

	must(r, "relay");
	*r = (struct cutting_relay){ .port = port, .left = bytes, .goes_on = goes_on };
	for (int i = 0; i < PAIRS; i++)
		r->pairs[i][0] = r->pairs[i][1] = -1;
	r->ended = eventfd(0, EFD_CLOEXEC);
	r->listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	must(r->ended >= 0 && r->listener >= 0 && bind(r->listener, (struct sockaddr *)&own, sizeof own) == 0 &&
		     listen(r->listener, PAIRS) == 0 && getsockname(r->listener, (struct sockaddr *)&own, &len) == 0,
	     "listen");
	snprintf(r->url, sizeof r->url, "http://127.0.0.1:%d", ntohs(own.sin_port));
	must(pthread_create(&r->thread, NULL, serve, r) == 0, "thread");
	return r;
}

const char *relay_url(const struct cutting_relay *r)
{
	return r->url;
}

size_t cutting_relay_close(struct cutting_relay *r)
{
	size_t handed;

	must(eventfd_write(r->ended, 1) == 0 && pthread_join(r->thread, NULL) == 0, "thread");
	for (int i = 0; i < PAIRS; i++)
		end_pair(r->pairs[i]);
	close(r->listener);
	close(r->ended);
	handed = r->handed;
	free(r);
	return handed;
}
