#include "tests/unit/net/http_calls.h"
#include "tests/unit/net/scripted_peer.h"

#include <stdlib.h>

#define OK    "HTTP/1.1 200 OK\r\nX-Kind: stream\r\n"
#define CHUNK "Transfer-Encoding: chunked\r\n\r\n"

struct streamed {
	struct call call;
	struct scripted_peer *peer;
	char text[256];
	size_t len, pieces;
	size_t refuse_after; /* pieces; 0: never */
	bool says_why, cancels;
	long status;
	millis silence;
	void (*on_accepted)(struct http_request *r);
};

static bool take(struct http_request *r, const char *bytes, size_t len)
{
	struct streamed *s = (struct streamed *)r->user;

	assert_true(s->len + len < sizeof s->text);
	memcpy(s->text + s->len, bytes, len);
	s->len += len;
	s->pieces++;
	s->status = r->status;
	assert_string_equal(http_header(r, "X-Kind"), "stream");
	peer_go(s->peer);
	if (s->cancels)
		http_cancel(r);
	if (!s->refuse_after || s->pieces < s->refuse_after)
		return true;
	if (s->says_why)
		error_set(&r->error, ERROR_INVALID, "line 3: no JSON");
	return false;
}

static void stream(struct streamed *s, const struct peer_step *script)
{
	s->peer = peer_open(script);
	s->call = call_to(peer_url(s->peer));
	s->call.r.timeout = 0;
	s->call.r.silence_timeout = s->silence ? s->silence : MINUTE;
	s->call.r.on_chunk = take;
	s->call.r.on_accepted = s->on_accepted;
	call_run(&s->call);
	assert_int_equal(s->call.done, 1);
	free(peer_close(s->peer));
}

/* The peer goes on only when a piece has arrived, so the cuts are where the script makes them. */
static void pieces_arrive_as_they_are_sent(void **state)
{
	static const struct peer_step script[] = {
		{ PEER_ACCEPT, NULL },	      { PEER_READ, NULL },	{ PEER_SEND, OK CHUNK "3\r\none\r\n" },
		{ PEER_WAIT, NULL },	      { PEER_SEND, "6\r\ntw" }, { PEER_WAIT, NULL },
		{ PEER_SEND, "othr\r\n2\r" }, { PEER_WAIT, NULL },	{ PEER_SEND, "\nee\r\n0\r\n\r\n" },
		{ PEER_END, NULL },
	};
	struct streamed s = { 0 };

	(void)state;
	stream(&s, script);
	assert_int_equal(s.call.kind, ERROR_NONE);
	assert_int_equal(s.status, 200);
	assert_int_equal(s.pieces, 4);
	assert_string_equal(s.text, "onetwothree");
	assert_int_equal(s.call.response_len, 0);
}

/* An API server that goes away in the middle of a watch. */
static void a_stream_cut_short_is_told(void **state)
{
	static const struct peer_step script[] = {
		{ PEER_ACCEPT, NULL }, { PEER_READ, NULL }, { PEER_SEND, OK CHUNK "3\r\none\r\n" }, { PEER_END, NULL }
	};
	struct streamed s = { 0 };

	(void)state;
	stream(&s, script);
	assert_int_equal(s.call.kind, ERROR_UNAVAILABLE);
	assert_string_equal(s.text, "one");
}

static void silence_ends_a_stream(void **state)
{
	static const struct peer_step script[] = { { PEER_ACCEPT, NULL },
						   { PEER_READ, NULL },
						   { PEER_SEND, OK CHUNK "3\r\none\r\n" },
						   { PEER_HOLD, NULL },
						   { PEER_END, NULL } };
	struct streamed s = { .silence = 60 };

	(void)state;
	stream(&s, script);
	assert_int_equal(s.call.kind, ERROR_TIMEOUT);
	assert_string_equal(s.text, "one");
}

static const struct peer_step one_piece[] = {
	{ PEER_ACCEPT, NULL }, { PEER_READ, NULL }, { PEER_SEND, OK "\r\nx" }, { PEER_HOLD, NULL }, { PEER_END, NULL }
};

static void a_refused_piece_ends_the_stream(void **state)
{
	struct streamed silent = { .refuse_after = 1 };
	struct streamed says = { .refuse_after = 1, .says_why = true };

	(void)state;
	stream(&silent, one_piece);
	assert_int_equal(silent.call.kind, ERROR_CANCELLED);
	stream(&says, one_piece);
	assert_int_equal(says.call.kind, ERROR_INVALID);
	assert_string_equal(says.call.message, "line 3: no JSON");
}

static void a_stream_may_be_cancelled_from_inside(void **state)
{
	struct streamed s = { .cancels = true };

	(void)state;
	stream(&s, one_piece);
	assert_int_equal(s.call.kind, ERROR_CANCELLED);
	assert_int_equal(s.pieces, 1);
}

static void bodies_of_refusals_are_gathered(void **state)
{
	static const struct peer_step script[] = {
		{ PEER_ACCEPT, NULL },
		{ PEER_READ, NULL },
		{ PEER_SEND, "HTTP/1.1 410 Gone\r\nContent-Length: 7\r\n\r\nexpired" },
		{ PEER_END, NULL },
	};
	struct streamed s = { 0 };

	(void)state;
	stream(&s, script);
	assert_int_equal(s.call.kind, ERROR_NONE);
	assert_int_equal(s.call.status, 410);
	assert_string_equal(s.call.response, "expired");
	assert_int_equal(s.pieces, 0);
}

/* Starting one from on_chunk must wait: libcurl is on the stack. */
static bool start_second(struct http_request *r, const char *bytes, size_t len)
{
	struct call *c = r->user;
	struct call *second = c + 1;

	(void)bytes;
	(void)len;
	if (!second->r.user) {
		second->r.user = second;
		http_start(c->http, &second->r);
		http_cancel(&second->r);
		assert_int_equal(second->done, 0);
	}
	return true;
}

static void calls_may_start_inside_a_stream(void **state)
{
	static const struct peer_step script[] = { { PEER_ACCEPT, NULL },
						   { PEER_READ, NULL },
						   { PEER_SEND, OK "Content-Length: 2\r\n\r\nhi" },
						   { PEER_END, NULL } };
	struct scripted_peer *p = peer_open(script);
	struct call calls[2] = { call_to(peer_url(p)), call_to("http://127.0.0.1:1/") };

	(void)state;
	calls[0].r.on_chunk = start_second;
	call_run(&calls[0]);
	assert_int_equal(calls[0].kind, ERROR_NONE);
	assert_int_equal(calls[1].done, 1);
	assert_int_equal(calls[1].kind, ERROR_CANCELLED);
	free(peer_close(p));
}

static int accepted;

static void note_accepted(struct http_request *r)
{
	assert_string_equal(http_header(r, "X-Kind"), "stream");
	assert_int_equal(r->status, 200);
	accepted++;
	peer_go(((struct streamed *)r->user)->peer);
}

/* Before a byte of the body came: the peer sends none until then. */
static void acceptance_is_told_with_the_header(void **state)
{
	static const struct peer_step script[] = {
		{ PEER_ACCEPT, NULL },
		{ PEER_READ, NULL },
		{ PEER_SEND, "HTTP/1.1 100 Continue\r\n\r\n" OK CHUNK },
		{ PEER_WAIT, NULL },
		{ PEER_SEND, "3\r\none\r\n0\r\n\r\n" },
		{ PEER_END, NULL },
	};
	static const struct peer_step refusal[] = {
		{ PEER_ACCEPT, NULL },
		{ PEER_READ, NULL },
		{ PEER_SEND, "HTTP/1.1 403 Forbidden\r\nContent-Length: 2\r\n\r\nno" },
		{ PEER_END, NULL },
	};
	struct streamed s = { .on_accepted = note_accepted };

	(void)state;
	stream(&s, script);
	assert_int_equal(s.call.kind, ERROR_NONE);
	assert_int_equal(accepted, 1);
	s = (struct streamed){ .on_accepted = note_accepted };
	stream(&s, refusal);
	assert_int_equal(s.call.status, 403);
	assert_int_equal(accepted, 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(pieces_arrive_as_they_are_sent),
		cmocka_unit_test(a_stream_cut_short_is_told),
		cmocka_unit_test(silence_ends_a_stream),
		cmocka_unit_test(a_refused_piece_ends_the_stream),
		cmocka_unit_test(a_stream_may_be_cancelled_from_inside),
		cmocka_unit_test(bodies_of_refusals_are_gathered),
		cmocka_unit_test(calls_may_start_inside_a_stream),
		cmocka_unit_test(acceptance_is_told_with_the_header),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
