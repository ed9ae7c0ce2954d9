#include "controller/commands/run_site.h"

#include "base/log.h"
#include "controller/commands/command.h"
#include "controller/commands/reviews.h"

#include <string.h>

static bool is_off(const struct run_site_wish *w)
{
	return w->listen && strcmp(w->listen, "off") == 0;
}

static struct site_settings settings_of(const struct run_site_wish *w, struct api *api, struct server_route *routes)
{
	return (struct site_settings){ .listen = w->listen ? w->listen : RUN_SITE_DEFAULT,
				       .cert_file = w->cert_file,
				       .key_file = w->key_file,
				       .routes = routes,
				       .route_count = WEB_API_ROUTES,
				       .ask = reviews_ask,
				       .ask_user = api };
}

bool run_site_check(const struct run_site_wish *w, struct error *e)
{
	struct site_settings s = settings_of(w, NULL, NULL);

	if (is_off(w))
		return (!w->cert_file && !w->key_file) ||
		       error_set(e, ERROR_INVALID,
				 "--tls-cert-file and --tls-private-key-file are of --web-listen, "
				 "which is off; do: leave them out, or name an address");
	return site_check(&s, e) || error_wrap(e, "--web-listen");
}

bool run_site_open(struct api *api, const struct run_site_wish *w, struct run_pages *pages, struct site **out,
		   struct error *e)
{
	struct site_settings s = settings_of(w, api, pages->routes);

	*out = NULL;
	if (is_off(w))
		return true;
	web_api_routes(pages->api, pages->routes);
	*out = site_open(api_loop(api), &s, e);
	if (!*out && !w->listen && e->kind == ERROR_UNAVAILABLE) {
		log_warn("page-not-served", LOG_E(e), LOG_S("remedy", "--web-listen ADDRESS, or off"), LOG_END);
		return true;
	}
	if (!*out)
		return error_wrap(e, "--web-listen");
	log_info("page-served", LOG_S("listen", s.listen), LOG_I("port", site_port(*out)),
		 LOG_B("tls", s.cert_file != NULL), LOG_B("asks_for_tokens", site_asks_for_tokens(*out)), LOG_END);
	return true;
}
