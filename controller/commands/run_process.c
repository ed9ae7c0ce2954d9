#include "controller/commands/run_process.h"

#include "base/alloc.h"
#include "base/arena.h"
#include "base/file.h"
#include "base/log.h"
#include "base/net/otlp.h"
#include "base/net/server.h"
#include "base/terminal.h"
#include "base/text.h"
#include "controller/cluster/verbs.h"
#include "controller/commands/history.h"
#include "controller/loop/controller.h"
#include "controller/web/authz.h"
#include "controller/web/web.h"
#include "state/history.h"

#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <malloc.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

/* The readings that a history holds, for telling them again (signals/recorded_source.h). */

/* Where traces go, as OpenTelemetry's environment variables say (OTEL_EXPORTER_OTLP_ENDPOINT and its kin). */

struct tracing {
	struct otlp *otlp; /* NULL: no endpoint is told, or tracing is off */
	struct http_tls tls;
	struct arena arena;
};

/* What the gate of page and API asks, put to the API server. */

enum { READINGS_MOST = 20000000 };

/* Grown by doubling; the arena keeps what was outgrown. */
struct gathered {
	struct pool_reading *items;
	size_t count, room;
};

static void add(struct gathered *g, const struct pool_reading *r, struct arena *a)
{
	if (g->count == g->room) {
		size_t room = g->room ? 2 * g->room : 1024;
		struct pool_reading *items = arena_array(a, struct pool_reading, room);
		if (g->count)
			memcpy(items, g->items, g->count * sizeof *items);
		g->items = items;
		g->room = room;
	}
	g->items[g->count++] = *r;
}

static int64_t told(int64_t value)
{
	return value == ABSENT ? READING_UNKNOWN : value;
}

static int64_t known(int64_t value)
{
	return value == ABSENT ? 0 : value;
}

/* The tick knows how many readings were due and came in all; each scrape gets its share. */
static int64_t share(int64_t sum, size_t index, size_t count)
{
	return sum * (int64_t)(index + 1) / (int64_t)count - sum * (int64_t)index / (int64_t)count;
}

static void add_tick(const struct tick_record *t, struct gathered *g, struct arena *a)
{
	const struct pool_snapshot *s = &t->snapshot;

	if (!s->scrape_count && s->input.scrapes_expected > 0 && s->input.scrapes_fresh <= 0)
		add(g, &(struct pool_reading){ .at = t->now, .expected = s->input.scrapes_expected }, a);
	for (size_t i = 0; i < s->scrape_count; i++) {
		const struct scrape_input *in = &s->scrapes[i];
		bool is_last = i + 1 == s->scrape_count;
		struct pool_reading r = {
			.at = in->at,
			.expected = share(s->input.scrapes_expected, i, s->scrape_count),
			.fresh = share(s->input.scrapes_fresh, i, s->scrape_count),
			.disputed = share(s->input.scrapes_disputed, i, s->scrape_count),
			.ready = known(in->ready),
			.running = known(in->running),
			.running_draining = known(in->running_draining),
			.waiting = known(in->waiting),
			.full = told(in->full),
			.running_full = told(in->running_full),
			.started = told(in->started),
			.late = told(in->late),
			.refused = known(in->refused),
			.completed = known(in->completed),
			.prompt_tokens = known(in->prompt_tokens),
			.output_tokens = known(in->output_tokens),
			.inter_token_latency_us = is_last ? told(s->input.inter_token_latency_us) : READING_UNKNOWN,
			.kv_cache_permille = is_last ? told(s->input.kv_cache_permille) : READING_UNKNOWN,
		};
		add(g, &r, a);
	}
}

static bool read_pool(struct history *h, const struct history_span *span, size_t pool, struct gathered *g,
		      struct arena *a, struct error *e)
{
	struct tick_record t;

	for (int64_t tick = span->first_tick; tick <= span->last_tick; tick++) {
		if (!history_read(h, tick, pool, &t, e)) {
			if (e->kind == ERROR_NOT_FOUND)
				continue;
			return false;
		}
		add_tick(&t, g, a);
		if (g->count > READINGS_MOST)
			return error_set(e, ERROR_INVALID,
					 "more than %d readings of one pool: take a shorter recording", READINGS_MOST);
	}
	*e = (struct error){ 0 };
	return true;
}

static bool take_pool(struct history *h, const struct history_span *span, const struct pool_spec *spec, struct arena *a,
		      struct recorded_signals *out, struct error *e)
{
	char key[160];
	size_t pool;
	struct gathered g = { 0 };

	snprintf(key, sizeof key, "%s/%s", spec->namespace, spec->name);
	if (!history_find_pool(h, key, &pool, e) && !history_find_pool(h, spec->name, &pool, e))
		return false;
	if (!read_pool(h, span, pool, &g, a, e))
		return false;
	if (!g.count)
		return error_set(e, ERROR_INVALID,
				 "there are no readings of pool %s in it; do: leave it out of the manifest", key);
	out->pools[out->count++] = (struct recorded_pool){ arena_strdup(a, key, strlen(key)), g.items, g.count };
	out->begun = !out->begun || g.items[0].at < out->begun ? g.items[0].at : out->begun;
	return true;
}

static bool read_all(struct history *h, const struct manifest *m, struct arena *a, struct recorded_signals *out,
		     struct error *e)
{
	struct history_span span;

	if (!history_span(h, &span, e))
		return false;
	if (span.last_tick < span.first_tick)
		return error_set(e, ERROR_INVALID, "there are no ticks in it");
	out->pools = arena_array(a, struct recorded_pool, m->fleet.pool_count);
	for (size_t i = 0; i < m->fleet.pool_count; i++)
		if (source_is_read(m->pools[i].spec.signals.engine) &&
		    !take_pool(h, &span, &m->fleet.pools[i], a, out, e))
			return false;
	return out->count > 0 ||
	       error_set(e, ERROR_INVALID,
			 "no pool of the manifest reads model servers: there is nothing to tell them");
}

/*
 * Of all pools of the manifest that read model servers; texts and readings live in the arena. ERROR_INVALID where one
 * of them is not in the file, or has no readings there.
 */
static bool recorded_signals_read(const char *path, const struct manifest *m, struct arena *a,
				  struct recorded_signals *out, struct error *e)
{
	struct recorded_signals r = { 0 };
	struct history *h = history_open(path, e);

	if (!h)
		return false;
	bool ok = read_all(h, m, a, &r, e);
	history_close(h);
	if (!ok) /* the history's own errors name it */
		return strstr(e->message, path) ? false : error_wrap(e, "%s", path);
	*out = r;
	return true;
}

enum { PAIRS_MOST = 32 };
static const millis LAST_WORDS = 2 * SECOND;

/* The variable of traces alone goes before the one of all signals. */
static const char *variable(const char *kind)
{
	char name[80];
	const char *value;

	snprintf(name, sizeof name, "OTEL_EXPORTER_OTLP_TRACES_%s", kind);
	value = cluster_args_variable(name);
	if (value)
		return value;
	snprintf(name, sizeof name, "OTEL_EXPORTER_OTLP_%s", kind);
	return cluster_args_variable(name);
}

static bool is_sdk_off(void)
{
	const char *disabled = cluster_args_variable("OTEL_SDK_DISABLED"),
		   *exporter = cluster_args_variable("OTEL_TRACES_EXPORTER");

	return (disabled && !strcmp(disabled, "true")) || (exporter && !strcmp(exporter, "none"));
}

/* The endpoint of all signals is a base; that of traces is taken as it is. */
static const char *endpoint(struct arena *a)
{
	const char *own = cluster_args_variable("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT");
	const char *base = cluster_args_variable("OTEL_EXPORTER_OTLP_ENDPOINT");
	char url[1024];

	if (own || !base)
		return own;
	snprintf(url, sizeof url, "%s%sv1/traces", base, base[strlen(base) - 1] == '/' ? "" : "/");
	return arena_strdup(a, url, strlen(url));
}

static int hex(char c)
{
	return isdigit((unsigned char)c)    ? c - '0'
	       : isxdigit((unsigned char)c) ? tolower((unsigned char)c) - 'a' + 10
					    : -1;
}

/* Percent-decodes in place, as W3C Baggage writes values. */
static void decode_percent(char *text)
{
	char *out = text;

	for (; *text; text++) {
		if (*text == '%' && hex(text[1]) >= 0 && hex(text[2]) >= 0) {
			*out++ = (char)(hex(text[1]) * 16 + hex(text[2]));
			text += 2;
		} else {
			*out++ = *text;
		}
	}
	*out = '\0';
}

static bool is_printable(const char *text)
{
	for (; *text; text++)
		if ((unsigned char)*text < 0x20 || *text == 0x7f)
			return false;
	return true;
}

/* "key=value,key=value" as "keySEPARATORvalue"s. A value is never shown: it may be a secret. */
static bool read_pairs(const char *name, const char *text, const char *separator, struct arena *a, const char **out,
		       struct error *e)
{
	size_t count = 0;

	while (text && *text) {
		size_t len = strcspn(text, ",");
		const char *equal = memchr(text, '=', len);
		if (!equal || equal == text || count == PAIRS_MOST)
			return error_set(e, ERROR_INVALID,
					 "%s: item %zu is not key=value; allowed: at most %d, joined by commas", name,
					 count + 1, PAIRS_MOST);
		char *value = arena_strdup(a, equal + 1, len - (size_t)(equal + 1 - text));
		decode_percent(value);
		size_t room = len + strlen(separator) + 2;
		char *pair = arena_alloc(a, room, 1);
		snprintf(pair, room, "%.*s%s%s", (int)(equal - text), text, separator, value);
		if (!is_printable(pair))
			return error_set(e, ERROR_INVALID, "%s: item %zu holds control characters", name, count + 1);
		out[count++] = pair;
		text += len;
		text += *text == ',';
	}
	out[count] = NULL;
	return true;
}

static bool check_protocol(struct error *e)
{
	const char *protocol = variable("PROTOCOL");

	if (!protocol || !strcmp(protocol, "http/json"))
		return true;
	return error_set(
		e, ERROR_INVALID,
		"OTEL_EXPORTER_OTLP_PROTOCOL: found '%.40s'; allowed: http/json; do: name the collector's HTTP "
		"endpoint, usually port 4318",
		protocol);
}

/* `instance` is this replica. False with the variable, what was found and what is allowed. */
static bool tracing_open(struct tracing *t, struct loop *loop, struct http *http, const char *instance, struct error *e)
{
	const char *url = endpoint(&t->arena), *service = cluster_args_variable("OTEL_SERVICE_NAME");
	const char *headers[PAIRS_MOST + 1], *resource[PAIRS_MOST + 1];
	struct clock wall = clock_open();

	if (!url || is_sdk_off())
		return true;
	if (!check_protocol(e) ||
	    !read_pairs("OTEL_EXPORTER_OTLP_HEADERS", variable("HEADERS"), ": ", &t->arena, headers, e) ||
	    !read_pairs("OTEL_RESOURCE_ATTRIBUTES", cluster_args_variable("OTEL_RESOURCE_ATTRIBUTES"), "=", &t->arena,
			resource, e))
		return false;
	t->tls = (struct http_tls){ .ca_file = variable("CERTIFICATE"),
				    .cert_file = variable("CLIENT_CERTIFICATE"),
				    .key_file = variable("CLIENT_KEY") };
	t->otlp = otlp_open(loop, http,
			    &(struct otlp_settings){ .url = url,
						     .headers = headers,
						     .tls = &t->tls,
						     .service = service ? service : "preheat",
						     .version = command_version_text() + strlen("preheat "),
						     .instance = instance,
						     .resource = resource,
						     .seed = (uint64_t)clock_now(&wall) },
			    e);
	CLEANUP(buf_release) struct buf shown = { 0 };
	uri_show(url, &shown);
	if (t->otlp)
		log_info("tracing", LOG_S("url", shown.text), LOG_END);
	return t->otlp != NULL;
}

static void give_up(struct timer *t)
{
	*(bool *)t->user = true;
}

/* Sends what is left, for two seconds at most, and closes. */
static void tracing_close(struct tracing *t, struct loop *loop)
{
	bool is_over = false;
	struct timer timer = { .user = &is_over };

	if (t->otlp) {
		otlp_flush(t->otlp);
		timer_start(loop, &timer, LAST_WORDS, give_up);
		while (!otlp_is_idle(t->otlp) && !is_over && loop_once(loop))
			;
		timer_stop(&timer);
		otlp_close(t->otlp);
	}
	arena_release(&t->arena);
	*t = (struct tracing){ 0 };
}

struct asked {
	struct authz_review *review;
	struct token_review token;
	struct access_review access;
	struct timer timer;
};

static void token_told(struct token_review *t)
{
	struct asked *a = t->user;
	struct authz_review *r = a->review;

	r->error = t->error;
	r->is_allowed = t->is_known;
	r->told_who = t->who;
	r->done(r);
	free(a);
}

static void access_told(struct access_review *t)
{
	struct asked *a = t->user;
	struct authz_review *r = a->review;

	r->error = t->error;
	r->is_allowed = t->is_allowed;
	r->done(r);
	free(a);
}

static void refused(struct timer *t)
{
	struct asked *a = t->user;

	a->review->done(a->review);
	free(a);
}

/* A authz_ask_fn; `user` is the struct api. */
static void reviews_ask(void *api, struct authz_review *r)
{
	struct asked *a = xcalloc(1, sizeof *a);

	a->review = r;
	a->token = (struct token_review){ .token = r->token, .done = token_told, .user = a };
	a->access = (struct access_review){
		.who = r->who, .verb = r->verb, .path = r->path, .done = access_told, .user = a
	};
	a->timer.user = a;
	if (!r->is_access)
		token_review_start(api, &a->token);
	else if (!access_review_start(api, &a->access, &r->error))
		timer_start(api_loop(api), &a->timer, 0, refused);
}

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

static bool run_site_check(const struct run_site_wish *w, struct error *e)
{
	struct site_settings s = settings_of(w, NULL, NULL);

	if (is_off(w))
		return (!w->cert_file && !w->key_file) ||
		       error_set(e, ERROR_INVALID,
				 "--tls-cert-file and --tls-private-key-file are of --web-listen, "
				 "which is off; do: leave them out, or name an address");
	return site_check(&s, e) || error_wrap(e, "--web-listen");
}

/* True with NULL in `out` where there shall be none. */
static bool run_site_open(struct api *api, const struct run_site_wish *w, struct run_pages *pages, struct site **out,
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
		return error_set(e, ERROR_INVALID, "--interval: found %lld ms; allowed: 1s to 10m", (long long)q->tick);
	if (!is_object_name(q->lease))
		return error_set(
			e, ERROR_INVALID,
			"--lease: found '%.100s'; allowed: lower-case letters, digits and inner dashes, at most 63",
			q->lease);
	if (q->pool_selector && !q->watches)
		return error_set(
			e, ERROR_INVALID,
			"--pool-selector %.100s: found without --watch-pools; do: give both, or leave out what "
			"is not wanted of -f",
			q->pool_selector);
	if (q->signals_from && is_one_file(q->signals_from, q->db))
		return error_set(e, ERROR_INVALID,
				 "--db %.200s: this is the recording of --signals-from; do: name another file", path);
	if (!run_site_check(&q->site, e))
		return false;
	if (slash)
		snprintf(folder, sizeof folder, "%.*s", slash == path ? 1 : (int)(slash - path), path);
	if (access(path, F_OK) == 0 ? access(path, R_OK | W_OK) : access(folder, W_OK | X_OK))
		return error_set(e, file_error_kind(errno),
				 "--db %.200s: cannot be written: %s; do: name a file on a volume of ours", path,
				 strerror(errno));
	return true;
}

struct running {
	const struct run_request *request;
	struct clock clock;
	struct cluster_access access;
	struct tracing tracing;
	struct arena arena;
	struct manifest manifest;
	struct web *web;
	struct site *site;
	struct run_pages pages;
	struct controller *controller;
	struct recorded_signals recorded;
	struct signal_watch term, interrupt;
	struct timer end, soundness;
	millis sound_by; /* of the loop's clock */
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
		     controller_accepts(&r->manifest, r->request->only_records, &f, &e);
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

/* Watches and readings need some ticks to come in; with a hurried clock a minute is over before. */
enum { SOUND_TICKS = 4 };

static void ask_if_sound(struct timer *t)
{
	struct running *r = t->user;
	struct error e = { 0 };

	if (!r->controller || r->is_closing)
		return;
	const struct published *p = controller_published(r->controller);
	if (p->ticks < SOUND_TICKS && loop_now(r->access.loop) < r->sound_by)
		timer_start(r->access.loop, t, clock_real(&r->clock, MINUTE), ask_if_sound);
	else if (!r->request->is_sound(p, &e))
		failed(r, &e);
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

static bool export(void *user, const struct replica_tail *at, struct buf *out, int64_t *last, struct error *e)
{
	struct running *r = user;

	if (!r->controller)
		return error_set(e, ERROR_UNAVAILABLE, "starting or stopping");
	return controller_export(r->controller, at, out, last, e);
}

/* Two that run under one name would both hold the Lease: what a Pod is called is not enough, its containers restart. */
static void name_ourselves(struct running *r)
{
	char host[64] = "preheat", suffix[33];
	const char *pod = cluster_args_variable("POD_NAME");

	gethostname(host, sizeof host - 1);
	make_key(suffix);
	if (r->request->identity)
		snprintf(r->identity, sizeof r->identity, "%s", r->request->identity);
	else
		snprintf(r->identity, sizeof r->identity, "%.120s_%.8s", pod ? pod : host, suffix);
	const char *ip = cluster_args_variable("POD_IP");
	char base[160];
	if (r->request->address)
		snprintf(base, sizeof base, "%s", r->request->address);
	else
		snprintf(base, sizeof base, "http://%s:%u", ip ? ip : "127.0.0.1", (unsigned)web_port(r->web));
	snprintf(r->address, sizeof r->address, "%s/replica?key=%s", base, r->key);
	snprintf(r->line, sizeof r->line, "%s --interval %lldms%s", r->request->line, (long long)r->request->tick,
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
	const char *pod_ip = cluster_args_variable("POD_IP");
	r->controller =
		controller_open(&(struct controller_settings){ .loop = r->access.loop,
							       .http = r->access.http,
							       .api = r->access.api,
							       .clock = &r->clock,
							       .manifest = &r->manifest,
							       .watches_objects = r->request->watches,
							       .pool_selector = r->request->pool_selector,
							       .history_path = r->request->db,
							       .version = command_version_text() + strlen("preheat "),
							       .run = r->line,
							       .interval = r->request->tick,
							       .retention = r->request->retention,
							       .is_dry_run = r->request->is_dry_run,
							       .elects = !r->request->does_not_elect,
							       .namespace = r->access.namespace,
							       .lease = r->request->lease,
							       .identity = r->identity,
							       .pod_ip = pod_ip ? pod_ip : "",
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

	if (!cluster_access_open(&r->access, &r->request->access, &r->clock, &e))
		return command_failed(c, &e);
	r->term.user = r->interrupt.user = r;
	signal_watch_start(r->access.loop, &r->term, SIGTERM, asked_to_stop);
	signal_watch_start(r->access.loop, &r->interrupt, SIGINT, asked_to_stop);
	log_info("starting", LOG_S("version", command_version_text() + strlen("preheat ")),
		 LOG_S("server", api_server(r->access.api)), LOG_S("access", r->access.config.source),
		 LOG_B("dry_run", r->request->is_dry_run), LOG_END);
	r->end.user = r->soundness.user = r;
	r->sound_by = loop_now(r->access.loop) + MINUTE;
	if (r->request->is_sound)
		timer_start(r->access.loop, &r->soundness, clock_real(&r->clock, MINUTE), ask_if_sound);
	if (r->request->stop_after)
		timer_start(r->access.loop, &r->end, clock_real(&r->clock, r->request->stop_after), time_is_up);
	bool ok = start(r, &e);
	if (ok)
		loop_run(r->access.loop);
	timer_stop(&r->end);
	timer_stop(&r->soundness);
	site_close(r->site);
	web_api_close(r->pages.api);
	web_close(r->web);
	tracing_close(&r->tracing, r->access.loop);
	signal_watch_stop(&r->term);
	signal_watch_stop(&r->interrupt);
	api_cancel_all(r->access.api); /* nobody waits for reviews any more */
	while (api_active(r->access.api) && loop_once(r->access.loop))
		;
	cluster_access_close(&r->access);
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

/* What is large for a moment, such as the page of metrics of many pools, goes back to the system whole; by itself the
 * allocator comes to keep it. */
static void keep_little(void)
{
	mallopt(M_MMAP_THRESHOLD, 4 << 20);
	mallopt(M_TRIM_THRESHOLD, 4 << 20);
}

int run_process(const struct command *c, const struct run_request *q)
{
	struct running r = { .request = q, .clock = open_clock(q->speed) };
	int code = EXIT_DONE;

	keep_little();
	set_up_log(q, &r.clock);
	signal(SIGPIPE, SIG_IGN);
	if (load_pools(c, &r, &code) && load_signals(c, &r, &code))
		code = run_until_stopped(c, &r);
	arena_release(&r.arena);
	return code;
}
