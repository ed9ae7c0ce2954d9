#include "controller/commands/answer.h"
#include "controller/commands/compare.h"
#include "controller/commands/simulate_results.h"
#include "controller/simulation/files/world_file.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static volatile int is_interrupted;

static void interrupt(int signal)
{
	(void)signal;
	is_interrupted = 1;
}

/* While inputs are read nothing has been written that could be kept. */
static void interrupt_reading(int signal)
{
	static const char text[] = " simulate: interrupted while the inputs were read; nothing was simulated\n";
	bool told = write(STDERR_FILENO, command_program(), strlen(command_program())) > 0 &&
		    write(STDERR_FILENO, text, sizeof text - 1) > 0;

	(void)signal;
	(void)told;
	_exit(EXIT_ENVIRONMENT);
}

/* An interrupt ends what runs in good order, the second one at once. A closed terminal is an interrupt, unless whoever
 * started us (nohup) has it ignored. */
static void catch_interrupts(void (*handler)(int))
{
	struct sigaction action = { .sa_handler = handler, .sa_flags = (int)SA_RESETHAND }, before;

	sigaction(SIGINT, &action, NULL);
	sigaction(SIGTERM, &action, NULL);
	if (!sigaction(SIGHUP, NULL, &before) && before.sa_handler != SIG_IGN)
		sigaction(SIGHUP, &action, NULL);
}

static bool run_one(const struct simulate_options *o, const struct simulate_inputs *in, struct results *results,
		    bool *is_stopped, struct error *e)
{
	CLEANUP(arena_release) struct arena arena = { 0 };
	const struct observer observer = results_observer(results);
	struct run_result result = { 0 };
	struct simulation s = { .world = { .fleet = &in->manifest.fleet,
					   .spec = &in->world,
					   .traces = in->given,
					   .start = in->start,
					   .interval = o->tick,
					   .seed = (uint64_t)o->seed,
					   .schedule = schedule_at },
				.policy = in->policy,
				.setting = in->setting,
				.warm_up = o->warm_up,
				.observers = &observer,
				.observer_count = 1,
				.stop = &is_interrupted };

	const struct compare_setup setup = { .simulation = &s, .ours = &result, .rivals = o->rivals };
	struct compare_result compared = { 0 };

	if (!simulate(&s, &arena, &result, e))
		return false;
	bool compares = o->compare && !result.stopped;
	if ((compares && !compare_run(&setup, &arena, &compared, e)) ||
	    !results_finish(results, &result, compares ? &compared : NULL, e))
		return false;
	*is_stopped = result.stopped || compared.comparison.is_stopped;
	if (compared.comparison.is_stopped)
		fprintf(stderr, "%s simulate: the comparison was interrupted; the runs done so far are kept\n",
			command_program());
	if (result.stopped)
		fprintf(stderr, "%s simulate: interrupted after %.0f of %.0f s of traffic; %s%s\n", command_program(),
			(double)result.simulated / 1000, (double)in->length / 1000,
			o->out ? "what was simulated so far is kept in " : "this is what was simulated so far",
			o->out ? o->out : "");
	return true;
}

static bool simulate_all(const struct simulate_options *o, bool *is_stopped, struct error *e)
{
	CLEANUP(simulate_inputs_release) struct simulate_inputs in = { 0 };

	catch_interrupts(interrupt_reading);
	if (!simulate_read(o, &in, e))
		return false;
	catch_interrupts(interrupt);
	struct results *results = results_open(o, &in, e);
	if (!results)
		return false;
	bool is_done = run_one(o, &in, results, is_stopped, e);
	results_release(results);
	return is_done;
}

static int print_world(void)
{
	CLEANUP(buf_release) struct buf text = { 0 };

	world_write_reference(&text);
	fputs(text.text, stdout);
	return EXIT_DONE;
}

static int run(int argc, char **argv)
{
	bool prints_world = false;
	struct simulate_options o = {
		.policy = "preheat", .output = "table", .scale = 1, .tick = 15 * SECOND, .start = ABSENT, .seed = 1
	};
	const struct option_row rows[] = {
		{ "pool", 0, OPTION_LIST, "FILE", "manifest, or a folder of them; may be repeated", &o.pools, NULL },
		{ "trace", 0, OPTION_LIST, "[POOL=]FILE", "traffic of a pool, .csv or .csv.gz, - for standard input",
		  &o.traces, NULL },
		{ "recording", 0, OPTION_TEXT, "FILE.db", "a history in place of traces, and of --pool if left out",
		  &o.recording, NULL },
		{ "scale", 0, OPTION_NUMBER, "K", "the traffic of a service K times as large", &o.scale, NULL },
		{ "jitter", 0, OPTION_FLAG, NULL, "above 6: K/5 shifted copies of 5 instead of one times K", &o.jitter,
		  NULL },
		{ "world", 0, OPTION_TEXT, "FILE", "what goes wrong and what is true (docs/simulator.md)", &o.world,
		  NULL },
		{ "tick", 0, OPTION_DURATION, "DURATION", "time between decisions", &o.tick, NULL },
		{ "start", 0, OPTION_TIME, "TIME",
		  "wall clock at second 0 of the traffic, for schedules; 2024-01-01T00:00:00Z, or as recorded",
		  &o.start, NULL },
		{ "warm-up", 0, OPTION_DURATION, "DURATION", "left out of the score", &o.warm_up, NULL },
		{ "policy", 0, OPTION_TEXT, "NAME[:SETTING]", "who decides: preheat, or a rival", &o.policy, NULL },
		{ "compare", 0, OPTION_FLAG, NULL,
		  "beside other autoscalers, each swept over its settings (docs/simulator.md)", &o.compare, NULL },
		{ "rivals", 0, OPTION_TEXT, "NAME,NAME", "compare with these only", &o.rivals, NULL },
		{ "seed", 0, OPTION_COUNT, "N", "the same seed gives the same bytes", &o.seed, NULL },
		{ "out", 0, OPTION_TEXT, "DIR",
		  "where history.db, timeline.csv, summary.json and report.html go; nowhere when left out", &o.out,
		  NULL },
		{ "force", 0, OPTION_FLAG, NULL, "replace the results in a folder that is not empty", &o.force, NULL },
		ANSWER_OPTION(&o.output),
		{ "print-world", 0, OPTION_FLAG, NULL, "print the reference of the world file and stop", &prints_world,
		  NULL },
	};
	bool is_stopped = false;
	struct error e = { 0 };
	int rest, code;

	if (!command_options(&command_simulate, argc, argv, rows, sizeof rows / sizeof *rows, &rest, &code))
		return code;
	if (rest < argc) {
		error_set(&e, ERROR_INVALID, "unexpected '%s'; simulate takes options only", argv[rest]);
		return command_failed(&command_simulate, &e);
	}
	if (prints_world)
		return print_world();
	if (!simulate_all(&o, &is_stopped, &e))
		return command_failed(&command_simulate, &e);
	return is_stopped ? EXIT_ENVIRONMENT : EXIT_DONE;
}

const struct command command_simulate = {
	.name = "simulate",
	.usage =
		"simulate --pool FILE (--trace [POOL=]FILE | --recording FILE.db) [--world FILE] [--out DIR] [OPTIONS]",
	.summary = "Run a policy on recorded traffic in a modelled world",
	.examples = "  preheat simulate --pool pool.yaml --trace day.csv.gz --out results\n"
		    "  preheat simulate --pool pool.yaml --trace day.csv.gz --scale 40 --jitter --warm-up 2h\n"
		    "  preheat simulate --pool pools/ --trace chat=chat.csv.gz --trace batch=jobs.csv.gz --world "
		    "world.yaml\n"
		    "  preheat simulate --pool pool.yaml --trace day.csv.gz --policy hpa:target=0.8\n"
		    "  preheat simulate --recording history.db --pool other.yaml\n",
	.run = run,
};
