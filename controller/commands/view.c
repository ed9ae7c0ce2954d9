/* preheat view: the page and the API over a history, on this machine only. */
#include "controller/commands/command.h"
#include "controller/commands/history.h"
#include "controller/web/api.h"
#include "controller/web/site.h"
#include "state/history.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

static const char *const default_listen = "127.0.0.1:8081";

struct viewing {
	const char *db, *listen;
	bool prints_openapi;
	struct loop *loop;
	struct web_api *api;
	struct site *site;
	struct signal_watch interrupt, term;
	struct arena arena;
};

/* A history, or the folder that a simulation wrote. */
static const char *file_of(struct viewing *v)
{
	CLEANUP(buf_release) struct buf path = { 0 };
	struct stat st;

	if (stat(v->db, &st) || !S_ISDIR(st.st_mode))
		return v->db;
	buf_printf(&path, "%s/history.db", v->db);
	return arena_strdup(&v->arena, path.text, path.len);
}

/* Says what is wrong with the file before anything is served. */
static bool check_file(const char *path, struct error *e)
{
	struct history *h = history_open(path, e);

	history_close(h);
	return h != NULL;
}

static void stop(struct signal_watch *w, int number)
{
	struct viewing *v = w->user;

	(void)number;
	loop_stop(v->loop);
}

static bool serve(struct viewing *v, struct error *e)
{
	const char *path = file_of(v);
	struct server_route routes[WEB_API_ROUTES];
	const struct site_settings settings = { .listen = v->listen, .routes = routes, .route_count = WEB_API_ROUTES };

	if (!site_check(&settings, e))
		return error_wrap(e, "--listen");
	if (!check_file(path, e))
		return false;
	v->api = web_api_open(&(struct web_api_setup){ .loop = v->loop,
						       .history = path,
						       .version = command_version_text() + strlen("preheat "),
						       .verb_name = history_launches_verb,
						       .program = "/proc/self/exe" });
	web_api_routes(v->api, routes);
	v->site = site_open(v->loop, &settings, e);
	if (!v->site)
		return error_wrap(e, "--listen");
	CLEANUP(buf_release) struct buf shown = { 0 };
	history_show(path, &shown);
	printf("%s: http://%.*s:%u/\nEnds with Ctrl-C.\n", shown.text, (int)(strrchr(v->listen, ':') - v->listen),
	       v->listen, (unsigned)site_port(v->site));
	fflush(stdout);
	loop_run(v->loop);
	site_close(v->site); /* its routes go with this function */
	v->site = NULL;
	return true;
}

static int view(struct viewing *v)
{
	struct error e = { 0 };

	v->loop = loop_open();
	v->interrupt.user = v->term.user = v;
	signal_watch_start(v->loop, &v->interrupt, SIGINT, stop);
	signal_watch_start(v->loop, &v->term, SIGTERM, stop);
	bool ok = serve(v, &e);
	site_close(v->site);
	web_api_close(v->api);
	signal_watch_stop(&v->interrupt);
	signal_watch_stop(&v->term);
	loop_close(v->loop);
	arena_release(&v->arena);
	return ok ? EXIT_DONE : command_failed(&command_view, &e);
}

static int run(int argc, char **argv)
{
	struct viewing v = { .listen = default_listen };
	const struct option_row rows[] = {
		{ "db", 0, OPTION_TEXT, "FILE", "the history, or the folder it is in (default: history.db)", &v.db,
		  NULL },
		{ "listen", 0, OPTION_TEXT, "ADDRESS",
		  "where the page is served, on this machine only; port 0: a free one (default: 127.0.0.1:8081)",
		  &v.listen, NULL },
		{ "print-openapi", 0, OPTION_FLAG, NULL, "print the OpenAPI document of the API and exit",
		  &v.prints_openapi, NULL },
	};
	struct error e;
	int rest, code;

	if (!command_options(&command_view, argc, argv, rows, sizeof rows / sizeof *rows, &rest, &code))
		return code;
	if (v.prints_openapi)
		return command_print(web_api_write_openapi);
	if (rest < argc && !v.db)
		v.db = argv[rest++];
	if (rest < argc) {
		error_set(&e, ERROR_INVALID, "found '%.60s'; allowed: one history, as FILE or with --db FILE",
			  argv[rest]);
		return command_failed(&command_view, &e);
	}
	if (!v.db)
		v.db = "history.db";
	return view(&v);
}

const struct command command_view = {
	.name = "view",
	.usage = "view [FILE | --db FILE] [--listen ADDRESS]",
	.summary = "Look at a history in the browser: the page and its JSON API",
	.examples = "  preheat view out/\n"
		    "  preheat view history.db --listen 127.0.0.1:0\n",
	.run = run,
};
