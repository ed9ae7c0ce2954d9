/* preheat run: the controller. */
#include "controller/commands/run_process.h"

#include "base/quantity.h"
#include "controller/web/metrics.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

static bool prints_metrics;
static const char *size_most; /* of the history */
static struct run_request options = {
	.line = "run",
	.db = "history.db",
	.listen = "127.0.0.1:9464",
	.lease = "preheat",
	.log_format = "auto",
	.log_level = "info",
	.tick = 15 * SECOND,
	.duration = 15 * SECOND,
	.renew = 10 * SECOND,
	.retry = 2 * SECOND,
	.speed = 1,
};

static const struct option_row rows[] = {
	RUN_POOL_OPTIONS(&options),
	{ "dry-run", 0, OPTION_FLAG, NULL, "decide and record, change nothing", &options.is_dry_run, NULL },
	{ "db", 0, OPTION_TEXT, "FILE", "the history; continued if it exists (default: history.db)", &options.db,
	  NULL },
	{ "listen", 0, OPTION_TEXT, "ADDRESS", "where /metrics and health are served (default: 127.0.0.1:9464)",
	  &options.listen, NULL },
	{ "web-listen", 0, OPTION_TEXT, "ADDRESS",
	  "where the page and its API are served; off disables them (default: 127.0.0.1:8081)", &options.site.listen,
	  NULL },
	{ "tls-cert-file", 0, OPTION_TEXT, "FILE",
	  "the certificate for --web-listen, with its chain; read again when it changes", &options.site.cert_file,
	  NULL },
	{ "tls-private-key-file", 0, OPTION_TEXT, "FILE", "its key", &options.site.key_file, NULL },
	{ "address", 0, OPTION_TEXT, "URL", "where other replicas reach this one (default: from --listen)",
	  &options.address, NULL },
	{ "interval", 0, OPTION_PERIOD, "DURATION", "time between decisions (default: 15s)", &options.tick, NULL },
	{ "retain", 0, OPTION_PERIOD, "DURATION", "drop history older than this, keep hourly sums (default: never)",
	  &options.retention.age, NULL },
	{ "retain-size", 0, OPTION_TEXT, "SIZE",
	  "the same with the oldest while it takes more than this: 8Gi, or 80% of its disk (default: no limit)",
	  &size_most, NULL },
	CLUSTER_ARGS_OPTIONS(&options.access),
	{ "namespace", 'n', OPTION_TEXT, "NAME", "of the Lease (default: the pod's own, or the kubeconfig's)",
	  &options.access.namespace, NULL },
	{ "no-election", 0, OPTION_FLAG, NULL, "act without a Lease: only where one replica runs",
	  &options.does_not_elect, NULL },
	{ "lease", 0, OPTION_TEXT, "NAME", "the Lease's name (default: preheat)", &options.lease, NULL },
	{ "identity", 0, OPTION_TEXT, "NAME",
	  "name of this replica, unique (default: POD_NAME or the host, and random letters)", &options.identity, NULL },
	{ "lease-duration", 0, OPTION_PERIOD, "DURATION", "how long others wait before they lead (default: 15s)",
	  &options.duration, NULL },
	{ "lease-renew", 0, OPTION_PERIOD, "DURATION", "stop leading when not renewed for this long (default: 10s)",
	  &options.renew, NULL },
	{ "lease-retry", 0, OPTION_PERIOD, "DURATION", "between tries (default: 2s)", &options.retry, NULL },
	{ "signals-from", 0, OPTION_TEXT, "FILE",
	  "take model server signals from a recording (history.db), at its pace; end with it", &options.signals_from,
	  NULL },
	RUN_PROCESS_OPTIONS(&options),
	{ "print-metrics", 0, OPTION_FLAG, NULL, "print the reference of /metrics (docs/metrics.md) and exit",
	  &prints_metrics, NULL },
};

static bool read_size(struct retention *r, struct error *e)
{
	enum { PPM = 1000000 };
	const int64_t least = 16 << 20; /* an hour of a large fleet */

	if (!size_most ||
	    (share_parse(size_most, strlen(size_most), &r->disk_ppm) && r->disk_ppm > 0 && r->disk_ppm < PPM))
		return true;
	if (strchr(size_most, '%') || !quantity_parse(size_most, strlen(size_most), &r->bytes) || r->bytes < least)
		return error_set(e, ERROR_INVALID,
				 "--retain-size: found '%.40s'; allowed: bytes from 16Mi on, as 8Gi, or a share of the "
				 "disk under 100%%, as 80%%",
				 size_most);
	return true;
}

static int run(int argc, char **argv)
{
	int rest, code;

	if (!command_options(&command_run, argc, argv, rows, sizeof rows / sizeof *rows, &rest, &code))
		return code;
	struct error e;
	if (rest < argc) {
		error_set(&e, ERROR_INVALID, "found '%.100s'; allowed: no arguments; manifests are given with -f FILE",
			  argv[rest]);
		return command_failed(&command_run, &e);
	}
	if (prints_metrics)
		return command_print(metrics_write_reference);
	if (!read_size(&options.retention, &e) || !run_request_check(&options, &e))
		return command_failed(&command_run, &e);
	if (!options.pools.count && !options.watches) {
		error_set(&e, ERROR_INVALID,
			  "no pools: give a manifest with -f FILE, or --watch-pools to use those in the API server");
		return command_failed(&command_run, &e);
	}
	return run_process(&command_run, &options);
}

const struct command command_run = {
	.name = "run",
	.usage = "run (-f FILE... | --watch-pools) [OPTION...]",
	.summary = "Watch a cluster, decide, and act",
	.examples = "  preheat run -f pools/ --db /var/lib/preheat/history.db\n"
		    "  preheat run --watch-pools --dry-run\n"
		    "  preheat run -f pools/ --dry-run --signals-from week.db --speed 60\n",
	.run = run,
};
