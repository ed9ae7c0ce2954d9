#include "controller/cluster/in_cluster.h"

#include "base/file.h"

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
