/* What follows from all objects together: whose pods are whose, and what is known of each node group. */
#pragma once
#include "controller/contract/objects.h"

/* What is known of the machines of a node group. */
struct group_facts {
	const struct group_spec *spec;
	struct schema_label *labels;
	size_t label_count;
	bool has_all_labels; /* a node was seen: what it lacks is not there */
	const struct block_taint *taints;
	size_t taint_count;
	bool has_taints;		 /* seen; else what is usual */
	int64_t cpu_milli, memory_milli; /* UNSAID */
	const char *gpu;		 /* "A10G"; NULL: unknown */
	int64_t gpu_memory_mib;		 /* UNSAID */
	const char *source;		 /* "node gpu-1", "instance type g5.xlarge"; NULL: nothing is known */
};

void contract_resolve(struct contract *c);
const struct pool_spec *pool_of(const struct contract *c, const struct workload *w); /* NULL without */
/* A pool selects it, or selects by nothing: not so the workers beside a leader that it counts. */
bool is_selected(const struct contract *c, const struct workload *w);
/* The groups that a pool names; all of them where it is of none. */
size_t groups_of(const struct contract *c, const struct workload *w, const struct group_facts **out, size_t room);
enum { GROUPS_MOST = 64 };
/* Whether the machine is the template that makes the nodes with this mark. */
bool is_template_of(const struct machine *m, struct schema_label mark);

/* Labels that say what a machine is. */
struct known_label {
	const char *theme, *key, *meaning;
	const char *instead; /* what takes its place; NULL: it stands */
};
const struct known_label *known_labels(size_t *count);
bool taint_bars(const struct block_taint *t); /* NoSchedule or NoExecute */
/* Is judged for its GPUs: what another judged object made is not. */
bool asks_for_gpus(const struct contract *c, const struct workload *w);
const struct priority *priority_find(const struct contract *c, const char *name); /* NULL: not among the objects */
