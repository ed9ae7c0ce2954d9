#include "controller/cluster/kubeconfig.h"

#include "base/base64.h"
#include "base/buf.h"
#include "base/file.h"
#include "base/text.h"
#include "base/yaml.h"

#include <string.h>
#include <unistd.h>

enum { SMALL_FILE = 64 * 1024 };

static bool is_given(const char *text)
{
	return text && *text;
}

bool in_cluster_is_present(const struct in_cluster_wish *w)
{
	return is_given(w->host) && is_given(w->port);
}

static const char *text_of(struct arena *a, struct buf *b)
{
	const char *copy = arena_strdup(a, b->text ? b->text : "", b->len);

	buf_release(b);
	return copy;
}

static const char *joined(struct arena *a, const char *folder, const char *name)
{
	struct buf b = { 0 };

	buf_printf(&b, "%s/%s", folder, name);
	return text_of(a, &b);
}

static bool is_readable(const char *path, struct error *e)
{
	if (!access(path, R_OK))
		return true;
	return error_set(e, ERROR_NOT_FOUND,
			 "%s cannot be read: the pod has no ServiceAccount token mounted; remove "
			 "automountServiceAccountToken: false, or give a kubeconfig",
			 path);
}

/* Without the file the namespace is the default one, as for every client. */
static const char *read_namespace(struct arena *a, const char *folder)
{
	struct buf text = { 0 };
	struct error e;

	if (!file_read(joined(a, folder, "namespace"), SMALL_FILE, &text, &e) || !text.len)
		buf_text(&text, "default");
	while (text.len && strchr(" \t\r\n", text.text[text.len - 1]))
		text.text[--text.len] = '\0';
	return text_of(a, &text);
}

bool in_cluster_read(const struct in_cluster_wish *w, struct kubeconfig *out, struct error *e)
{
	const char *folder = w->folder ? w->folder : IN_CLUSTER_FOLDER;
	struct kubeconfig k = { .source = "in-cluster", .context = "in-cluster" };
	struct buf server = { 0 };

	if (!in_cluster_is_present(w))
		return error_set(e, ERROR_NOT_FOUND,
				 "not in a cluster: KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT are not set");
	k.token_file = joined(&k.arena, folder, "token");
	k.tls.ca_file = joined(&k.arena, folder, "ca.crt");
	if (!is_readable(k.token_file, e) || !is_readable(k.tls.ca_file, e)) {
		kubeconfig_release(&k);
		return false;
	}
	k.name_space = read_namespace(&k.arena, folder);
	k.proxy = "";
	buf_printf(&server, strchr(w->host, ':') ? "https://[%s]:%s" : "https://%s:%s", w->host, w->port);
	k.server = text_of(&k.arena, &server);
	*out = k;
	return true;
}

/* What the files that read kubeconfigs share. */

enum { KUBECONFIG_FILES = 16, KUBECONFIG_BYTES = 1 << 20 };

struct kubeconfig_file {
	const char *path, *folder;
	const struct yaml_node *root; /* NULL: empty */
};

/* Where a value stands, and in which file: its relative paths count from there. */
struct kubeconfig_place {
	const struct kubeconfig_file *file;
	const struct yaml_node *node;
};

static bool kubeconfig_take_cluster(const struct kubeconfig_place *p, struct kubeconfig *k, struct error *e);
static bool kubeconfig_take_user(const struct kubeconfig_place *p, struct kubeconfig *k, struct error *e);
static bool kubeconfig_take_exec(const struct kubeconfig_place *p, struct exec_plugin *x, struct arena *a,
				 struct error *e);

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

/* "FILE:LINE: PATH: WHAT"; the value itself is never shown. */
static bool kubeconfig_wrong(const struct kubeconfig_file *f, const struct yaml_node *at, const char *what,
			     struct error *e)
{
	CLEANUP(buf_release) struct buf path = { 0 };

	buf_text(&path, "");
	if (!at)
		return error_set(e, ERROR_INVALID, "%s: %s", f->path, what);
	yaml_path(at, &path);
	return error_set(e, ERROR_INVALID, "%s:%zu: %s%s%s", f->path, at->line, path.text, path.len ? ": " : "", what);
}

/* A member's text, copied; NULL when it is absent or empty. False when it is no text. */
static bool kubeconfig_text(struct arena *a, const struct kubeconfig_place *p, const char *key, const char **out,
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

static bool kubeconfig_bool(const struct kubeconfig_place *p, const char *key, bool *out, struct error *e)
{
	const struct yaml_node *n = yaml_child(p->node, key);

	if (!n)
		return true;
	if (n->kind != YAML_SCALAR || (strcmp(n->text, "true") && strcmp(n->text, "false")))
		return kubeconfig_wrong(p->file, n, "true or false is allowed here", e);
	*out = !strcmp(n->text, "true");
	return true;
}

/* A path, from the folder of its file. */
static const char *kubeconfig_path(struct arena *a, const struct kubeconfig_file *f, const char *path)
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
	return error_set(e, ERROR_UNAVAILABLE, "KUBECONFIG names no file that exists: '%.200s'", list);
}

static bool read_files(struct reading *r, const struct kubeconfig_wish *w, struct error *e)
{
	CLEANUP(buf_release) struct buf path = { 0 };

	if (w->path)
		return read_file(r, w->path, e);
	if (w->environment && *w->environment)
		return read_list(r, w->environment, e);
	if (!w->home || !*w->home)
		return error_set(e, ERROR_UNAVAILABLE, "no kubeconfig: give --kubeconfig FILE or set KUBECONFIG");
	buf_printf(&path, "%s/.kube/config", w->home);
	if (access(path.text, F_OK))
		return error_set(e, ERROR_UNAVAILABLE,
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

/* KEY-data (base64) or KEY (a file); the first wins, as with kubectl. */
static bool take_pem(const struct kubeconfig_place *p, const char *key, struct arena *a, const char **text,
		     const char **file, struct error *e)
{
	CLEANUP(buf_release) struct buf name = { 0 }, pem = { 0 }, what = { 0 };
	const char *coded = NULL, *path = NULL;

	buf_printf(&name, "%s-data", key);
	if (!kubeconfig_text(a, p, name.text, &coded, e) || !kubeconfig_text(a, p, key, &path, e))
		return false;
	if (coded) {
		const struct yaml_node *at = yaml_child(p->node, name.text);
		if (!base64_read(coded, strlen(coded), &pem) || !pem.len ||
		    !memmem(pem.text, pem.len, "-----BEGIN ", 11))
			return kubeconfig_wrong(p->file, at, "base64 of a PEM text is allowed here", e);
		*text = arena_strdup(a, pem.text, pem.len);
		return true;
	}
	if (!path)
		return true;
	*file = kubeconfig_path(a, p->file, path);
	if (!access(*file, R_OK))
		return true;
	buf_printf(&what, "the file %s cannot be read", *file);
	return kubeconfig_wrong(p->file, yaml_child(p->node, key), what.text, e);
}

static bool take_server(const struct kubeconfig_place *p, struct kubeconfig *k, struct error *e)
{
	const char *server = NULL;

	if (!kubeconfig_text(&k->arena, p, "server", &server, e))
		return false;
	const struct yaml_node *at = yaml_child(p->node, "server");
	if (!server || (strncmp(server, "https://", 8) && strncmp(server, "http://", 7)) || strpbrk(server, " \t\n@?#"))
		return kubeconfig_wrong(p->file, at ? at : p->node,
					"the cluster needs a server like https://10.0.0.1:6443", e);
	size_t len = strlen(server);
	while (len && server[len - 1] == '/')
		len--;
	k->server = arena_strdup(&k->arena, server, len);
	return true;
}

static bool kubeconfig_take_cluster(const struct kubeconfig_place *p, struct kubeconfig *k, struct error *e)
{
	struct http_tls *tls = &k->tls;

	if (!take_server(p, k, e) || !take_pem(p, "certificate-authority", &k->arena, &tls->ca, &tls->ca_file, e) ||
	    !kubeconfig_bool(p, "insecure-skip-tls-verify", &tls->is_insecure, e) ||
	    !kubeconfig_text(&k->arena, p, "tls-server-name", &tls->server_name, e) ||
	    !kubeconfig_text(&k->arena, p, "proxy-url", &k->proxy, e))
		return false;
	if (tls->is_insecure && (tls->ca || tls->ca_file))
		return kubeconfig_wrong(p->file, yaml_child(p->node, "insecure-skip-tls-verify"),
					"it contradicts certificate-authority: remove one of them", e);
	if (k->proxy && strncmp(k->proxy, "http://", 7) && strncmp(k->proxy, "https://", 8) &&
	    strncmp(k->proxy, "socks5://", 9))
		return kubeconfig_wrong(p->file, yaml_child(p->node, "proxy-url"),
					"a URL with http, https or socks5 is allowed here", e);
	return true;
}

/* What we do not speak is told, not left out: requests would go out as somebody else. */
static bool refuse_others(const struct kubeconfig_place *p, struct error *e)
{
	static const struct {
		const char *key, *remedy;
	} others[] = {
		{ "auth-provider", "auth-provider is gone from Kubernetes; use an exec plug-in of your cloud" },
		{ "username", "passwords are gone from Kubernetes; use a token or a certificate" },
		{ "password", "passwords are gone from Kubernetes; use a token or a certificate" },
		{ "as", "impersonation is not supported; give the identity itself the permissions" },
		{ "as-uid", "impersonation is not supported; give the identity itself the permissions" },
		{ "as-groups", "impersonation is not supported; give the identity itself the permissions" },
	};

	for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
		const struct yaml_node *n = yaml_child(p->node, others[i].key);
		if (n) {
			kubeconfig_wrong(p->file, n, others[i].remedy, e);
			e->kind = ERROR_AUTH;
			return false;
		}
	}
	return true;
}

static bool kubeconfig_take_user(const struct kubeconfig_place *p, struct kubeconfig *k, struct error *e)
{
	struct http_tls *tls = &k->tls;
	const struct yaml_node *exec = yaml_child(p->node, "exec");
	struct kubeconfig_place plugin = { p->file, exec };
	const char *token_file = NULL;

	if (!refuse_others(p, e) || !take_pem(p, "client-certificate", &k->arena, &tls->cert, &tls->cert_file, e) ||
	    !take_pem(p, "client-key", &k->arena, &tls->key, &tls->key_file, e) ||
	    !kubeconfig_text(&k->arena, p, "token", &k->token, e) ||
	    !kubeconfig_text(&k->arena, p, "tokenFile", &token_file, e))
		return false;
	if ((tls->cert || tls->cert_file) != (tls->key || tls->key_file))
		return kubeconfig_wrong(p->file, p->node, "a client certificate and its key go together", e);
	if (token_file)
		k->token_file = kubeconfig_path(&k->arena, p->file, token_file);
	if (exec && exec->kind == YAML_MAP)
		return kubeconfig_take_exec(&plugin, &k->exec, &k->arena, e);
	return true;
}

static bool take_args(const struct kubeconfig_place *p, struct exec_plugin *x, struct arena *a, struct error *e)
{
	const struct yaml_node *list = yaml_child(p->node, "args");
	const char **args = arena_array(a, const char *, (list ? list->count : 0) + 1);
	size_t n = 0;

	if (list && list->kind == YAML_MAP)
		return kubeconfig_wrong(p->file, list, "a list of texts is allowed here", e);
	for (const struct yaml_node *c = list ? list->first : NULL; c; c = c->next) {
		if (c->kind != YAML_SCALAR || n == EXEC_ARGS_MOST)
			return kubeconfig_wrong(p->file, c, "at most 64 texts are allowed here", e);
		args[n++] = arena_strdup(a, c->text, strlen(c->text));
	}
	x->args = args;
	return true;
}

static bool take_env(const struct kubeconfig_place *p, struct exec_plugin *x, struct arena *a, struct error *e)
{
	const struct yaml_node *list = yaml_child(p->node, "env");
	const char **env = arena_array(a, const char *, EXEC_ENV_MOST + 1);
	size_t n = 0;

	for (const struct yaml_node *c = list ? list->first : NULL; c; c = c->next) {
		CLEANUP(buf_release) struct buf pair = { 0 };
		struct kubeconfig_place at = { p->file, c };
		const char *name = NULL, *value = "";
		if (!kubeconfig_text(a, &at, "name", &name, e) || !kubeconfig_text(a, &at, "value", &value, e))
			return false;
		if (!name || strchr(name, '=') || n == EXEC_ENV_MOST)
			return kubeconfig_wrong(p->file, c, "at most 64 entries with name and value are allowed here",
						e);
		buf_printf(&pair, "%s=%s", name, value);
		env[n++] = arena_strdup(a, pair.text, pair.len);
	}
	x->env = env;
	return true;
}

static bool check_version(const struct kubeconfig_place *p, const char *version, struct error *e)
{
	if (version && (!strcmp(version, "client.authentication.k8s.io/v1") ||
			!strcmp(version, "client.authentication.k8s.io/v1beta1")))
		return true;
	const struct yaml_node *at = yaml_child(p->node, "apiVersion");
	return kubeconfig_wrong(p->file, at ? at : p->node,
				"apiVersion: client.authentication.k8s.io/v1 or v1beta1 is allowed; renew the "
				"kubeconfig with your cloud's tool",
				e);
}

static bool check_mode(const struct kubeconfig_place *p, const char *mode, struct error *e)
{
	if (!mode || !strcmp(mode, "Never") || !strcmp(mode, "IfAvailable"))
		return true;
	kubeconfig_wrong(p->file, yaml_child(p->node, "interactiveMode"),
			 !strcmp(mode, "Always") ? "Always needs a person at a terminal, which a controller has not"
						 : "Never, IfAvailable or Always is allowed here",
			 e);
	if (!strcmp(mode, "Always"))
		e->kind = ERROR_AUTH;
	return false;
}

static bool kubeconfig_take_exec(const struct kubeconfig_place *p, struct exec_plugin *x, struct arena *a,
				 struct error *e)
{
	const char *command = NULL, *mode = NULL;

	if (!kubeconfig_text(a, p, "apiVersion", &x->api_version, e) ||
	    !kubeconfig_text(a, p, "command", &command, e) || !kubeconfig_text(a, p, "interactiveMode", &mode, e) ||
	    !kubeconfig_text(a, p, "installHint", &x->install_hint, e) ||
	    !kubeconfig_bool(p, "provideClusterInfo", &x->provides_cluster, e) || !take_args(p, x, a, e) ||
	    !take_env(p, x, a, e) || !check_version(p, x->api_version, e) || !check_mode(p, mode, e))
		return false;
	if (!command)
		return kubeconfig_wrong(p->file, p->node, "the plug-in has no command", e);
	x->command = *command != '/' && strchr(command, '/') ? kubeconfig_path(a, p->file, command) : command;
	return true;
}
