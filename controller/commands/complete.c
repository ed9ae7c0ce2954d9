#include "controller/commands/complete.h"

#include "controller/commands/complete_value.h"

#include <stdio.h>
#include <string.h>

/* The line as far as it was typed. */
struct line {
	char **words; /* after the program's name */
	int count;
	const char *current; /* the word to complete */
	const struct command *command;
	int verbs; /* words that named it */
};

/* The verb, and the one below it, which the line begins with. */
static void find_command(struct line *l)
{
	while (l->verbs < l->count) {
		const struct command *below = command_find(l->command, l->words[l->verbs]);

		if (!below)
			return;
		l->command = below;
		l->verbs++;
	}
}

static void offer(const char *prefix, const char *candidate, const char *meaning, const char *current)
{
	if (!strncmp(candidate, current, strlen(current)))
		printf("%s%s%s%s\n", prefix, candidate, meaning ? "\t" : "", meaning ? meaning : "");
}

static void offer_verbs(const struct line *l)
{
	size_t count;
	const struct command_entry *entries = command_entries(&count);

	for (size_t i = 0; !l->command && i < count; i++)
		if (entries[i].command)
			offer("", entries[i].command->name, entries[i].command->summary, l->current);
	for (const struct command *const *v = l->command ? l->command->verbs : NULL; v && *v; v++)
		offer("", strrchr((*v)->name, ' ') + 1, (*v)->summary, l->current);
}

static const struct option_row *find_row(const struct option_row *rows, size_t count, const char *name, size_t len)
{
	for (size_t i = 0; i < count; i++)
		if (strlen(rows[i].name) == len && !strncmp(rows[i].name, name, len))
			return &rows[i];
	return NULL;
}

/* The option that takes the next word for its value; NULL when this word wants none. */
static const struct option_row *waiting(const struct option_row *rows, size_t count, const char *word)
{
	if (!strncmp(word, "--", 2)) {
		const struct option_row *row = find_row(rows, count, word + 2, strlen(word + 2));
		return row && row->type != OPTION_FLAG ? row : NULL;
	}
	if (*word != '-')
		return NULL;
	for (const char *c = word + 1; *c; c++)
		for (size_t i = 0; i < count; i++)
			if (rows[i].letter == *c && rows[i].type != OPTION_FLAG)
				return c[1] ? NULL : &rows[i];
	return NULL;
}

static bool is_given(const struct line *l, const struct option_row *row)
{
	for (int i = l->verbs; i < l->count; i++) {
		const char *word = l->words[i];
		size_t len = strlen(row->name);

		if (!strncmp(word, "--", 2) && !strncmp(word + 2, row->name, len) &&
		    (!word[2 + len] || word[2 + len] == '='))
			return row->type != OPTION_LIST;
	}
	return false;
}

static void offer_options(const struct line *l, const struct option_row *rows, size_t count)
{
	CLEANUP(buf_release) struct buf name = { 0 };

	for (size_t i = 0; i < count; i++) {
		if (is_given(l, &rows[i]))
			continue;
		buf_clear(&name);
		buf_printf(&name, "--%s", rows[i].name);
		offer("", name.text, rows[i].help, l->current);
	}
	offer("", "--help", "show this help", l->current);
}

static enum complete_rest offer_value(const struct line *l, const struct option_row *row, const char *prefix,
				      const char *current)
{
	CLEANUP(arena_release) struct arena a = { 0 };
	struct complete_values values = { 0 };

	complete_values(&(struct complete_place){ l->words, l->count, row }, &a, &values);
	for (size_t i = 0; i < values.count; i++)
		offer(prefix, values.items[i], NULL, current);
	return values.rest;
}

static enum complete_rest offer_arguments(const struct line *l, const struct option_row *rows, size_t count)
{
	const char *arguments = l->command->arguments;

	if (l->verbs == l->count)
		offer_verbs(l);
	if (arguments) {
		const struct option_row as_option = { .type = OPTION_TEXT,
						      .argument = arguments,
						      .choices = strchr(arguments, '|') ? arguments : NULL };
		return offer_value(l, &as_option, "", l->current);
	}
	if (!*l->current)
		offer_options(l, rows, count);
	return COMPLETE_NOTHING;
}

static enum complete_rest complete_line(const struct line *l, const struct option_row *rows, size_t count)
{
	const char *last = l->count > l->verbs ? l->words[l->count - 1] : "";
	const struct option_row *row = waiting(rows, count, last);
	const char *equals = strchr(l->current, '=');

	if (row)
		return offer_value(l, row, "", l->current);
	if (*l->current != '-')
		return offer_arguments(l, rows, count);
	if (!equals || strncmp(l->current, "--", 2) != 0) {
		offer_options(l, rows, count);
		return COMPLETE_NOTHING;
	}
	row = find_row(rows, count, l->current + 2, (size_t)(equals - l->current - 2));
	if (!row || row->type == OPTION_FLAG)
		return COMPLETE_NOTHING;
	CLEANUP(buf_release) struct buf prefix = { 0 };
	buf_append(&prefix, l->current, (size_t)(equals + 1 - l->current));
	return offer_value(l, row, prefix.text, equals + 1);
}

/* What the look at a verb's options gives back. */
struct look {
	const struct line *line;
	enum complete_rest rest;
};

static void look(void *user, const struct command *c, const struct option_row *rows, size_t count)
{
	struct look *at = user;

	(void)c;
	at->rest = complete_line(at->line, rows, count);
}

static enum complete_rest complete_help(struct line *l)
{
	l->words++;
	l->count--;
	find_command(l);
	if (l->verbs == l->count)
		offer_verbs(l);
	return COMPLETE_NOTHING;
}

static enum complete_rest complete_words(struct line *l)
{
	struct look at = { l, COMPLETE_NOTHING };

	if (l->count && !strcmp(l->words[0], "help"))
		return complete_help(l);
	find_command(l);
	if (l->command) {
		command_inspect(l->command, look, &at);
		return at.rest;
	}
	if (!l->count) {
		offer_verbs(l);
		offer("", "help", "show the options and examples of a verb", l->current);
	}
	return COMPLETE_NOTHING;
}

static int run(int argc, char **argv)
{
	struct line l = { .words = argv + 1,
			  .count = argc > 2 ? argc - 2 : 0,
			  .current = argc > 1 ? argv[argc - 1] : "" };

	printf(":%d\n", (int)complete_words(&l));
	return EXIT_DONE;
}

const struct command command_complete = {
	.name = COMPLETE_VERB,
	.usage = COMPLETE_VERB " WORD...",
	.summary = "What may stand in place of the last word",
	.run = run,
};
