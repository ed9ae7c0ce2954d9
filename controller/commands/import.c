/* preheat import: traces out of recordings of other formats, and recordings out of Prometheus. */
#include "base/alloc.h"
#include "base/arena.h"
#include "base/file.h"
#include "base/findings.h"
#include "base/terminal.h"
#include "base/net/http.h"
#include "base/net/loop.h"
#include "base/options.h"
#include "base/text.h"
#include "controller/commands/command.h"
#include "controller/commands/recording.h"
#include "controller/traces/import.h"
#include "controller/traces/trace.h"
#include "signals/engine_metrics.h"
#include "signals/prometheus_range.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

/* `preheat import --prometheus`: a range that a Prometheus server kept, as a recording or as traffic. */

struct server_options {
	const char *url; /* NULL: as signals.prometheus of each pool says */
	struct option_list pools;
	const char *output; /* NAME.db: a recording; else the traffic of one pool, in bins */
	const char *pool;   /* which, where the manifest has several */
	millis last, step;
	bool prints_queries;
};

/* Returns the exit code; what failed was said. */
struct command;

static int run(int argc, char **argv);

enum { MODELS_MOST = 1000 };
static const millis MODELS_TIMEOUT = MINUTE;
static const millis SCRAPED_EVERY = 15 * SECOND; /* by most servers; the window of increase() is four of them */

struct fetch {
	const struct server_options *options;
	struct arena arena;
	struct manifest manifest;
	struct loop *loop;
	struct http *http;
	millis from, to;
	struct recorded_signals signals;
	/* of the pool at hand */
	struct pool_reading *readings;
	size_t count, room;
	bool is_done, is_said; /* said: why it failed */
	struct prometheus_range_report report;
	struct error error;
	struct buf models; /* "llama (3 replicas), mistral (1 replica)" */
	size_t model_count;
};

static bool load(struct fetch *f, struct error *e)
{
	CLEANUP(findings_release) struct findings found = { 0 };
	const struct option_list *files = &f->options->pools;

	if (!files->count)
		return error_set(e, ERROR_INVALID,
				 "--prometheus needs the WarmPools whose signals are asked for: -f FILE");
	if (manifest_load(files->items, files->count, &f->arena, &f->manifest, &found, e))
		return true;
	for (size_t i = 0; i < found.count; i++) {
		CLEANUP(buf_release) struct buf text = { 0 };
		finding_print(&found.items[i], &text);
		fprintf(stderr, "%s\n", text.text);
	}
	f->is_said = found.count > 0;
	return false;
}

/* Without labels in the manifest the series of the pool's namespace are taken. */
static struct promql_label *labels_of(struct fetch *f, size_t pool, size_t *count)
{
	const struct schema_labels *told = &f->manifest.pools[pool].spec.signals.prometheus.labels;
	struct promql_label *labels = arena_array(&f->arena, struct promql_label, told->count + 1);

	for (size_t i = 0; i < told->count; i++)
		labels[i] = (struct promql_label){ told->items[i].key, told->items[i].value };
	*count = told->count;
	if (!told->count)
		labels[(*count)++] = (struct promql_label){ "namespace", f->manifest.fleet.pools[pool].namespace };
	return labels;
}

static const struct engine_metrics *custom_of(struct fetch *f, const struct signals_text *s)
{
	struct engine_metrics *m;

	if (s->engine != SOURCE_CUSTOM)
		return NULL;
	m = arena_new(&f->arena, struct engine_metrics);
	*m = custom_metrics(s->metrics.names, &f->arena);
	return m;
}

static bool settings_of(struct fetch *f, size_t pool, struct prometheus_range_settings *out, struct error *e)
{
	const struct signals_text *s = &f->manifest.pools[pool].spec.signals;
	const struct prometheus_text *p = &s->prometheus;
	size_t count;
	const struct promql_label *labels = labels_of(f, pool, &count);

	*out = (struct prometheus_range_settings){
		.url = f->options->url ? f->options->url : p->url,
		.reach = { .bearer_token_file = p->auth.bearer_token_file,
			   .username = p->auth.basic.username,
			   .password_file = p->auth.basic.password_file,
			   .ca_file = p->tls.ca_file,
			   .cert_file = p->tls.cert_file,
			   .key_file = p->tls.key_file,
			   .server_name = p->tls.server_name,
			   .is_insecure = p->tls.verify == VERIFY_NOTHING },
		.engine = (enum engine)s->engine,
		.custom = custom_of(f, s),
		.labels = labels,
		.label_count = count,
		.objective_us = f->manifest.fleet.pools[pool].objective_wait * 1000,
		.from = f->from,
		.to = f->to,
		.step = f->options->step,
		.interval = SCRAPED_EVERY,
	};
	return out->url ||
	       error_set(e, ERROR_INVALID,
			 "pool %s: no server: give its URL after --prometheus, or signals.prometheus.url in the "
			 "manifest",
			 f->manifest.fleet.pools[pool].name);
}

static bool reads_servers(const struct fetch *f, size_t pool)
{
	const struct pool_spec *spec = &f->manifest.fleet.pools[pool];

	return source_is_read(f->manifest.pools[pool].spec.signals.engine) &&
	       (!f->options->pool || !strcmp(f->options->pool, spec->name));
}

static bool are_labels_alike(const struct schema_labels *a, const struct schema_labels *b)
{
	for (size_t i = 0; i < a->count; i++) {
		size_t k = 0;
		while (k < b->count && (strcmp(a->items[i].key, b->items[k].key) != 0 ||
					strcmp(a->items[i].value, b->items[k].value) != 0))
			k++;
		if (k == b->count)
			return false;
	}
	return a->count == b->count;
}

/* Whether both would be given the same series. */
static bool are_one(const struct fetch *f, size_t a, size_t b)
{
	const struct signals_text *of_a = &f->manifest.pools[a].spec.signals,
				  *of_b = &f->manifest.pools[b].spec.signals;
	const struct pool_spec *pools = f->manifest.fleet.pools;
	const char *url_a = of_a->prometheus.url, *url_b = of_b->prometheus.url;
	bool is_one_server = f->options->url || (url_a && url_b && !strcmp(url_a, url_b));

	return is_one_server && of_a->engine == of_b->engine && source_is_read(of_a->engine) &&
	       are_labels_alike(&of_a->prometheus.labels, &of_b->prometheus.labels) &&
	       (of_a->prometheus.labels.count || !strcmp(pools[a].namespace, pools[b].namespace));
}

/* What is asked of one pool must not be another's traffic, too. */
static bool check_apart(const struct fetch *f, struct error *e)
{
	const struct fleet_spec *fleet = &f->manifest.fleet;

	for (size_t a = 0; a < fleet->pool_count; a++)
		for (size_t b = 0; b < fleet->pool_count; b++)
			if (a != b && reads_servers(f, a) && are_one(f, a, b))
				return error_set(e, ERROR_INVALID,
						 "pools %s and %s: nothing tells their series apart; do: give each "
						 "signals.prometheus.labels that only its pods have, such as job",
						 fleet->pools[a < b ? a : b].name, fleet->pools[a < b ? b : a].name);
	return true;
}

static int print_queries(struct fetch *f, struct error *e)
{
	CLEANUP(buf_release) struct buf text = { 0 };
	struct prometheus_range_settings s;

	for (size_t i = 0; i < f->manifest.fleet.pool_count; i++) {
		if (!reads_servers(f, i))
			continue;
		if (!settings_of(f, i, &s, e))
			s.url = "http://localhost:9090"; /* not needed for that */
		*e = (struct error){ 0 };
		buf_printf(&text, "# --- pool %s/%s, step %s\n\n", f->manifest.fleet.pools[i].namespace,
			   f->manifest.fleet.pools[i].name, human_duration(s.step).text);
		prometheus_range_print(&s, &text);
	}
	fputs(text.text ? text.text : "", stdout);
	return EXIT_DONE;
}

static void on_reading(void *user, const struct pool_reading *r)
{
	struct fetch *f = user;

	if (f->count == f->room) {
		size_t room = f->room ? 2 * f->room : 4096;
		struct pool_reading *more = arena_array(&f->arena, struct pool_reading, room);
		if (f->count)
			memcpy(more, f->readings, f->count * sizeof *more);
		f->readings = more;
		f->room = room;
	}
	f->readings[f->count++] = *r;
	if (f->count % 500 == 0 && isatty(STDERR_FILENO))
		fprintf(stderr, "\r%3d %%", (int)((r->at - f->from) * 100 / (f->to - f->from)));
}

static void on_done(void *user, const struct prometheus_range_report *report, const struct error *e)
{
	struct fetch *f = user;

	f->is_done = true;
	f->report = *report;
	f->error = *e;
}

static int replicas_of(struct exposition_slice value)
{
	int64_t n = 0;

	return exposition_value(value, 0, &n) == EXPOSITION_NUMBER ? (int)n : 0;
}

static bool on_model(void *user, const struct prometheus_sample *s, struct error *e)
{
	struct fetch *f = user;
	const char *name = s->series ? prometheus_label(s->series, "model_name") : NULL;
	int replicas = (int)replicas_of(s->value);
	char room[QUOTE_ROOM];

	(void)e;
	if (!name && s->series)
		name = prometheus_label(s->series, "model");
	buf_printf(&f->models, "%s%s (%d replica%s)", f->model_count ? ", " : "",
		   name ? quote(room, name, strlen(name)) : "without a name", replicas, replicas == 1 ? "" : "s");
	f->model_count++;
	return true;
}

static void on_models(struct prometheus_call *c)
{
	struct fetch *f = c->user;

	f->is_done = true;
	f->error = c->error;
}

/* Several models are several services: what one replica of theirs holds and how long it takes are not one number. */
static bool check_models(struct fetch *f, const struct prometheus_range_settings *s, const char *pool, struct error *e)
{
	CLEANUP(buf_release) struct buf query = { 0 };
	const struct promql_scope scope = { s->custom ? *s->custom : engine_metrics(s->engine), s->labels,
					    s->label_count };
	struct prometheus *server = prometheus_open(f->loop, f->http, s->url, &s->reach);
	struct prometheus_call call = { .at = f->to,
					.timeout = MODELS_TIMEOUT,
					.most_samples = MODELS_MOST,
					.most_bytes = (size_t)8 << 20,
					.on_sample = on_model,
					.done = on_models,
					.user = f };

	promql_pool_models(&scope, f->to - f->from, &query);
	call.query = query.text;
	buf_clear(&f->models);
	f->model_count = 0;
	f->is_done = false;
	prometheus_start(server, &call);
	while (!f->is_done && loop_once(f->loop))
		;
	prometheus_close(server);
	if (f->error.kind != ERROR_NONE) {
		*e = f->error;
		return error_wrap(e, "pool %s", pool);
	}
	return f->model_count <= 1 ||
	       error_set(e, ERROR_INVALID,
			 "pool %s: its series are of %zu models: %s; allowed: one; do: name it in "
			 "signals.prometheus.labels, such as model_name: NAME",
			 pool, f->model_count, f->models.text);
}

/* False, and "", for what is no time. */
static bool write_time(millis at, char text[static 32])
{
	time_t seconds = (time_t)(at / SECOND);
	struct tm tm;

	text[0] = '\0';
	return gmtime_r(&seconds, &tm) && strftime(text, 32, "%Y-%m-%dT%H:%M:%SZ", &tm);
}

static void say_span(const struct fetch *f)
{
	millis gap = 0;
	int64_t requests = 0;
	char from[32], to[32];

	if (!f->count || !write_time(f->readings[0].at, from) || !write_time(f->readings[f->count - 1].at, to))
		return;
	for (size_t i = 0; i < f->count; i++) {
		millis since = i ? f->readings[i].at - f->readings[i - 1].at - f->options->step : 0;
		gap = since > gap ? since : gap;
		requests += f->readings[i].completed > 0 ? f->readings[i].completed : 0;
	}
	fprintf(stderr, "  %s requests from %s to %s", human_count(requests).text, from, to);
	if (gap)
		fprintf(stderr, ", longest gap %s", human_duration(gap).text);
	fputc('\n', stderr);
}

static void say(const struct fetch *f, const char *pool)
{
	const struct prometheus_range_report *r = &f->report;

	if (isatty(STDERR_FILENO))
		fputs("\r     \r", stderr);
	fprintf(stderr, "%s: %s%s%s%s readings", pool, f->model_count ? "model " : "",
		f->model_count ? f->models.text : "", f->model_count ? ", " : "", human_count(r->readings).text);
	if (r->missing)
		fprintf(stderr, ", %s steps without any: gaps stay gaps", human_count(r->missing).text);
	if (r->refused)
		fprintf(stderr, ", %s values that cannot be left out", human_count(r->refused).text);
	fputc('\n', stderr);
	say_span(f);
	if (r->partial.kind != ERROR_NONE)
		fprintf(stderr, "%s: not all quantities are told: %s\n", pool, r->partial.message);
	if (r->warning[0])
		fprintf(stderr, "%s: the server warns: %s\n", pool, r->warning);
}

static bool fetch_pool(struct fetch *f, size_t pool, struct error *e)
{
	const struct pool_spec *spec = &f->manifest.fleet.pools[pool];
	const struct prometheus_range_events events = { on_reading, on_done, f };
	struct prometheus_range_settings s;
	char key[160];

	if (!settings_of(f, pool, &s, e) || !check_models(f, &s, spec->name, e))
		return false;
	f->readings = NULL;
	f->count = f->room = 0;
	f->is_done = false;
	prometheus_range_start(f->loop, f->http, &s, &events);
	while (!f->is_done && loop_once(f->loop))
		;
	if (f->error.kind != ERROR_NONE) {
		*e = f->error;
		return error_wrap(e, "pool %s", spec->name);
	}
	say(f, spec->name);
	if (!f->count)
		return true;
	snprintf(key, sizeof key, "%s/%s", spec->namespace, spec->name);
	f->signals.pools[f->signals.count++] =
		(struct recorded_pool){ arena_strdup(&f->arena, key, strlen(key)), f->readings, f->count };
	if (!f->signals.begun || f->readings[0].at < f->signals.begun)
		f->signals.begun = f->readings[0].at;
	return true;
}

static bool fetch_all(struct fetch *f, struct error *e)
{
	size_t asked = 0;

	f->signals.pools = arena_array(&f->arena, struct recorded_pool, f->manifest.fleet.pool_count);
	for (size_t i = 0; i < f->manifest.fleet.pool_count; i++) {
		if (!reads_servers(f, i))
			continue;
		asked++;
		if (!fetch_pool(f, i, e))
			return false;
	}
	if (asked && !f->signals.count)
		return error_set(e, ERROR_NOT_FOUND,
				 "the server has nothing of %s: see --print-queries, and signals.prometheus.labels",
				 asked == 1 ? "it in that time" : "any pool in that time");
	return f->signals.count > 0 ||
	       error_set(e, ERROR_INVALID, "no pool of the manifest reads model servers%s%s",
			 f->options->pool ? ", or none is called " : "", f->options->pool ? f->options->pool : "");
}

/* Requests per step are what completed; where nothing is told there is no bin. */
static bool write_trace(const struct fetch *f, struct error *e)
{
	const struct recorded_pool *p = &f->signals.pools[0];
	struct trace t = { .is_binned = true, .bin_width = f->options->step };

	if (f->signals.count > 1)
		return error_set(e, ERROR_INVALID,
				 "%zu pools in one trace: choose one with --pool, or write a recording: --out NAME.db",
				 f->signals.count);
	t.bins = xcalloc(p->count, sizeof *t.bins);
	for (size_t i = 0; i < p->count; i++) {
		const struct pool_reading *r = &p->readings[i];
		millis at = r->at - f->options->step - (p->readings[0].at - f->options->step);
		if (r->completed > 0)
			t.bins[t.bin_count++] = (struct bin){ at, r->completed, r->prompt_tokens, r->output_tokens };
		t.length = at + f->options->step;
	}
	bool ok = t.bin_count ? trace_write(&t, f->options->output, e)
			      : error_set(e, ERROR_INVALID, "no request ended in that time");
	trace_release(&t);
	return ok;
}

static bool is_recording(const char *path)
{
	size_t len = strlen(path);

	return len > 3 && !strcmp(path + len - 3, ".db");
}

/* Before a week is asked for. */
static bool check_server_output(const struct fetch *f, struct error *e)
{
	const char *path = f->options->output, *slash = strrchr(path, '/');
	char folder[PATH_MAX] = ".";

	if (slash)
		snprintf(folder, sizeof folder, "%.*s", slash == path ? 1 : (int)(slash - path), path);
	if (is_recording(path) && !access(path, F_OK))
		return error_set(e, ERROR_INVALID, "--out %s: already there; name another file or remove it", path);
	if (strcmp(path, "-") != 0 && access(folder, W_OK | X_OK))
		return error_set(e, file_error_kind(errno), "--out %s: cannot be written: %s", path, strerror(errno));
	return true;
}

static bool write_output(const struct fetch *f, struct error *e)
{
	char run[400];

	if (!is_recording(f->options->output))
		return write_trace(f, e);
	snprintf(run, sizeof run, RECORDING_IMPORTED " --last %s --step %s", human_duration(f->options->last).text,
		 human_duration(f->options->step).text);
	return recording_write(f->options->output, run, &f->manifest, &f->signals, f->options->step, e);
}

static bool import_range(struct fetch *f, struct error *e)
{
	struct clock wall = clock_open();

	f->to = clock_now(&wall) / f->options->step * f->options->step;
	f->from = f->to - f->options->last;
	f->loop = loop_open();
	f->http = http_open(f->loop, "preheat", e);
	bool ok = f->http && fetch_all(f, e);
	while (f->http && http_active(f->http) && loop_once(f->loop))
		;
	http_close(f->http);
	loop_close(f->loop);
	return ok && write_output(f, e);
}

static int import_from_server(const struct command *c, const struct server_options *o)
{
	struct fetch f = { .options = o };
	struct error e = { 0 };
	bool ok = true;

	if (o->step < SECOND || o->last < o->step)
		ok = error_set(&e, ERROR_INVALID,
			       "--step and --last: allowed: a step of at least 1s, and at least one step");
	else
		ok = load(&f, &e) &&
		     (o->prints_queries ? print_queries(&f, &e) == EXIT_DONE
					: check_server_output(&f, &e) && check_apart(&f, &e) && import_range(&f, &e));
	arena_release(&f.arena);
	buf_release(&f.models);
	return ok ? EXIT_DONE : f.is_said ? EXIT_USAGE : command_failed(c, &e);
}

static void print_origin(const struct import_report *r)
{
	char text[32];

	if (r->has_clock && write_time(r->origin_us / 1000, text))
		fprintf(stderr, "second 0 is %s\n", text);
}

static void print_read(const struct import_report *r)
{
	fprintf(stderr, "%s: %s %s read", r->format, human_count(r->rows).text,
		strcmp(r->format, "prometheus") ? "rows" : "samples");
	if (r->failed)
		fprintf(stderr, ", %s dropped (failed requests, no output tokens)", human_count(r->failed).text);
	if (r->missing)
		fprintf(stderr, ", %s dropped (not a number)", human_count(r->missing).text);
	if (r->unsorted)
		fprintf(stderr, ", %s out of order sorted", human_count(r->unsorted).text);
	fputc('\n', stderr);
}

static void print_written(const struct trace *t, const char *output)
{
	int64_t requests = 0, prompt = 0, answer = 0;

	for (size_t i = 0; i < t->request_count; i++) {
		prompt += t->requests[i].prompt_tokens;
		answer += t->requests[i].output_tokens;
	}
	for (size_t i = 0; i < t->bin_count; i++) {
		requests += t->bins[i].requests;
		prompt += t->bins[i].prompt_tokens;
		answer += t->bins[i].output_tokens;
	}
	requests += (int64_t)t->request_count;
	double n = requests ? (double)requests : 1;
	fprintf(stderr, "%s: %s requests", strcmp(output, "-") ? output : "standard output",
		human_count(requests).text);
	if (t->is_binned)
		fprintf(stderr, " in %s bins of %s", human_count((int64_t)t->bin_count).text,
			human_duration(t->bin_width).text);
	fprintf(stderr, " over %s, %s/s, mean %s prompt and %s output tokens\n", human_duration(t->length).text,
		human_decimal((double)requests * 1000 / (double)t->length, 2).text,
		human_decimal((double)prompt / n, 0).text, human_decimal((double)answer / n, 0).text);
}

struct settings {
	struct import_options import;
	const char *output;
	millis bin;
};

/* What is read would be gone before its end, or with it. */
static bool check_output(const char *const *paths, size_t count, const char *output, struct error *e)
{
	struct stat out, in;

	if (!strcmp(output, "-") || stat(output, &out) || !S_ISREG(out.st_mode))
		return true;
	for (size_t i = 0; i < count; i++) {
		bool is_there = strcmp(paths[i], "-") ? !stat(paths[i], &in) : !fstat(STDIN_FILENO, &in);

		if (is_there && in.st_dev == out.st_dev && in.st_ino == out.st_ino)
			return error_set(e, ERROR_INVALID,
					 "--out %s: this is the recording that is read; name another file", output);
	}
	return true;
}

static bool import_all(const char *const *paths, size_t count, const struct settings *s, struct error *e)
{
	CLEANUP(trace_release) struct trace t = { 0 }, bins = { 0 };
	struct import_report report;

	if (!check_output(paths, count, s->output, e) || !trace_import(paths, count, &s->import, &t, &report, e))
		return false;
	if (s->bin && !trace_to_bins(&t, s->bin, &bins, e))
		return error_wrap(e, "--bin");
	const struct trace *result = s->bin ? &bins : &t;
	if (!trace_write(result, s->output, e))
		return false;
	print_read(&report);
	print_origin(&report);
	print_written(result, s->output);
	return true;
}

static int run(int argc, char **argv)
{
	struct settings s = { { "auto", "auto" }, "-", 0 };
	struct server_options server = { .last = 7 * DAY, .step = 15 * SECOND };
	const struct option_row rows[] = {
		{ "format", 0, OPTION_CHOICE, "FORMAT", "format of the recording; auto looks at its first bytes",
		  &s.import.from, IMPORT_FORMATS },
		{ "out", 0, OPTION_TEXT, "FILE", "where to write; .gz compresses, - is standard output", &s.output,
		  NULL },
		{ "bin", 0, OPTION_PERIOD, "DURATION", "count per bin of this width, for large fleets", &s.bin, NULL },
		{ "values", 0, OPTION_CHOICE, "KIND", "what Prometheus series hold", &s.import.values,
		  "auto|counter|rate|increase" },
		{ "prometheus", 0, OPTION_TEXT, "URL",
		  "read the pools' series from this Prometheus server; manifest: the one that the manifest names",
		  &server.url, NULL },
		{ "filename", 'f', OPTION_LIST, "FILE", "with --prometheus: the WarmPools", &server.pools, NULL },
		{ "pool", 'p', OPTION_TEXT, "POOL", "with --prometheus: only this pool", &server.pool, NULL },
		{ "last", 0, OPTION_PERIOD, "DURATION", "with --prometheus: how far back (default: 7d)", &server.last,
		  NULL },
		{ "step", 0, OPTION_PERIOD, "DURATION", "with --prometheus: between readings (default: 15s)",
		  &server.step, NULL },
		{ "print-queries", 0, OPTION_FLAG, NULL, "with --prometheus: print the queries and exit",
		  &server.prints_queries, NULL },
	};
	const char *input = "-";
	struct error e = { 0 };
	int rest, code;

	if (!command_options(&command_import, argc, argv, rows, sizeof rows / sizeof *rows, &rest, &code))
		return code;
	if (server.url && rest < argc) {
		error_set(&e, ERROR_INVALID,
			  "found '%.100s' beside --prometheus; allowed: one of them, a recording or a server",
			  argv[rest]);
		return command_failed(&command_import, &e);
	}
	if (server.url) {
		if (!strcmp(server.url, "manifest"))
			server.url = NULL;
		server.output = s.output;
		return import_from_server(&command_import, &server);
	}
	if (rest == argc && isatty(STDIN_FILENO)) {
		error_set(&e, ERROR_INVALID, "no FILE; name a recording, or - to read standard input");
		return command_failed(&command_import, &e);
	}
	const char *const *paths = rest < argc ? (const char *const *)argv + rest : &input;
	if (!import_all(paths, rest < argc ? (size_t)(argc - rest) : 1, &s, &e))
		return command_failed(&command_import, &e);
	return EXIT_DONE;
}

static const struct option_rule rules[] = {
	{ "filename", OPTION_NEEDS, "prometheus" },
	{ "pool", OPTION_NEEDS, "prometheus" },
	{ "last", OPTION_NEEDS, "prometheus" },
	{ "step", OPTION_NEEDS, "prometheus" },
	{ "print-queries", OPTION_NEEDS, "prometheus" },
	{ "format", OPTION_EXCLUDES, "prometheus" },
	{ "values", OPTION_EXCLUDES, "prometheus" },
	{ "bin", OPTION_EXCLUDES, "prometheus" },
	{ 0 },
};

const struct command command_import = {
	.name = "import",
	.usage = "import [FILE...] [--out OUT.csv.gz] [--format FORMAT] [--bin DURATION]\n"
		 "  preheat import --prometheus URL -f FILE [--last 7d] --out OUT.db",
	.summary = "Convert recorded traffic of other formats into a trace",
	.examples =
		"  preheat import AzureLLMInferenceTrace_conv.csv --out conv.csv.gz\n"
		"  preheat import BurstGPT_1.csv --bin 10s --out burstgpt.csv.gz\n"
		"  preheat import --format vllm result.json | preheat simulate -f pool.yaml --trace -\n"
		"\n"
		"A week from a Prometheus server, whole: for simulate --recording and run --signals-from:\n"
		"  preheat import --prometheus http://prometheus:9090 -f pools/ --last 7d --out week.db\n"
		"  preheat import --prometheus manifest -f pools/ --print-queries\n"
		"\n"
		"From a saved answer of Prometheus, the counters of all servers (restarts are recognised):\n"
		"  curl -sG $PROMETHEUS/api/v1/query_range -d start=$START -d end=$END -d step=15s --data-urlencode "
		"\\\n"
		"    'query={__name__=~\"vllm:(request_success|prompt_tokens|generation_tokens)_total\"}' > day.json\n"
		"  preheat import day.json --out day.csv.gz\n"
		"or computed series, one answer each, labelled requests, prompt_tokens, output_tokens:\n"
		"  query=label_replace(sum(rate(vllm:request_success_total[1m])), \"preheat\", \"requests\", \"\", "
		"\"\")\n"
		"  preheat import --values rate requests.json prompt.json output.json --out day.csv.gz\n",
	.arguments = "FILE",
	.rules = rules,
	.run = run,
};
