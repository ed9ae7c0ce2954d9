/* preheat record: watch a cluster, change nothing. */
#include "controller/commands/run_process.h"

#include <stdio.h>

/* Watches as `run` does; leads by itself, because it changes nothing, and asks no cloud. */
static struct run_request options = {
	.is_dry_run = true,
	.does_not_elect = true,
	.only_records = true,
	.line = "record",
	.db = "recording.db",
	.listen = "127.0.0.1:9465",
	.site.listen = "off",
	.lease = "preheat",
	.log_format = "auto",
	.log_level = "info",
	.tick = 15 * SECOND,
	.speed = 1,
};

static const struct option_row rows[] = {
	RUN_POOL_OPTIONS(&options),
	{ "db", 0, OPTION_TEXT, "FILE", "the recording; gone on with when it is there (default: recording.db)",
	  &options.db, NULL },
	{ "for", 0, OPTION_PERIOD, "DURATION", "end after so long (default: when interrupted)", &options.stop_after,
	  NULL },
	{ "tick", 0, OPTION_PERIOD, "DURATION", "time between ticks (default: 15s)", &options.tick, NULL },
	{ "listen", 0, OPTION_TEXT, "ADDRESS", "where /metrics and health are served (default: 127.0.0.1:9465)",
	  &options.listen, NULL },
	CLUSTER_ARGS_OPTIONS(&options.access),
	RUN_PROCESS_OPTIONS(&options),
};

static int record(int argc, char **argv)
{
	int rest, code;
	struct error e;

	if (!command_options(&command_record, argc, argv, rows, sizeof rows / sizeof *rows, &rest, &code))
		return code;
	if (rest < argc)
		error_set(&e, ERROR_INVALID,
			  "found '%.100s'; allowed: no arguments; manifests are given with --pool FILE", argv[rest]);
	else if (!options.pools.count && !options.watches)
		error_set(
			&e, ERROR_INVALID,
			"no pools: give a manifest with --pool FILE, or --watch-pools to use those in the API server");
	else if (run_request_check(&options, &e))
		return run_process(&command_record, &options);
	return command_failed(&command_record, &e);
}

const struct command command_record = {
	.name = "record",
	.usage = "record (--pool FILE... | --watch-pools) [--db FILE] [--for DURATION]",
	.summary = "Watch a cluster and its model servers, and write down what run would see and decide",
	.examples = "  preheat record --pool pools/ --for 7d --db week.db      no cloud is asked, nothing is changed\n"
		    "  preheat simulate --recording week.db --compare --out what-if\n"
		    "  preheat run --pool pools/ --dry-run --signals-from week.db --speed 60\n",
	.run = record,
};
