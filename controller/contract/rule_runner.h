/* A check of all rules over all objects, and what each rule may say in it. */
#pragma once
#include "controller/contract/resolve.h"

struct check_run {
	struct contract *contract;
	const struct contract_rule *rule;
	struct contract_violation *items;
	size_t count;
};

struct breach {
	const struct object *object;
	const struct yaml_node *at; /* NULL: the object */
	const char *remedy;	    /* NULL: the rule's */
};
void violate(struct check_run *c, const struct breach *b, const char *found, ...) PRINTF(3, 4);
const char *say(struct check_run *c, const char *fmt, ...) PRINTF(2, 3); /* a text for a breach */
const char *shown_value(struct check_run *c, const struct yaml_node *n); /* what stands there; NULL: "nothing" */

enum { RULES_MOST = 64 };

/* The rules of a file, in the order of docs/contract.md. */
struct rule_list {
	const struct contract_rule *items;
	size_t count;
};
extern const struct rule_list rules_of_pods, rules_of_serving, rules_of_sleep, rules_of_pools;

/* Kinds of objects that rules are about. */
#define PODS                                                                                                    \
	"Pod, Deployment, StatefulSet, ReplicaSet, DaemonSet, Job, CronJob, JobSet, LeaderWorkerSet, Rollout, " \
	"PyTorchJob"
#define SERVE "Deployment, StatefulSet, LeaderWorkerSet, Rollout, Pod"
