/* Page and API of a controller that runs. */
#pragma once
#include "controller/cluster/api.h"
#include "controller/web/api.h"
#include "controller/web/site.h"

#define RUN_SITE_DEFAULT "127.0.0.1:8081"

struct run_site_wish {
	const char *listen; /* NULL: the default, and none where that is taken; "off": none */
	const char *cert_file, *key_file;
};

/* What is served there; must outlive the site. */
struct run_pages {
	struct web_api *api;
	struct server_route routes[WEB_API_ROUTES]; /* filled in by run_site_open() */
};

bool run_site_check(const struct run_site_wish *w, struct error *e) MUST_USE;
/* True with NULL in `out` where there shall be none. */
bool run_site_open(struct api *api, const struct run_site_wish *w, struct run_pages *pages, struct site **out,
		   struct error *e) MUST_USE;
