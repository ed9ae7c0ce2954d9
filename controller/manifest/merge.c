#include "base/schema_value.h"
#include "controller/manifest/draft.h"

#include <string.h>

const struct spec_text *draft_spec(const struct draft *d, size_t pool)
{
	return &d->pools[pool].spec;
}

const struct group_text *draft_groups(const struct spec_text *s)
{
	return s->groups.items;
}

size_t draft_group_index(const struct draft *d, const char *name)
{
	size_t i = 0;

	while (i < d->group_count && strcmp(d->groups[i].merged.name, name) != 0)
		i++;
	return i;
}

bool group_gives(const struct group_draft *g, const char *key)
{
	for (size_t i = 0; i < g->naming_count; i++)
		if (is_given(g->namings[i]->node, key))
			return true;
	return false;
}

static const struct yaml_node *node_of(const void *record)
{
	return *(const struct yaml_node *const *)record;
}

static void disagree(struct draft *d, const struct yaml_node *first, const struct yaml_node *second)
{
	CLEANUP(buf_release) struct buf allowed = { 0 };

	buf_printf(&allowed, "%s, as at %s:%zu:%zu", first->text, first->file, first->line, first->column);
	schema_find(d->findings, second, NULL, allowed.text,
		    "a node group is the same for all pools that name it: make both equal, or say it once");
}

static bool is_equal(const struct schema_row *row, const void *a, const void *b)
{
	CLEANUP(buf_release) struct buf left = { 0 };
	CLEANUP(buf_release) struct buf right = { 0 };

	schema_format(row, a, &left);
	schema_format(row, b, &right);
	return !strcmp(left.text, right.text);
}

/* The first record that gives the row wins; later ones must say the same. */
static void merge_value(struct draft *d, const struct schema_row *row, const void *const *records, size_t count,
			void *merged)
{
	CLEANUP(findings_release) struct findings known = { 0 };
	const struct yaml_node *first = NULL;

	for (size_t i = 0; i < count; i++) {
		const struct yaml_node *n = yaml_child(node_of(records[i]), row->key);
		if (!n)
			continue;
		if (!first) {
			first = n;
			schema_value_read(row, n, merged, d->arena, &known);
		} else if (!is_equal(row, merged, records[i])) {
			disagree(d, first, n);
		}
	}
}

static void merge_record(struct draft *d, const struct schema_table *t, const void *const *records, size_t count,
			 void *merged)
{
	for (size_t i = 0; i < t->count; i++) {
		const struct schema_row *row = &t->rows[i];
		if (row->type != SCHEMA_MAP) {
			merge_value(d, row, records, count, merged);
			continue;
		}
		const void **parts = arena_array(d->arena, const void *, count);
		size_t n = 0;
		for (size_t k = 0; k < count; k++) {
			const void *part = (const char *)records[k] + row->offset;
			if (node_of(part))
				parts[n++] = part;
		}
		void *slot = (char *)merged + row->offset;
		if (n) {
			memcpy(slot, parts[0], row->table->size);
			merge_record(d, row->table, parts, n, slot);
		}
	}
}

static void add_naming(struct draft *d, const struct group_text *g)
{
	size_t index = draft_group_index(d, g->name);

	if (index == GROUPS_MAX) {
		schema_find_key(d->findings, g->node, "name", "more than 1000 node groups", "at most 1000", "");
		return;
	}
	struct group_draft *draft = &d->groups[index];
	if (index == d->group_count) {
		d->group_count++;
		draft->merged = *g;
	}
	if (draft->naming_count == draft->room) {
		size_t room = draft->room ? draft->room * 2 : 4;
		const struct group_text **grown = arena_array(d->arena, const struct group_text *, room);
		for (size_t i = 0; i < draft->naming_count; i++)
			grown[i] = draft->namings[i];
		draft->namings = grown;
		draft->room = room;
	}
	draft->namings[draft->naming_count++] = g;
}

void merge_groups(struct draft *d)
{
	d->groups = arena_array(d->arena, struct group_draft, GROUPS_MAX);
	for (size_t p = 0; p < d->pool_count; p++) {
		const struct spec_text *s = draft_spec(d, p);
		for (size_t i = 0; i < s->groups.count; i++)
			if (draft_groups(s)[i].name)
				add_naming(d, &draft_groups(s)[i]);
	}
	for (size_t i = 0; i < d->group_count; i++) {
		struct group_draft *g = &d->groups[i];
		merge_record(d, &group_table, (const void *const *)g->namings, g->naming_count, &g->merged);
	}
}
