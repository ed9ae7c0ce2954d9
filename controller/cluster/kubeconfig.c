#include "base/file.h"
#include "base/quote.h"
#include "controller/cluster/kubeconfig_parts.h"

#include <string.h>
#include <unistd.h>

/* All files that count, and what they are read into. */
struct reading {
	struct kubeconfig_file files[KUBECONFIG_FILES];
	size_t count;
	struct arena *arena;  /* of the result */
	struct arena scratch; /* of the trees */
	struct findings findings;
};

void kubeconfig_release(struct kubeconfig *k)
{
	struct arena a = k->arena;

	arena_release(&a);
	*k = (struct kubeconfig){ 0 };
}

bool kubeconfig_wrong(const struct kubeconfig_file *f, const struct yaml_node *at, const char *what, struct error *e)
{
	CLEANUP(buf_release) struct buf path = { 0 };

	buf_text(&path, "");
	if (!at)
		return error_set(e, ERROR_INVALID, "%s: %s", f->path, what);
	yaml_path(at, &path);
	return error_set(e, ERROR_INVALID, "%s:%zu: %s%s%s", f->path, at->line, path.text, path.len ? ": " : "", what);
}

bool kubeconfig_text(struct arena *a, const struct kubeconfig_place *p, const char *key, const char **out,
		     struct error *e)
{
	const struct yaml_node *n = yaml_child(p->node, key);

	if (!n)
		return true;
	if (n->kind != YAML_SCALAR)
		return kubeconfig_wrong(p->file, n, "a text is allowed here", e);
	if (n->text && *n->text && !(n->is_plain && (!strcmp(n->text, "null") || !strcmp(n->text, "~"))))
		*out = arena_strdup(a, n->text, strlen(n->text));
	return true;
}

bool kubeconfig_bool(const struct kubeconfig_place *p, const char *key, bool *out, struct error *e)
{
	const struct yaml_node *n = yaml_child(p->node, key);

	if (!n)
		return true;
	if (n->kind != YAML_SCALAR || (strcmp(n->text, "true") && strcmp(n->text, "false")))
		return kubeconfig_wrong(p->file, n, "true or false is allowed here", e);
	*out = !strcmp(n->text, "true");
	return true;
}

const char *kubeconfig_path(struct arena *a, const struct kubeconfig_file *f, const char *path)
{
	CLEANUP(buf_release) struct buf whole = { 0 };

	if (*path != '/')
		buf_printf(&whole, "%s/", f->folder);
	buf_text(&whole, path);
	return arena_strdup(a, whole.text, whole.len);
}

static const char *folder_of(struct arena *a, const char *path)
{
	const char *slash = strrchr(path, '/');

	if (!slash)
		return ".";
	return arena_strdup(a, path, slash == path ? 1 : (size_t)(slash - path));
}

/* What YAML complains of may hold part of a secret: only the place is told. */
static bool bad_yaml(const struct reading *r, const char *path, struct error *e)
{
	const struct finding *f = &r->findings.items[0];

	return error_set(e, ERROR_INVALID, "%s:%zu:%zu: no kubeconfig: the YAML cannot be read from here on (%s)", path,
			 f->line, f->column, f->allowed && *f->allowed ? f->allowed : "allowed: plain YAML");
}

static bool read_file(struct reading *r, const char *path, struct error *e)
{
	CLEANUP(buf_release) struct buf text = { 0 };
	struct yaml_documents documents = { 0 };
	struct kubeconfig_file *f = &r->files[r->count];

	if (r->count == KUBECONFIG_FILES)
		return error_set(e, ERROR_INVALID, "more than %d kubeconfig files: name fewer", KUBECONFIG_FILES);
	if (!file_read(path, KUBECONFIG_BYTES, &text, e))
		return error_wrap(e, "kubeconfig");
	if (!yaml_parse(path, text.text ? text.text : "", text.len, &r->scratch, &documents, &r->findings) ||
	    r->findings.count)
		return bad_yaml(r, path, e);
	*f = (struct kubeconfig_file){ .path = arena_strdup(r->arena, path, strlen(path)),
				       .folder = folder_of(r->arena, path),
				       .root = documents.count ? documents.roots[0] : NULL };
	if (f->root && f->root->kind != YAML_MAP)
		return kubeconfig_wrong(f, f->root,
					"no kubeconfig: an object with clusters, users and contexts is "
					"allowed here",
					e);
	r->count++;
	return true;
}

/* As kubectl: files of the list that do not exist are left out. */
static bool read_list(struct reading *r, const char *list, struct error *e)
{
	for (const char *p = list; *p;) {
		size_t len = strcspn(p, ":");
		const char *path = arena_strdup(&r->scratch, p, len);
		if (len && !access(path, F_OK) && !read_file(r, path, e))
			return false;
		p += len + (p[len] == ':');
	}
	if (r->count)
		return true;
	return error_set(e, ERROR_NOT_FOUND, "KUBECONFIG names no file that exists: '%.200s'", list);
}

static bool read_files(struct reading *r, const struct kubeconfig_wish *w, struct error *e)
{
	CLEANUP(buf_release) struct buf path = { 0 };

	if (w->path)
		return read_file(r, w->path, e);
	if (w->environment && *w->environment)
		return read_list(r, w->environment, e);
	if (!w->home || !*w->home)
		return error_set(e, ERROR_NOT_FOUND, "no kubeconfig: give --kubeconfig FILE or set KUBECONFIG");
	buf_printf(&path, "%s/.kube/config", w->home);
	if (access(path.text, F_OK))
		return error_set(e, ERROR_NOT_FOUND,
				 "no kubeconfig: %s does not exist; give --kubeconfig FILE or set KUBECONFIG",
				 path.text);
	return read_file(r, path.text, e);
}

/* The entry of that name in a list such as "clusters", from the first file that has it; its member `inner`. */
static bool find_entry(const struct reading *r, const char *list, const char *name, struct kubeconfig_place *out,
		       struct error *e)
{
	const char *inner = !strcmp(list, "clusters") ? "cluster" : !strcmp(list, "users") ? "user" : "context";
	char room[QUOTE_ROOM];

	for (size_t i = 0; i < r->count; i++) {
		const struct yaml_node *entries = yaml_child(r->files[i].root, list);
		if (entries && entries->kind == YAML_MAP)
			return kubeconfig_wrong(&r->files[i], entries, "a list is allowed here", e);
		for (const struct yaml_node *n = entries ? entries->first : NULL; n; n = n->next) {
			const struct yaml_node *its = yaml_child(n, "name");
			if (!its || its->kind != YAML_SCALAR || strcmp(its->text, name))
				continue;
			*out = (struct kubeconfig_place){ &r->files[i], yaml_child(n, inner) };
			if (out->node && out->node->kind == YAML_MAP)
				return true;
			return kubeconfig_wrong(&r->files[i], n, "an object is needed beside the name", e);
		}
	}
	return error_set(e, ERROR_INVALID, "%s: there is no entry %s in %s", r->files[0].path,
			 quote(room, name, strlen(name)), list);
}

static bool choose_context(struct reading *r, const struct kubeconfig_wish *w, struct kubeconfig *k, struct error *e)
{
	k->context = w->context ? arena_strdup(r->arena, w->context, strlen(w->context)) : NULL;
	for (size_t i = 0; i < r->count && !k->context; i++) {
		struct kubeconfig_place top = { &r->files[i], r->files[i].root };
		if (!kubeconfig_text(r->arena, &top, "current-context", &k->context, e))
			return false;
	}
	if (k->context)
		return true;
	return error_set(e, ERROR_INVALID,
			 "%s: no current-context; set one (kubectl config use-context NAME) or give --context NAME",
			 r->files[0].path);
}

static bool take_all(struct reading *r, const struct kubeconfig_wish *w, struct kubeconfig *k, struct error *e)
{
	struct kubeconfig_place context, part;
	const char *cluster = NULL, *user = NULL;

	if (!choose_context(r, w, k, e) || !find_entry(r, "contexts", k->context, &context, e) ||
	    !kubeconfig_text(r->arena, &context, "cluster", &cluster, e) ||
	    !kubeconfig_text(r->arena, &context, "user", &user, e) ||
	    !kubeconfig_text(r->arena, &context, "namespace", &k->name_space, e))
		return false;
	if (!cluster)
		return kubeconfig_wrong(context.file, context.node, "the context names no cluster", e);
	if (!find_entry(r, "clusters", cluster, &part, e) || !kubeconfig_take_cluster(&part, k, e))
		return false;
	k->source = part.file->path;
	if (!k->name_space)
		k->name_space = "default";
	return !user || (find_entry(r, "users", user, &part, e) && kubeconfig_take_user(&part, k, e));
}

bool kubeconfig_read(const struct kubeconfig_wish *w, struct kubeconfig *out, struct error *e)
{
	struct kubeconfig k = { 0 };
	struct reading r = { .arena = &k.arena };
	bool ok = read_files(&r, w, e) && take_all(&r, w, &k, e);

	findings_release(&r.findings);
	arena_release(&r.scratch);
	if (ok)
		*out = k;
	else
		kubeconfig_release(&k);
	return ok;
}
