#include "base/net/http_transfer.h"

#include "base/arena.h"
#include "base/uri.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>

#define KEEPALIVE_IDLE_S     30L
#define KEEPALIVE_INTERVAL_S 10L
#define UNHEARD_MS	     30000
#define CA_CACHE_S	     60L

static void out_of_memory(void)
{
	fputs("out of memory\n", stderr);
	abort();
}

struct shown_call transfer_shown(const struct http_request *r)
{
	CLEANUP(buf_release) struct buf url = { 0 };
	struct shown_call shown;

	uri_show(r->url, &url);
	snprintf(shown.text, sizeof shown.text, "%s %s", r->method, url.text);
	return shown;
}

static void add(struct curl_slist **list, const char *text)
{
	struct curl_slist *grown = curl_slist_append(*list, text);

	if (!grown)
		out_of_memory();
	*list = grown;
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
		return error_set(&t->request->error, ERROR_INVALID, "\"%s\" is no server name", name);
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
	CLEANUP(endpoint_release) struct endpoint p = { .url = curl_url() };

	if (!p.url)
		out_of_memory();
	CURLUcode code = curl_url_set(p.url, CURLUPART_URL, r->url, 0);
	if (code == CURLUE_OK)
		code = curl_url_get(p.url, CURLUPART_HOST, &p.host, 0);
	if (code == CURLUE_OK)
		code = curl_url_get(p.url, CURLUPART_PORT, &p.port, CURLU_DEFAULT_PORT);
	if (code != CURLUE_OK)
		return error_set(&r->error, ERROR_INVALID, "%s: this is no URL such as https://host:port/path (%s)",
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

bool transfer_prepare(struct http_transfer *t)
{
	struct http_request *r = t->request;

	if ((r->timeout <= 0 && r->silence_timeout <= 0) || !r->max_response)
		return error_set(&r->error, ERROR_INTERNAL, "%s: no limit was given", transfer_shown(r).text);
	if (!(t->easy = curl_easy_init()))
		out_of_memory();
	if (!add_headers(t) || !set_url(t))
		return false;
	set_method(t->easy, r);
	set_connection(t->easy, r);
	set_tls(t->easy, r->tls);
	curl_easy_setopt(t->easy, CURLOPT_HTTPHEADER, t->headers);
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

void transfer_failed(struct http_transfer *t, CURLcode code)
{
	struct http_request *r = t->request;
	const char *problem = *t->problem ? t->problem : curl_easy_strerror(code);
	const char *trouble = certificate_trouble(code, problem);
	struct shown_call call = transfer_shown(r);
	/* libcurl calls one endless header line a lack of memory */
	bool has_long_header = t->header_bytes > MOST_HEADER_BYTES || code == CURLE_OUT_OF_MEMORY;

	if (r->error.kind != ERROR_NONE)
		return; /* said by on_chunk */
	if (t->body.failed)
		error_set(&r->error, ERROR_INVALID, "%s: the answer is longer than %zu bytes", call.text,
			  r->max_response);
	else if (has_long_header)
		error_set(&r->error, ERROR_INVALID, "%s: the header of the answer is too long", call.text);
	else if (trouble)
		error_set(&r->error, ERROR_AUTH, "%s: %s (%s)", call.text, trouble, problem);
	else
		error_set(&r->error, kind_of(code), "%s: %s", call.text, problem);
}
