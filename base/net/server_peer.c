#include "base/net/server_parts.h"

#include <stdlib.h>
#include <sys/socket.h>

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

void peer_expects(struct MHD_Connection *c, unsigned seconds)
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

void peer_notified(void *user, struct MHD_Connection *c, void **context, enum MHD_ConnectionNotificationCode what)
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
