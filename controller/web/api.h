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
	const char *history; /* the file; need not be there yet, and may become another; must outlive the API */
	const char *version; /* "0.1.0" */
	const struct published *shown;		/* of a running controller; NULL: there is only the file */
	const char *(*verb_name)(int64_t verb); /* of calls to providers */
};

struct web_api *web_api_open(const struct web_api_setup *setup);
void web_api_close(struct web_api *a); /* takes NULL */

/* A route's answer; its user is the web_api. For GET, POST and DELETE of "/api" and "/api/" with an asterisk. */
void web_api_answer(const struct server_request *q, struct server_answer *a);
/* What the server says by itself, in the form of the API (server_settings.refuse). */
void web_api_refuse(struct server_answer *a, const char *text);
/* The OpenAPI document. */
void web_api_write_openapi(struct buf *out);
