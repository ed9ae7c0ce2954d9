/* What an Event says of a node's machine: some tell of an interruption in no other way. */
#include "controller/cluster/model_inside.h"

#include <string.h>

/* A machine that is still there after so long was not taken. */
static const millis LASTS = 15 * MINUTE;

static const struct {
	const char *reason;
	enum node_interruption interruption;
} reasons[] = {
	{ "SpotInterruption", NODE_SPOT_INTERRUPTED },	/* aws-node-termination-handler */
	{ "PreemptScheduled", NODE_SPOT_INTERRUPTED },	/* node-problem-detector on AKS */
	{ "RebalanceRecommendation", NODE_REBALANCED }, /* aws-node-termination-handler */
	{ "TerminateScheduled", NODE_MAINTAINED },	/* node-problem-detector on AKS */
};

static enum node_interruption meaning_of(const char *reason)
{
	for (size_t i = 0; reason != NULL && i < sizeof reasons / sizeof reasons[0]; i++)
		if (strcmp(reason, reasons[i].reason) == 0)
			return reasons[i].interruption;
	return NODE_STAYS;
}

static millis told_at(const struct notice_record *r)
{
	millis at = r->last_at > r->first_at ? r->last_at : r->first_at;
	return at > r->at ? at : r->at;
}

/* Names of nodes come again: what was told of an earlier machine says nothing of this one. */
static bool is_of_this_machine(const struct cluster *c, const struct node *n, const struct notice_record *r,
			       const struct watch_seen *seen)
{
	millis at = told_at(r);
	if (c->ignores_stamps || at == 0)
		return !seen->is_from_list;
	return at >= n->registered_at - SECOND && seen->arrived - at < LASTS;
}

bool cluster_notice_seen(struct cluster *c, const struct notice_record *r, const struct watch_seen *seen)
{
	enum node_interruption why = meaning_of(r->reason);
	struct node *n = why != NODE_STAYS && r->node != NULL ? node_find(c, r->node) : NULL;
	if (n == NULL || !n->is_known || !is_of_this_machine(c, n, r, seen))
		return false;
	if (n->notice == NODE_STAYS || why < n->notice)
		n->notice = why;
	if (n->interruption == NODE_STAYS || why < n->interruption) {
		n->interruption = why;
		model_tell_node(c, CLUSTER_NODE_CHANGED, n, seen->arrived, seen->is_from_list);
	}
	return false;
}
