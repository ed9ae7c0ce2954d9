/* The verbs of `preheat provider`: first word, then options. */
#include "base/nearest.h"
#include "controller/commands/command.h"

#include <stdio.h>
#include <string.h>

extern const struct command provider_command_check;

enum { VERB_COUNT = 1 };
static const struct command *const verbs[VERB_COUNT] = { &provider_command_check };

static void print_overview(FILE *out)
{
	fprintf(out, "%s\n\nUsage:\n  %s %s\n\nVerbs:\n", command_provider.summary, command_program(),
		command_provider.usage);
	for (size_t i = 0; i < VERB_COUNT; i++)
		fprintf(out, "  %-10s %s\n", strchr(verbs[i]->name, ' ') + 1, verbs[i]->summary);
	fprintf(out, "\n'%s provider VERB --help' shows the options and examples of a verb.\n", command_program());
}

static const struct command *find(const char *word)
{
	for (size_t i = 0; i < VERB_COUNT; i++)
		if (!strcmp(strchr(verbs[i]->name, ' ') + 1, word))
			return verbs[i];
	return NULL;
}

static int unknown(const char *word)
{
	const char *names[VERB_COUNT];

	for (size_t i = 0; i < VERB_COUNT; i++)
		names[i] = strchr(verbs[i]->name, ' ') + 1;
	const char *near = nearest_name(word, names, VERB_COUNT);
	fprintf(stderr, "%s provider: unknown verb '%.100s'", command_program(), word);
	if (near)
		fprintf(stderr, "; did you mean '%s'?\n", near);
	else
		fprintf(stderr, "; '%s provider' lists them\n", command_program());
	return EXIT_USAGE;
}

static int run(int argc, char **argv)
{
	if (argc < 2 || !strcmp(argv[1], "--help") || !strcmp(argv[1], "-h")) {
		print_overview(stdout);
		return EXIT_DONE;
	}
	const struct command *c = find(argv[1]);
	return c ? c->run(argc - 1, argv + 1) : unknown(argv[1]);
}

const struct command command_provider = {
	.name = "provider",
	.usage = "provider VERB [OPTION...]",
	.summary = "Ask clouds about node groups, with the credentials that the controller has",
	.examples = "",
	.run = run,
};
