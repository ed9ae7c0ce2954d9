/* What the files of the HTTP client share. */
#pragma once
#include "base/buf.h"
#include "base/net/http.h"

#include <curl/curl.h>

#define MOST_HEADER_BYTES ((size_t)256 << 10)

struct http {
	struct loop *loop;
	CURLM *multi;
	char *agent;
	struct timer timer;	   /* libcurl's one timeout */
	struct timer settle;	   /* serves what waits in `due` */
	struct http_transfer *due; /* in order: to be begun, or to be completed without libcurl */
	struct http_transfer **due_end;
	struct http_transfer *all;
	size_t active;
};

struct http_transfer {
	struct http *http;
	struct http_request *request;
	CURL *easy;
	struct curl_slist *headers, *connect_to;
	struct buf body;
	size_t header_bytes;
	bool is_header_whole;
	bool is_accepted; /* on_accepted was told */
	struct timer deadline, silence;
	millis last_byte;
	bool is_due;	   /* in `due` */
	bool is_settled;   /* request->error says how; nothing from libcurl counts any more */
	bool is_streaming; /* a 2xx answer for on_chunk */
	struct http_transfer *next_due, *next, **place;
	char problem[CURL_ERROR_SIZE];
};

/* Fills in a new handle: everything but the call-backs. False with request->error set. */
bool transfer_prepare(struct http_transfer *t) MUST_USE;
/* What failed, as request->error. */
void transfer_failed(struct http_transfer *t, CURLcode code);
/* "GET https://host/path", without what may be secret. */
struct shown_call {
	char text[240];
};
struct shown_call transfer_shown(const struct http_request *r);
void transfer_settle(struct http_transfer *t); /* completes it from the loop */
void transfer_collect(struct http *h);	       /* completes what libcurl has finished */

/* The sockets and the timeout of libcurl on the loop. */
void sockets_attach(struct http *h);
