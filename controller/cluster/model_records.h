/*
 * What is read of the API server's objects: the structs that base/decode.h
 * fills in, and their tables. Everything lives in the decoder's arena.
 */
#pragma once
#include "base/decode.h"
#include "base/millis.h"

struct taint_record {
	const char *key, *value, *effect;
};
struct condition_record {
	const char *type, *status, *reason, *message;
	millis changed_at;
};

struct node_record {
	const char *provider_id;
	bool is_unschedulable;
	millis created_at, deleted_at;
	struct decoded_map labels, annotations, allocatable;
	struct decoded_list taints;	/* of struct taint_record */
	struct decoded_list conditions; /* of struct condition_record */
};

/* An Event about a node. */
struct notice_record {
	const char *node, *reason;
	millis first_at, last_at, at; /* 0: not told */
};

struct owner_record {
	const char *kind, *name, *uid;
	bool is_controller;
};
struct toleration_record {
	const char *key, *operation, *value, *effect;
};
struct text_record {
	const char *text;
};
struct expression_record {
	const char *key, *operation;
	struct decoded_list values; /* of struct text_record */
};
struct term_record {
	struct decoded_list expressions, fields; /* of struct expression_record */
};
struct container_record {
	const char *image, *restart_policy;
	struct decoded_map requests, limits;
};
struct volume_record {
	const char *name;
	struct decoded_text empty_dir, host_path;
};
struct container_status_record {
	const char *waiting, *message;
	millis running_at;
};

struct pod_record {
	millis created_at, deleted_at; /* deleted_at: when the grace ends */
	int64_t deletion_grace, grace, priority;
	struct decoded_map labels, annotations, selector, overhead, requests, limits;
	struct decoded_list owners;			 /* of struct owner_record */
	struct decoded_list tolerations;		 /* of struct toleration_record */
	struct decoded_list terms;			 /* of struct term_record */
	struct decoded_list containers, init_containers; /* of struct container_record */
	struct decoded_list volumes;			 /* of struct volume_record */
	struct decoded_list gates;			 /* of struct text_record */
	struct decoded_list conditions;			 /* of struct condition_record */
	struct decoded_list statuses, init_statuses;	 /* of struct container_status_record */
	const char *node_name, *phase, *ip;
};

struct budget_record {
	struct decoded_map match_labels;
	struct decoded_list expressions; /* of struct expression_record */
	int64_t allowed;
};

struct quota_record {
	struct decoded_map hard, used;
};

/* Jobs, JobSets, PodGroups and Kueue's Workloads: whatever says how many pods belong together. */
struct part_record {
	int64_t count, replicas, parallelism;
};
struct workload_record {
	struct decoded_list owners; /* of struct owner_record */
	struct decoded_map annotations;
	int64_t parallelism, completions, least;
	const char *completion_mode;
	bool is_suspended;
	struct decoded_list parts;	/* of struct part_record: replicatedJobs, podSets */
	struct decoded_list conditions; /* of struct condition_record */
};

extern const struct record_spec node_spec, pod_spec, budget_spec, quota_spec, job_spec, job_set_spec, pod_group_spec,
	kueue_workload_spec, notice_spec;

/* The text of a key, NULL without. */
const char *decoded_get(const struct decoded_map *map, const char *key);
/* The condition of a type, NULL without. */
const struct condition_record *condition_of(const struct decoded_list *conditions, const char *type);
