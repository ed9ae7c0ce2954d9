/* preheat version: what was built from what. */
#include "base/arena.h"
#include "base/gzip.h"
#include "base/json.h"
#include "controller/commands/print.h"
#include "controller/commands/command.h"
#include "state/db.h"

#include <stdio.h>

const char *command_version_text(void)
{
	return "preheat " PREHEAT_VERSION;
}

static void member(const char *name, const char *value, struct buf *out)
{
	buf_printf(out, "%s  \"%s\": ", out->len > 2 ? ",\n" : "", name);
	json_write_text(value, out);
}

static void print_for_programs(const char *form)
{
	CLEANUP(print_tree_release) struct printed_tree answer = { 0 };
	struct buf *out = &answer.json;

	buf_text(out, "{\n");
	member("version", PREHEAT_VERSION, out);
	member("commit", PREHEAT_COMMIT, out);
	buf_printf(out, ",\n  \"modified\": %s", PREHEAT_MODIFIED ? "true" : "false");
	member("compiler", PREHEAT_COMPILER, out);
	member("sqlite", db_library_version(), out);
	member("zlib", deflate_library_version(), out);
	buf_text(out, "\n}\n");
	print_tree(&answer, form);
}

static int run(int argc, char **argv)
{
	const char *output = "table";
	const struct option_row rows[] = { PRINT_OPTION(&output) };
	int rest, code;

	if (!command_options(&command_version, argc, argv, rows, sizeof rows / sizeof *rows, &rest, &code))
		return code;
	if (rest < argc) {
		struct error e;

		error_set(&e, ERROR_INVALID, "found '%.100s'; allowed: no arguments", argv[rest]);
		return command_failed(&command_version, &e);
	}
	if (print_is_for_programs(output)) {
		print_for_programs(output);
		return EXIT_DONE;
	}
	printf("%s (commit %s%s)\ncompiler %s\nsqlite   %s\nzlib     %s\n", command_version_text(), PREHEAT_COMMIT,
	       PREHEAT_MODIFIED ? ", modified" : "", PREHEAT_COMPILER, db_library_version(), deflate_library_version());
	return EXIT_DONE;
}

const struct command command_version = {
	.name = "version",
	.usage = "version [-o FORMAT]",
	.summary = "Show the version and what it was built from",
	.examples = "  preheat version\n"
		    "  preheat version -o json\n",
	.run = run,
};
