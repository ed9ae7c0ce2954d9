/* Finds the verb, runs it, and sees to it that what it printed has arrived. */
#include "controller/commands/command.h"
#include "controller/commands/complete.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static void print_overview(FILE *out)
{
	const char *program = command_program();
	size_t count;
	const struct command_entry *entries = command_entries(&count);

	fprintf(out,
		"Preheat decides how much warm GPU capacity inference needs, simulates that on\n"
		"recorded traffic, and explains every decision.\n\nUsage:\n  %s VERB [OPTION...]\n",
		program);
	for (size_t i = 0; i < count; i++) {
		if (entries[i].title)
			fprintf(out, "\n%s:\n", entries[i].title);
		else
			fprintf(out, "  %-11s %s\n", entries[i].command->name, entries[i].command->summary);
	}
	fprintf(out,
		"\nExit codes:\n"
		"  0 done   1 differences or violations found   2 wrong use or input   3 the environment failed\n"
		"\n'%s help VERB' shows the options and examples of a verb.\n",
		program);
}

/* `help`, `help VERB`, `help provider check`: as --help of the verb. */
static int run_help(int argc, char **argv)
{
	const struct command *c = NULL;
	char help[] = "--help";

	for (int i = 1; i < argc; i++) {
		const struct command *below = argv[i][0] == '-' ? NULL : command_find(c, argv[i]);
		if (!below)
			return command_unknown(c, argv[i]);
		c = below;
	}
	if (!c) {
		print_overview(stdout);
		return EXIT_DONE;
	}
	char *help_argv[] = { argv[argc - 1], help, NULL };
	return c->run(2, help_argv);
}

static int dispatch(int argc, char **argv)
{
	if (argc < 2) {
		print_overview(stdout);
		return EXIT_DONE;
	}
	if (!strcmp(argv[1], "help") || !strcmp(argv[1], "--help") || !strcmp(argv[1], "-h"))
		return run_help(argc - 1, argv + 1);
	if (!strcmp(argv[1], COMPLETE_VERB))
		return command_complete.run(argc - 1, argv + 1);
	const struct command *c = command_find(NULL, strcmp(argv[1], "--version") ? argv[1] : "version");
	return c ? c->run(argc - 1, argv + 1) : command_unknown(NULL, argv[1]);
}

/* A closed standard stream must not become the next file that we open:
 * each is replaced by one on which the wrong direction fails. */
static void hold_standard_streams(void)
{
	static const int modes[] = { O_WRONLY, O_RDONLY, O_WRONLY };

	for (int fd = 0; fd < 3; fd++) {
		if (fcntl(fd, F_GETFD) < 0 && errno == EBADF && open("/dev/null", modes[fd]) != fd)
			_exit(EXIT_ENVIRONMENT);
	}
}

/* The other end of the pipe is closed for good: `| head` has seen enough. */
static bool has_reader_left(void)
{
	struct pollfd out = { .fd = STDOUT_FILENO, .events = POLLOUT };

	return poll(&out, 1, 0) == 1 && out.revents & POLLERR;
}

int main(int argc, char **argv)
{
	hold_standard_streams();
	signal(SIGPIPE, SIG_IGN);
	command_called_as(argc > 0 ? argv[0] : "preheat");
	int code = command_only_completes() ? command_complete.run(argc, argv) : dispatch(argc, argv);
	bool had_failed = ferror(stdout);
	errno = 0;
	if (fflush(stdout) == 0 && !had_failed)
		return code;
	const char *why = errno ? strerror(errno) : "could not be written";
	if (has_reader_left())
		return EXIT_UNHEARD;
	fprintf(stderr, "%s: standard output: %s\n", command_program(), why);
	return EXIT_ENVIRONMENT;
}
