/*
 * The JSON API below /api: what a history and a running controller know,
 * for the page and for programs. One table of routes answers requests and
 * writes the OpenAPI document. Read-only but for what-if, which decides in a
 * process of its own. Every request is bounded in what it reads.
 */
#pragma once
#include "base/net/server.h"
#include "controller/web/published.h"

struct web_api;

struct web_api_setup {
	struct loop *loop;
	bool is_controller;  /* else a file alone */
	const char *history; /* the file; need not be there yet, and may become another; must outlive the API */
	const char *version; /* "0.1.0" */
	const char *(*verb_name)(int64_t verb); /* of calls to providers */
	const char *program;			/* that what-if runs: this one; NULL: there is no what-if */
};

struct web_api *web_api_open(const struct web_api_setup *setup);
void web_api_close(struct web_api *a); /* takes NULL */

/* What a running controller shows of itself from now on; must outlive it. NULL: nothing yet. */
void web_api_show(struct web_api *a, const struct published *p);

/* The routes of page and API, for a server. */
enum { WEB_API_ROUTES = 4 };
void web_api_routes(struct web_api *a, struct server_route routes[WEB_API_ROUTES]);
/* The OpenAPI document. */
void web_api_write_openapi(struct buf *out);
