/* preheat generate: traffic that nobody recorded. */
#include "controller/commands/command.h"
#include "controller/traces/generate.h"

#include "base/arena.h"

#include <stdio.h>
#include <string.h>

struct settings {
	struct generate_setup setup;
	const char *shape, *classes, *output;
	double peak;
	int64_t seed;
};

static bool generate(struct settings *s, struct error *e)
{
	CLEANUP(trace_release) struct trace t = { 0 };

	s->setup.seed = (uint64_t)s->seed;
	if (!shapes_parse(s->shape, s->peak, &s->setup.shapes, e) ||
	    (s->classes && !generate_parse_classes(s->classes, &s->setup, e)))
		return false;
	return trace_generate(&s->setup, &t, e) && trace_write(&t, s->output, e);
}

static int run(int argc, char **argv)
{
	struct settings s = { { .length = DAY,
				.rate = 5,
				.weekend = 1,
				.burstiness = 1,
				.prompt_tokens = 1200,
				.output_tokens = 250,
				.spread = 0.8 },
			      "diurnal",
			      NULL,
			      "-",
			      0,
			      1 };
	const struct option_row rows[] = {
		{ "shape", 0, OPTION_TEXT, "SHAPES", "how the rate rises and falls, see below", &s.shape, NULL },
		{ "length", 0, OPTION_DURATION, "DURATION", "second 0 is midnight before a Monday", &s.setup.length,
		  NULL },
		{ "rate", 0, OPTION_NUMBER, "NUMBER", "requests a second before the shapes", &s.setup.rate, NULL },
		{ "peak", 0, OPTION_NUMBER, "FACTOR", "peak of shapes that name none", &s.peak, NULL },
		{ "weekend", 0, OPTION_NUMBER, "FACTOR", "Saturday and Sunday times this", &s.setup.weekend, NULL },
		{ "burstiness", 0, OPTION_NUMBER, "NUMBER",
		  "spread of the gaps between requests: 1 is Poisson, more is clumped (gamma)", &s.setup.burstiness,
		  NULL },
		{ "prompt-tokens", 0, OPTION_COUNT, "N", "mean", &s.setup.prompt_tokens, NULL },
		{ "output-tokens", 0, OPTION_COUNT, "N", "mean", &s.setup.output_tokens, NULL },
		{ "spread", 0, OPTION_NUMBER, "NUMBER", "of the lengths: deviation of their logarithm", &s.setup.spread,
		  NULL },
		{ "classes", 0, OPTION_TEXT, "NAME=WEIGHT,...", "a fourth column, drawn by weight", &s.classes, NULL },
		{ "bin", 0, OPTION_PERIOD, "DURATION", "count per bin of this width, for large fleets", &s.setup.bin,
		  NULL },
		{ "seed", 0, OPTION_COUNT, "N", "the same seed gives the same bytes", &s.seed, NULL },
		{ "out", 0, OPTION_TEXT, "FILE", "where to write; .gz compresses, - is standard output", &s.output,
		  NULL },
	};
	struct error e = { 0 };
	int rest, code;

	if (!command_options(&command_generate, argc, argv, rows, sizeof rows / sizeof *rows, &rest, &code))
		return code;
	if (rest < argc) {
		error_set(&e, ERROR_INVALID, "unexpected '%s'; generate takes options only", argv[rest]);
		return command_failed(&command_generate, &e);
	}
	return generate(&s, &e) ? EXIT_DONE : command_failed(&command_generate, &e);
}

const struct command command_generate = {
	.name = "generate",
	.usage = "generate [--shape SHAPES] [--length 1d] [--rate 5] [--out OUT.csv.gz]",
	.summary = "Generate synthetic traffic",
	.examples =
		"  preheat generate --shape diurnal,bursts --rate 2 --out day.csv.gz\n"
		"  preheat generate --shape diurnal:1.8,bursts:4:3h:8m --length 7d --weekend 0.5 --out week.csv.gz\n"
		"  preheat generate --shape pulses:1:1h:20m --length 12h --seed 7 | head\n"
		"  preheat generate --rate 2000 --length 14d --bin 10s --out fleet.csv.gz\n",
	.write_notes = shapes_write_help,
	.run = run,
};
