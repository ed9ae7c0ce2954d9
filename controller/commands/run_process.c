#include "controller/commands/run_process.h"

#include "base/log.h"
#include "base/net/server.h"
#include "base/terminal.h"
#include "controller/commands/history_launches.h"
#include "controller/commands/recorded_signals.h"
#include "controller/commands/tracing.h"
#include "controller/loop/controller.h"
#include "controller/web/web.h"

#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

enum { SPEED_MOST = 1000 };

/* A name of an object in the API server, as DNS has it. */
static bool is_object_name(const char *name)
{
	size_t len = strlen(name), kept = strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789-");

	return len > 0 && len <= 63 && kept == len && name[0] != '-' && name[len - 1] != '-';
}

/* What is heard from a recording must not become part of it. */
static bool is_one_file(const char *a, const char *b)
{
	struct stat of_a, of_b;

	return !stat(a, &of_a) && !stat(b, &of_b) && of_a.st_dev == of_b.st_dev && of_a.st_ino == of_b.st_ino;
}

bool run_request_check(const struct run_request *q, struct error *e)
{
	const char *path = q->db, *slash = strrchr(path, '/');
	char folder[PATH_MAX] = ".";

	if (q->speed > SPEED_MOST)
		return error_set(e, ERROR_INVALID, "--speed: found %lld; allowed: 1 to %d", (long long)q->speed,
				 SPEED_MOST);
	if (q->tick < SECOND || q->tick > 10 * MINUTE)
		return error_set(e, ERROR_INVALID, "--tick: found %lld ms; allowed: 1s to 10m", (long long)q->tick);
	if (!is_object_name(q->lease))
		return error_set(
			e, ERROR_INVALID,
			"--lease: found '%.100s'; allowed: lower-case letters, digits and inner dashes, at most 63",
			q->lease);
	if (q->signals_from && is_one_file(q->signals_from, q->db))
		return error_set(e, ERROR_INVALID,
				 "--db %.200s: this is the recording of --signals-from; do: name another file", path);
	if (!run_site_check(&q->site, e))
		return false;
	if (slash)
		snprintf(folder, sizeof folder, "%.*s", slash == path ? 1 : (int)(slash - path), path);
	if (access(path, F_OK) == 0 ? access(path, R_OK | W_OK) : access(folder, W_OK | X_OK))
		return error_set(e, ERROR_UNAVAILABLE,
				 "--db %.200s: cannot be written: %s; do: name a file on a volume of ours", path,
				 strerror(errno));
	return true;
}

struct running {
	const struct run_request *request;
	struct clock clock;
	struct access access;
	struct tracing tracing;
	struct arena arena;
	struct manifest manifest;
	struct web *web;
	struct site *site;
	struct run_pages pages;
	struct controller *controller;
	struct recorded_signals recorded;
	struct signal_watch term, interrupt;
	struct timer end;
	bool is_closing;
	struct error failure;
	char identity[160], address[256], line[1024], key[33];
};

/* A fast clock counts from a moment that every process knows, so that one that starts later goes on where another was.
 */
static struct clock open_clock(int64_t speed)
{
	const millis since = INT64_C(1767225600) * SECOND; /* 2026-01-01 */
	struct clock wall = clock_open();
	millis now = clock_now(&wall);

	return speed > 1 ? clock_open_fast(since + (now - since) * speed, speed) : wall;
}

static void set_up_log(const struct run_request *q, const struct clock *clock)
{
	enum log_level least = LEVEL_INFO;
	bool is_terminal = isatty(STDERR_FILENO);

	if (!log_level_parse(q->log_level, &least))
		least = LEVEL_INFO;
	log_set_up(&(struct log_setup){ .least = least,
					.is_human = !strcmp(q->log_format, "text") ||
						    (!strcmp(q->log_format, "auto") && is_terminal),
					.has_color = is_terminal && terminal_of(stderr).has_color,
					.clock = clock });
}

static bool load_pools(const struct command *c, struct running *r, int *code)
{
	struct findings f = { 0 };
	struct error e = { 0 };
	bool ok = true;

	if (r->request->pools.count)
		ok = manifest_load(r->request->pools.items, r->request->pools.count, &r->arena, &r->manifest, &f, &e) &&
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
	web_show(r->web, NULL); /* it went with it */
	web_api_show(r->pages.api, NULL);
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

static void recording_over(void *user)
{
	log_info("recording-over", LOG_END);
	close_all(user);
}

static void time_is_up(struct timer *t)
{
	log_info("stopping", LOG_S("why", "its time is over"), LOG_END);
	close_all(t->user);
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
	if (r->request->identity)
		snprintf(r->identity, sizeof r->identity, "%s", r->request->identity);
	else
		snprintf(r->identity, sizeof r->identity, "%.120s_%.8s", pod ? pod : host, suffix);
	const char *ip = access_variable("POD_IP");
	char base[160];
	if (r->request->address)
		snprintf(base, sizeof base, "%s", r->request->address);
	else
		snprintf(base, sizeof base, "http://%s:%u", ip ? ip : "127.0.0.1", (unsigned)web_port(r->web));
	snprintf(r->address, sizeof r->address, "%s/replica?key=%s", base, r->key);
	snprintf(r->line, sizeof r->line, "%s --tick %lldms%s", r->request->line, (long long)r->request->tick,
		 r->request->is_dry_run && !r->request->only_records ? " --dry-run" : "");
}

/* Of one cluster and lease the same in all replicas, so that one trace spans a change of leader. */
static uint64_t seed_of(const struct running *r)
{
	char name[600];

	snprintf(name, sizeof name, "%s %s %s", api_server(r->access.api), r->access.namespace, r->request->lease);
	struct random stream = random_stream(0, name);
	return random_next(&stream);
}

static struct web_api *open_web_api(const struct running *r)
{
	return web_api_open(&(struct web_api_setup){ .loop = r->access.loop,
						     .is_controller = true,
						     .history = r->request->db,
						     .version = command_version_text() + strlen("preheat "),
						     .verb_name = history_launches_verb,
						     .program = "/proc/self/exe" });
}

static bool start(struct running *r, struct error *e)
{
	r->web = web_open(r->access.loop, r->request->listen, e);
	r->pages.api = open_web_api(r);
	if (!r->web || !run_site_open(r->access.api, &r->request->site, &r->pages, &r->site, e))
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
							       .watches_objects = r->request->watches,
							       .history_path = r->request->db,
							       .version = command_version_text() + strlen("preheat "),
							       .run = r->line,
							       .interval = r->request->tick,
							       .retain = r->request->retain,
							       .is_dry_run = r->request->is_dry_run,
							       .elects = !r->request->does_not_elect,
							       .namespace = r->access.namespace,
							       .lease = r->request->lease,
							       .identity = r->identity,
							       .address = r->address,
							       .lease_duration = r->request->duration,
							       .lease_renew = r->request->renew,
							       .lease_retry = r->request->retry,
							       .traces = r->tracing.otlp,
							       .trace_seed = seed_of(r),
							       .only_records = r->request->only_records,
							       .recorded = r->recorded.count ? &r->recorded : NULL,
							       .on_recording_over = recording_over,
							       .on_failure = failed,
							       .user = r },
				e);
	if (!r->controller)
		return false;
	web_show(r->web, controller_published(r->controller));
	web_api_show(r->pages.api, controller_published(r->controller));
	return true;
}

static int run_until_stopped(const struct command *c, struct running *r)
{
	struct error e = { 0 };

	if (!access_open(&r->access, &r->request->access, &r->clock, &e))
		return command_failed(c, &e);
	r->term.user = r->interrupt.user = r;
	signal_watch_start(r->access.loop, &r->term, SIGTERM, asked_to_stop);
	signal_watch_start(r->access.loop, &r->interrupt, SIGINT, asked_to_stop);
	log_info("starting", LOG_S("version", command_version_text() + strlen("preheat ")),
		 LOG_S("server", api_server(r->access.api)), LOG_S("access", r->access.config.source),
		 LOG_B("dry_run", r->request->is_dry_run), LOG_END);
	r->end.user = r;
	if (r->request->stop_after)
		timer_start(r->access.loop, &r->end, clock_real(&r->clock, r->request->stop_after), time_is_up);
	bool ok = start(r, &e);
	if (ok)
		loop_run(r->access.loop);
	timer_stop(&r->end);
	site_close(r->site);
	web_api_close(r->pages.api);
	web_close(r->web);
	tracing_close(&r->tracing, r->access.loop);
	signal_watch_stop(&r->term);
	signal_watch_stop(&r->interrupt);
	api_cancel_all(r->access.api); /* nobody waits for reviews any more */
	while (api_active(r->access.api) && loop_once(r->access.loop))
		;
	access_close(&r->access);
	if (!ok)
		return command_failed(c, &e);
	return r->failure.kind != ERROR_NONE ? command_failed(c, &r->failure) : EXIT_DONE;
}

/* What servers said once must not size what somebody pays for today. */
static bool may_act_on_recorded(const struct running *r, struct error *e)
{
	const struct fleet_spec *fleet = &r->manifest.fleet;

	if (r->request->is_dry_run)
		return true;
	if (r->request->watches)
		return error_set(e, ERROR_INVALID, "pools that are watched may name any cloud; do: add --dry-run");
	for (size_t i = 0; i < fleet->group_count; i++)
		if (strcmp(fleet->groups[i].provider, "simulated") != 0)
			return error_set(
				e, ERROR_INVALID,
				"node group %s has provider %s; allowed without --dry-run: simulated only, as a "
				"recording must not size real machines; do: add --dry-run",
				fleet->groups[i].name, fleet->groups[i].provider);
	return true;
}

static bool load_signals(const struct command *c, struct running *r, int *code)
{
	struct error e = { 0 };

	if (!r->request->signals_from)
		return true;
	if (may_act_on_recorded(r, &e) &&
	    recorded_signals_read(r->request->signals_from, &r->manifest, &r->arena, &r->recorded, &e))
		return true;
	error_wrap(&e, "--signals-from");
	*code = command_failed(c, &e);
	return false;
}

int run_process(const struct command *c, const struct run_request *q)
{
	struct running r = { .request = q, .clock = open_clock(q->speed) };
	int code = EXIT_DONE;

	set_up_log(q, &r.clock);
	signal(SIGPIPE, SIG_IGN);
	if (load_pools(c, &r, &code) && load_signals(c, &r, &code))
		code = run_until_stopped(c, &r);
	arena_release(&r.arena);
	return code;
}
