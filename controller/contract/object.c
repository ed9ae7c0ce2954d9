/* Values out of the trees of objects. */
#include "base/resource.h"
#include "controller/contract/parts.h"

#include <string.h>

const struct yaml_node *tree_at(const struct yaml_node *n, const char *path)
{
	while (n && *path) {
		char key[64];
		size_t len = strcspn(path, ">");
		if (len >= sizeof key)
			return NULL;
		memcpy(key, path, len);
		key[len] = '\0';
		n = yaml_child(n, key);
		path += len + (path[len] == '>');
	}
	return n;
}

static bool is_nothing(const struct yaml_node *n)
{
	const char *meaning = yaml_plain_meaning(n);

	return meaning && !strcmp(meaning, "nothing");
}

const char *tree_text(const struct yaml_node *n, const char *path)
{
	const struct yaml_node *at = tree_at(n, path);

	return at && at->kind == YAML_SCALAR && !is_nothing(at) ? at->text : "";
}

int64_t tree_count(const struct yaml_node *n, const char *path)
{
	const char *text = tree_text(n, path);
	int64_t value = 0;

	if (!*text || strlen(text) > 15)
		return UNSAID;
	for (; *text >= '0' && *text <= '9'; text++)
		value = value * 10 + (*text - '0');
	return *text ? UNSAID : value;
}

bool tree_truth(const struct yaml_node *n, const char *path)
{
	return !strcmp(tree_text(n, path), "true");
}

int64_t tree_amount(const struct yaml_node *n, const char *path)
{
	int64_t milli;

	return amount_milli(tree_text(n, path), &milli) ? milli : UNSAID;
}

struct schema_labels tree_labels(const struct yaml_node *n, const char *path, struct arena *a)
{
	const struct yaml_node *map = tree_at(n, path);
	struct schema_labels l = { 0 };

	if (!map || map->kind != YAML_MAP || !map->count)
		return l;
	struct schema_label *items = arena_array(a, struct schema_label, map->count);
	for (const struct yaml_node *v = map->first; v; v = v->next)
		if (v->kind == YAML_SCALAR)
			items[l.count++] = (struct schema_label){ v->key, v->text };
	l.items = items;
	return l;
}

/* For messages: names may hold anything in a manifest, escapes of a terminal too. */
static const char *visible(const char *text, struct arena *a)
{
	const char *p = text;

	while (*p && (unsigned char)*p >= 0x20 && *p != 0x7f)
		p++;
	if (!*p)
		return text;
	char *copy = arena_strdup(a, text, strlen(text));
	for (char *q = copy; *q; q++)
		if ((unsigned char)*q < 0x20 || *q == 0x7f)
			*q = '?';
	return copy;
}

struct object object_read(const struct yaml_node *root, struct arena *a)
{
	return (struct object){ .ref = { .api_version = visible(tree_text(root, "apiVersion"), a),
					 .kind = visible(tree_text(root, "kind"), a),
					 .namespace = visible(tree_text(root, "metadata>namespace"), a),
					 .name = visible(tree_text(root, "metadata>name"), a),
					 .at = root },
				.labels = tree_labels(root, "metadata>labels", a),
				.annotations = tree_labels(root, "metadata>annotations", a) };
}

const char *label_of(const struct schema_labels *l, const char *key)
{
	for (size_t i = 0; i < l->count; i++)
		if (!strcmp(l->items[i].key, key))
			return l->items[i].value;
	return NULL;
}

bool labels_match(const struct schema_labels *selector, const struct schema_labels *labels)
{
	for (size_t i = 0; i < selector->count; i++) {
		const char *value = label_of(labels, selector->items[i].key);
		if (!value || strcmp(value, selector->items[i].value) != 0)
			return false;
	}
	return true;
}

bool same_namespace(const struct object *a, const struct object *b)
{
	return !*a->ref.namespace || !*b->ref.namespace || !strcmp(a->ref.namespace, b->ref.namespace);
}

void *contract_grow(struct arena *a, void *items, size_t count, size_t size)
{
	if (count & (count - 1))
		return items;
	void *grown = arena_alloc(a, count ? 2 * count : 1, size);
	if (count)
		memcpy(grown, items, count * size);
	return grown;
}
