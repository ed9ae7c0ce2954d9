/*
 * The scheduling contract of GPU pools: what objects of a cluster must say so
 * that GPUs are bought, shared and given back as Preheat counts them. Objects
 * come in as trees, from manifests or from the API server; what is wrong goes
 * out as violations, each with its rule, object, place and remedy. No I/O.
 */
#pragma once
#include "controller/manifest/manifest.h"

enum contract_severity { CONTRACT_ERROR, CONTRACT_WARNING, CONTRACT_NOTE, CONTRACT_SEVERITIES };

struct check_run;
struct contract;
struct workload;

struct contract_rule {
	const char *id; /* "gpu-limits": stable, in annotations, SARIF and anchors of docs/contract.md */
	enum contract_severity severity;
	const char *kinds; /* "Pod, Deployment, ..." of what it judges */
	const char *title; /* one line without a full stop */
	const char *why, *remedy;
	bool is_admitted; /* deploy/admission has a policy of it, too */
	/* A rule about workloads, one by one (`is_about` NULL: all of them), or about all objects at once. */
	bool (*is_about)(const struct contract *c, const struct workload *w);
	void (*judge_workload)(struct check_run *c, const struct workload *w);
	void (*judge)(struct check_run *c);
};

/* An object as messages name it. */
struct contract_object {
	const char *api_version, *kind, *namespace, *name; /* namespace "": not said, or without */
	const struct yaml_node *at;
	size_t times; /* as many of the cluster, which differ in name alone */
};

struct contract_violation {
	const struct contract_rule *rule;
	const struct contract_object *object;
	const struct yaml_node *at; /* the value in question */
	const char *found;	    /* one sentence without a full stop */
	const char *remedy;	    /* what to do here */
	bool is_ignored;	    /* by the annotation preheat.dev/ignore of the object */
};

struct contract_report {
	const struct contract_violation *items; /* by place, the worst first at one place */
	size_t count;
	size_t counts[CONTRACT_SEVERITIES]; /* of all alike, without what is ignored */
	size_t ignored;
	size_t objects; /* judged */
	/* What could not be judged for want of other objects, a sentence each. */
	const char *const *unjudged;
	size_t unjudged_count;
};

/* Trees and manifest must outlive it; it lives in the arena. `now`: what ended before is over. */
struct contract *contract_new(struct arena *a, millis now);
/* An object that stands for `times` alike, itself among them. False: it is of a kind that no rule is about; nothing is
 * kept of it. */
bool contract_add(struct contract *c, const struct yaml_node *object, size_t times);
/* The pools and node groups. NULL: there are none, or (`is_broken`) they say what cannot be. */
void contract_set_pools(struct contract *c, const struct manifest *m, bool is_broken);
/* From a cluster: nothing is missing for having been left out of a folder. */
void contract_set_whole(struct contract *c);
struct contract_report contract_judge(struct contract *c);

const struct contract_rule *contract_rules(size_t *count);
const char *contract_severity_name(enum contract_severity s); /* "error", "warning", "note" */
/* Whether a kind is one that rules are about. */
bool contract_knows(const char *kind);
/* docs/contract.md. */
void contract_write_reference(struct buf *out);
/* deploy/admission/policies/policies.yaml: ValidatingAdmissionPolicies of the rules that CEL can express, each with a
 * binding. */
void contract_write_policies(struct buf *out);

#define CONTRACT_IGNORE "preheat.dev/ignore"	 /* annotation: ids of rules, with commas */
#define CONTRACT_MEMORY "preheat.dev/gpu-memory" /* annotation: what a pod needs of each GPU, "40Gi" */
#define CONTRACT_POOL	"preheat.dev/pool"	 /* label: the pool that a pod is of, or "none" */
