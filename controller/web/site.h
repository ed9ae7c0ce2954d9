/*
 * The page and the API, on an address of their own: who is let in (authz.h),
 * the headers that keep a browser from harm, limits, TLS from files that are
 * read again when they change.
 */
#pragma once
#include "base/net/server.h"
#include "controller/web/authz.h"

#include <stddef.h>

struct site;

struct site_settings {
	const char *listen;
	const char *cert_file, *key_file;  /* PEM; both or neither; must outlive it */
	const struct server_route *routes; /* must outlive it */
	size_t route_count;
	authz_ask_fn *ask; /* the API server; NULL: only a loopback address is taken */
	void *ask_user;
};

/* Whether such a site may be opened, before anything is. ERROR_INVALID says what to do. */
bool site_check(const struct site_settings *s, struct error *e) MUST_USE;
/* NULL with the error of site_check(), server_open(), or of reading the files. */
struct site *site_open(struct loop *loop, const struct site_settings *s, struct error *e) MUST_USE;
uint16_t site_port(const struct site *s);
bool site_asks_for_tokens(const struct site *s);
void site_close(struct site *s); /* takes NULL */

/*
 * The page's files, embedded at build time (controller/web/page/embed.cmake):
 * plain and gzip-compressed, with the header lines of their answers.
 */

struct page_asset {
	const char *path;	  /* "/" or "/assets/NAME" */
	const char *content_type; /* "text/css; charset=utf-8" */
	const char *etag;	  /* a whole header line: ETag: W/"..." */
	const char *plain, *gzip;
	size_t plain_size, gzip_size;
};

/* All of them, in order of their paths. */
extern const struct page_asset page_assets[];
extern const size_t page_asset_count;

const struct page_asset *page_asset(const char *path); /* NULL where there is none */

/* A route's answer for "/" and "/assets/" with an asterisk: the file, 304 where the peer has it, or 404. */
void page_answer(const struct server_request *q, struct server_answer *a);
