#include "base/net/http_transfer.h"

#include <stdlib.h>

struct http_socket {
	ev_io io;
	struct http *http;
};

static void advance(struct http *h, curl_socket_t fd, int events)
{
	int running;

	curl_multi_socket_action(h->multi, fd, events, &running);
	transfer_collect(h);
}

static void on_timer(struct timer *timer)
{
	advance(timer->user, CURL_SOCKET_TIMEOUT, 0);
}

static void on_socket(struct ev_loop *ev, ev_io *w, int events)
{
	const struct http_socket *s = w->data;

	(void)ev;
	advance(s->http, w->fd,
		((events & EV_READ) ? CURL_CSELECT_IN : 0) | ((events & EV_WRITE) ? CURL_CSELECT_OUT : 0));
}

/* libcurl forbids calling back into it here, even for a timeout of 0. */
static int want_timer(CURLM *multi, long ms, void *user)
{
	struct http *h = user;

	(void)multi;
	if (ms < 0)
		timer_stop(&h->timer);
	else
		timer_start(h->loop, &h->timer, ms, on_timer);
	return 0;
}

static struct http_socket *socket_new(struct http *h, curl_socket_t fd)
{
	struct http_socket *s = calloc(1, sizeof *s);

	if (!s)
		return NULL;
	s->http = h;
	ev_init(&s->io, on_socket);
	s->io.data = s;
	curl_multi_assign(h->multi, fd, s);
	return s;
}

static int want_socket(CURL *easy, curl_socket_t fd, int what, void *user, void *socket_user)
{
	struct http *h = user;
	struct http_socket *s = socket_user;

	(void)easy;
	if (s)
		ev_io_stop(loop_ev(h->loop), &s->io); /* a started watcher may not be changed */
	if (what == CURL_POLL_REMOVE) {
		free(s);
		curl_multi_assign(h->multi, fd, NULL);
		return 0;
	}
	if (!s && !(s = socket_new(h, fd)))
		return -1;
	ev_io_set(&s->io, fd, ((what & CURL_POLL_IN) ? EV_READ : 0) | ((what & CURL_POLL_OUT) ? EV_WRITE : 0));
	ev_io_start(loop_ev(h->loop), &s->io);
	return 0;
}

void sockets_attach(struct http *h)
{
	h->timer.user = h;
	curl_multi_setopt(h->multi, CURLMOPT_SOCKETFUNCTION, want_socket);
	curl_multi_setopt(h->multi, CURLMOPT_SOCKETDATA, h);
	curl_multi_setopt(h->multi, CURLMOPT_TIMERFUNCTION, want_timer);
	curl_multi_setopt(h->multi, CURLMOPT_TIMERDATA, h);
}
