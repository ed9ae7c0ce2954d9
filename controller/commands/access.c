#include "controller/commands/access.h"

#include "controller/cluster/kubeconfig.h"
#include "controller/commands/command.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#undef getenv /* where the API server is, is told by the environment */

const char *access_variable(const char *name)
{
	const char *value = getenv(name);

	return value && *value ? value : NULL;
}

static bool find_server(struct access *a, const struct access_options *o, struct error *e)
{
	const struct in_cluster_wish inside = { .host = access_variable("KUBERNETES_SERVICE_HOST"),
						.port = access_variable("KUBERNETES_SERVICE_PORT") };
	const struct kubeconfig_wish outside = { .path = o->kubeconfig,
						 .environment = access_variable("KUBECONFIG"),
						 .home = access_variable("HOME"),
						 .context = o->context };

	a->is_in_cluster = !o->kubeconfig && !outside.environment && in_cluster_is_present(&inside);
	if (a->is_in_cluster)
		return in_cluster_read(&inside, &a->config, e);
	return kubeconfig_read(&outside, &a->config, e);
}

bool access_open(struct access *a, const struct access_options *o, const struct clock *clock, struct error *e)
{
	static char agent[64];

	snprintf(agent, sizeof agent, "preheat/%s", command_version_text() + strlen("preheat "));
	*a = (struct access){ .wall = clock_open() };
	if (!find_server(a, o, e))
		return false;
	a->loop = loop_open();
	a->http = http_open(a->loop, agent, e);
	if (!a->http) {
		loop_close(a->loop);
		kubeconfig_release(&a->config);
		return false;
	}
	a->api = api_open(&(struct api_setup){ .loop = a->loop,
					       .http = a->http,
					       .clock = clock ? clock : &a->wall,
					       .access = &a->config,
					       .seed = (uint64_t)clock_now(&a->wall) });
	a->namespace = o->namespace ? o->namespace : a->config.name_space ? a->config.name_space : "default";
	return true;
}

void access_close(struct access *a)
{
	api_close(a->api);
	while (http_active(a->http) && loop_once(a->loop))
		;
	http_close(a->http);
	loop_close(a->loop);
	kubeconfig_release(&a->config);
}
