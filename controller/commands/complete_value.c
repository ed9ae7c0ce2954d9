#include "controller/commands/complete_value.h"

#include "controller/commands/command.h"
#include "controller/commands/question.h"
#include "controller/simulation/rivals/rival.h"

#include <string.h>

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
	struct question q = { .db = db_of(p), .needs_no_records = true };
	struct error e;
	size_t count = 0;

	if (question_open(&q, &e)) {
		const struct history_pool *pools = history_pools(q.history, &count);
		for (size_t i = 0; i < count; i++)
			add_names(v, a, &pools[i]);
	}
	question_close(&q);
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

void complete_values(const struct complete_place *place, struct arena *a, struct complete_values *out)
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
