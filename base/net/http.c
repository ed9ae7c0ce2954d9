#include "base/net/http_transfer.h"

#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define MOST_PER_HOST	   64L
#define MOST_CONNECTIONS   512L
#define STREAM_BUFFER	   (128L << 10)
#define CONNECT_TIMEOUT_MS 10000L

static void out_of_memory(void)
{
	fputs("out of memory\n", stderr);
	abort();
}

static void put_due(struct http_transfer *t)
{
	struct http *h = t->http;

	if (t->is_due)
		return;
	t->is_due = true;
	t->next_due = NULL;
	*h->due_end = t;
	h->due_end = &t->next_due;
	if (!timer_is_running(&h->settle))
		timer_start(h->loop, &h->settle, 0, h->settle.fire);
}

void transfer_settle(struct http_transfer *t)
{
	t->is_settled = true;
	put_due(t);
}

static void forget(struct http_transfer *t)
{
	*t->place = t->next;
	if (t->next)
		t->next->place = t->place;
	t->http->active--;
	timer_stop(&t->deadline);
	timer_stop(&t->silence);
}

static void release(struct http_transfer *t)
{
	curl_easy_cleanup(t->easy);
	curl_slist_free_all(t->headers);
	curl_slist_free_all(t->connect_to);
	buf_release(&t->body);
	free(t);
}

/* The handle outlives done(), which may ask it for headers. */
static void finish(struct http_transfer *t)
{
	struct http_request *r = t->request;

	forget(t);
	if (t->easy)
		curl_multi_remove_handle(t->http->multi, t->easy);
	r->response = r->error.kind == ERROR_NONE && t->body.text ? t->body.text : "";
	r->response_len = r->error.kind == ERROR_NONE ? t->body.len : 0;
	r->transfer = NULL;
	r->answered = t;
	r->done(r); /* may start r anew, and may free it */
	release(t);
}

void transfer_collect(struct http *h)
{
	CURLMsg *m;
	int left;

	while ((m = curl_multi_info_read(h->multi, &left))) {
		struct http_transfer *t = NULL;
		CURLcode code = m->data.result;

		curl_easy_getinfo(m->easy_handle, CURLINFO_PRIVATE, &t);
		assert(t);
		if (t->is_settled)
			continue;
		if (code != CURLE_OK || !t->is_header_whole) /* libcurl takes half a header for an answer */
			transfer_failed(t, code ? code : CURLE_PARTIAL_FILE);
		else
			curl_easy_getinfo(t->easy, CURLINFO_RESPONSE_CODE, &t->request->status);
		finish(t);
	}
}

/* A 2xx that may have no body for long: the answer to a watch of what stands still. */
static void tell_accepted(struct http_transfer *t)
{
	struct http_request *r = t->request;
	long status = 0;

	curl_easy_getinfo(t->easy, CURLINFO_RESPONSE_CODE, &status);
	if (t->is_settled || t->is_accepted || !r->on_accepted || status < 200 || status > 299)
		return;
	t->is_accepted = true;
	r->status = status;
	r->answered = t;
	r->on_accepted(r);
}

static size_t on_header(char *text, size_t size, size_t n, void *user)
{
	struct http_transfer *t = user;
	size_t len = size * n;

	t->last_byte = loop_now(t->http->loop);
	t->header_bytes += len;
	if (len >= 5 && memcmp(text, "HTTP/", 5) == 0)
		t->is_header_whole = false; /* what came before was 100 Continue */
	else if (len && (text[0] == '\r' || text[0] == '\n'))
		t->is_header_whole = true;
	if (t->is_header_whole)
		tell_accepted(t);
	return t->is_settled || t->header_bytes > MOST_HEADER_BYTES ? 0 : len;
}

static bool stream(struct http_transfer *t, const char *bytes, size_t len)
{
	struct http_request *r = t->request;

	assert(r->on_chunk);
	r->answered = t;
	if (r->on_chunk(r, bytes, len) && !t->is_settled)
		return true;
	if (r->error.kind == ERROR_NONE)
		error_set(&r->error, ERROR_CANCELLED, "%s: cancelled", transfer_shown(r).text);
	return false;
}

static size_t on_body(char *bytes, size_t size, size_t n, void *user)
{
	struct http_transfer *t = user;
	struct http_request *r = t->request;
	size_t len = size * n;

	if (t->is_settled)
		return 0;
	t->last_byte = loop_now(t->http->loop);
	if (r->on_chunk && !t->is_streaming && t->body.len == 0) {
		curl_easy_getinfo(t->easy, CURLINFO_RESPONSE_CODE, &r->status);
		t->is_streaming = r->status >= 200 && r->status < 300;
	}
	if (t->is_streaming)
		return stream(t, bytes, len) ? len : 0;
	buf_append(&t->body, bytes, len);
	return buf_ok(&t->body) ? len : 0;
}

static void on_deadline(struct timer *deadline)
{
	struct http_transfer *t = deadline->user;
	struct http_request *r = t->request;
	curl_off_t connected = 0;

	if (t->is_settled)
		return;
	if (t->easy)
		curl_easy_getinfo(t->easy, CURLINFO_CONNECT_TIME_T, &connected);
	error_set(&r->error, ERROR_TIMEOUT, "%s: %s within %" PRId64 " ms", transfer_shown(r).text,
		  t->header_bytes ? "no whole answer"
		  : connected	  ? "no answer"
				  : "no connection",
		  r->timeout);
	transfer_settle(t);
}

static void on_silence(struct timer *silence)
{
	struct http_transfer *t = silence->user;
	struct http_request *r = t->request;
	millis left = r->silence_timeout - (loop_now(t->http->loop) - t->last_byte);

	if (t->is_settled)
		return;
	if (left > 0) {
		timer_start(t->http->loop, silence, left, on_silence);
		return;
	}
	error_set(&r->error, ERROR_TIMEOUT, "%s: not a byte for %" PRId64 " ms", transfer_shown(r).text,
		  r->silence_timeout);
	transfer_settle(t);
}

static bool begin(struct http_transfer *t)
{
	struct http_request *r = t->request;

	if (!transfer_prepare(t))
		return false;
	t->body.cap = r->max_response;
	curl_easy_setopt(t->easy, CURLOPT_PRIVATE, t);
	curl_easy_setopt(t->easy, CURLOPT_ERRORBUFFER, t->problem);
	curl_easy_setopt(t->easy, CURLOPT_USERAGENT, t->http->agent);
	curl_easy_setopt(t->easy, CURLOPT_HEADERFUNCTION, on_header);
	curl_easy_setopt(t->easy, CURLOPT_HEADERDATA, t);
	curl_easy_setopt(t->easy, CURLOPT_WRITEFUNCTION, on_body);
	curl_easy_setopt(t->easy, CURLOPT_WRITEDATA, t);
	curl_easy_setopt(t->easy, CURLOPT_CONNECTTIMEOUT_MS, CONNECT_TIMEOUT_MS);
	if (r->on_chunk)
		curl_easy_setopt(t->easy, CURLOPT_BUFFERSIZE, STREAM_BUFFER);
	if (curl_multi_add_handle(t->http->multi, t->easy) == CURLM_OK)
		return true;
	return error_set(&r->error, ERROR_INTERNAL, "%s: libcurl refused the call", transfer_shown(r).text);
}

static void watch_time(struct http_transfer *t)
{
	const struct http_request *r = t->request;

	t->deadline.user = t->silence.user = t;
	t->last_byte = loop_now(t->http->loop);
	if (r->timeout > 0)
		timer_start(t->http->loop, &t->deadline, r->timeout, on_deadline);
	if (r->silence_timeout > 0)
		timer_start(t->http->loop, &t->silence, r->silence_timeout, on_silence);
}

/* What became due while this runs waits for the next round: one that restarts itself cannot hold up the loop. */
static void on_settle(struct timer *timer)
{
	struct http *h = timer->user;
	struct http_transfer *due = h->due;

	h->due = NULL;
	h->due_end = &h->due;
	while (due) {
		struct http_transfer *t = due;
		due = t->next_due;
		t->is_due = false;
		if (t->is_settled || !begin(t))
			finish(t);
	}
}

struct http *http_open(struct loop *loop, const char *agent, struct error *e)
{
	/* Without this libcurl would resolve names inside our loop, blocking. */
	if (!(curl_version_info(CURLVERSION_NOW)->features & CURL_VERSION_ASYNCHDNS)) {
		error_set(e, ERROR_INTERNAL,
			  "this libcurl resolves names synchronously, use one with a resolver of its own");
		return NULL;
	}
	struct http *h = calloc(1, sizeof *h);
	if (curl_global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK || !h || !(h->agent = strdup(agent)) ||
	    !(h->multi = curl_multi_init()))
		out_of_memory();
	h->loop = loop;
	h->due_end = &h->due;
	h->settle.user = h;
	h->settle.fire = on_settle;
	curl_multi_setopt(h->multi, CURLMOPT_MAX_HOST_CONNECTIONS, MOST_PER_HOST);
	curl_multi_setopt(h->multi, CURLMOPT_MAX_TOTAL_CONNECTIONS, MOST_CONNECTIONS);
	curl_multi_setopt(h->multi, CURLMOPT_MAXCONNECTS, MOST_CONNECTIONS);
	sockets_attach(h);
	return h;
}

void http_close(struct http *h)
{
	if (!h)
		return;
	assert(h->active == 0);
	curl_multi_cleanup(h->multi); /* may still change sockets and the timer */
	timer_stop(&h->timer);
	timer_stop(&h->settle);
	curl_global_cleanup();
	free(h->agent);
	free(h);
}

static void enlist(struct http *h, struct http_transfer *t)
{
	t->next = h->all;
	t->place = &h->all;
	if (h->all)
		h->all->place = &t->next;
	h->all = t;
	h->active++;
}

void http_start(struct http *h, struct http_request *r)
{
	struct http_transfer *t = calloc(1, sizeof *t);

	if (!t)
		out_of_memory();
	assert(!r->transfer);
	t->http = h;
	t->request = r;
	r->transfer = t;
	r->answered = NULL;
	r->error = (struct error){ 0 };
	r->status = 0;
	r->response = "";
	r->response_len = 0;
	enlist(h, t);
	if (h->active > HTTP_MOST) {
		error_set(&r->error, ERROR_UNAVAILABLE, "%s: more than %zu calls at once", transfer_shown(r).text,
			  HTTP_MOST);
		t->is_settled = true;
	} else {
		watch_time(t);
	}
	put_due(t); /* not begun here: libcurl may be on the stack */
}

void http_cancel(struct http_request *r)
{
	if (!r->transfer || r->transfer->is_settled)
		return;
	error_set(&r->error, ERROR_CANCELLED, "%s: cancelled", transfer_shown(r).text);
	transfer_settle(r->transfer);
}

void http_cancel_all(struct http *h)
{
	for (struct http_transfer *t = h->all; t; t = t->next)
		http_cancel(t->request);
}

size_t http_active(const struct http *h)
{
	return h->active;
}

const char *http_header(const struct http_request *r, const char *name)
{
	struct curl_header *h;

	if (!r->answered || !r->answered->easy ||
	    curl_easy_header(r->answered->easy, name, 0, CURLH_HEADER, -1, &h) != CURLHE_OK)
		return NULL;
	if (h->amount > 1 &&
	    curl_easy_header(r->answered->easy, name, h->amount - 1, CURLH_HEADER, -1, &h) != CURLHE_OK)
		return NULL;
	return h->value;
}

enum error_kind http_status_kind(long status)
{
	switch (status) {
	case 401:
	case 403:
		return ERROR_AUTH;
	case 404:
	case 410:
		return ERROR_NOT_FOUND;
	case 408:
	case 504:
		return ERROR_TIMEOUT;
	case 409:
	case 412:
		return ERROR_CONFLICT;
	case 429:
		return ERROR_THROTTLED;
	default:
		if (status >= 200 && status < 300)
			return ERROR_NONE;
		return status >= 500 && status < 600 ? ERROR_UNAVAILABLE : ERROR_INVALID;
	}
}
