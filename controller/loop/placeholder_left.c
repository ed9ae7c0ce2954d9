/* Placeholders of a pool that no manifest and no WarmPool tells of any more: they hold GPUs for nobody. */
#include "controller/cluster/intern.h"
#include "controller/loop/objects.h"
#include "controller/loop/parts.h"

#include <stdio.h>
#include <string.h>

static const millis LOOK_EVERY = 10 * SECOND; /* of the world */

static bool is_known_pool(const struct controller *c, const char *namespace, const char *name)
{
	for (size_t i = 0; i < fleet_of(c)->pool_count; i++)
		if (!strcmp(fleet_of(c)->pools[i].name, name) && !strcmp(fleet_of(c)->pools[i].namespace, namespace))
			return true;
	return objects_named(c, namespace, name) != NULL;
}

/* Another controller of the cluster has pools that we do not know. */
static bool is_ours(const struct controller *c, const struct pod *p)
{
	const char *told = label_set_get(p->labels, PLACEHOLDER_KEEPER);
	char keeper[64];

	placeholder_keeper(c, keeper);
	return told && !strcmp(told, keeper);
}

static const struct pod *find_on(const struct controller *c, const struct node *n, struct arena *a)
{
	size_t count;
	const struct pod **pods = cluster_node_pods(c->cluster, n, a, &count);

	for (size_t i = 0; i < count; i++) {
		const struct pod *p = pods[i];
		if (p->is_placeholder && is_ours(c, p) && p->state != POD_TERMINATING && p->state != POD_FINISHED &&
		    !is_known_pool(c, p->namespace, label_set_get(p->labels, "preheat.dev/placeholder")))
			return p;
	}
	return NULL;
}

static const struct pod *find(const struct controller *c, struct arena *a)
{
	size_t count;
	const struct node **nodes = cluster_nodes(c->cluster, -1, a, &count);
	const struct pod *found = NULL;

	for (size_t i = 0; i < count && !found; i++)
		if (nodes[i]->placeholder_count > 0)
			found = find_on(c, nodes[i], a);
	return found;
}

static void ended(struct object_call *call)
{
	struct left_placeholders *l = call->user;
	struct controller *c = l->controller;

	l->is_calling = false;
	if (call->error.kind == ERROR_NONE)
		log_info("placeholders-ended", LOG_S("namespace", l->namespace), LOG_S("deployment", l->name),
			 LOG_S("why", "their pool is in no manifest any more"), LOG_END);
	else if (call->error.kind != ERROR_CANCELLED && !l->has_complained)
		log_warn("placeholders-not-ended", LOG_S("namespace", l->namespace), LOG_S("deployment", l->name),
			 LOG_E(&call->error), LOG_END);
	l->has_complained = call->error.kind != ERROR_NONE && call->error.kind != ERROR_CANCELLED;
	act_soon(c);
}

static void end(struct controller *c, const struct pod *p)
{
	struct left_placeholders *l = &c->left;

	l->controller = c;
	snprintf(l->namespace, sizeof l->namespace, "%s", p->namespace);
	placeholder_name(label_set_get(p->labels, "preheat.dev/placeholder"), l->name);
	l->is_calling = true;
	l->call = (struct object_call){ .verb = OBJECT_PATCH,
					.object = { .api_version = "apps/v1",
						    .plural = "deployments",
						    .name_space = l->namespace,
						    .name = l->name },
					.body = "{\"spec\":{\"replicas\":0}}",
					.done = ended,
					.user = l };
	object_start(c->api, &l->call);
}

void placeholders_end_left(struct controller *c)
{
	struct arena a = { 0 };

	if (c->left.is_calling || loop_now(c->loop) < c->left.quiet_until || !cluster_is_fresh(c))
		return;
	millis wait = clock_real(c->clock, LOOK_EVERY);
	c->left.quiet_until = loop_now(c->loop) + (wait > SECOND ? wait : SECOND);
	const struct pod *p = find(c, &a);
	if (p)
		end(c, p);
	arena_release(&a);
}
