#include "base/net/server_stream.h"

#include "base/net/server_parts.h"

#include <string.h>
#include <sys/socket.h>

static void wake(struct server_stream *s)
{
	if (!s->is_waiting)
		return;
	s->is_waiting = false;
	MHD_resume_connection(s->connection);
	server_run_soon(s->server);
}

static void forget(struct server_stream *s)
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

	forget(s);
	buf_release(&s->unsent);
	s->ended(s);
}

struct MHD_Response *server_stream_begin(struct server *server, struct MHD_Connection *c, struct server_answer *a)
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

void server_end_streams(struct server *server)
{
	for (struct server_stream *s = server->streams; s; s = s->next) {
		s->is_over = true;
		wake(s);
	}
}
