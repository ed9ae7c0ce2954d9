#include "controller/cluster/kubeconfig_parts.h"

#include <string.h>
#include <unistd.h>

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
		if (!base64_decode(coded, &pem) || !pem.len || !memmem(pem.text, pem.len, "-----BEGIN ", 11))
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

bool kubeconfig_take_cluster(const struct kubeconfig_place *p, struct kubeconfig *k, struct error *e)
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

bool kubeconfig_take_user(const struct kubeconfig_place *p, struct kubeconfig *k, struct error *e)
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
