#include "controller/commands/command.h"

#include "base/arena.h"
#include "base/text.h"

#include <stdio.h>
#include <string.h>

static const char *program = "preheat";
static bool only_completes;

/* Names that kubectl calls its plugins by. */
void command_called_as(const char *path)
{
	const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;

	only_completes = !strcmp(name, "kubectl_complete-preheat");
	program = only_completes || !strcmp(name, "kubectl-preheat") ? "kubectl preheat" : "preheat";
}

bool command_only_completes(void)
{
	return only_completes;
}

const char *command_program(void)
{
	return program;
}

static const struct command_entry entries[] = {
#define VERBS(text)   { .title = text },
#define COMMAND(name) { .command = &command_##name },
#include "controller/commands/list.def"
#undef VERBS
#undef COMMAND
};

enum { ENTRIES = sizeof entries / sizeof *entries, VERBS_MAX = 64 };

const struct command_entry *command_entries(size_t *count)
{
	*count = ENTRIES;
	return entries;
}

/* `parent` NULL: of the list. The words by which they are called, and themselves. */
static size_t verbs_of(const struct command *parent, const char *words[VERBS_MAX],
		       const struct command *commands[VERBS_MAX])
{
	size_t count = 0;

	for (size_t i = 0; !parent && i < ENTRIES; i++)
		if (entries[i].command)
			commands[count++] = entries[i].command;
	for (const struct command *const *v = parent ? parent->verbs : NULL; v && *v; v++)
		commands[count++] = *v;
	for (size_t i = 0; i < count; i++) {
		const char *space = strrchr(commands[i]->name, ' ');
		words[i] = space ? space + 1 : commands[i]->name;
	}
	return count;
}

const struct command *command_find(const struct command *parent, const char *word)
{
	const char *words[VERBS_MAX];
	const struct command *commands[VERBS_MAX];
	size_t count = verbs_of(parent, words, commands);

	for (size_t i = 0; i < count; i++)
		if (!strcmp(words[i], word))
			return commands[i];
	return NULL;
}

int command_unknown(const struct command *parent, const char *word)
{
	const char *words[VERBS_MAX];
	const struct command *commands[VERBS_MAX];
	const char *near = nearest_name(word, words, verbs_of(parent, words, commands));

	fprintf(stderr, "%s%s%s: unknown verb '%.100s'", program, parent ? " " : "", parent ? parent->name : "", word);
	if (near)
		fprintf(stderr, "; did you mean '%s'?\n", near);
	else
		fprintf(stderr, "; '%s help%s%s' lists them\n", program, parent ? " " : "", parent ? parent->name : "");
	return EXIT_USAGE;
}

/* Who looks at options in place of running verbs. */
static struct {
	command_look_fn *look;
	void *user;
} inspector;

void command_inspect(const struct command *c, command_look_fn *look, void *user)
{
	char name[] = "verb", help[] = "--help";
	char *argv[] = { name, help, NULL };

	inspector.look = look;
	inspector.user = user;
	c->run(2, argv);
	inspector.look = NULL;
}

void command_write_notes(const struct command *c, struct buf *out)
{
	if (c->notes)
		buf_text(out, c->notes);
	if (c->notes && c->write_notes)
		buf_text(out, "\n");
	if (c->write_notes)
		c->write_notes(out);
}

enum help { HELP_NONE, HELP_SHORT, HELP_LONG };

static enum help asks_for_help(int argc, char **argv)
{
	enum help asked = HELP_NONE;

	for (int i = 1; i < argc && strcmp(argv[i], "--") != 0; i++) {
		if (strcmp(argv[i], "--help") == 0)
			return HELP_LONG;
		if (strcmp(argv[i], "-h") == 0)
			asked = HELP_SHORT;
	}
	return asked;
}

static bool is_word_in(const char *word, const char *text)
{
	size_t len = strlen(word);

	for (const char *at = text; at && (at = strstr(at, word)); at += len)
		if (!at[len] || strchr(" =]\n", at[len]))
			return true;
	return false;
}

/* One that the usage line or an example shows: what people call the verb with. */
static bool is_much_used(const struct command *c, const struct option_row *row)
{
	char word[64];

	snprintf(word, sizeof word, "--%s", row->name);
	if (is_word_in(word, c->usage) || is_word_in(word, c->examples))
		return true;
	snprintf(word, sizeof word, "-%c", row->letter);
	return row->letter && (is_word_in(word, c->usage) || is_word_in(word, c->examples));
}

static void print_verbs(const struct command *c)
{
	for (const struct command *const *v = c->verbs; v && *v; v++)
		printf("%s  %-11s %s\n%s", v == c->verbs ? "Verbs:\n" : "", strrchr((*v)->name, ' ') + 1, (*v)->summary,
		       v[1] ? "" : "\n");
}

/* -h: what most who ask want to be reminded of. */
static void print_short_help(const struct command *c, const struct option_row *rows, size_t count)
{
	CLEANUP(arena_release) struct arena a = { 0 };
	struct option_row *shown = arena_array(&a, struct option_row, count + 1);
	size_t used = 0;

	for (size_t i = 0; i < count; i++)
		if (is_much_used(c, &rows[i]))
			shown[used++] = rows[i];
	printf("Usage: %s %s\n%s.\n\n", program, c->usage, c->summary);
	print_verbs(c);
	if (used) {
		fputs(used < count ? "Most used options:\n" : "Options:\n", stdout);
		options_print(shown, used);
		fputs("\n", stdout);
	}
	printf("All options, notes and examples: %s %s --help\n", program, c->name);
}

/* Examples as they are to be typed: `kubectl preheat` for who called it so. */
static void print_examples(const char *text)
{
	static const char called[] = "  preheat ";

	for (const char *line = text; *line;) {
		size_t len = strcspn(line, "\n") + 1;

		if (!strncmp(line, called, strlen(called))) {
			printf("  %s ", program);
			fwrite(line + strlen(called), 1, len - strlen(called), stdout);
		} else {
			fwrite(line, 1, len, stdout);
		}
		line += len;
	}
}

static void print_help(const struct command *c, const struct option_row *rows, size_t count)
{
	static const struct option_row help = { "help", 'h', OPTION_FLAG, NULL, "show this help; -h: in short",
						NULL,	NULL };
	CLEANUP(arena_release) struct arena a = { 0 };
	CLEANUP(buf_release) struct buf notes = { 0 };
	struct option_row *all = arena_array(&a, struct option_row, count + 1);

	if (count)
		memcpy(all, rows, count * sizeof *rows);
	all[count] = help;
	printf("%s\n\nUsage:\n  %s %s\n\n", c->summary, program, c->usage);
	print_verbs(c);
	fputs("Options:\n", stdout);
	options_print(all, count + 1);
	command_write_notes(c, &notes);
	if (notes.len)
		printf("\n%s", notes.text);
	if (c->examples && *c->examples) {
		fputs("\nExamples:\n", stdout);
		print_examples(c->examples);
	}
}

/* NOLINTNEXTLINE(readability-function-size): argc and argv, rows and count are two things, not four */
bool command_options(const struct command *c, int argc, char **argv, const struct option_row *rows, size_t count,
		     int *rest, int *code)
{
	struct error e = { 0 };

	if (inspector.look) {
		inspector.look(inspector.user, c, rows, count);
		*code = EXIT_DONE;
		return false;
	}
	enum help help = asks_for_help(argc, argv);
	if (help != HELP_NONE) {
		(help == HELP_SHORT ? print_short_help : print_help)(c, rows, count);
		*code = EXIT_DONE;
		return false;
	}
	if (options_parse(argc, argv, &(struct option_table){ rows, count, c->rules }, rest, &e))
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

int command_print(void (*write)(struct buf *out))
{
	CLEANUP(buf_release) struct buf text = { 0 };

	write(&text);
	fwrite(text.text, 1, text.len, stdout);
	return EXIT_DONE;
}
