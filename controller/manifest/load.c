#include "controller/manifest/draft.h"

#include "base/file.h"

#include <string.h>

/* All files of a manifest, one after the other. */
struct reading {
	struct draft draft;
	struct buf text; /* as one stream of documents */
	size_t nodes, documents;
};

/* One finding for what was never meant to be a manifest, instead of one for each of its keys. */
static bool is_warm_pool(struct findings *f, const struct yaml_node *root)
{
	const struct yaml_node *kind = yaml_child(root, "kind");

	if (root->kind == YAML_MAP && !kind && !yaml_child(root, "apiVersion")) {
		schema_find(f, root, "a map without apiVersion and kind", "WarmPool documents",
			    "begin with apiVersion: preheat.dev/v1alpha1 and kind: WarmPool, or name another file");
		return false;
	}
	if (!kind || kind->kind != YAML_SCALAR || !strcmp(kind->text, "WarmPool"))
		return true;
	schema_find(f, kind, NULL, "WarmPool",
		    !strcmp(kind->text, "World")
			    ? "name the world file itself (simulate: --world FILE), and keep it out of the "
			      "folder of manifests"
			    : "keep other objects in other files, or correct the kind");
	return false;
}

static void read_document(struct draft *d, const struct yaml_node *root)
{
	if (!is_warm_pool(d->findings, root))
		return;
	if (d->pool_count == POOLS_MAX) {
		schema_find(d->findings, root, "more than 500 pools", "at most 500", "run a controller per part");
		return;
	}
	schema_read(&warm_pool_table, root, &d->pools[d->pool_count++], d->arena, d->findings);
}

/* What kubectl get -o yaml makes of several; NULL for one object. */
static const struct yaml_node *items_of(const struct yaml_node *root)
{
	const struct yaml_node *kind = yaml_child(root, "kind"), *items = yaml_child(root, "items");
	bool is_list = kind && kind->kind == YAML_SCALAR &&
		       (!strcmp(kind->text, "List") || !strcmp(kind->text, "WarmPoolList"));

	return is_list && items && items->kind == YAML_LIST ? items : NULL;
}

static void read_objects(struct draft *d, const struct yaml_node *root)
{
	const struct yaml_node *items = items_of(root);

	if (!items)
		read_document(d, root);
	for (const struct yaml_node *n = items ? items->first : NULL; n; n = n->next)
		read_document(d, n);
}

static void find_in_file(struct reading *r, const char *name, const char *found, const char *allowed,
			 const char *remedy)
{
	findings_add(r->draft.findings,
		     &(struct finding){ .file = name, .found = found, .allowed = allowed, .remedy = remedy });
}

static void read_documents(struct reading *r, const char *name, const struct yaml_documents *docs)
{
	size_t filled = 0;

	for (size_t i = 0; i < docs->count; i++) {
		const struct yaml_node *items = docs->roots[i] ? items_of(docs->roots[i]) : NULL;
		if (!docs->roots[i] || (items && !items->count))
			continue;
		filled++;
		read_objects(&r->draft, docs->roots[i]);
	}
	if (!filled)
		find_in_file(r, name, "nothing in it", "at least one WarmPool",
			     "see docs/manifest.md, or examples/first-try/pool.yaml");
	r->nodes += docs->nodes;
	r->documents += docs->count;
	/* The stored text must be readable again in one piece. */
	if (r->nodes > YAML_NODES_MAX || r->documents > YAML_DOCUMENTS_MAX || r->text.len > YAML_BYTES_MAX)
		find_in_file(r, name, "too much in all files together", "1 MiB, 50000 values, 1000 documents",
			     "run a controller per part");
}

static void skip_byte_order_mark(const char **text, size_t *len)
{
	if (*len >= 3 && !memcmp(*text, "\xef\xbb\xbf", 3)) {
		*text += 3;
		*len -= 3;
	}
}

static void read_text(struct reading *r, const char *name, const char *text, size_t len)
{
	struct yaml_documents docs;

	skip_byte_order_mark(&text, &len);
	if (r->text.len)
		buf_text(&r->text, r->text.text[r->text.len - 1] == '\n' ? "---\n" : "\n---\n");
	buf_append(&r->text, text, len);
	if (yaml_parse(name, text, len, r->draft.arena, &docs, r->draft.findings))
		read_documents(r, name, &docs);
}

static bool read_file(struct reading *r, const char *path, struct error *e)
{
	CLEANUP(buf_release) struct buf text = { 0 };

	if (!file_read(path, YAML_BYTES_MAX, &text, e))
		return false;
	read_text(r, strcmp(path, "-") ? path : "standard input", text.text, text.len);
	return true;
}

static bool is_yaml(const char *name)
{
	size_t len = strlen(name);

	return *name != '.' &&
	       ((len > 5 && !strcmp(name + len - 5, ".yaml")) || (len > 4 && !strcmp(name + len - 4, ".yml")));
}

static bool read_path(struct reading *r, const char *path, struct error *e)
{
	CLEANUP(arena_release) struct arena a = { 0 };
	struct folder folder;

	if (!folder_list(path, is_yaml, &a, &folder, e))
		return false;
	if (!folder.is_folder)
		return read_file(r, path, e);
	if (!folder.count)
		return error_set(e, ERROR_INVALID, "%s: no *.yaml or *.yml file in this folder", path);
	for (size_t i = 0; i < folder.count; i++)
		if (!read_file(r, folder.paths[i], e))
			return false;
	return true;
}

static void reading_start(struct reading *r, struct arena *a, struct findings *f)
{
	*r = (struct reading){ .draft = { .arena = a, .findings = f } };
	r->draft.pools = arena_array(a, struct warm_pool, POOLS_MAX);
}

static void reading_release(struct reading *r)
{
	buf_release(&r->text);
}

static bool reading_finish(struct reading *r, struct manifest *out, struct error *e)
{
	struct draft *d = &r->draft;

	merge_groups(d);
	check_pools(d);
	check_groups(d);
	check_budgets(d);
	findings_sort(d->findings);
	if (d->findings->count)
		return findings_error(d->findings, e);
	*out = (struct manifest){ .fleet = build_fleet(d),
				  .pools = d->pools,
				  .groups = build_group_texts(d),
				  .text = arena_strdup(d->arena, r->text.text, r->text.len),
				  .text_len = r->text.len };
	return true;
}

/* What cannot be read is told beside what is wrong with the rest; the error keeps the first. */
static void find_unreadable(struct reading *r, const char *path, const struct error *why, struct error *first)
{
	struct findings *f = r->draft.findings;
	size_t len = strlen(path);
	bool names_path = !strncmp(why->message, path, len) && !strncmp(why->message + len, ": ", 2);

	find_in_file(r, path, names_path ? why->message + len + 2 : why->message, "a manifest that can be read",
		     "correct the name, or give the file to this user");
	if (!f->is_incomplete)
		*first = *why;
	f->is_incomplete = true;
}

bool manifest_load(const char *const *paths, size_t count, struct arena *a, struct manifest *out, struct findings *f,
		   struct error *e)
{
	CLEANUP(reading_release) struct reading r;
	struct error unreadable = { 0 };

	reading_start(&r, a, f);
	if (!count)
		return error_set(e, ERROR_INVALID, "no manifest named; name a file, a folder or - for standard input");
	for (size_t i = 0; i < count; i++) {
		struct error why = { 0 };

		if (!read_path(&r, paths[i], &why))
			find_unreadable(&r, paths[i], &why, &unreadable);
	}
	if (reading_finish(&r, out, e))
		return true;
	if (f->is_incomplete)
		*e = unreadable;
	return false;
}

bool manifest_load_texts(const struct manifest_text *texts, size_t count, struct arena *a, struct manifest *out,
			 struct findings *f, struct error *e)
{
	CLEANUP(reading_release) struct reading r;

	reading_start(&r, a, f);
	for (size_t i = 0; i < count; i++)
		read_text(&r, texts[i].name, texts[i].text, strlen(texts[i].text));
	return reading_finish(&r, out, e);
}

bool manifest_load_text(const char *name, const char *text, struct arena *a, struct manifest *out, struct findings *f,
			struct error *e)
{
	return manifest_load_texts(&(struct manifest_text){ name, text }, 1, a, out, f, e);
}

bool manifest_load_roots(const struct yaml_node *const *roots, size_t count, struct arena *a, struct manifest *out,
			 struct findings *f, struct error *e)
{
	CLEANUP(reading_release) struct reading r;

	reading_start(&r, a, f);
	buf_text(&r.text, "");
	for (size_t i = 0; i < count; i++)
		read_document(&r.draft, roots[i]);
	return reading_finish(&r, out, e);
}

bool manifest_group_gives(const struct manifest *m, size_t group, const char *key)
{
	for (size_t p = 0; p < m->fleet.pool_count; p++) {
		const struct group_text *named = draft_groups(&m->pools[p].spec);
		for (size_t i = 0; i < m->fleet.pools[p].group_count; i++)
			if (m->fleet.pools[p].groups[i] == group && is_given(named[i].node, key))
				return true;
	}
	return false;
}
