#include "providers/node_marks.h"

#include "providers/block.h"

#include <string.h>

const char node_provisioner_label[] = "karpenter.sh/nodepool";
const char do_not_disrupt_annotation[] = "karpenter.sh/do-not-disrupt";

const struct taint_mark node_taint_marks[] = {
	{ "karpenter.sh/disrupted", false, NODE_PROVISIONER, NODE_STAYS },
	{ "karpenter.sh/unregistered", false, NODE_PROVISIONER, NODE_STAYS },
	{ "karpenter.sh/", true, NODE_UNCLAIMED, NODE_STAYS },
	{ "aws-node-termination-handler/spot-itn", false, NODE_UNCLAIMED, NODE_SPOT_INTERRUPTED },
	{ "aws-node-termination-handler/rebalance-recommendation", false, NODE_UNCLAIMED, NODE_REBALANCED },
	{ "aws-node-termination-handler/", true, NODE_UNCLAIMED, NODE_MAINTAINED },
	{ "remediator.kubernetes.azure.com/", true, NODE_UNCLAIMED, NODE_STAYS }, /* why, its conditions say */
	{ "cloud.google.com/impending-node-termination", false, NODE_UNCLAIMED, NODE_SPOT_INTERRUPTED },
	{ "simulated.preheat.dev/spot-taken", false, NODE_UNCLAIMED, NODE_SPOT_INTERRUPTED },
	{ NULL, false, NODE_UNCLAIMED, NODE_STAYS },
};

/* Azure tells of any event in one condition, and of the kind in others, in its reason, or only in its message. */
const struct condition_mark node_condition_marks[] = {
	{ "VMEventScheduled", "Preempt", NODE_MAINTAINED },
	{ "PreemptScheduled", NULL, NODE_SPOT_INTERRUPTED },
	{ NULL, NULL, NODE_STAYS },
};

const struct event_mark node_event_marks[] = {
	{ "SpotInterruption", NODE_SPOT_INTERRUPTED },	/* aws-node-termination-handler */
	{ "PreemptScheduled", NODE_SPOT_INTERRUPTED },	/* node-problem-detector on AKS */
	{ "RebalanceRecommendation", NODE_REBALANCED }, /* aws-node-termination-handler */
	{ "TerminateScheduled", NODE_MAINTAINED },	/* node-problem-detector on AKS */
	{ NULL, NODE_STAYS },
};

/* Karpenter's first: it works on top of a cloud. */
enum { TELLERS = 3 };
static const struct provider_block *const tellers[TELLERS] = { &provider_block_karpenter, &provider_block_eks,
							       &provider_block_aks };

const char *capacity_label_at(size_t index)
{
	if (index < TELLERS)
		return tellers[index]->capacity_label;
	return index == TELLERS ? "preheat.dev/capacity-type" : NULL;
}

const char *capacity_of_word(const char *word)
{
	static const char *const names[] = { "on-demand", "spot", "reserved" };

	_Static_assert(sizeof names / sizeof *names == BLOCK_CAPACITIES, "a name per capacity type");
	for (size_t i = 0; i < TELLERS; i++)
		for (int type = 0; type < BLOCK_CAPACITIES; type++) {
			const char *of_cloud = tellers[i]->capacity_words[type];
			if (of_cloud && !strcmp(word, of_cloud))
				return names[type];
		}
	/* AKS leaves its label away there; a word of its API that users set. */
	return strcmp(word, "regular") ? word : names[BLOCK_ON_DEMAND];
}

const char *machine_of_provider_id(const char *provider_id)
{
	const char *last = strrchr(provider_id, '/');
	const char *machines = strstr(provider_id, "/virtualMachines/");

	if (!last)
		return provider_id;
	if (strncmp(provider_id, "azure://", 8) != 0 || !machines)
		return last + 1;
	const char *set = machines;
	while (set > provider_id && set[-1] != '/')
		set--;
	return set;
}
