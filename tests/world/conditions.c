#include "tests/world/conditions.h"

#include <string.h>

void condition_set(struct value *status, const char *type, bool is_so, const char *reason)
{
	struct value *list = value_at(status, "conditions"), *c = list ? list->first : NULL;
	char at[32];

	if (!list) {
		value_set(status, "conditions", value_of("[]"));
		list = value_at(status, "conditions");
	}
	while (c && !value_is(c, "type", type))
		c = c->next;
	if (!c) {
		c = value_of("{'type':'%s'}", type);
		value_add(list, c);
	}
	if (!value_is(c, "status", is_so ? "True" : "False")) {
		apiserver_time(wire_host_wall(APISERVER, wire_now()), at);
		value_set_text(c, "lastTransitionTime", at);
	}
	value_set_text(c, "status", is_so ? "True" : "False");
	value_set_text(c, "reason", reason);
}

/* As each cloud's own program tells of it: of what will be taken, and of what may be. */
static const char recommendation[] = "aws-node-termination-handler/rebalance-recommendation";
static const char *const notices[] = { [CLOUD_SIMULATED] = "simulated.preheat.dev/spot-taken",
				       [CLOUD_EKS] = "aws-node-termination-handler/spot-itn",
				       [CLOUD_AKS] = "remediator.kubernetes.azure.com/unschedulable",
				       recommendation };

/* False: it was there. */
static bool taint(struct object *node, const char *key)
{
	struct value *taints = value_at(node->value, "spec>taints");

	for (const struct value *t = taints->first; t; t = t->next)
		if (value_is(t, "key", key))
			return false;
	value_add(taints, value_of("{'key':'%s','effect':'NoSchedule'}", key));
	apiserver_changed(node);
	return true;
}

void node_give_notice(const struct cloud_machine *m, struct object *node)
{
	const char *key = notices[m->group->is_spot ? m->group->wire : CLOUD_SIMULATED];

	if (m->is_taken && taint(node, key) && m->group->is_spot && m->group->wire == CLOUD_AKS) {
		condition_set(value_at(node->value, "status"), "PreemptScheduled", true, "PreemptScheduled");
		apiserver_changed(node);
	}
	if (m->is_recommended && m->group->wire == CLOUD_EKS)
		taint(node, recommendation);
}

bool node_untaint(struct object *node, const char *key)
{
	struct value *taints = value_at(node->value, "spec>taints"), *rest = value_of("[]");
	bool is_there = false;

	for (const struct value *t = taints->first; t; t = t->next)
		if (value_is(t, "key", key))
			is_there = true;
		else
			value_add(rest, value_copy(t));
	if (is_there)
		value_set(node->value, "spec>taints", rest);
	else
		value_free(rest);
	return is_there;
}

void node_notice_over(struct object *node)
{
	for (size_t i = 0; i < sizeof notices / sizeof *notices; i++)
		node_untaint(node, notices[i]);
}
