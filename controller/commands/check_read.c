/* From files and folders to objects. */
#include "base/file.h"
#include "controller/commands/check_parts.h"

#include <string.h>

enum { FILES_MAX = 10000, FOLDERS_DEEP = 12 };

static const struct yaml_limits limits = {
	.bytes = (size_t)8 << 20, .nodes = 1000000, .depth = 64, .documents = 10000, .takes_all = true
};

static void add_root(struct arena *a, const struct yaml_node ***roots, size_t *count, const struct yaml_node *root)
{
	/* Doubles at powers of two. */
	if (!(*count & (*count - 1))) {
		const struct yaml_node **grown = arena_array(a, const struct yaml_node *, *count ? *count * 2 : 1);
		if (*count)
			memcpy(grown, *roots, *count * sizeof(const struct yaml_node *));
		*roots = grown;
	}
	(*roots)[(*count)++] = root;
}

static const char *text_of(const struct yaml_node *root, const char *key)
{
	const struct yaml_node *n = yaml_child(root, key);

	return n && n->kind == YAML_SCALAR ? n->text : "";
}

/* Ours, or nothing that says what it is: the manifest's reader tells what is wrong with it. */
static bool is_for_manifest(const struct yaml_node *root, bool is_named)
{
	if (!strncmp(text_of(root, "apiVersion"), "preheat.dev/", 12) || !strcmp(text_of(root, "kind"), "WarmPool"))
		return true;
	return is_named && (root->kind != YAML_MAP || !*text_of(root, "kind"));
}

static const struct yaml_node *items_of(const struct yaml_node *root)
{
	const char *kind = text_of(root, "kind");
	size_t len = strlen(kind);
	const struct yaml_node *items = yaml_child(root, "items");

	return len >= 4 && !strcmp(kind + len - 4, "List") && items && items->kind == YAML_LIST ? items : NULL;
}

void checked_add(struct checked *c, const struct yaml_node *root, bool is_named)
{
	const struct yaml_node *items = items_of(root);

	if (items)
		for (const struct yaml_node *n = items->first; n; n = n->next)
			checked_add(c, n, is_named);
	else if (is_for_manifest(root, is_named))
		add_root(c->arena, &c->pools, &c->pool_count, root);
	else if (contract_knows(text_of(root, "kind")))
		add_root(c->arena, &c->objects, &c->object_count, root);
	else
		c->passed_over++;
}

static void find_in_file(struct checked *c, const char *name, const char *found, const char *allowed,
			 const char *remedy)
{
	findings_add(c->findings,
		     &(struct finding){ .file = name, .found = found, .allowed = allowed, .remedy = remedy });
}

static void add_documents(struct checked *c, const char *name, const struct yaml_documents *docs, bool is_named)
{
	size_t before = c->pool_count + c->object_count + c->passed_over;

	for (size_t i = 0; i < docs->count; i++)
		if (docs->roots[i])
			checked_add(c, docs->roots[i], is_named);
	if (is_named && before == c->pool_count + c->object_count + c->passed_over)
		find_in_file(c, name, "nothing in it", "at least one WarmPool or object of Kubernetes",
			     "see docs/manifest.md, or examples/first-try/pool.yaml");
}

static bool is_template(const struct buf *text)
{
	return memmem(text->text, text->len, "{{", 2) != NULL;
}

static void read_text(struct checked *c, const char *name, const struct buf *text, bool is_named)
{
	CLEANUP(findings_release) struct findings own = { 0 };
	struct yaml_documents docs;
	size_t skip = text->len >= 3 && !memcmp(text->text, "\xef\xbb\xbf", 3) ? 3 : 0;
	struct yaml_source source = { name, text->text + skip, text->len - skip, limits };
	bool ok = yaml_parse_source(&source, c->arena, &docs, &own);

	if (!ok && is_template(text)) {
		find_in_file(c, name, "a template of Helm", "what it makes",
			     "render it first: helm template CHART | preheat check -");
		return;
	}
	for (size_t i = 0; i < own.count; i++)
		findings_add(c->findings, &own.items[i]);
	if (ok)
		add_documents(c, name, &docs, is_named);
}

static bool read_file(struct checked *c, const char *path, bool is_named, struct error *e)
{
	CLEANUP(buf_release) struct buf text = { 0 };

	if (!file_read(path, limits.bytes, &text, e))
		return false;
	read_text(c, strcmp(path, "-") ? path : "standard input", &text, is_named);
	return true;
}

static bool ends_in(const char *name, const char *end)
{
	size_t len = strlen(name), tail = strlen(end);

	return len > tail && !strcmp(name + len - tail, end);
}

static bool is_manifest(const char *name)
{
	return ends_in(name, ".yaml") || ends_in(name, ".yml") || ends_in(name, ".json");
}

static bool is_shown(const char *name)
{
	return *name != '.';
}

struct walk {
	struct checked *checked;
	size_t files, depth;
};

static bool read_folder(struct walk *w, const struct folder *folder, struct error *e);

static bool read_entry(struct walk *w, const char *path, struct error *e)
{
	CLEANUP(arena_release) struct arena a = { 0 };
	struct folder below;

	if (!folder_list(path, is_shown, &a, &below, e))
		return false;
	if (below.is_folder)
		return w->depth >= FOLDERS_DEEP || read_folder(w, &below, e);
	if (!is_manifest(path))
		return true;
	if (++w->files > FILES_MAX)
		return error_set(e, ERROR_INVALID, "%s: more than %d files in this folder; name a part of it", path,
				 FILES_MAX);
	return read_file(w->checked, path, false, e);
}

static bool is_named(const char *path, const char *name)
{
	const char *slash = strrchr(path, '/');

	return !strcmp(slash ? slash + 1 : path, name);
}

static bool is_chart(const struct folder *folder)
{
	for (size_t i = 0; i < folder->count; i++)
		if (is_named(folder->paths[i], "Chart.yaml"))
			return true;
	return false;
}

/* Templates are no objects; what they make is. */
static bool read_folder(struct walk *w, const struct folder *folder, struct error *e)
{
	bool ok = true, has_templates = is_chart(folder);

	w->depth++;
	for (size_t i = 0; ok && i < folder->count; i++) {
		if (has_templates && is_named(folder->paths[i], "templates"))
			w->checked->charts++;
		else
			ok = read_entry(w, folder->paths[i], e);
	}
	w->depth--;
	return ok;
}

static bool read_path(struct checked *c, const char *path, struct error *e)
{
	CLEANUP(arena_release) struct arena a = { 0 };
	struct walk w = { .checked = c };
	struct folder folder = { 0 };

	if (strcmp(path, "-") != 0 && !folder_list(path, is_shown, &a, &folder, e))
		return false;
	if (!folder.is_folder)
		return read_file(c, path, true, e);
	if (!read_folder(&w, &folder, e))
		return false;
	return w.files || error_set(e, ERROR_INVALID, "%s: no *.yaml, *.yml or *.json file in this folder", path);
}

/* What cannot be read is told beside what is wrong with the rest; the error keeps the first. */
static void find_unreadable(struct checked *c, const char *path, const struct error *why, struct error *first)
{
	size_t len = strlen(path);
	bool names_path = !strncmp(why->message, path, len) && !strncmp(why->message + len, ": ", 2);

	find_in_file(c, path, names_path ? why->message + len + 2 : why->message, "a manifest that can be read",
		     "correct the name, or give the file to this user");
	if (!c->findings->is_incomplete)
		*first = *why;
	c->findings->is_incomplete = true;
}

bool check_read_paths(struct checked *c, const char *const *paths, size_t count, struct error *e)
{
	for (size_t i = 0; i < count; i++) {
		struct error why = { 0 };
		if (!read_path(c, paths[i], &why))
			find_unreadable(c, paths[i], &why, e);
	}
	return !c->findings->is_incomplete;
}
