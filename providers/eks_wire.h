/* What EKS, Auto Scaling and STS are asked and answer, and the keys of a node group on EKS. Pure. */
#pragma once
#include "base/arena.h"
#include "base/buf.h"
#include "base/error.h"
#include "providers/provider.h"

#include <stdint.h>

enum eks_launch { EKS_LAUNCH_CAPACITY, EKS_LAUNCH_INSTANCES };
enum eks_warm_pool { EKS_POOL_EXISTING, EKS_POOL_NODEGROUP, EKS_POOL_GROUP };

enum { EKS_TAGS = 10 };

struct eks_tag {
	const char *key, *value; /* value NULL: any */
};

struct eks_settings {
	const char *cluster, *nodegroup, *region;
	const char *auto_scaling_group; /* NULL: found by the node group, or by tags */
	const char *endpoint;		/* NULL: as the environment says, else public */
	struct eks_tag tags[EKS_TAGS];
	size_t tag_count;
	enum eks_launch launch;
	enum eks_warm_pool warm_pool;
	bool takes_tagged; /* also what is tagged for Cluster Autoscaler */
	bool protects_new; /* by the setting of the Auto Scaling group, which EKS must not manage */
};

bool eks_read_settings(const char *json, struct arena *a, struct eks_settings *out, struct error *e) MUST_USE;

/* What we ask AWS, as it goes over the wire: paths of EKS, forms of Auto Scaling and STS. Pure. */

enum { EKS_IDS_AT_ONCE = 50 }; /* of SetInstanceProtection */

/* EKS. Names were checked by eks_read_settings; `id` is escaped. */
void eks_nodegroup_path(const struct eks_settings *s, struct buf *out);
void eks_update_path(const struct eks_settings *s, const char *id, struct buf *out);
void eks_config_path(const struct eks_settings *s, struct buf *out); /* of UpdateNodegroupConfig */

struct eks_pool_size {
	int64_t least, prepared; /* MinSize, MaxGroupPreparedCapacity */
	const char *state;	 /* "Stopped", "Hibernated" */
	bool reuses;
};
void eks_config_body(const struct eks_pool_size *size, const char *token, struct buf *out);

/* Auto Scaling. */
void eks_describe_groups(const char *const *groups, size_t count, struct buf *out);
void eks_find_group(const struct eks_tag *tags, size_t count, struct buf *out);
void eks_describe_pool(const char *group, const char *page, struct buf *out); /* page NULL: the first */
void eks_describe_activities(const char *group, int most, struct buf *out);   /* the newest */
void eks_describe_hooks(const char *group, struct buf *out);
void eks_describe_refreshes(const char *group, struct buf *out);
void eks_set_size(const char *group, int64_t desired, struct buf *out);
void eks_terminate(const char *id, struct buf *out);
void eks_protect(const char *group, const char *const *ids, size_t count, bool is_protected, struct buf *out);
void eks_protect_new(const char *group, bool is_protected, struct buf *out);
void eks_put_pool(const char *group, const struct eks_pool_size *size, struct buf *out);
/* zone NULL: the group has one. */
void eks_launch_instances(const char *group, int64_t count, const char *zone, const char *token, struct buf *out);

void eks_caller_identity(struct buf *out); /* of STS */

/* EC2: what machines of the group are started from, and the reservation of a Capacity Block. */
struct eks_group;
void eks_describe_template(const struct eks_group *g, struct buf *out);
void eks_describe_reservation(const char *id, struct buf *out);

/* What AWS answers, as far as we look at it. Pure; texts and lists live in the arena. Errors are ERROR_INVALID. */

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
	bool is_tagged;		 /* for Cluster Autoscaler */
	bool is_managed;	 /* by EKS: it is of a managed node group */
	const char *operated_by; /* the service that alone may change it; "": anybody may */
	const char *twin;	 /* the node group of the manifest that has it, too, and had it first; NULL: none has */
	bool protects_new;	 /* from scale-in, by its own setting */
	bool rebalances;	 /* its zones: the process AZRebalance is not suspended */
	bool may_launch;	 /* the process Launch is not suspended */
	/* Its launch template, and which version: a number, "$Latest", "$Default"; "": none is told. */
	const char *template_id, *template_version;
	struct node_promise promise; /* by its tags, as Cluster Autoscaler reads them */
};

struct eks_activity {
	const char *id, *status, *description, *cause, *message, *details;
	millis started_at, ended_at;
};

/* How long lifecycle hooks hold machines that end and that start, 0: none does; whether one that times out ends what
 * starts. Of several that hold what ends the first that times out may let it go. */
struct eks_hooks {
	millis end_hold, start_hold;
	bool abandons_starts;
};

/* Of an instance refresh that goes on; NULL: none does. */
struct eks_refresh {
	const char *status;
	int64_t percent;
	bool waits_for_protected;
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
	const char *ailment; /* a status that is no health, and the issues that EKS sees, as a sentence; "": none */
	bool has_pool;	     /* warmPoolConfig, enabled */
	struct eks_pool pool;
	struct node_promise promise; /* its labels and taints; resources by its tags */
};

struct eks_launch_error {
	const char *zone, *type, *code, *message;
};

struct eks_launched {
	int64_t count;
	const struct eks_launch_error *errors;
	size_t error_count;
};

/* ERROR_NOT_FOUND: there is no group of this name. The second: it was not asked for with others. */
bool eks_read_group(const char *text, size_t len, const char *name, struct arena *a, struct eks_group *out,
		    struct error *e) MUST_USE;
bool eks_read_sole_group(const char *text, size_t len, const char *name, struct arena *a, struct eks_group *out,
			 struct error *e) MUST_USE;
/* The one name in it: ERROR_NOT_FOUND without, ERROR_INVALID for several. */
bool eks_read_found(const char *text, size_t len, struct arena *a, const char **name, struct error *e) MUST_USE;
bool eks_read_pool(const char *text, size_t len, struct arena *a, struct eks_list *out,
		   struct error *e) MUST_USE; /* of struct eks_instance */
bool eks_read_activities(const char *text, size_t len, struct arena *a, struct eks_list *out,
			 struct error *e) MUST_USE; /* of struct eks_activity, as told: newest first */
bool eks_read_hooks(const char *text, size_t len, struct arena *a, struct eks_hooks *out, struct error *e) MUST_USE;
bool eks_read_refresh(const char *text, size_t len, struct arena *a, struct eks_refresh *out, struct error *e) MUST_USE;
bool eks_read_launched(const char *text, size_t len, struct arena *a, struct eks_launched *out,
		       struct error *e) MUST_USE;
struct eks_template {
	const char *reservation; /* id; "": it names none */
	const char *market;	 /* "capacity-block", "spot", "": on demand */
	const char *user_data;	 /* base64; may hold secrets */
};
bool eks_read_template(const char *text, size_t len, struct arena *a, struct eks_template *out,
		       struct error *e) MUST_USE;
/* When it ends; 0: never. ERROR_NOT_FOUND: there is none. */
bool eks_read_reservation(const char *text, size_t len, struct arena *a, millis *ends_at, struct error *e) MUST_USE;
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
