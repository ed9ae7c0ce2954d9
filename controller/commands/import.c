#include "controller/commands/command.h"
#include "controller/commands/import_server.h"
#include "controller/traces/import.h"

#include "base/arena.h"
#include "base/terminal.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

static void print_origin(const struct import_report *r)
{
	time_t seconds = (time_t)(r->origin_us / 1000000);
	struct tm tm;
	char text[32];

	if (r->has_clock && gmtime_r(&seconds, &tm) && strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &tm))
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
					 "--output %s: this is the recording that is read; name another file", output);
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
		{ "from", 'f', OPTION_CHOICE, "FORMAT", "format of the recording; auto looks at its first bytes",
		  &s.import.from, IMPORT_FORMATS },
		{ "output", 'o', OPTION_TEXT, "FILE", "where to write; .gz compresses, - is standard output", &s.output,
		  NULL },
		{ "bin", 0, OPTION_PERIOD, "DURATION", "count per bin of this width, for large fleets", &s.bin, NULL },
		{ "values", 0, OPTION_CHOICE, "KIND", "what Prometheus series hold", &s.import.values,
		  "auto|counter|rate|increase" },
		{ "prometheus", 0, OPTION_TEXT, "URL",
		  "ask a Prometheus server for all that pools' servers told; manifest: as the manifest says",
		  &server.url, NULL },
		{ "pool", 'p', OPTION_LIST, "FILE", "with --prometheus: the WarmPools", &server.pools, NULL },
		{ "of", 0, OPTION_TEXT, "POOL", "with --prometheus: only this pool", &server.pool, NULL },
		{ "last", 0, OPTION_PERIOD, "DURATION", "with --prometheus: until now (default: 7d)", &server.last,
		  NULL },
		{ "step", 0, OPTION_PERIOD, "DURATION", "with --prometheus: between readings (default: 15s)",
		  &server.step, NULL },
		{ "print-queries", 0, OPTION_FLAG, NULL, "with --prometheus: show what would be asked, to be pasted",
		  &server.prints_queries, NULL },
	};
	const char *input = "-";
	struct error e = { 0 };
	int rest, code;

	if (!command_options(&command_import, argc, argv, rows, sizeof rows / sizeof *rows, &rest, &code))
		return code;
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

const struct command command_import = {
	.name = "import",
	.usage = "import [FILE...] [-o OUT.csv.gz] [--from FORMAT] [--bin DURATION]\n"
		 "  preheat import --prometheus URL --pool FILE [--last 7d] -o OUT.db",
	.summary = "Make a trace out of a recording of another format",
	.examples =
		"  preheat import AzureLLMInferenceTrace_conv.csv -o conv.csv.gz\n"
		"  preheat import BurstGPT_1.csv --bin 10s -o burstgpt.csv.gz\n"
		"  preheat import --from vllm result.json | preheat simulate --pool pool.yaml --trace -\n"
		"\n"
		"A week from a Prometheus server, whole: for simulate --recording and run --signals-from:\n"
		"  preheat import --prometheus http://prometheus:9090 --pool pools/ --last 7d -o week.db\n"
		"  preheat import --prometheus manifest --pool pools/ --print-queries\n"
		"\n"
		"From a saved answer of Prometheus, the counters of all servers (restarts are recognised):\n"
		"  curl -sG $PROMETHEUS/api/v1/query_range -d start=$START -d end=$END -d step=15s --data-urlencode "
		"\\\n"
		"    'query={__name__=~\"vllm:(request_success|prompt_tokens|generation_tokens)_total\"}' > day.json\n"
		"  preheat import day.json -o day.csv.gz\n"
		"or computed series, one answer each, labelled requests, prompt_tokens, output_tokens:\n"
		"  query=label_replace(sum(rate(vllm:request_success_total[1m])), \"preheat\", \"requests\", \"\", "
		"\"\")\n"
		"  preheat import --values rate requests.json prompt.json output.json -o day.csv.gz\n",
	.arguments = "FILE",
	.run = run,
};
