/* The verbs of `preheat provider`: first word, then options. */
#include "controller/commands/command.h"

#include <stdio.h>
#include <string.h>

extern const struct command provider_command_check;

static const struct command *const verbs[] = { &provider_command_check, NULL };

static int run(int argc, char **argv)
{
	char help[] = "--help";
	char *help_argv[] = { argv[0], help, NULL };
	int rest, code;

	if (argc < 2 || argv[1][0] == '-') {
		command_options(&command_provider, argc < 2 ? 2 : argc, argc < 2 ? help_argv : argv, NULL, 0, &rest,
				&code);
		return code;
	}
	const struct command *c = command_find(&command_provider, argv[1]);
	return c ? c->run(argc - 1, argv + 1) : command_unknown(&command_provider, argv[1]);
}

const struct command command_provider = {
	.name = "provider",
	.usage = "provider VERB [OPTION...]",
	.summary = "Ask clouds about node groups, with the credentials that the controller has",
	.examples = "  preheat provider check --pool pools.yaml\n",
	.verbs = verbs,
	.run = run,
};
