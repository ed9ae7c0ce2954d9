#include "base/schema.h"
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

/*
 * The map that a merged record says it comes from: at the place of the first
 * naming, with the values that were taken, each where it is written. So what
 * is found later about a value is told at its own place.
 */
struct merging {
	struct draft *draft;
	const void *const *records;
	size_t count;
	struct yaml_node *map;
};

static void take(struct merging *m, const struct yaml_node *value)
{
	struct yaml_node *taken = arena_new(m->draft->arena, struct yaml_node);

	*taken = *value;
	taken->next = NULL;
	if (m->map->last)
		m->map->last->next = taken;
	else
		m->map->first = taken;
	m->map->last = taken;
	m->map->count++;
}

/* What is wrong with the value itself has been found before. */
static bool is_right(const struct merging *m, const struct schema_row *row, const struct yaml_node *n)
{
	CLEANUP(findings_release) struct findings known = { 0 };
	void *scratch = arena_alloc(m->draft->arena, 1, row->offset + sizeof(int64_t));

	return schema_value_read(row, n, scratch, m->draft->arena, &known);
}

/* The first record that gives a right value wins; later ones must say the same. */
static void merge_value(struct merging *m, const struct schema_row *row, void *merged)
{
	CLEANUP(findings_release) struct findings known = { 0 };
	const struct yaml_node *first = NULL;

	for (size_t i = 0; i < m->count; i++) {
		const struct yaml_node *n = yaml_child(node_of(m->records[i]), row->key);
		if (!n || !is_right(m, row, n))
			continue;
		if (!first) {
			first = n;
			if (schema_value_read(row, n, merged, m->draft->arena, &known))
				take(m, n);
		} else if (!is_equal(row, merged, m->records[i])) {
			disagree(m->draft, first, n);
		}
	}
}

static void merge_record(struct merging *m, const struct schema_table *t, void *merged);

static void merge_block(struct merging *m, const struct schema_row *row, void *slot)
{
	const void **parts = arena_array(m->draft->arena, const void *, m->count);
	struct merging inner = { m->draft, parts, 0, NULL };

	for (size_t k = 0; k < m->count; k++) {
		const void *part = (const char *)m->records[k] + row->offset;
		if (node_of(part))
			parts[inner.count++] = part;
	}
	if (!inner.count)
		return;
	memcpy(slot, parts[0], row->table->size);
	merge_record(&inner, row->table, slot);
	take(m, inner.map);
}

static void merge_record(struct merging *m, const struct schema_table *t, void *merged)
{
	m->map = arena_new(m->draft->arena, struct yaml_node);
	*m->map = *node_of(m->records[0]);
	m->map->first = m->map->last = m->map->next = NULL;
	m->map->count = 0;
	*(const struct yaml_node **)merged = m->map;
	for (size_t i = 0; i < t->count; i++) {
		const struct schema_row *row = &t->rows[i];
		void *slot = (char *)merged + row->offset;

		if (row->type == SCHEMA_MAP)
			merge_block(m, row, slot);
		else
			merge_value(m, row, merged);
	}
}

static void add_naming(struct draft *d, const struct group_text *g)
{
	size_t index = draft_group_index(d, g->name);

	if (index == GROUPS_MAX) {
		schema_find_key(d->findings, g->node, "name", "more than 1000 node groups", "at most 1000",
				"run a controller per part");
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
		struct merging m = { d, (const void *const *)g->namings, g->naming_count, NULL };

		merge_record(&m, &group_table, &g->merged);
	}
}
