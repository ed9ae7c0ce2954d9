#include "controller/commands/command.h"

#include <stdio.h>

const char *command_version_text(void)
{
	return "preheat " PREHEAT_VERSION;
}

static int run(int argc, char **argv)
{
	int rest, code;

	if (!command_options(&command_version, argc, argv, NULL, 0, &rest, &code))
		return code;
	printf("preheat %s\ncommit   %s\ncompiler %s\n", PREHEAT_VERSION, PREHEAT_COMMIT, PREHEAT_COMPILER);
	return EXIT_DONE;
}

const struct command command_version = {
	.name = "version",
	.usage = "version",
	.summary = "Show the version and what it was built from",
	.examples = "  preheat version\n",
	.run = run,
};
