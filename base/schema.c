#include "base/schema.h"

#include "base/file.h"
#include "base/nearest.h"
#include "base/quote.h"
#include "base/schema_value.h"

#include <string.h>

static void *place(const struct schema_row *row, void *record)
{
	return (char *)record + row->offset;
}

static const char *kind_name(const struct yaml_node *n)
{
	if (n->kind != YAML_SCALAR)
		return n->kind == YAML_MAP ? "a map" : "a list";
	return n->is_plain && !*n->text ? "nothing" : NULL;
}

void schema_find(struct findings *f, const struct yaml_node *node, const char *found, const char *allowed,
		 const char *remedy)
{
	CLEANUP(buf_release) struct buf path = { 0 };
	char room[QUOTE_ROOM];

	yaml_path(node, &path);
	if (!found)
		found = kind_name(node);
	if (!found)
		found = quote(room, node->text, strlen(node->text));
	findings_add(f, &(struct finding){ node->file, node->line, node->column, path.text, found, allowed, remedy });
}

void schema_find_key(struct findings *f, const struct yaml_node *map, const char *key, const char *found,
		     const char *allowed, const char *remedy)
{
	const struct yaml_node *node = yaml_child(map, key);
	CLEANUP(buf_release) struct buf path = { 0 };

	if (node) {
		schema_find(f, node, found, allowed, remedy);
		return;
	}
	yaml_path(map, &path);
	buf_printf(&path, path.len ? ".%s" : "%s", key);
	findings_add(f, &(struct finding){ map->file, map->line, map->column, path.text, found ? found : "nothing",
					   allowed, remedy });
}

static void unknown_key(const struct schema_table *t, const struct yaml_node *n, struct findings *f)
{
	CLEANUP(buf_release) struct buf path = { 0 };
	CLEANUP(buf_release) struct buf allowed = { 0 };
	CLEANUP(buf_release) struct buf remedy = { 0 };
	CLEANUP(arena_release) struct arena a = { 0 };
	const char **names = arena_array(&a, const char *, t->count);

	buf_text(&allowed, "");
	for (size_t i = 0; i < t->count; i++) {
		names[i] = t->rows[i].key;
		buf_printf(&allowed, i ? ", %s" : "%s", names[i]);
	}
	const char *near = nearest_name(n->key, names, t->count);
	if (near)
		buf_printf(&remedy, "did you mean '%s'?", near);
	else
		buf_text(&remedy, "delete it");
	yaml_path(n, &path);
	findings_add(f, &(struct finding){ n->file, n->key_line, n->key_column, path.text, "an unknown key",
					   allowed.text, remedy.text });
}

static const struct schema_row *find_row(const struct schema_table *t, const char *key)
{
	for (size_t i = 0; i < t->count; i++)
		if (!strcmp(t->rows[i].key, key))
			return &t->rows[i];
	return NULL;
}

static bool is_passed_over(const struct schema_table *t, const char *key)
{
	for (const char *const *k = t->passed_over; k && *k; k++)
		if (!strcmp(*k, key))
			return true;
	return false;
}

static void read_list(const struct schema_row *row, const struct yaml_node *node, void *record, struct arena *a,
		      struct findings *f)
{
	struct schema_list *list = place(row, record);
	size_t most = row->max ? (size_t)row->max : SCHEMA_ITEMS_MAX, i = 0;
	CLEANUP(buf_release) struct buf allowed = { 0 };

	schema_allowed(row, &allowed);
	if (node->kind != YAML_LIST || node->count < (size_t)row->min || node->count > most) {
		CLEANUP(buf_release) struct buf found = { 0 };
		buf_printf(&found, "a list of %zu", node->count);
		schema_find(f, node, node->kind == YAML_LIST ? found.text : NULL, allowed.text,
			    node->kind == YAML_MAP    ? "begin the element with '- '"
			    : node->kind == YAML_LIST ? "add or delete elements"
						      : "write a list: one element a line, each beginning with '- '");
		return;
	}
	char *items = arena_alloc(a, node->count, row->table->size);
	for (const struct yaml_node *n = node->first; n; n = n->next)
		schema_read(row->table, n, items + row->table->size * i++, a, f);
	*list = (struct schema_list){ items, i };
}

static void fill_default(const struct schema_row *row, void *record, struct arena *a, struct findings *f)
{
	if (row->type == SCHEMA_MAP) {
		schema_read(row->table, NULL, place(row, record), a, f);
		return;
	}
	if (!row->fallback)
		return;
	if (!*row->fallback) {
		*(const char **)place(row, record) = "";
		return;
	}
	const struct yaml_node written = { .kind = YAML_SCALAR,
					   .file = "default",
					   .text = row->fallback,
					   .is_plain = !yaml_plain_meaning(&(struct yaml_node){ .text = row->fallback,
												.is_plain = true }) ||
						       row->type != SCHEMA_TEXT };
	schema_value_read(row, &written, record, a, f);
}

static void read_row(const struct schema_row *row, const struct yaml_node *map, void *record, struct arena *a,
		     struct findings *f)
{
	const struct yaml_node *n = yaml_child(map, row->key);

	fill_default(row, record, a, f);
	if (!n) {
		if (map && row->is_required) {
			CLEANUP(buf_release) struct buf allowed = { 0 };
			schema_allowed(row, &allowed);
			schema_find_key(f, map, row->key, "nothing", allowed.text, "add it");
		}
		return;
	}
	if (row->type == SCHEMA_MAP)
		schema_read(row->table, n, place(row, record), a, f);
	else if (row->type == SCHEMA_LIST)
		read_list(row, n, record, a, f);
	else
		schema_value_read(row, n, record, a, f);
}

void schema_read(const struct schema_table *t, const struct yaml_node *node, void *record, struct arena *a,
		 struct findings *f)
{
	if (node && node->kind != YAML_MAP) {
		CLEANUP(buf_release) struct buf allowed = { 0 };
		schema_keys(t, &allowed);
		schema_find(f, node, NULL, allowed.text, "write KEY: VALUE, one a line, indented below this");
		node = NULL;
	}
	*(const struct yaml_node **)record = node;
	for (const struct yaml_node *n = node ? node->first : NULL; n; n = n->next)
		if (!find_row(t, n->key) && !is_passed_over(t, n->key))
			unknown_key(t, n, f);
	for (size_t i = 0; i < t->count; i++)
		read_row(&t->rows[i], node, record, a, f);
}

static void read_one(const struct schema_table *t, const char *file, const struct yaml_documents *docs, void *record,
		     struct arena *a, struct findings *f)
{
	if (docs->count == 1 && docs->roots[0]) {
		schema_read(t, docs->roots[0], record, a, f);
		return;
	}
	CLEANUP(buf_release) struct buf allowed = { 0 };
	buf_text(&allowed, "one document: ");
	schema_keys(t, &allowed);
	findings_add(f, &(struct finding){ .file = file,
					   .found = docs->count > 1 ? "several documents" : "nothing",
					   .allowed = allowed.text,
					   .remedy = "put one document into the file" });
}

bool schema_load(const char *path, const struct schema_table *t, void *record, struct arena *a, struct findings *f,
		 struct error *e)
{
	CLEANUP(buf_release) struct buf text = { 0 };
	struct yaml_documents docs;
	const char *name = strcmp(path, "-") ? path : "standard input";

	if (!file_read(path, YAML_BYTES_MAX, &text, e))
		return false;
	if (yaml_parse(name, text.text, text.len, a, &docs, f))
		read_one(t, name, &docs, record, a, f);
	return true;
}
