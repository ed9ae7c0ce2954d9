#include "base/net/http.h"

#include "base/alloc.h"
#include "base/arena.h"
#include "base/buf.h"
#include "base/net/fence.h"
#include "base/text.h"

#include <assert.h>
#include <errno.h>
#include <curl/curl.h>
#include <inttypes.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/queue.h>
#include <sys/socket.h>
#include <unistd.h>

#define MOST_HEADER_BYTES ((size_t)256 << 10)

struct http {
	struct loop *loop;
	CURLM *multi;
	char *agent;
	struct timer timer;		  /* libcurl's one timeout */
	struct timer settle;		  /* serves what waits in `due` */
	STAILQ_HEAD(, http_transfer) due; /* in order: to be begun, or to be completed without libcurl */
	LIST_HEAD(, http_transfer) all;
	size_t active;
	struct fence *fence;
	bool is_inside; /* libcurl calls back, and takes no calls */
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
	bool was_let_go;   /* a byte of it may have left */
	bool was_cut;	   /* its connection closed then, and libcurl would send it again */
	bool is_streaming; /* a 2xx answer for on_chunk */
	LIST_ENTRY(http_transfer) link;
	STAILQ_ENTRY(http_transfer) next_due;
	char problem[CURL_ERROR_SIZE];
};

/* "GET https://host/path", without what may be secret. */
struct shown_call {
	char text[240];
};

#define MOST_PER_HOST	   64L
#define MOST_CONNECTIONS   512L
#define STREAM_BUFFER	   (128L << 10)
#define CONNECT_TIMEOUT_MS 10000L

#define KEEPALIVE_IDLE_S     30L
#define KEEPALIVE_INTERVAL_S 10L
#define UNHEARD_MS	     30000
#define CA_CACHE_S	     60L

static struct shown_call transfer_shown(const struct http_request *r)
{
	CLEANUP(buf_release) struct buf url = { 0 };
	struct shown_call shown;

	uri_show(r->url, &url);
	snprintf(shown.text, sizeof shown.text, "%s %s", r->method, url.text);
	return shown;
}

static void add(struct curl_slist **list, const char *text)
{
	*list = xmust(curl_slist_append(*list, text));
}

static bool is_one_line(const char *text)
{
	return !text[strcspn(text, "\r\n")];
}

static bool names(const char *header, const char *name)
{
	size_t len = strlen(name);

	return strncasecmp(header, name, len) == 0 && (header[len] == ':' || header[len] == ';');
}

static bool add_headers(struct http_transfer *t)
{
	struct http_request *r = t->request;
	bool has_type = false;

	for (const char *const *h = r->headers; h && *h; h++) {
		if (!is_one_line(*h))
			return error_set(&r->error, ERROR_INVALID, "%s: a header has a line break in it",
					 transfer_shown(r).text);
		has_type |= names(*h, "Content-Type");
		add(&t->headers, *h);
	}
	if (!has_type)
		add(&t->headers, "Content-Type:"); /* none rather than libcurl's guess */
	add(&t->headers, "Expect:");		   /* a round trip for nothing */
	if (!r->bearer)
		return true;
	CLEANUP(buf_release) struct buf line = { 0 };
	buf_printf(&line, "Authorization: Bearer %s", r->bearer);
	if (!is_one_line(line.text))
		return error_set(&r->error, ERROR_AUTH, "%s: the bearer token has a line break in it",
				 transfer_shown(r).text);
	add(&t->headers, line.text);
	return true;
}

static void set_method(CURL *easy, const struct http_request *r)
{
	bool has_no_body = strcmp(r->method, "GET") == 0 || strcmp(r->method, "HEAD") == 0 ||
			   strcmp(r->method, "DELETE") == 0 || strcmp(r->method, "OPTIONS") == 0;

	/* Others say Content-Length: 0, which some servers insist on. */
	if (r->body || !has_no_body) {
		curl_easy_setopt(easy, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)(r->body ? r->body_len : 0));
		curl_easy_setopt(easy, CURLOPT_POSTFIELDS, r->body ? r->body : "");
	}
	if (strcmp(r->method, "HEAD") == 0)
		curl_easy_setopt(easy, CURLOPT_NOBODY, 1L);
	else
		curl_easy_setopt(easy, CURLOPT_CUSTOMREQUEST, r->method);
}

/* A connection over which nothing is heard any more must fail, not hang. */
static int on_connection(void *user, curl_socket_t fd, curlsocktype purpose)
{
	unsigned unheard = UNHEARD_MS;

	(void)user;
	(void)purpose;
	(void)setsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &unheard, sizeof unheard);
	return CURL_SOCKOPT_OK;
}

static curl_socket_t open_socket(void *user, curlsocktype purpose, struct curl_sockaddr *to)
{
	struct http *h = user;
	int fd = socket(to->family, to->socktype | SOCK_CLOEXEC, to->protocol);

	(void)purpose;
	if (fd >= 0 && !fence_know(h->fence, fd)) {
		close(fd);
		return CURL_SOCKET_BAD;
	}
	return fd;
}

static int close_socket(void *user, curl_socket_t fd)
{
	struct http *h = user;

	fence_forget(h->fence, fd);
	return close(fd);
}

/*
 * The last look before bytes of a request may leave, over a new connection, a kept one, and when libcurl would send it
 * again, as a kept one closed without an answer: a write may have been done by then. The socket is held first: from
 * then on the kernel looks.
 */
static int on_connected(void *user, char *peer_ip, char *ip, int peer_port, int port)
{
	struct http_transfer *t = user;
	struct fence *fence = t->http->fence;
	const struct fence_ends ends = { .ip = ip, .peer_ip = peer_ip, .port = port, .peer_port = peer_port };

	if (t->is_settled)
		return CURL_PREREQFUNC_ABORT;
	t->was_cut = t->request->is_write && t->was_let_go;
	if (t->was_cut)
		return CURL_PREREQFUNC_ABORT;
	if (t->request->is_write && (!fence_hold(fence, &ends, t) || fence_is_over(fence)))
		return CURL_PREREQFUNC_ABORT;
	t->was_let_go = true;
	return CURL_PREREQFUNC_OK;
}

static void set_connection(CURL *easy, const struct http_request *r)
{
	curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
	curl_easy_setopt(easy, CURLOPT_QUICK_EXIT, 1L); /* else ending it waits, blocking, for a dead name server */
	curl_easy_setopt(easy, CURLOPT_PROTOCOLS_STR, "http,https");
	curl_easy_setopt(easy, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1);
	curl_easy_setopt(easy, CURLOPT_TCP_KEEPALIVE, 1L);
	curl_easy_setopt(easy, CURLOPT_TCP_KEEPIDLE, KEEPALIVE_IDLE_S);
	curl_easy_setopt(easy, CURLOPT_TCP_KEEPINTVL, KEEPALIVE_INTERVAL_S);
	curl_easy_setopt(easy, CURLOPT_SOCKOPTFUNCTION, on_connection);
	if (r->accepts_gzip)
		curl_easy_setopt(easy, CURLOPT_ACCEPT_ENCODING, "gzip");
}

/* Of what lies in memory; it outlives the transfer. */
static void set_blob(CURL *easy, CURLoption option, const char *text)
{
	struct curl_blob blob = { .data = (void *)(uintptr_t)text, .len = strlen(text), .flags = CURL_BLOB_NOCOPY };

	curl_easy_setopt(easy, option, &blob);
}

static void set_certificates(CURL *easy, const struct http_tls *tls)
{
	if (tls->ca)
		set_blob(easy, CURLOPT_CAINFO_BLOB, tls->ca);
	else if (tls->ca_file)
		curl_easy_setopt(easy, CURLOPT_CAINFO, tls->ca_file);
	if (tls->ca || tls->ca_file)
		curl_easy_setopt(easy, CURLOPT_CAPATH, NULL); /* this one and no other */
	if (tls->cert)
		set_blob(easy, CURLOPT_SSLCERT_BLOB, tls->cert);
	else if (tls->cert_file)
		curl_easy_setopt(easy, CURLOPT_SSLCERT, tls->cert_file);
	if (tls->key)
		set_blob(easy, CURLOPT_SSLKEY_BLOB, tls->key);
	else if (tls->key_file)
		curl_easy_setopt(easy, CURLOPT_SSLKEY, tls->key_file);
}

static void set_tls(CURL *easy, const struct http_tls *tls)
{
	curl_easy_setopt(easy, CURLOPT_SSLVERSION, (long)CURL_SSLVERSION_TLSv1_2);
	curl_easy_setopt(easy, CURLOPT_CA_CACHE_TIMEOUT, CA_CACHE_S);
	if (!tls)
		return;
	set_certificates(easy, tls);
	if (tls->is_insecure) {
		curl_easy_setopt(easy, CURLOPT_SSL_VERIFYPEER, 0L);
		curl_easy_setopt(easy, CURLOPT_SSL_VERIFYHOST, 0L);
	}
}

struct endpoint {
	CURLU *url;
	char *host, *port;
};

static void endpoint_release(struct endpoint *p)
{
	curl_url_cleanup(p->url);
	curl_free(p->host);
	curl_free(p->port);
}

/* The URL names whom we expect; the connection goes where it always did. */
static bool set_server_name(struct http_transfer *t, const struct endpoint *p)
{
	const char *name = t->request->tls->server_name;
	CLEANUP(buf_release) struct buf text = { 0 };
	char *url = NULL;

	buf_printf(&text, "%s:%s:%s:%s", name, p->port, p->host, p->port);
	add(&t->connect_to, text.text);
	buf_clear(&text);
	buf_printf(&text, "Host: %s:%s", p->host, p->port);
	add(&t->headers, text.text);
	if (curl_url_set(p->url, CURLUPART_HOST, name, 0) != CURLUE_OK ||
	    curl_url_get(p->url, CURLUPART_URL, &url, 0) != CURLUE_OK)
		return error_set(&t->request->error, ERROR_INVALID, "\"%s\" is not a server name", name);
	curl_easy_setopt(t->easy, CURLOPT_URL, url);
	curl_easy_setopt(t->easy, CURLOPT_CONNECT_TO, t->connect_to);
	curl_free(url);
	return true;
}

static bool is_loopback(const char *host)
{
	return strcasecmp(host, "localhost") == 0 || strncmp(host, "127.", 4) == 0 || strcmp(host, "[::1]") == 0;
}

static bool set_url(struct http_transfer *t)
{
	struct http_request *r = t->request;
	CLEANUP(endpoint_release) struct endpoint p = { .url = xmust(curl_url()) };

	CURLUcode code = curl_url_set(p.url, CURLUPART_URL, r->url, 0);
	if (code == CURLUE_OK)
		code = curl_url_get(p.url, CURLUPART_HOST, &p.host, 0);
	if (code == CURLUE_OK)
		code = curl_url_get(p.url, CURLUPART_PORT, &p.port, CURLU_DEFAULT_PORT);
	if (code != CURLUE_OK)
		return error_set(&r->error, ERROR_INVALID, "%s: this is not a URL such as https://host:port/path (%s)",
				 transfer_shown(r).text, curl_url_strerror(code));
	if (r->proxy)
		curl_easy_setopt(t->easy, CURLOPT_PROXY, r->proxy);
	else if (is_loopback(p.host))
		curl_easy_setopt(t->easy, CURLOPT_PROXY, "");
	if (r->tls && r->tls->server_name)
		return set_server_name(t, &p);
	curl_easy_setopt(t->easy, CURLOPT_URL, r->url);
	return true;
}

/* Fills in a new handle: everything but the call-backs. False with request->error set. */
static bool transfer_prepare(struct http_transfer *t)
{
	struct http_request *r = t->request;

	if ((r->timeout <= 0 && r->silence_timeout <= 0) || !r->max_response)
		return error_set(&r->error, ERROR_INTERNAL, "%s: no limit was given", transfer_shown(r).text);
	t->easy = xmust(curl_easy_init());
	if (!add_headers(t) || !set_url(t))
		return false;
	set_method(t->easy, r);
	set_connection(t->easy, r);
	set_tls(t->easy, r->tls);
	curl_easy_setopt(t->easy, CURLOPT_HTTPHEADER, t->headers);
	curl_easy_setopt(t->easy, CURLOPT_OPENSOCKETFUNCTION, open_socket);
	curl_easy_setopt(t->easy, CURLOPT_OPENSOCKETDATA, t->http);
	curl_easy_setopt(t->easy, CURLOPT_CLOSESOCKETFUNCTION, close_socket);
	curl_easy_setopt(t->easy, CURLOPT_CLOSESOCKETDATA, t->http); /* the connection's, which may outlive us */
	curl_easy_setopt(t->easy, CURLOPT_PREREQFUNCTION, on_connected);
	curl_easy_setopt(t->easy, CURLOPT_PREREQDATA, t);
	return true;
}

/* With TLS 1.3 a refused certificate of ours shows as a failed read. */
static bool is_refusal(const char *problem)
{
	return strcasestr(problem, "alert") &&
	       (strcasestr(problem, "certificate") || strcasestr(problem, "unknown ca"));
}

static enum error_kind kind_of(CURLcode code)
{
	switch (code) {
	case CURLE_OPERATION_TIMEDOUT:
		return ERROR_TIMEOUT;
	case CURLE_SSL_CACERT_BADFILE:
	case CURLE_SSL_ISSUER_ERROR:
		return ERROR_AUTH;
	case CURLE_URL_MALFORMAT:
	case CURLE_UNSUPPORTED_PROTOCOL:
	case CURLE_WEIRD_SERVER_REPLY:
	case CURLE_BAD_CONTENT_ENCODING:
	case CURLE_WRITE_ERROR:
		return ERROR_INVALID;
	default:
		return ERROR_UNAVAILABLE;
	}
}

/* Whose certificate it is about; NULL when about none. */
static const char *certificate_trouble(CURLcode code, const char *problem)
{
	if (code == CURLE_PEER_FAILED_VERIFICATION)
		return "the certificate of the server is not trusted";
	if (code == CURLE_SSL_CERTPROBLEM)
		return "our certificate and its key cannot be used";
	return is_refusal(problem) ? "the server refused our certificate" : NULL;
}

static void set_late(struct http_transfer *t)
{
	struct http_request *r = t->request;

	error_set(&r->error, ERROR_UNAVAILABLE, "%s: %s", transfer_shown(r).text,
		  t->was_cut	  ? "the connection closed before an answer; it may have been done"
		  : t->was_let_go ? "the time to write ran out on its way; it may have been done"
				  : "not sent: the time to write ran out");
}

static bool was_refused(CURL *easy, CURLcode code)
{
	long why = 0;

	return code == CURLE_COULDNT_CONNECT && curl_easy_getinfo(easy, CURLINFO_OS_ERRNO, &why) == CURLE_OK &&
	       why == ECONNREFUSED;
}

/* What failed, as request->error. */
static void transfer_failed(struct http_transfer *t, CURLcode code)
{
	struct http_request *r = t->request;
	const char *problem = *t->problem ? t->problem : curl_easy_strerror(code);
	const char *trouble = certificate_trouble(code, problem);
	struct shown_call call = transfer_shown(r);
	/* libcurl calls one endless header line a lack of memory */
	bool has_long_header = t->header_bytes > MOST_HEADER_BYTES || code == CURLE_OUT_OF_MEMORY;

	r->is_refused = was_refused(t->easy, code);
	if (r->error.kind != ERROR_NONE)
		return; /* said by on_chunk */
	if (r->is_write && (code == CURLE_ABORTED_BY_CALLBACK || fence_is_over(t->http->fence)))
		set_late(t);
	else if (t->body.failed)
		error_set(&r->error, ERROR_INVALID, "%s: the answer is longer than %zu bytes", call.text,
			  r->max_response);
	else if (has_long_header)
		error_set(&r->error, ERROR_INVALID, "%s: the header of the answer is too long", call.text);
	else if (trouble)
		error_set(&r->error, ERROR_AUTH, "%s: %s (%s)", call.text, trouble, problem);
	else
		error_set(&r->error, kind_of(code), "%s: %s", call.text, problem);
	if (r->is_write && t->was_let_go && r->error.kind == ERROR_INVALID) /* what came of it nobody can read */
		r->error.kind = ERROR_UNAVAILABLE;
}

static void put_due(struct http_transfer *t)
{
	struct http *h = t->http;

	if (t->is_due)
		return;
	t->is_due = true;
	STAILQ_INSERT_TAIL(&h->due, t, next_due);
	if (!timer_is_running(&h->settle))
		timer_start(h->loop, &h->settle, 0, h->settle.fire);
}

/* Completes it from the loop; nothing of it leaves any more, nor what waits in the socket's buffer. */
static void transfer_settle(struct http_transfer *t)
{
	t->is_settled = true;
	fence_cut(t->http->fence, t);
	if (t->easy && !t->http->is_inside)
		curl_multi_remove_handle(t->http->multi, t->easy);
	put_due(t);
}

/* The handle outlives done(), which may ask it for headers. */
static void finish(struct http_transfer *t)
{
	struct http_request *r = t->request;

	LIST_REMOVE(t, link);
	t->http->active--;
	timer_stop(&t->deadline);
	timer_stop(&t->silence);
	fence_let_go(t->http->fence, t);
	if (t->easy)
		curl_multi_remove_handle(t->http->multi, t->easy);
	r->response = r->error.kind == ERROR_NONE && t->body.text ? t->body.text : "";
	r->response_len = r->error.kind == ERROR_NONE ? t->body.len : 0;
	r->transfer = NULL;
	r->answered = t;
	r->done(r); /* may start r anew, and may free it */
	curl_easy_cleanup(t->easy);
	curl_slist_free_all(t->headers);
	curl_slist_free_all(t->connect_to);
	buf_release(&t->body);
	free(t);
}

/* Completes what libcurl has finished. */
static void transfer_collect(struct http *h)
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

struct http_socket {
	ev_io io;
	struct http *http;
};

static void advance(struct http *h, curl_socket_t fd, int events)
{
	int running;

	h->is_inside = true;
	curl_multi_socket_action(h->multi, fd, events, &running);
	h->is_inside = false;
	transfer_collect(h);
}

static void on_timer(struct timer *timer)
{
	advance(timer->user, CURL_SOCKET_TIMEOUT, 0);
}

static void on_socket(struct ev_loop *ev, ev_io *w, int events)
{
	const struct http_socket *s = w->data;

	(void)ev;
	advance(s->http, w->fd,
		((events & EV_READ) ? CURL_CSELECT_IN : 0) | ((events & EV_WRITE) ? CURL_CSELECT_OUT : 0));
}

/* libcurl forbids calling back into it here, even for a timeout of 0. */
static int want_timer(CURLM *multi, long ms, void *user)
{
	struct http *h = user;

	(void)multi;
	if (ms < 0)
		timer_stop(&h->timer);
	else
		timer_start(h->loop, &h->timer, ms, on_timer);
	return 0;
}

static int want_socket(CURL *easy, curl_socket_t fd, int what, void *user, void *socket_user)
{
	struct http *h = user;
	struct http_socket *s = socket_user;

	(void)easy;
	if (s)
		ev_io_stop(loop_ev(h->loop), &s->io); /* a started watcher may not be changed */
	if (what == CURL_POLL_REMOVE) {
		free(s);
		curl_multi_assign(h->multi, fd, NULL);
		return 0;
	}
	if (!s) {
		s = xnew(struct http_socket);
		s->http = h;
		ev_init(&s->io, on_socket);
		s->io.data = s;
		curl_multi_assign(h->multi, fd, s);
	}
	ev_io_set(&s->io, fd, ((what & CURL_POLL_IN) ? EV_READ : 0) | ((what & CURL_POLL_OUT) ? EV_WRITE : 0));
	ev_io_start(loop_ev(h->loop), &s->io);
	return 0;
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

/* What became due while this runs waits for the next round: one that restarts itself cannot hold up the loop. */
static void on_settle(struct timer *timer)
{
	struct http *h = timer->user;
	STAILQ_HEAD(, http_transfer) due = STAILQ_HEAD_INITIALIZER(due);
	struct http_transfer *t;

	STAILQ_CONCAT(&due, &h->due);
	while ((t = STAILQ_FIRST(&due))) {
		STAILQ_REMOVE_HEAD(&due, next_due);
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
	struct http *h = xnew(struct http);
	if (curl_global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK)
		abort();
	h->agent = xstrdup(agent);
	h->multi = xmust(curl_multi_init());
	h->loop = loop;
	h->fence = fence_open();
	STAILQ_INIT(&h->due);
	h->settle.user = h;
	h->settle.fire = on_settle;
	curl_multi_setopt(h->multi, CURLMOPT_MAX_HOST_CONNECTIONS, MOST_PER_HOST);
	curl_multi_setopt(h->multi, CURLMOPT_MAX_TOTAL_CONNECTIONS, MOST_CONNECTIONS);
	curl_multi_setopt(h->multi, CURLMOPT_MAXCONNECTS, MOST_CONNECTIONS);
	h->timer.user = h;
	curl_multi_setopt(h->multi, CURLMOPT_SOCKETFUNCTION, want_socket);
	curl_multi_setopt(h->multi, CURLMOPT_SOCKETDATA, h);
	curl_multi_setopt(h->multi, CURLMOPT_TIMERFUNCTION, want_timer);
	curl_multi_setopt(h->multi, CURLMOPT_TIMERDATA, h);
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
	fence_close(h->fence);
	curl_global_cleanup();
	free(h->agent);
	free(h);
}

void http_start(struct http *h, struct http_request *r)
{
	struct http_transfer *t = xnew(struct http_transfer);

	assert(!r->transfer);
	t->http = h;
	t->request = r;
	r->transfer = t;
	r->answered = NULL;
	r->error = (struct error){ 0 };
	r->is_refused = false;
	r->status = 0;
	r->response = "";
	r->response_len = 0;
	LIST_INSERT_HEAD(&h->all, t, link);
	h->active++;
	if (h->active > HTTP_MOST) {
		error_set(&r->error, ERROR_UNAVAILABLE, "%s: more than %zu calls at once", transfer_shown(r).text,
			  HTTP_MOST);
		t->is_settled = true;
	} else {
		t->deadline.user = t->silence.user = t;
		t->last_byte = loop_now(h->loop);
		if (r->timeout > 0)
			timer_start(h->loop, &t->deadline, r->timeout, on_deadline);
		if (r->silence_timeout > 0)
			timer_start(h->loop, &t->silence, r->silence_timeout, on_silence);
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
	struct http_transfer *t;

	LIST_FOREACH(t, &h->all, link)
	http_cancel(t->request);
}

void http_write_until(struct http *h, millis until)
{
	struct http_transfer *t = fence_is_over(h->fence) ? LIST_FIRST(&h->all) : NULL;

	for (; t; t = LIST_NEXT(t, link)) {
		if (!t->request->is_write || t->is_settled)
			continue;
		set_late(t);
		transfer_settle(t);
	}
	fence_set(h->fence, until);
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
