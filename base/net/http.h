/*
 * Asynchronous HTTP(S) on the one event loop. HTTP/1.1 with connections kept
 * and reused: a connection that dies takes one call with it, not all.
 *
 * A started request completes exactly once, always from the loop and never
 * inside http_start(). Its memory belongs to the caller until then. Any HTTP
 * answer is a success here, whatever its status; redirects are not followed.
 * A request over a kept connection that proves dead before a byte came back
 * is sent once more; one that writes is not, as it may have been done, and
 * ends as ERROR_UNAVAILABLE. So does one whose answer nobody can read.
 * What was cancelled sends nothing more: its connection is gone when the call
 * returns. Requests that write are sent only until http_write_until(), and at
 * that time the kernel resets the connections of those under way.
 * Messages name the method and the URL without its query and its user; they
 * never contain a header or a body.
 */
#pragma once
#include "base/net/loop.h"

#include <stddef.h>

struct http;
struct http_transfer;

/* How an endpoint is trusted and what we show it. Shared by requests; must outlive them. Zeroed: the system's CAs. */
struct http_tls {
	/* PEM text, or a file, of which a change is seen within a minute; the text wins. NULL: the system's, or nothing
	 * shown. */
	const char *ca, *ca_file;
	const char *cert, *cert_file;
	const char *key, *key_file;
	const char *server_name; /* the name to expect in place of the URL's host (SNI and certificate) */
	bool is_insecure;	 /* accepts any certificate */
};

struct http_request {
	/* Filled in by the caller; must outlive the request. */
	const char *method;
	const char *url;
	const char *const *headers; /* "Name: value"s, NULL-terminated, may be NULL */
	const char *bearer;	    /* sent as Authorization: Bearer; may be NULL */
	const char *body;
	size_t body_len;
	const struct http_tls *tls; /* may be NULL */
	/*
	 * NULL: as HTTP_PROXY, HTTPS_PROXY and NO_PROXY of the environment say, but never for loopback, as kubectl
	 * does.
	 * "": none. Else the URL of a proxy.
	 */
	const char *proxy;
	bool accepts_gzip;
	bool is_write;	/* changes something there: see http_write_until() */
	millis timeout; /* of all of it, waiting for a free connection included; 0 only with a silence_timeout */
	millis silence_timeout; /* no byte for so long is ERROR_TIMEOUT; 0: not watched */
	size_t max_response;	/* bytes of `response`, unpacked; more is ERROR_INVALID; 0 is refused */
	/*
	 * Takes the body of a 2xx answer as it comes, unpacked; `status` and http_header() are valid then. Nothing of
	 * it goes into `response` and max_response does not count it; bodies of other answers are gathered as always.
	 * Returning false ends the request with the error that was set in r->error, or else as ERROR_CANCELLED.
	 */
	bool (*on_chunk)(struct http_request *r, const char *bytes, size_t len);
	void (*on_accepted)(struct http_request *r); /* once the header of a 2xx answer is whole; may be NULL */
	void (*done)(struct http_request *r);	     /* may start r anew, start others, free r */
	void *user;

	/*
	 * Valid inside done(), and no longer. kind is ERROR_NONE on any complete HTTP answer. ERROR_AUTH: a certificate
	 * was not accepted. ERROR_TIMEOUT: a deadline. ERROR_CANCELLED: http_cancel(). ERROR_INVALID: too long, or
	 * no HTTP, or the URL is none. ERROR_UNAVAILABLE: no such host, refused, reset, cut short, or a write that
	 * came too late.
	 */
	struct error error;
	bool is_refused; /* ERROR_UNAVAILABLE: the host is there, and nothing listens on that port */
	long status;
	const char *response; /* NUL-terminated, never NULL */
	size_t response_len;

	struct http_transfer *transfer; /* private; NULL at first */
	struct http_transfer *answered; /* private */
};

/* `agent` is what we call ourselves ("preheat/0.1.0"); copied. */
struct http *http_open(struct loop *loop, const char *agent, struct error *e) MUST_USE;
void http_close(struct http *h); /* every request must have completed; not inside done(); takes NULL */
/* Cannot fail: failures arrive in done(). More than HTTP_MOST at once are ERROR_UNAVAILABLE. */
void http_start(struct http *h, struct http_request *r);
#define HTTP_MOST ((size_t)4096)
/* Completes as ERROR_CANCELLED, and no byte of it leaves any more; nothing when it is not under way. */
void http_cancel(struct http_request *r);
void http_cancel_all(struct http *h); /* for the end: run the loop until http_active() is 0 */
size_t http_active(const struct http *h);
/*
 * By loop_now(): no byte of a write leaves at that time or later, even if the process stood still between the last look
 * at a clock and the sending. What was begun before a time that is over is not sent in a later one: it fails as
 * ERROR_UNAVAILABLE. 0: no limit, as at first.
 */
void http_write_until(struct http *h, millis until);
/* A header of the answer, NULL without; any case; the last of several. Valid inside on_chunk() and done() only. */
const char *http_header(const struct http_request *r, const char *name);
/* The kind that a status belongs to: NONE for 2xx; 401 403 AUTH, 404 410 NOT_FOUND, 409 412 CONFLICT, 408 504 TIMEOUT,
 * 429 THROTTLED, other 5xx UNAVAILABLE, anything else INVALID. */
enum error_kind http_status_kind(long status);
