/*
 * The controller as a process, for the verbs that run it: access to the
 * cluster, /metrics and health, signals of the system, traces, the end.
 */
#pragma once
#include "base/options.h"
#include "controller/commands/access.h"
#include "controller/commands/command.h"
#include "controller/commands/run_site.h"

struct run_request {
	struct option_list pools; /* files; may be empty when pools are watched */
	bool watches, is_dry_run, does_not_elect;
	bool only_records; /* clouds are not asked either: machines are the nodes seen */
	struct access_options access;
	struct run_site_wish site;
	const char *db, *listen, *address, *lease, *identity, *log_format, *log_level;
	const char *signals_from; /* a history; NULL: replicas are read */
	const char *line;	  /* of the history, what it is of: "run", "record" */
	millis tick, retain, duration, renew, retry;
	millis stop_after; /* of the controller's clock; 0: when it is told to */
	int64_t speed;
};

/* False with the option, what was found and what is allowed. */
bool run_request_check(const struct run_request *q, struct error *e) MUST_USE;
/* Runs until it is told to stop, or cannot go on. Returns the exit code; what failed was said. */
int run_process(const struct command *c, const struct run_request *q);
