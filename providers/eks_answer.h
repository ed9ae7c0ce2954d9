/* What AWS answers, as far as we look at it. Pure; texts and lists live in the arena. Errors are ERROR_INVALID. */
#pragma once
#include "base/xml.h"
#include "providers/eks_request.h"
#include "providers/provider.h"

enum { EKS_MACHINES = 5000 }; /* of one group */

struct eks_instance {
	const char *id, *type, *zone, *state, *weight;
	bool is_protected;
};

struct eks_pool {
	bool exists;
	int64_t least, prepared; /* prepared -1: what lies between the size and the group's max */
	const char *state;	 /* "Stopped", "Running", "Hibernated" */
	bool reuses, is_being_deleted;
};

struct eks_group {
	const char *name;
	int64_t min, max, desired;
	const struct eks_instance *instances;
	size_t instance_count;
	const char *const *zones;
	size_t zone_count;
	struct eks_pool pool;
	bool is_tagged;	 /* for Cluster Autoscaler */
	bool may_launch; /* the process Launch is not suspended */
};

struct eks_activity {
	const char *id, *status, *description, *message, *details;
	millis started_at, ended_at;
};

struct eks_list {
	const void *items;
	size_t count;
	const char *next; /* page; NULL: that was all */
};

/* What DescribeNodegroup says. */
struct eks_nodegroup {
	const char *group; /* name of its Auto Scaling group; NULL: none yet */
	const char *status, *capacity_type, *image;
	bool has_pool; /* warmPoolConfig, enabled */
	struct eks_pool pool;
};

struct eks_launch_error {
	const char *zone, *type, *code, *message;
};

struct eks_launched {
	int64_t count;
	const struct eks_launch_error *errors;
	size_t error_count;
};

/* ERROR_NOT_FOUND: there is no group of this name. The second: it was asked for with others. */
bool eks_read_group(const char *text, size_t len, const char *name, struct arena *a, struct eks_group *out,
		    struct error *e) MUST_USE;
bool eks_read_group_of(const char *text, size_t len, const char *name, struct arena *a, struct eks_group *out,
		       struct error *e) MUST_USE;
/* The one name in it: ERROR_NOT_FOUND without, ERROR_INVALID for several. */
bool eks_read_found(const char *text, size_t len, struct arena *a, const char **name, struct error *e) MUST_USE;
bool eks_read_pool(const char *text, size_t len, struct arena *a, struct eks_list *out,
		   struct error *e) MUST_USE; /* of struct eks_instance */
bool eks_read_activities(const char *text, size_t len, struct arena *a, struct eks_list *out,
			 struct error *e) MUST_USE; /* of struct eks_activity, as told: newest first */
bool eks_read_launched(const char *text, size_t len, struct arena *a, struct eks_launched *out,
		       struct error *e) MUST_USE;
bool eks_read_identity(const char *text, size_t len, struct arena *a, const char **arn, struct error *e) MUST_USE;

bool eks_read_nodegroup(const char *text, size_t len, struct arena *a, struct eks_nodegroup *out,
			struct error *e) MUST_USE;

enum eks_progress { EKS_IN_PROGRESS, EKS_SUCCEEDED, EKS_FAILED };
struct eks_update {
	const char *id, *message; /* message: of the first error, "" */
	enum eks_progress progress;
	millis created_at; /* 0: not told */
};
bool eks_read_update(const char *text, size_t len, struct arena *a, struct eks_update *out, struct error *e) MUST_USE;
