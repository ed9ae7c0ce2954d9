#include "base/net/server_parts.h"

#include "base/arena.h"

#include <string.h>
#include <strings.h>
#include <unistd.h>

static void add_header(struct MHD_Response *response, const char *line)
{
	const char *colon = strchr(line, ':');
	CLEANUP(buf_release) struct buf name = { 0 };

	if (!colon)
		return;
	buf_append(&name, line, (size_t)(colon - line));
	MHD_add_response_header(response, name.text, colon + 1 + strspn(colon + 1, " "));
}

static struct MHD_Response *make(struct server_answer *a)
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

struct MHD_Response *server_response(const struct server *s, struct server_answer *a)
{
	if (!buf_ok(&a->body)) {
		buf_release(&a->body);
		a->status = MHD_HTTP_INTERNAL_SERVER_ERROR;
	}
	struct MHD_Response *response = make(a);
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

enum MHD_Result server_reply(struct server *s, struct MHD_Connection *c, struct server_answer *a)
{
	struct MHD_Response *response = a->stream ? begin_stream(s, c, a) : server_response(s, a);

	if (!response)
		return MHD_NO;
	enum MHD_Result result = MHD_queue_response(c, (unsigned)a->status, response);
	MHD_destroy_response(response);
	return result;
}

struct server_answer server_refusal(const struct server *s, int status, const char *text)
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
