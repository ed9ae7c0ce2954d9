#include "controller/commands/command.h"

#include <stdio.h>
#include <string.h>

static const char *program = "preheat";

void command_called_as(const char *path)
{
	const char *slash = strrchr(path, '/');

	program = strcmp(slash ? slash + 1 : path, "kubectl-preheat") == 0 ? "kubectl preheat" : "preheat";
}

const char *command_program(void)
{
	return program;
}

static bool asks_for_help(int argc, char **argv)
{
	for (int i = 1; i < argc && strcmp(argv[i], "--") != 0; i++) {
		if (strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0)
			return true;
	}
	return false;
}

static void print_help(const struct command *c, const struct option_row *rows, size_t count)
{
	static const struct option_row help = { "help", 'h', OPTION_FLAG, NULL, "show this help", NULL, NULL };

	printf("%s\n\nUsage:\n  %s %s\n\nOptions:\n", c->summary, program, c->usage);
	options_print(rows, count);
	options_print(&help, 1);
	if (c->examples && *c->examples)
		printf("\nExamples:\n%s", c->examples);
}

/* NOLINTNEXTLINE(readability-function-size): argc and argv, rows and count are two things, not four */
bool command_options(const struct command *c, int argc, char **argv, const struct option_row *rows, size_t count,
		     int *rest, int *code)
{
	struct error e = { 0 };

	if (asks_for_help(argc, argv)) {
		print_help(c, rows, count);
		*code = EXIT_DONE;
		return false;
	}
	if (options_parse(argc, argv, rows, count, rest, &e))
		return true;
	fprintf(stderr, "%s %s: %s (see '%s %s --help')\n", program, c->name, e.message, program, c->name);
	*code = EXIT_USAGE;
	return false;
}

int command_failed(const struct command *c, const struct error *e)
{
	if (e->kind == ERROR_CANCELLED)
		return EXIT_UNHEARD;
	fprintf(stderr, "%s %s: %s\n", program, c->name, e->message);
	switch (e->kind) {
	case ERROR_INVALID:
	case ERROR_NOT_FOUND:
	case ERROR_CONFLICT:
		return EXIT_USAGE;
	case ERROR_NONE:
	case ERROR_STOCKOUT:
	case ERROR_QUOTA:
	case ERROR_THROTTLED:
	case ERROR_AUTH:
	case ERROR_TIMEOUT:
	case ERROR_UNAVAILABLE:
	case ERROR_CANCELLED:
	case ERROR_INTERNAL:
		return EXIT_ENVIRONMENT;
	}
	return EXIT_ENVIRONMENT;
}
