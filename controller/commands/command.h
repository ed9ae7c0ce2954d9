/*
 * One verb of the command line: one file here, one line in list.def.
 * run() gets its own argv (argv[0] is the verb) and returns the exit code.
 * -h and --help are handled by command_options().
 */
#pragma once
#include "base/buf.h"
#include "base/options.h"

enum exit_code {
	EXIT_DONE = 0,
	EXIT_FOUND = 1,
	EXIT_USAGE = 2,
	EXIT_ENVIRONMENT = 3,
	EXIT_UNHEARD = 141, /* who read standard output left: 128 + SIGPIPE, as a shell tells it of other programs */
};

struct command {
	const char *name;     /* "check" */
	const char *usage;    /* "check FILE..." */
	const char *summary;  /* one line for the list of verbs */
	const char *examples; /* lines of the form "  preheat check pool.yaml", each ending in a newline */
	const char *notes;    /* what else to know: paragraphs, each ending in a newline; NULL: nothing */
	void (*write_notes)(struct buf *out); /* the same where it comes from a table; NULL: nothing */
	const char *arguments;		      /* for completion: "FILE", "bash|zsh|fish"; NULL: takes none */
	const struct command *const *verbs;   /* below it, such as `provider check`; ends in NULL, and so does none */
	const struct option_rule *rules;      /* options that have no effect without or beside others; NULL: none */
	int (*run)(int argc, char **argv);
};

#define VERBS(title)
#define COMMAND(name) extern const struct command command_##name;
#include "controller/commands/list.def"
#undef VERBS
#undef COMMAND

/* Every verb in the order of list.def; groups have a title and no command. */
struct command_entry {
	const char *title;
	const struct command *command;
};
const struct command_entry *command_entries(size_t *count);
/* The verb of that name, below `parent` or, without one, of the list; NULL when there is none. */
const struct command *command_find(const struct command *parent, const char *word);
/* "unknown verb 'chekc'; did you mean 'check'?" on standard error; returns EXIT_USAGE. */
int command_unknown(const struct command *parent, const char *word);
/* Shows a verb's options to `look` in place of running it. */
typedef void command_look_fn(void *user, const struct command *c, const struct option_row *rows, size_t count);
void command_inspect(const struct command *c, command_look_fn *look, void *user);

/* Both kinds of notes. */
void command_write_notes(const struct command *c, struct buf *out);

/* The name that the user called: "preheat", or "kubectl preheat" when argv[0] is kubectl-preheat. */
void command_called_as(const char *path);
/* Called as kubectl_complete-preheat: every argument is a word of the line to complete. */
bool command_only_completes(void);
const char *command_program(void);

/* Parses, or prints --help or the mistake. False: the caller returns *code. */
bool command_options(const struct command *c, int argc, char **argv, const struct option_row *rows, size_t count,
		     int *rest, int *code);
/* Prints "preheat VERB: message" on standard error and maps the kind to an exit code:
 * invalid, not-found and conflict are EXIT_USAGE, everything else EXIT_ENVIRONMENT. Cancelled is told to nobody:
 * EXIT_UNHEARD. */
int command_failed(const struct command *c, const struct error *e);
/* "preheat 0.1.0" (version.c). */
const char *command_version_text(void);
/* Prints a text that is made out of tables; EXIT_DONE. */
int command_print(void (*write)(struct buf *out));
