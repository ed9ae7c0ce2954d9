#include "controller/web/page_assets.h"

#include <string.h>

const struct page_asset *page_asset(const char *path)
{
	for (size_t i = 0; i < page_asset_count; i++)
		if (!strcmp(page_assets[i].path, path))
			return &page_assets[i];
	return NULL;
}

static bool takes_gzip(const struct server_request *q)
{
	const char *accepted = server_header(q, "Accept-Encoding");
	const char *gzip = accepted ? strstr(accepted, "gzip") : NULL;

	if (!gzip)
		return false;
	gzip += strlen("gzip");
	gzip += strspn(gzip, " \t");
	/* "gzip;q=0" and "gzip; q=0.000" refuse it. */
	if (*gzip != ';')
		return true;
	gzip += 1 + strspn(gzip + 1, " \t");
	return strncmp(gzip, "q=0", 3) != 0 || strcspn(gzip + 3, "123456789") < strcspn(gzip + 3, ",");
}

static bool has_it(const struct server_request *q, const struct page_asset *p)
{
	const char *known = server_header(q, "If-None-Match");

	return known && (!strcmp(known, "*") || strstr(known, p->etag + strlen("ETag: ")) != NULL);
}

void page_answer(const struct server_request *q, struct server_answer *a)
{
	const struct page_asset *p = page_asset(*q->path ? q->path : "/");

	if (!p) {
		a->status = 404;
		buf_text(&a->body, "no such file; the page is at /\n");
		return;
	}
	a->content_type = p->content_type;
	a->headers[0] = p->etag;
	a->headers[1] = "Cache-Control: no-cache"; /* kept, but asked for again: a new release shows at once */
	a->headers[2] = "Vary: Accept-Encoding";
	if (has_it(q, p)) {
		a->status = 304;
	} else if (takes_gzip(q)) {
		a->headers[3] = "Content-Encoding: gzip";
		buf_append(&a->body, p->gzip, p->gzip_size);
	} else {
		buf_append(&a->body, p->plain, p->plain_size);
	}
}
