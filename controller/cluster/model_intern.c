#include "controller/cluster/model_inside.h"

#include <stdlib.h>
#include <string.h>

static int by_text(const void *a, const void *b)
{
	return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* Takes over the caller's references to the `words` texts of each row, of which the first `texts` are such. */
static const void *settle(struct cluster *c, enum intern_kind kind, void *rows, size_t count, size_t size, size_t texts)
{
	const void *set = intern_rows(&c->intern, kind, rows, count);
	for (size_t i = 0; i < count; i++)
		for (size_t k = 0; k < texts; k++)
			intern_drop(&c->intern, ((const void **)((char *)rows + i * size))[k]);
	return set;
}

static const char *text_or_null(struct cluster *c, const char *text)
{
	return text == NULL || text[0] == '\0' ? NULL : intern_text(&c->intern, text);
}

const struct label_set *model_labels(struct cluster *c, const struct decoded_map *map)
{
	struct label *rows = arena_array(&c->scratch, struct label, map->count);
	for (size_t i = 0; i < map->count; i++)
		rows[i] = (struct label){ intern_text(&c->intern, map->pairs[i].key),
					  intern_text(&c->intern, map->pairs[i].value) };
	if (map->count > 1)
		qsort(rows, map->count, sizeof *rows, by_text);
	return settle(c, INTERN_LABELS, rows, map->count, sizeof *rows, 2);
}

struct resource *model_amounts(struct cluster *c, const struct decoded_map *map, size_t *count)
{
	struct resource *rows = arena_array(&c->scratch, struct resource, map->count);
	*count = 0;
	for (size_t i = 0; i < map->count; i++) {
		const char *name = map->pairs[i].key;
		int64_t milli = 0;
		bool counts = strcmp(name, "cpu") == 0 || strcmp(name, "memory") == 0 || strchr(name, '/') != NULL;
		if (counts && amount_milli(map->pairs[i].value, &milli) && milli > 0)
			rows[(*count)++] = (struct resource){ name, milli };
	}
	return rows;
}

const struct resources *model_resources(struct cluster *c, struct resource *rows, size_t count)
{
	struct resource *own = arena_array(&c->scratch, struct resource, count);
	for (size_t i = 0; i < count; i++)
		own[i] = (struct resource){ intern_text(&c->intern, rows[i].name), rows[i].milli };
	if (count > 1)
		qsort(own, count, sizeof *own, by_text);
	return settle(c, INTERN_RESOURCES, own, count, sizeof *own, 1);
}

const struct taint_set *model_taints(struct cluster *c, const struct decoded_list *taints)
{
	const struct taint_record *from = taints->items;
	struct taint *rows = arena_array(&c->scratch, struct taint, taints->count);
	size_t count = 0;
	for (size_t i = 0; i < taints->count; i++)
		if (from[i].key != NULL)
			rows[count++] =
				(struct taint){ intern_text(&c->intern, from[i].key), text_or_null(c, from[i].value),
						text_or_null(c, from[i].effect) };
	if (count > 1)
		qsort(rows, count, sizeof *rows, by_text);
	return settle(c, INTERN_TAINTS, rows, count, sizeof *rows, 3);
}

const struct toleration_set *model_tolerations(struct cluster *c, const struct decoded_list *tolerations)
{
	const struct toleration_record *from = tolerations->items;
	struct toleration *rows = arena_array(&c->scratch, struct toleration, tolerations->count);
	for (size_t i = 0; i < tolerations->count; i++)
		rows[i] = (struct toleration){ text_or_null(c, from[i].key), text_or_null(c, from[i].value),
					       text_or_null(c, from[i].effect),
					       from[i].operation == NULL || strcmp(from[i].operation, "Exists") != 0 };
	return settle(c, INTERN_TOLERATIONS, rows, tolerations->count, sizeof *rows, 3);
}

static int64_t operation_of(const char *name)
{
	static const char *const names[] = { [REQUIRE_IN] = "In",	  [REQUIRE_NOT_IN] = "NotIn",
					     [REQUIRE_EXISTS] = "Exists", [REQUIRE_ABSENT] = "DoesNotExist",
					     [REQUIRE_MORE] = "Gt",	  [REQUIRE_LESS] = "Lt" };
	for (size_t i = 0; name != NULL && i < sizeof names / sizeof names[0]; i++)
		if (strcmp(names[i], name) == 0)
			return (int64_t)i;
	return REQUIRE_UNKNOWN;
}

struct rows {
	struct requirement *items;
	size_t count;
};

/* `is_field`: metadata.name, the only field that there is. Counts only where there are no items yet. */
static void add_expressions(struct cluster *c, struct rows *rows, int64_t term, const struct decoded_list *list,
			    bool is_field)
{
	const struct expression_record *from = list->items;
	for (size_t i = 0; i < list->count; i++) {
		const struct text_record *values = from[i].values.items;
		size_t count = from[i].values.count == 0 ? 1 : from[i].values.count;
		for (size_t k = 0; k < count; k++, rows->count++) {
			if (rows->items == NULL)
				continue;
			const char *value = from[i].values.count == 0 ? NULL : values[k].text;
			const char *key = is_field ? NULL : from[i].key == NULL ? "" : from[i].key;
			rows->items[rows->count] = (struct requirement){
				.term = term,
				.expression = (int64_t)i + (is_field ? 1000 : 0),
				.operation = operation_of(from[i].operation),
				.key = intern_text(&c->intern, key),
				.value = intern_text(&c->intern, value),
			};
		}
	}
}

static void add_terms(struct cluster *c, struct rows *rows, const struct decoded_list *terms)
{
	const struct term_record *from = terms->items;
	rows->count = 0;
	for (size_t i = 0; i < terms->count; i++) {
		add_expressions(c, rows, (int64_t)i, &from[i].expressions, false);
		add_expressions(c, rows, (int64_t)i, &from[i].fields, true);
		if (from[i].expressions.count + from[i].fields.count > 0)
			continue;
		/* An empty term selects nothing. */
		if (rows->items != NULL)
			rows->items[rows->count] =
				(struct requirement){ .term = (int64_t)i, .operation = REQUIRE_UNKNOWN };
		rows->count++;
	}
}

static const struct requirement_set *settle_requirements(struct cluster *c, struct rows *rows)
{
	const void *set = intern_rows(&c->intern, INTERN_REQUIREMENTS, rows->items, rows->count);
	for (size_t i = 0; i < rows->count; i++) {
		intern_drop(&c->intern, rows->items[i].key);
		intern_drop(&c->intern, rows->items[i].value);
	}
	return set;
}

const struct requirement_set *model_requirements(struct cluster *c, const struct decoded_list *terms)
{
	struct rows rows = { 0 };
	add_terms(c, &rows, terms);
	rows.items = arena_array(&c->scratch, struct requirement, rows.count + 1);
	add_terms(c, &rows, terms);
	return settle_requirements(c, &rows);
}

const struct requirement_set *model_expressions(struct cluster *c, const struct decoded_list *expressions)
{
	struct rows rows = { 0 };
	add_expressions(c, &rows, 0, expressions, false);
	rows.items = arena_array(&c->scratch, struct requirement, rows.count + 1);
	rows.count = 0;
	add_expressions(c, &rows, 0, expressions, false);
	return settle_requirements(c, &rows);
}
