#include "controller/cluster/kubeconfig_parts.h"

#include <string.h>

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

bool kubeconfig_take_exec(const struct kubeconfig_place *p, struct exec_plugin *x, struct arena *a, struct error *e)
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
