/*
 * What clouds, autoscalers and their tools write onto the nodes of a cluster and tell of them: which machine a node is,
 * how it was bought, who else decides about it, and that it will be taken. Tables and pure functions.
 */
#pragma once
#include <stdbool.h>
#include <stddef.h>

/* Who else decides about the node. Anything but NODE_UNCLAIMED is never touched. */
enum node_owner {
	NODE_UNCLAIMED,	  /* nobody: ours when it is in one of our groups */
	NODE_PROVISIONER, /* one that makes nodes itself and marks them: label node_provisioner_label */
	NODE_AUTOSCALER,  /* Cluster Autoscaler is deleting it: taint ToBeDeletedByClusterAutoscaler */
	NODE_ESCALATOR,	  /* taints atlassian.com/escalator... */
	NODE_OWNER_COUNT
};

/* Why the machine will be taken whatever we do. */
enum node_interruption {
	NODE_STAYS,
	NODE_SPOT_INTERRUPTED, /* a spot notice was seen */
	NODE_TERMINATING,      /* its group's cloud ends the machine, which may run on for a while: a hook holds it */
	NODE_REBALANCED,       /* the vendor recommends to leave */
	NODE_MAINTAINED,       /* a scheduled event, or the machine was shut down */
	NODE_INTERRUPTION_COUNT
};

/* What a taint of this key says; nothing where owner and interruption are 0. It comes and goes, and says nothing of the
 * next node of its group. */
struct taint_mark {
	const char *key;
	bool is_prefix;
	enum node_owner owner;
	enum node_interruption interruption;
};
/* The first that fits counts; ends with a key NULL. */
extern const struct taint_mark node_taint_marks[];

/* A condition that is True; a reason or message that begins with `spot` tells of a spot notice. */
struct condition_mark {
	const char *type, *spot; /* spot NULL: always `interruption` */
	enum node_interruption interruption;
};
extern const struct condition_mark node_condition_marks[]; /* ends with a type NULL */

/* What an Event about a node with this reason tells. */
struct event_mark {
	const char *reason;
	enum node_interruption interruption;
};
extern const struct event_mark node_event_marks[]; /* ends with a reason NULL */

extern const char node_provisioner_label[];
extern const char do_not_disrupt_annotation[]; /* of nodes and of pods */

/* Labels that tell how a node was bought, in the order in which they are believed; NULL after the last. */
const char *capacity_label_at(size_t index);
/* "on-demand", "spot" or "reserved" for the word of any cloud; another word stays as it is. */
const char *capacity_of_word(const char *word);
/* "aws:///eu-west-1a/i-0abc": the last part; of a scale set's machine the set too: "aks-gpu-vmss/virtualMachines/3". */
const char *machine_of_provider_id(const char *provider_id);
