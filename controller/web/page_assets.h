/*
 * The page's files, embedded at build time (controller/web/page/embed.cmake):
 * plain and gzip-compressed, with the header lines of their answers.
 */
#pragma once
#include "base/net/server.h"

#include <stddef.h>

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
