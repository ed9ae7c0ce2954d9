#include "controller/commands/cluster_args.h"

#include "controller/cluster/kubeconfig.h"
#include "controller/commands/command.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#undef getenv /* where the API server is, is told by the environment */

const char *cluster_args_variable(const char *name)
{
	const char *value = getenv(name);

	return value && *value ? value : NULL;
}

static bool find_server(struct cluster_access *a, const struct cluster_args *o, struct error *e)
{
	const struct in_cluster_wish inside = { .host = cluster_args_variable("KUBERNETES_SERVICE_HOST"),
						.port = cluster_args_variable("KUBERNETES_SERVICE_PORT") };
	const struct kubeconfig_wish outside = { .path = o->kubeconfig,
						 .environment = cluster_args_variable("KUBECONFIG"),
						 .home = cluster_args_variable("HOME"),
						 .context = o->context };

	a->is_in_cluster = !o->kubeconfig && !outside.environment && in_cluster_is_present(&inside);
	if (a->is_in_cluster)
		return in_cluster_read(&inside, &a->config, e);
	return kubeconfig_read(&outside, &a->config, e);
}

bool cluster_access_open(struct cluster_access *a, const struct cluster_args *o, const struct clock *clock,
			 struct error *e)
{
	static char agent[64];

	snprintf(agent, sizeof agent, "preheat/%s", command_version_text() + strlen("preheat "));
	*a = (struct cluster_access){ .wall = clock_open() };
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

enum { ANSWER_CAP = 64 << 20 };

struct awaited {
	struct error error;
	struct buf *text;
	bool is_there;
};

static void on_answer(struct api_call *c)
{
	struct awaited *w = c->user;

	w->error = c->error;
	buf_append(w->text, c->response, c->response_len);
	w->is_there = true;
}

bool cluster_access_get(struct cluster_access *a, const struct api_call *call, struct buf *text, struct error *e)
{
	struct awaited awaited = { .text = text };
	struct api_call c = *call;

	c.cap = ANSWER_CAP;
	c.done = on_answer;
	c.user = &awaited;
	api_start(a->api, &c);
	while (!awaited.is_there && loop_once(a->loop))
		;
	*e = awaited.error;
	return awaited.error.kind == ERROR_NONE;
}

void cluster_access_close(struct cluster_access *a)
{
	api_close(a->api);
	while (http_active(a->http) && loop_once(a->loop))
		;
	http_close(a->http);
	loop_close(a->loop);
	kubeconfig_release(&a->config);
}
