/*
 * The controller as a process, for the verbs that run it: access to the
 * cluster, /metrics and health, signals of the system, traces, the end.
 */
#pragma once
#include "base/options.h"
#include "controller/loop/retention.h"
#include "controller/cluster/api.h"
#include "controller/commands/cluster_args.h"
#include "controller/commands/command.h"
#include "controller/web/api.h"
#include "controller/web/site.h"

struct published;

/* Page and API of a controller that runs. */

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

struct run_request {
	struct option_list pools; /* files; may be empty when pools are watched */
	bool watches, is_dry_run, does_not_elect;
	bool only_records; /* clouds are not asked either: machines are the nodes seen */
	struct cluster_args access;
	struct run_site_wish site;
	const char *db, *listen, *address, *lease, *identity, *log_format, *log_level;
	const char *signals_from;  /* a history; NULL: replicas are read */
	const char *pool_selector; /* of the WarmPools that are watched; NULL: all */
	const char *line;	   /* of the history, what it is of: "run", "record" */
	struct retention retention;
	millis tick, duration, renew, retry;
	millis stop_after; /* of the controller's clock; 0: when it is told to */
	int64_t speed;
	/* Asked once, when a minute and some ticks have passed, or a real minute; false ends the process with the
	 * error. NULL: nobody asks. */
	bool (*is_sound)(const struct published *p, struct error *e);
};

#define RUN_POOL_OPTIONS(q)                                                                                               \
	{ "filename",  'f', OPTION_LIST, "FILE", "a manifest of WarmPools, or a folder of them; may be given again",      \
	  &(q)->pools, NULL },                                                                                            \
		{ "watch-pools", 0, OPTION_FLAG, NULL, "also use the WarmPools in the API server", &(q)->watches, NULL }, \
	{                                                                                                                 \
		"pool-selector", 0, OPTION_TEXT, "SELECTOR",                                                              \
			"with --watch-pools: only WarmPools with these labels, as team=chat; for several "                \
			"controllers, "                                                                                   \
			"each with its own node groups and Lease",                                                        \
			&(q)->pool_selector, NULL                                                                         \
	}
#define RUN_PROCESS_OPTIONS(q)                                                                                          \
	{                                                                                                               \
		"speed",                                                                                                \
		0,                                                                                                      \
		OPTION_POSITIVE,                                                                                        \
		"K",                                                                                                    \
		"run the clock K times as fast; simulated clusters only (default: 1)",                                  \
		&(q)->speed,                                                                                            \
		NULL                                                                                                    \
	},                                                                                                              \
		{ "log-format",	   0, OPTION_CHOICE, "FORMAT", "auto: text on a terminal, else json", &(q)->log_format, \
		  "auto|json|text" },                                                                                   \
	{                                                                                                               \
		"log-level", 0, OPTION_CHOICE, "LEVEL", "lowest level that is logged (default: info)",                  \
			&(q)->log_level, "debug|info|warn|error"                                                        \
	}

/* False with the option, what was found and what is allowed. */
bool run_request_check(const struct run_request *q, struct error *e) MUST_USE;
/* Runs until it is told to stop, or cannot go on. Returns the exit code; what failed was said. */
int run_process(const struct command *c, const struct run_request *q);
