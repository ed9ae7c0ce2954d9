#include "controller/commands/complete.h"

#include "base/arena.h"
#include "base/options.h"
#include "controller/commands/history_args.h"
#include "controller/report/assets.h"
#include "controller/simulation/rivals/rival.h"

#include <stdio.h>
#include <string.h>

/* What the value of an option may be, for completion: its choices, or what a history on this machine names. */

/* What a shell shall do besides the candidates: cobra's directives. */
enum complete_rest {
	COMPLETE_FILES = 0,   /* files, when there is no candidate */
	COMPLETE_NOTHING = 4, /* nothing */
	COMPLETE_FOLDERS = 16,
};

struct complete_place {
	char *const *words; /* the line so far */
	int count;
	const struct option_row *row; /* only type, argument and choices count */
};

struct complete_values {
	const char **items; /* in the arena */
	size_t count;
	enum complete_rest rest;
};

static void complete_values(const struct complete_place *place, struct arena *a, struct complete_values *out);
static void look(void *user, const struct command *c, const struct option_row *rows, size_t count);

static void add(struct complete_values *v, struct arena *a, const char *text, size_t len)
{
	const char **grown = arena_array(a, const char *, v->count + 1);

	for (size_t i = 0; i < v->count; i++)
		if (strlen(v->items[i]) == len && !memcmp(v->items[i], text, len))
			return;
	if (v->count)
		memcpy(grown, v->items, v->count * sizeof *grown);
	grown[v->count++] = arena_strdup(a, text, len);
	v->items = grown;
}

static void add_choices(struct complete_values *v, struct arena *a, const char *choices)
{
	for (const char *c = choices; *c;) {
		size_t len = strcspn(c, "|");

		add(v, a, c, len);
		c += len + (c[len] == '|');
	}
}

/* The history that the line names. */
static const char *db_of(const struct complete_place *p)
{
	for (int i = 0; i < p->count; i++) {
		if (!strncmp(p->words[i], "--db=", strlen("--db=")))
			return p->words[i] + strlen("--db=");
		if (!strcmp(p->words[i], "--db") && i + 1 < p->count)
			return p->words[i + 1];
	}
	return "history.db";
}

typedef void add_names_fn(struct complete_values *v, struct arena *a, const struct history_pool *pool);

static void add_pool(struct complete_values *v, struct arena *a, const struct history_pool *pool)
{
	add(v, a, pool->name, strlen(pool->name));
}

static void add_groups(struct complete_values *v, struct arena *a, const struct history_pool *pool)
{
	for (size_t i = 0; i < pool->group_count; i++)
		add(v, a, pool->groups[i], strlen(pool->groups[i]));
}

static void add_namespace(struct complete_values *v, struct arena *a, const struct history_pool *pool)
{
	add(v, a, pool->namespace, strlen(pool->namespace));
}

static void add_of_history(struct complete_values *v, struct arena *a, const struct complete_place *p,
			   add_names_fn *add_names)
{
	struct history_args q = { .db = db_of(p), .needs_no_records = true };
	struct error e;
	size_t count = 0;

	if (history_args_open(&q, &e)) {
		const struct history_pool *pools = history_pools(q.history, &count);
		for (size_t i = 0; i < count; i++)
			add_names(v, a, &pools[i]);
	}
	history_args_close(&q);
}

static void add_limits(struct complete_values *v, struct arena *a)
{
	for (int i = 0; i < LIMIT_COUNT; i++)
		add(v, a, limit_name((enum limit)i), strlen(limit_name((enum limit)i)));
}

static void add_rivals(struct complete_values *v, struct arena *a)
{
	add(v, a, "preheat", strlen("preheat"));
	for (size_t i = 0; i < rival_count(); i++)
		add(v, a, rival_at(i)->name, strlen(rival_at(i)->name));
}

static void add_verbs(struct complete_values *v, struct arena *a)
{
	size_t count;
	const struct command_entry *entries = command_entries(&count);

	for (size_t i = 0; i < count; i++)
		if (entries[i].command)
			add(v, a, entries[i].command->name, strlen(entries[i].command->name));
}

/* By what an option's argument is called in the help. */
static const struct kind {
	const char *argument;
	enum complete_rest rest;
	add_names_fn *names; /* of the history */
	void (*add)(struct complete_values *v, struct arena *a);
} kinds[] = {
	{ "FILE", COMPLETE_FILES, NULL, NULL },		 { "FILE.db", COMPLETE_FILES, NULL, NULL },
	{ "[POOL=]FILE", COMPLETE_FILES, NULL, NULL },	 { "DIR", COMPLETE_FOLDERS, NULL, NULL },
	{ "VERB", COMPLETE_NOTHING, NULL, add_verbs },	 { "POOL", COMPLETE_NOTHING, add_pool, NULL },
	{ "GROUP", COMPLETE_NOTHING, add_groups, NULL }, { "NAMESPACE", COMPLETE_NOTHING, add_namespace, NULL },
	{ "LIMIT", COMPLETE_NOTHING, NULL, add_limits }, { "NAME[:SETTING]", COMPLETE_NOTHING, NULL, add_rivals },
};

/* Never fails: what cannot be read has no values. */
static void complete_values(const struct complete_place *place, struct arena *a, struct complete_values *out)
{
	const struct option_row *row = place->row;

	*out = (struct complete_values){ .rest = COMPLETE_NOTHING };
	if (row->choices)
		add_choices(out, a, row->choices);
	for (size_t i = 0; row->argument && !row->choices && i < sizeof kinds / sizeof *kinds; i++) {
		const struct kind *k = &kinds[i];

		if (strcmp(k->argument, row->argument) != 0)
			continue;
		out->rest = k->rest;
		if (k->names)
			add_of_history(out, a, place, k->names);
		if (k->add)
			k->add(out, a);
	}
}

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

/* --- preheat completion: the scripts that make a shell ask --- */

extern const struct asset asset_completion_bash, asset_completion_zsh, asset_completion_fish;

static const struct shell {
	const char *name;
	const struct asset *script;
} shells[] = {
	{ "bash", &asset_completion_bash },
	{ "zsh", &asset_completion_zsh },
	{ "fish", &asset_completion_fish },
};

static bool print_script(const char *name, struct error *e)
{
	for (size_t i = 0; i < sizeof shells / sizeof *shells; i++)
		if (!strcmp(shells[i].name, name)) {
			fwrite(shells[i].script->bytes, 1, shells[i].script->size, stdout);
			return true;
		}
	return error_set(e, ERROR_INVALID, "found '%.60s'; allowed: bash, zsh, fish", name);
}

static int run_completion(int argc, char **argv)
{
	struct error e;
	int rest, code;

	if (!command_options(&command_completion, argc, argv, NULL, 0, &rest, &code))
		return code;
	if (argc - rest == 1 && print_script(argv[rest], &e))
		return EXIT_DONE;
	if (argc - rest != 1)
		error_set(&e, ERROR_INVALID, "%s; name one shell: bash, zsh or fish",
			  rest < argc ? "more than one shell" : "no shell");
	return command_failed(&command_completion, &e);
}

const struct command command_completion = {
	.name = "completion",
	.usage = "completion bash|zsh|fish",
	.summary = "Print what makes a shell complete verbs, options, files and pools",
	.examples = "  source <(preheat completion bash)                                  now, in this shell\n"
		    "  preheat completion bash > ~/.local/share/bash-completion/completions/preheat\n"
		    "  preheat completion zsh > ~/.zsh/_preheat                           a folder of $fpath\n"
		    "  preheat completion fish > ~/.config/fish/completions/preheat.fish\n",
	.notes = "The Debian package installs all three. 'kubectl preheat' completes as well: kubectl asks\n"
		 "kubectl_complete-preheat, which is another name of this program.\n",
	.arguments = "bash|zsh|fish",
	.run = run_completion,
};
