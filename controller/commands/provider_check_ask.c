#include "base/net/retry.h"
#include "base/terminal.h"
#include "controller/commands/access.h"
#include "controller/commands/command.h"
#include "controller/commands/provider_check.h"
#include "controller/loop/door.h"

#include <stdio.h>
#include <string.h>

enum { PROVIDERS_MOST = 16 };

/* What all calls share. */
struct asking {
	struct loop *loop;
	struct http *http;
	struct access access;
	bool has_access;
	struct error no_access;
	struct cluster_door door;
	struct provider *opened[PROVIDERS_MOST]; /* as provider_at() counts */
	struct progress progress;
	size_t under_way, answered;
};

/* A call that is made again while the cloud says that there are too many. */
struct asked {
	struct asking *all;
	const struct provider_ops *ops;
	struct provider *provider;
	struct provider_call *call;
	struct retry retry;
	struct timer later;
	millis until;
};

static void start(struct asked *a)
{
	a->call->timeout = a->until - loop_now(a->all->loop);
	a->ops->start(a->provider, a->call);
}

static void on_time(struct timer *t)
{
	start(t->user);
}

static void on_done(struct provider_call *c)
{
	struct asked *a = c->user;
	millis left = a->until - loop_now(a->all->loop);
	millis wait = retry_next(&a->retry, c->retry_after);

	if (c->error.kind == ERROR_THROTTLED && wait < left) {
		timer_start(a->all->loop, &a->later, wait, on_time);
		return;
	}
	a->all->under_way--;
	progress_show(&a->all->progress, (int64_t)++a->all->answered);
}

static bool open_loop(struct asking *all, bool needs_cluster, const struct access_options *o, struct error *e)
{
	static char agent[64];

	all->has_access = needs_cluster && access_open(&all->access, o, NULL, &all->no_access);
	if (all->has_access) {
		all->loop = all->access.loop;
		all->http = all->access.http;
		all->door = door_open(all->access.api);
		return true;
	}
	snprintf(agent, sizeof agent, "preheat/%s", command_version_text() + strlen("preheat "));
	all->loop = loop_open();
	all->http = http_open(all->loop, agent, e);
	if (!all->http)
		loop_close(all->loop);
	return all->http;
}

static void close_loop(struct asking *all)
{
	for (size_t i = 0; i < PROVIDERS_MOST; i++)
		if (all->opened[i])
			provider_at(i)->close(all->opened[i]);
	if (all->has_access) {
		access_close(&all->access);
		return;
	}
	while (http_active(all->http) && loop_once(all->loop))
		;
	http_close(all->http);
	loop_close(all->loop);
}

/* The group's provider, opened once; NULL with the group's error. */
static struct provider *provider_of(struct asking *all, struct group_check *g, const struct provider_ops *ops)
{
	size_t at = 0;

	while (provider_at(at) != ops)
		at++;
	if (ops->asks_cluster && !all->has_access) {
		error_set(&g->error, ERROR_UNAVAILABLE, "%s", all->no_access.message);
		return NULL;
	}
	if (!all->opened[at])
		all->opened[at] =
			ops->open(&(struct provider_setup){ all->loop, all->http, all->has_access ? &all->door : NULL },
				  &g->error);
	return all->opened[at];
}

static void ask(struct asked *a, const struct group_check *g, enum provider_verb verb, struct provider_call *call)
{
	*call = (struct provider_call){
		.verb = verb, .group = g->spec->name, .settings = g->spec->settings, .done = on_done, .user = a
	};
	a->call = call;
	a->later.user = a;
	a->all->under_way++;
	start(a);
}

static bool is_only_simulated(const struct group_spec *s)
{
	return !strcmp(s->provider, "simulated") && !strstr(s->settings, "\"endpoint\"");
}

static void begin(struct asking *all, struct group_check *g, millis timeout, struct asked calls[2])
{
	const struct provider_ops *ops = provider_find(g->spec->provider);
	struct clock wall = clock_open();

	if (is_only_simulated(g->spec)) {
		error_set(&g->error, ERROR_INVALID,
			  "no cloud is named: add eks:, aks:, karpenter:, clusterApi:, external: or simulated: to the "
			  "node group");
		return;
	}
	struct provider *p = provider_of(all, g, ops);
	if (!p)
		return;
	for (int i = 0; i < 2; i++)
		calls[i] = (struct asked){
			.all = all,
			.ops = ops,
			.provider = p,
			.until = loop_now(all->loop) + timeout,
			.retry = retry_make(SECOND, 10 * SECOND,
					    random_stream((uint64_t)(clock_now(&wall) + i), g->spec->name)),
		};
	ask(&calls[0], g, PROVIDER_CHECK, &g->check);
	ask(&calls[1], g, PROVIDER_DESCRIBE, &g->describe);
}

bool provider_check_ask(struct group_check *groups, size_t count, const struct access_options *o, millis timeout,
			struct error *e)
{
	CLEANUP(arena_release) struct arena a = { 0 };
	struct asked *calls = arena_array(&a, struct asked, 2 * count);
	struct asking all = { 0 };
	bool needs_cluster = false;

	for (size_t i = 0; i < count; i++)
		needs_cluster |= provider_find(groups[i].spec->provider)->asks_cluster;
	if (!open_loop(&all, needs_cluster, o, e))
		return false;
	all.progress = progress_start("asking", "calls", (int64_t)(2 * count));
	for (size_t i = 0; i < count; i++)
		begin(&all, &groups[i], timeout, &calls[2 * i]);
	while (all.under_way && loop_once(all.loop))
		;
	progress_end(&all.progress);
	close_loop(&all);
	return true;
}
