#include "controller/commands/command.h"

#include "base/log.h"
#include "base/net/server.h"
#include "base/terminal.h"
#include "controller/commands/access.h"
#include "controller/commands/tracing.h"
#include "controller/loop/controller.h"
#include "controller/web/metrics.h"
#include "controller/web/web.h"

#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

enum { SPEED_MOST = 1000 };

struct run_options {
	struct option_list pools;
	bool watches, is_dry_run, does_not_elect, prints_metrics;
	struct access_options access;
	const char *db, *listen, *address, *lease, *identity, *log_format, *log_level;
	millis tick, retain, duration, renew, retry;
	int64_t speed;
};

static struct run_options options = {
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
	{ "pool", 'p', OPTION_LIST, "FILE", "a manifest of WarmPools, or a folder of them; may be given again",
	  &options.pools, NULL },
	{ "watch-pools", 0, OPTION_FLAG, NULL, "use the WarmPools in the API server, too", &options.watches, NULL },
	{ "dry-run", 0, OPTION_FLAG, NULL, "decide and record, and change nothing anywhere", &options.is_dry_run,
	  NULL },
	{ "db", 0, OPTION_TEXT, "FILE", "the history; gone on with when it is there (default: history.db)", &options.db,
	  NULL },
	{ "listen", 0, OPTION_TEXT, "ADDRESS", "where /metrics and health are served (default: 127.0.0.1:9464)",
	  &options.listen, NULL },
	{ "address", 0, OPTION_TEXT, "URL", "where other replicas reach this one (default: from --listen)",
	  &options.address, NULL },
	{ "tick", 0, OPTION_PERIOD, "DURATION", "time between decisions (default: 15s)", &options.tick, NULL },
	{ "retain", 0, OPTION_PERIOD, "DURATION",
	  "drop history older than that, keeping sums per hour (default: never)", &options.retain, NULL },
	{ "kubeconfig", 0, OPTION_TEXT, "FILE", "how to reach the API server (default: the pod's own, or KUBECONFIG)",
	  &options.access.kubeconfig, NULL },
	{ "context", 0, OPTION_TEXT, "NAME", "the context of the kubeconfig", &options.access.context, NULL },
	{ "namespace", 'n', OPTION_TEXT, "NAME", "of the Lease (default: the pod's own, or the kubeconfig's)",
	  &options.access.namespace, NULL },
	{ "no-election", 0, OPTION_FLAG, NULL, "act without a Lease: only where one replica runs",
	  &options.does_not_elect, NULL },
	{ "lease", 0, OPTION_TEXT, "NAME", "the Lease's name (default: preheat)", &options.lease, NULL },
	{ "identity", 0, OPTION_TEXT, "NAME",
	  "of this replica, and of no other (default: POD_NAME or the host, and random letters)", &options.identity,
	  NULL },
	{ "lease-duration", 0, OPTION_PERIOD, "DURATION", "others wait so long before they lead (default: 15s)",
	  &options.duration, NULL },
	{ "lease-renew", 0, OPTION_PERIOD, "DURATION", "give up leading when not renewed for so long (default: 10s)",
	  &options.renew, NULL },
	{ "lease-retry", 0, OPTION_PERIOD, "DURATION", "between tries (default: 2s)", &options.retry, NULL },
	{ "speed", 0, OPTION_POSITIVE, "K", "the clock runs K times as fast: for simulated clusters only (default: 1)",
	  &options.speed, NULL },
	{ "log-format", 0, OPTION_CHOICE, "FORMAT", "auto: text on a terminal, else json", &options.log_format,
	  "auto|json|text" },
	{ "log-level", 0, OPTION_CHOICE, "LEVEL", "the least that is logged (default: info)", &options.log_level,
	  "debug|info|warn|error" },
	{ "print-metrics", 0, OPTION_FLAG, NULL, "print what /metrics tells (docs/metrics.md), and do nothing",
	  &options.prints_metrics, NULL },
};

struct running {
	struct clock clock;
	struct access access;
	struct tracing tracing;
	struct arena arena;
	struct manifest manifest;
	struct server *server;
	struct web *web;
	struct controller *controller;
	struct signal_watch term, interrupt;
	bool is_closing;
	struct error failure;
	char identity[160], address[256], line[1024], key[33];
};

/* A fast clock counts from a moment that every process knows, so that one that starts later goes on where another was.
 */
static struct clock open_clock(void)
{
	const millis since = INT64_C(1767225600) * SECOND; /* 2026-01-01 */
	struct clock wall = clock_open();
	millis now = clock_now(&wall);

	return options.speed > 1 ? clock_open_fast(since + (now - since) * options.speed, options.speed) : wall;
}

static void set_up_log(const struct clock *clock)
{
	enum log_level least = LEVEL_INFO;
	bool is_terminal = isatty(STDERR_FILENO);

	if (!log_level_parse(options.log_level, &least))
		least = LEVEL_INFO;
	log_set_up(&(struct log_setup){ .least = least,
					.is_human = !strcmp(options.log_format, "text") ||
						    (!strcmp(options.log_format, "auto") && is_terminal),
					.has_color = is_terminal && terminal_of(stderr).has_color,
					.clock = clock });
}

/* A name of an object in the API server, as DNS has it. */
static bool is_object_name(const char *name)
{
	size_t len = strlen(name), kept = strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789-");

	return len > 0 && len <= 63 && kept == len && name[0] != '-' && name[len - 1] != '-';
}

static bool check_options(struct error *e)
{
	const char *path = options.db, *slash = strrchr(path, '/');
	char folder[PATH_MAX] = ".";

	if (options.speed > SPEED_MOST)
		return error_set(e, ERROR_INVALID, "--speed: found %lld; allowed: 1 to %d", (long long)options.speed,
				 SPEED_MOST);
	if (options.tick < SECOND || options.tick > 10 * MINUTE)
		return error_set(e, ERROR_INVALID, "--tick: found %lld ms; allowed: 1s to 10m",
				 (long long)options.tick);
	if (!is_object_name(options.lease))
		return error_set(
			e, ERROR_INVALID,
			"--lease: found '%.100s'; allowed: lower-case letters, digits and inner dashes, at most 63",
			options.lease);
	if (slash)
		snprintf(folder, sizeof folder, "%.*s", slash == path ? 1 : (int)(slash - path), path);
	if (access(path, F_OK) == 0 ? access(path, R_OK | W_OK) : access(folder, W_OK | X_OK))
		return error_set(e, ERROR_UNAVAILABLE,
				 "--db %.200s: cannot be written: %s; do: name a file on a volume of ours", path,
				 strerror(errno));
	return true;
}

static bool load_pools(const struct command *c, struct running *r, int *code)
{
	struct findings f = { 0 };
	struct error e = { 0 };
	bool ok = true;

	if (options.pools.count)
		ok = manifest_load(options.pools.items, options.pools.count, &r->arena, &r->manifest, &f, &e) &&
		     controller_accepts(&r->manifest, &f, &e);
	if (!ok) {
		struct buf text = { 0 };
		for (size_t i = 0; i < f.count; i++) {
			buf_clear(&text);
			finding_print(&f.items[i], &text);
			fprintf(stderr, "%s\n", text.text);
		}
		buf_release(&text);
		*code = f.count ? EXIT_USAGE : command_failed(c, &e);
	}
	findings_release(&f);
	return ok;
}

static void closed(void *user)
{
	struct running *r = user;

	r->controller = NULL;
	loop_stop(r->access.loop);
}

static void close_all(struct running *r)
{
	if (r->is_closing)
		return;
	r->is_closing = true;
	controller_close(r->controller, closed, r);
}

static void asked_to_stop(struct signal_watch *w, int number)
{
	struct running *r = w->user;

	if (r->is_closing)
		_exit(128 + number); /* asked twice: intents are on disk */
	log_info("stopping", LOG_S("signal", number == SIGTERM ? "SIGTERM" : "SIGINT"), LOG_END);
	close_all(r);
}

static void failed(void *user, const struct error *e)
{
	struct running *r = user;

	r->failure = *e;
	close_all(r);
}

/* Sixteen random bytes, anew in each life of the process. */
static void make_key(char key[33])
{
	unsigned char bytes[16];

	if (getrandom(bytes, sizeof bytes, 0) != sizeof bytes)
		abort();
	for (size_t i = 0; i < sizeof bytes; i++)
		snprintf(key + 2 * i, 3, "%02x", bytes[i]);
}

static bool export(void *user, int64_t tick, uint32_t crc, struct buf *out, int64_t *last, struct error *e)
{
	struct running *r = user;
	const struct replica_tail after = { .tick = tick, .crc = crc };

	if (!r->controller)
		return error_set(e, ERROR_UNAVAILABLE, "starting or stopping");
	return controller_export(r->controller, &after, out, last, e);
}

/* Two that run under one name would both hold the Lease: what a Pod is called is not enough, its containers restart. */
static void name_ourselves(struct running *r)
{
	char host[64] = "preheat", suffix[33];
	const char *pod = access_variable("POD_NAME");

	gethostname(host, sizeof host - 1);
	make_key(suffix);
	if (options.identity)
		snprintf(r->identity, sizeof r->identity, "%s", options.identity);
	else
		snprintf(r->identity, sizeof r->identity, "%.120s_%.8s", pod ? pod : host, suffix);
	const char *ip = access_variable("POD_IP");
	char base[160];
	if (options.address)
		snprintf(base, sizeof base, "%s", options.address);
	else
		snprintf(base, sizeof base, "http://%s:%u", ip ? ip : "127.0.0.1", (unsigned)web_port(r->web));
	snprintf(r->address, sizeof r->address, "%s/replica?key=%s", base, r->key);
	snprintf(r->line, sizeof r->line, "run --tick %lldms%s", (long long)options.tick,
		 options.is_dry_run ? " --dry-run" : "");
}

/* Of one cluster and lease the same in all replicas, so that one trace spans a change of leader. */
static uint64_t seed_of(const struct running *r)
{
	char name[600];

	snprintf(name, sizeof name, "%s %s %s", api_server(r->access.api), r->access.namespace, options.lease);
	struct random stream = random_stream(0, name);
	return random_next(&stream);
}

static bool start(struct running *r, struct error *e)
{
	r->web = web_open(r->access.loop, options.listen, e);
	if (!r->web)
		return false;
	make_key(r->key);
	name_ourselves(r);
	web_serve_replica(r->web, r->key, export, r);
	if (!tracing_open(&r->tracing, r->access.loop, r->access.http, r->identity, e))
		return false;
	r->controller =
		controller_open(&(struct controller_settings){ .loop = r->access.loop,
							       .http = r->access.http,
							       .api = r->access.api,
							       .clock = &r->clock,
							       .manifest = &r->manifest,
							       .watches_objects = options.watches,
							       .history_path = options.db,
							       .version = command_version_text() + strlen("preheat "),
							       .run = r->line,
							       .interval = options.tick,
							       .retain = options.retain,
							       .is_dry_run = options.is_dry_run,
							       .elects = !options.does_not_elect,
							       .namespace = r->access.namespace,
							       .lease = options.lease,
							       .identity = r->identity,
							       .address = r->address,
							       .lease_duration = options.duration,
							       .lease_renew = options.renew,
							       .lease_retry = options.retry,
							       .traces = r->tracing.otlp,
							       .trace_seed = seed_of(r),
							       .on_failure = failed,
							       .user = r },
				e);
	if (!r->controller)
		return false;
	web_show(r->web, controller_published(r->controller));
	return true;
}

static int run_until_stopped(const struct command *c, struct running *r)
{
	struct error e = { 0 };

	if (!access_open(&r->access, &options.access, &r->clock, &e))
		return command_failed(c, &e);
	r->term.user = r->interrupt.user = r;
	signal_watch_start(r->access.loop, &r->term, SIGTERM, asked_to_stop);
	signal_watch_start(r->access.loop, &r->interrupt, SIGINT, asked_to_stop);
	log_info("starting", LOG_S("version", command_version_text() + strlen("preheat ")),
		 LOG_S("server", api_server(r->access.api)), LOG_S("access", r->access.config.source),
		 LOG_B("dry_run", options.is_dry_run), LOG_END);
	bool ok = start(r, &e);
	if (ok)
		loop_run(r->access.loop);
	web_close(r->web);
	tracing_close(&r->tracing, r->access.loop);
	signal_watch_stop(&r->term);
	signal_watch_stop(&r->interrupt);
	while (api_active(r->access.api) && loop_once(r->access.loop))
		;
	access_close(&r->access);
	if (!ok)
		return command_failed(c, &e);
	return r->failure.kind != ERROR_NONE ? command_failed(c, &r->failure) : EXIT_DONE;
}

static int print_metrics(void)
{
	CLEANUP(buf_release) struct buf text = { 0 };

	metrics_write_reference(&text);
	fputs(text.text, stdout);
	return EXIT_DONE;
}

static int run(int argc, char **argv)
{
	struct running r = { 0 };
	int rest, code;

	if (!command_options(&command_run, argc, argv, rows, sizeof rows / sizeof *rows, &rest, &code))
		return code;
	struct error e;
	if (rest < argc) {
		error_set(&e, ERROR_INVALID,
			  "found '%.100s'; allowed: no arguments; manifests are given with --pool FILE", argv[rest]);
		return command_failed(&command_run, &e);
	}
	if (options.prints_metrics)
		return print_metrics();
	if (!check_options(&e))
		return command_failed(&command_run, &e);
	if (!options.pools.count && !options.watches) {
		error_set(
			&e, ERROR_INVALID,
			"no pools: give a manifest with --pool FILE, or --watch-pools to use those in the API server");
		return command_failed(&command_run, &e);
	}
	r.clock = open_clock();
	set_up_log(&r.clock);
	signal(SIGPIPE, SIG_IGN);
	code = EXIT_DONE;
	if (load_pools(&command_run, &r, &code))
		code = run_until_stopped(&command_run, &r);
	arena_release(&r.arena);
	return code;
}

const struct command command_run = {
	.name = "run",
	.usage = "run (--pool FILE... | --watch-pools) [OPTION...]",
	.summary = "watch a cluster, decide, and act",
	.examples = "  preheat run --pool pools/ --db /var/lib/preheat/history.db\n"
		    "  preheat run --watch-pools --dry-run\n",
	.run = run,
};
