#include "base/deflate.h"
#include "controller/commands/command.h"
#include "state/db.h"

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
	if (rest < argc) {
		struct error e;

		error_set(&e, ERROR_INVALID, "found '%.100s'; allowed: no arguments", argv[rest]);
		return command_failed(&command_version, &e);
	}
	printf("%s (commit %s%s)\ncompiler %s\nsqlite   %s\nzlib     %s\n", command_version_text(), PREHEAT_COMMIT,
	       PREHEAT_MODIFIED ? ", modified" : "", PREHEAT_COMPILER, db_library_version(), deflate_library_version());
	return EXIT_DONE;
}

const struct command command_version = {
	.name = "version",
	.usage = "version",
	.summary = "Show the version and what it was built from",
	.examples = "  preheat version\n",
	.run = run,
};
