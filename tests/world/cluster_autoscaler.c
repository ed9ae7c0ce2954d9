#include "tests/world/cluster_autoscaler.h"

#include <stdio.h>
#include <string.h>

/* --scan-interval, --scale-down-unneeded-time, --scale-down-delay-after-add */
static const millis SCANS = 10 * SECOND, UNNEEDED = 10 * MINUTE, AFTER_ADD = 10 * MINUTE;
enum { MACHINES = 64 };

static struct {
	struct timer scan;
	struct cloud_group *group;
	int64_t min, max;
	millis added;
	struct unneeded {
		char id[48];
		millis since;
	} unneeded[MACHINES];
	size_t count;
} ca;

static int64_t gpus_of(const struct object *pod)
{
	return value_int(value_at(pod->value, "spec>containers")->first, "resources>limits>nvidia.com/gpu");
}

static bool is_ready(const struct cloud_machine *m)
{
	const struct object *node = world_node_of(m->id);

	return node && value_int(node->value, "status>allocatable>nvidia.com/gpu") > 0;
}

/* GPUs that pods of the group's pool wait for, beyond those that are on their way. */
static int64_t missing(void)
{
	int64_t gpus = 0;

	for (const struct object *p = apiserver_first(KIND_POD); p; p = p->next)
		if (!*pod_node(p) && !pod_is_going(p) && value_is(p->value, "metadata>labels>app", ca.group->pool))
			gpus += gpus_of(p);
	for (const struct cloud_machine *m = ca.group->machines; m; m = m->next)
		if (m->is_to_run && m->step != STEP_TERMINATING && !is_ready(m))
			gpus -= ca.group->gpus;
	return gpus;
}

static void scale_up(void)
{
	int64_t gpus = missing(), to = ca.group->desired + (gpus + ca.group->gpus - 1) / ca.group->gpus;

	to = to > ca.max ? ca.max : to;
	if (gpus <= 0 || to <= ca.group->desired)
		return;
	cloud_owner_sets(ca.group, to);
	ca.added = wire_now();
}

static bool is_unneeded(const struct cloud_machine *m)
{
	const struct object *node = world_node_of(m->id);

	if (!is_ready(m) || m->step == STEP_TERMINATING ||
	    value_is(node->value, "metadata>annotations>cluster-autoscaler.kubernetes.io/scale-down-disabled", "true"))
		return false;
	for (const struct object *p = apiserver_first(KIND_POD); p; p = p->next)
		if (!strcmp(pod_node(p), m->id) && *value_text(p->value, "metadata>labels>app"))
			return false;
	return true;
}

/* When it began to be unneeded. */
static millis since(const struct cloud_machine *m, const struct unneeded *before, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (!strcmp(before[i].id, m->id))
			return before[i].since;
	return wire_now();
}

static void look(void)
{
	struct unneeded before[MACHINES];
	size_t count = ca.count;

	memcpy(before, ca.unneeded, sizeof before);
	ca.count = 0;
	for (const struct cloud_machine *m = ca.group->machines; m; m = m->next)
		if (ca.count < MACHINES && is_unneeded(m)) {
			struct unneeded *u = &ca.unneeded[ca.count++];
			snprintf(u->id, sizeof u->id, "%s", m->id);
			u->since = since(m, before, count);
		}
}

static void scale_down(void)
{
	look();
	if (ca.added && wire_now() - ca.added < AFTER_ADD)
		return;
	for (size_t i = 0; i < ca.count && ca.group->desired > ca.min; i++)
		if (wire_now() - ca.unneeded[i].since >= UNNEEDED)
			cloud_owner_removes(cloud_find(ca.unneeded[i].id));
}

/* AKS refuses a change of a pool while another is under way. */
static bool is_refused(void)
{
	return ca.group->wire == CLOUD_AKS && ca.group->busy_with;
}

static void scan(struct timer *t)
{
	if (!is_refused()) {
		scale_up();
		scale_down();
	}
	timer_start(NULL, t, SCANS, scan);
}

void cluster_autoscaler_on(struct cloud_group *g, int64_t min, int64_t max)
{
	timer_stop(&ca.scan);
	memset(&ca, 0, sizeof ca);
	ca.group = g;
	ca.min = min;
	ca.max = max;
	if (g)
		timer_start(NULL, &ca.scan, SCANS, scan);
}
