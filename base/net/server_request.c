#include "base/net/server_parts.h"

#include "base/quantity.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool is_announced_too_long(const struct server *s, struct MHD_Connection *c)
{
	const char *length = MHD_lookup_connection_value(c, MHD_HEADER_KIND, "Content-Length");
	int64_t n;

	return length && fixed_parse(length, strlen(length), 0, &n) && (uint64_t)n > s->settings.max_body;
}

static enum MHD_Result reply_too_many(struct server *s, struct MHD_Connection *c, millis wait)
{
	struct server_answer a = server_refusal(s, 429, "too many requests: try again later");
	char after[48];

	snprintf(after, sizeof after, "Retry-After: %lld", (long long)((wait + SECOND - 1) / SECOND));
	a.headers[0] = after;
	return server_reply(s, c, &a);
}

static void add_wait(struct server_wait *w)
{
	w->next = w->server->waits;
	if (w->next)
		w->next->previous = w;
	w->server->waits = w;
}

static void remove_wait(struct server_wait *w)
{
	if (w->previous)
		w->previous->next = w->next;
	else
		w->server->waits = w->next;
	if (w->next)
		w->next->previous = w->previous;
	w->next = w->previous = NULL;
}

static void go_on(struct server_wait *w)
{
	remove_wait(w);
	w->stage = EXCHANGE_DECIDED;
	MHD_resume_connection(w->connection);
}

void server_decide(struct server_wait *w, struct server_answer *refusal)
{
	if (refusal) {
		w->refusal_status = (unsigned)refusal->status;
		w->refusal = server_response(w->server, refusal);
		w->is_dropped = !w->refusal;
	}
	go_on(w);
	server_run_soon(w->server);
}

void server_drop_waits(struct server *s)
{
	while (s->waits) {
		s->waits->is_dropped = true;
		go_on(s->waits);
	}
}

static struct server_request request_of(const struct server_wait *w, const char *method, const char *path)
{
	return (struct server_request){ .method = strcmp(method, "HEAD") == 0 ? "GET" : method,
					.path = path,
					.body = w->body.text ? w->body.text : "",
					.body_len = w->body.len,
					.connection = w->connection };
}

/* The header is there. */
static enum MHD_Result begin(struct server *s, struct MHD_Connection *c, const struct server_request *q,
			     struct server_wait *w)
{
	const union MHD_ConnectionInfo *from = MHD_get_connection_info(c, MHD_CONNECTION_INFO_CLIENT_ADDRESS);
	millis wait = rates_take(s->rates, from ? from->client_addr : NULL, loop_now(s->loop));
	struct server_answer a = { .status = 403, .content_type = "text/plain; charset=utf-8", .fd = -1 };

	if (wait)
		return reply_too_many(s, c, wait);
	if (is_announced_too_long(s, c)) {
		a = server_refusal(s, 413, "the body is too long");
		return server_reply(s, c, &a);
	}
	switch (s->settings.admit ? s->settings.admit(s->settings.admit_user, q, w, &a) : SERVER_ADMITS) {
	case SERVER_ADMITS:
		w->stage = EXCHANGE_BODY;
		return MHD_YES;
	case SERVER_REFUSES:
		return server_reply(s, c, &a);
	case SERVER_WAITS:
		break;
	}
	peer_expects(c, 0);
	add_wait(w);
	MHD_suspend_connection(c);
	return MHD_YES;
}

/* libmicrohttpd calls again as at first, because nothing was answered then. */
static enum MHD_Result decided(struct server_wait *w)
{
	struct MHD_Response *refusal = w->refusal;

	if (w->is_dropped)
		return MHD_NO;
	w->stage = EXCHANGE_BODY;
	peer_expects(w->connection, w->server->settings.request_seconds);
	if (!refusal)
		return MHD_YES;
	w->refusal = NULL;
	enum MHD_Result result = MHD_queue_response(w->connection, w->refusal_status, refusal);
	MHD_destroy_response(refusal);
	return result;
}

static struct server_wait *meet(struct server *s, struct MHD_Connection *c)
{
	struct server_wait *w = calloc(1, sizeof *w);

	if (!w)
		abort();
	w->server = s;
	w->connection = c;
	w->body.cap = s->settings.max_body;
	return w;
}

/* libmicrohttpd calls once when the header is there, then for each part of the body, then for the answer. */
// NOLINTNEXTLINE(readability-function-size): its parameters are libmicrohttpd's
enum MHD_Result server_on_request(void *user, struct MHD_Connection *c, const char *path, const char *method,
				  const char *version, const char *part, size_t *part_len, void **state)
{
	struct server *s = user;
	struct server_wait *w = *state;

	(void)version;
	if (!w) {
		*state = w = meet(s, c);
		struct server_request q = request_of(w, method, path);
		return begin(s, c, &q, w);
	}
	if (w->stage == EXCHANGE_DECIDED)
		return decided(w);
	if (*part_len) {
		buf_append(&w->body, part, *part_len);
		*part_len = 0;
		return buf_ok(&w->body) ? MHD_YES : MHD_NO; /* only a closed connection ends an endless body */
	}
	struct server_request q = request_of(w, method, path);
	peer_expects(c, s->settings.answer_seconds);
	return server_route(s, &q);
}

void server_on_completed(void *user, struct MHD_Connection *c, void **state, enum MHD_RequestTerminationCode how)
{
	struct server *s = user;
	struct server_wait *w = *state;

	(void)how;
	peer_expects(c, s->settings.request_seconds);
	if (!w)
		return;
	if (w->refusal)
		MHD_destroy_response(w->refusal);
	buf_release(&w->body);
	free(w);
	*state = NULL;
}
