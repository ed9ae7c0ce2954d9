/*
 * An answer that goes on: text is sent as it comes, until the peer leaves,
 * is too slow, or the server closes. Everything is called from the loop.
 */
#pragma once
#include "base/net/server.h"

struct server_stream {
	/* Filled in by the route, with server_answer.stream; the memory is the server's until ended(), which comes
	 * once and may free it. */
	void (*ended)(struct server_stream *s);
	void *user;

	void *connection; /* private, from here on; zeroed at first */
	struct buf unsent;
	bool is_waiting, is_over;
	struct server *server;
	struct server_stream *next, *previous;
};

/* What a peer does not take grows up to so much; then it is cut off. */
#define SERVER_STREAM_MOST ((size_t)64 << 10)

/* Not after ended(). */
void server_stream_send(struct server_stream *s, const char *text, size_t len);
