/* preheat record: watch a cluster, change nothing. */
#include "base/terminal.h"
#include "controller/commands/run_process.h"
#include "controller/web/published.h"
#include "state/history.h"

#include <stdio.h>

/* What cannot be read now will not be in a week: better told after a minute. */
static bool is_sound(const struct published *p, struct error *e)
{
	if (!p->snapshot)
		return error_set(e, ERROR_UNAVAILABLE, "nothing was recorded in the first minute: %s",
				 p->obstacle ? p->obstacle : "no pool is known yet");
	for (size_t i = 0; i < p->fleet->pool_count; i++) {
		const struct pool_input *in = &p->snapshot->pools[i].input;
		const char *trouble = p->pools[i].signals_trouble;

		if (in->ready > 0 && in->scrapes_expected > 0 && !in->scrapes_fresh &&
		    p->pools[i].signals_age == ABSENT)
			return error_set(
				e, ERROR_UNAVAILABLE,
				"pool %s: none of its %s replicas could be read in the first minute; do: record in "
				"the cluster, or import --prometheus%s%s",
				p->fleet->pools[i].name, human_count(in->ready).text, trouble ? "; " : "",
				trouble ? trouble : "");
	}
	return true;
}

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
	.is_sound = is_sound,
};

static const struct option_row rows[] = {
	RUN_POOL_OPTIONS(&options),
	{ "db", 0, OPTION_TEXT, "FILE", "the recording; continued if it exists (default: recording.db)", &options.db,
	  NULL },
	{ "for", 0, OPTION_PERIOD, "DURATION", "end after this time (default: when interrupted)", &options.stop_after,
	  NULL },
	{ "interval", 0, OPTION_PERIOD, "DURATION", "time between ticks (default: 15s)", &options.tick, NULL },
	{ "listen", 0, OPTION_TEXT, "ADDRESS", "where /metrics and health are served (default: 127.0.0.1:9465)",
	  &options.listen, NULL },
	CLUSTER_ARGS_OPTIONS(&options.access),
	RUN_PROCESS_OPTIONS(&options),
};

/* What a pool's ticks come to. */
struct recorded_sums {
	int64_t ticks, read, blind, requests; /* read: with readings, or pods that are the work; blind: with replicas,
						 and none could be read */
};

static bool sum_pool(struct history *h, const struct history_span *span, size_t pool, struct recorded_sums *out,
		     struct error *e)
{
	struct tick_record r;

	*out = (struct recorded_sums){ 0 };
	for (int64_t tick = span->first_tick; tick <= span->last_tick; tick++) {
		if (!history_read(h, tick, pool, &r, e)) {
			if (e->kind == ERROR_NOT_FOUND)
				continue;
			return false;
		}
		const struct pool_input *in = &r.snapshot.input;
		out->ticks++;
		out->read += r.snapshot.scrape_count > 0 || (in->ready > 0 && !in->scrapes_expected);
		out->blind += in->scrapes_expected > 0 && in->scrapes_fresh == 0;
		out->requests += r.plan.decision.arrived > 0 ? r.plan.decision.arrived : 0;
	}
	*e = (struct error){ 0 };
	return true;
}

static void print_pool(const char *name, const struct recorded_sums *s)
{
	fprintf(stderr, "%s: %s requests in %s ticks", name, human_count(s->requests).text, human_count(s->ticks).text);
	if (s->blind)
		fprintf(stderr, ", %s of them without a reading from its replicas", human_count(s->blind).text);
	if (!s->read)
		fprintf(stderr, ": nothing was read%s", s->blind ? "" : ", no replica was ready");
	fputc('\n', stderr);
}

/* False with the error where no pool has a reading. */
static bool summarize(struct history *h, struct error *e)
{
	struct history_span span;
	struct recorded_sums s;
	size_t pools, read = 0;

	if (!history_span(h, &span, e))
		return false;
	const struct history_pool *pool = history_pools(h, &pools);
	fprintf(stderr, "%s: %s\n", options.db,
		human_duration(span.last_tick < span.first_tick ? 0 : span.to - span.from).text);
	for (size_t i = 0; i < pools; i++) {
		if (!sum_pool(h, &span, i, &s, e))
			return false;
		print_pool(pool[i].name, &s);
		read += s.read > 0;
	}
	return read > 0 ||
	       error_set(e, ERROR_NOT_FOUND, "%s: no model server could be read: nothing to simulate", options.db);
}

/* 1 where nothing useful was recorded. */
static int record_and_tell(void)
{
	int code = run_process(&command_record, &options);
	struct error e = { 0 };

	if (code != EXIT_DONE)
		return code;
	struct history *h = history_open(options.db, &e);
	bool is_useful = h && summarize(h, &e);
	history_close(h);
	if (is_useful)
		return EXIT_DONE;
	command_failed(&command_record, &e);
	return EXIT_FOUND;
}

static int record(int argc, char **argv)
{
	int rest, code;
	struct error e;

	if (!command_options(&command_record, argc, argv, rows, sizeof rows / sizeof *rows, &rest, &code))
		return code;
	if (rest < argc)
		error_set(&e, ERROR_INVALID, "found '%.100s'; allowed: no arguments; manifests are given with -f FILE",
			  argv[rest]);
	else if (!options.pools.count && !options.watches)
		error_set(&e, ERROR_INVALID,
			  "no pools: give a manifest with -f FILE, or --watch-pools to use those in the API server");
	else if (run_request_check(&options, &e))
		return record_and_tell();
	return command_failed(&command_record, &e);
}

const struct command command_record = {
	.name = "record",
	.usage = "record (-f FILE... | --watch-pools) [--db FILE] [--for DURATION]",
	.summary = "Watch a cluster and its model servers, and record what run would see and decide",
	.examples = "  preheat record -f pools/ --for 7d --db week.db      read-only: no cloud calls\n"
		    "  preheat simulate --recording week.db --compare --out what-if\n"
		    "  preheat run -f pools/ --dry-run --signals-from week.db --speed 60\n",
	.run = record,
};
