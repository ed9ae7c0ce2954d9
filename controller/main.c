/* Finds the verb, runs it, and sees to it that what it printed has arrived. */
#include "base/nearest.h"
#include "controller/commands/command.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* A line of list.def: a group of verbs (title) or a verb (command). */
struct entry {
	const char *title;
	const struct command *command;
};

#define VERBS(text)   { .title = text },
#define COMMAND(name) { .command = &command_##name },
static const struct entry entries[] = {
#include "controller/commands/list.def"
};
#undef VERBS
#undef COMMAND

enum { ENTRIES = sizeof entries / sizeof *entries };

static const struct command *find_command(const char *name)
{
	for (size_t i = 0; i < ENTRIES; i++) {
		if (entries[i].command && strcmp(entries[i].command->name, name) == 0)
			return entries[i].command;
	}
	return NULL;
}

static void print_overview(FILE *out)
{
	const char *program = command_program();

	fprintf(out,
		"Preheat decides how much warm GPU capacity inference needs, simulates that on\n"
		"recorded traffic, and explains every decision.\n\nUsage:\n  %s VERB [OPTION...]\n",
		program);
	for (size_t i = 0; i < ENTRIES; i++) {
		if (entries[i].title)
			fprintf(out, "\n%s:\n", entries[i].title);
		else
			fprintf(out, "  %-10s %s\n", entries[i].command->name, entries[i].command->summary);
	}
	fprintf(out,
		"\nExit codes:\n"
		"  0 done   1 differences or violations found   2 wrong use or input   3 the environment failed\n"
		"\n'%s help VERB' shows the options and examples of a verb.\n",
		program);
}

static int unknown_verb(const char *word)
{
	const char *names[ENTRIES];
	size_t count = 0;

	for (size_t i = 0; i < ENTRIES; i++) {
		if (entries[i].command)
			names[count++] = entries[i].command->name;
	}
	const char *near = nearest_name(word, names, count);
	fprintf(stderr, "%s: unknown verb '%.100s'", command_program(), word);
	if (near)
		fprintf(stderr, "; did you mean '%s'?\n", near);
	else
		fprintf(stderr, "; '%s help' lists them\n", command_program());
	return EXIT_USAGE;
}

static int run_help(int argc, char **argv)
{
	char help[] = "--help";

	if (argc < 2) {
		print_overview(stdout);
		return EXIT_DONE;
	}
	const struct command *c = find_command(argv[1]);
	if (!c)
		return unknown_verb(argv[1]);
	char *help_argv[] = { argv[1], help, NULL };
	return c->run(2, help_argv);
}

static int dispatch(int argc, char **argv)
{
	if (argc < 2) {
		print_overview(stdout);
		return EXIT_DONE;
	}
	if (strcmp(argv[1], "help") == 0 || strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0)
		return run_help(argc - 1, argv + 1);
	const struct command *c = find_command(strcmp(argv[1], "--version") == 0 ? "version" : argv[1]);
	return c ? c->run(argc - 1, argv + 1) : unknown_verb(argv[1]);
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
	int code = dispatch(argc, argv);
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
