#include "base/net/server_stream.h"

#include "base/net/server_parts.h"

#include <string.h>

static void wake(struct server_stream *s)
{
	if (!s->is_waiting)
		return;
	s->is_waiting = false;
	MHD_resume_connection(s->connection);
}

static void unlink_stream(struct server_stream **first, struct server_stream *s)
{
	if (s->previous)
		s->previous->next = s->next;
	else
		*first = s->next;
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
	struct server_stream **first = s->streams;

	unlink_stream(first, s);
	buf_release(&s->unsent);
	s->ended(s);
}

struct MHD_Response *server_stream_begin(struct server *server, struct MHD_Connection *c, struct server_answer *a)
{
	struct server_stream *s = a->stream;

	s->connection = c;
	s->unsent = a->body;
	s->unsent.cap = SERVER_STREAM_MOST;
	s->streams = &server->streams;
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

void server_stream_send(struct server_stream *s, const char *text, size_t len)
{
	buf_append(&s->unsent, text, len);
	s->is_over |= !buf_ok(&s->unsent);
	wake(s);
}

void server_end_streams(struct server *server)
{
	for (struct server_stream *s = server->streams; s; s = s->next) {
		s->is_over = true;
		wake(s);
	}
}
