/* What we ask AWS, as it goes over the wire: paths of EKS, forms of Auto Scaling and STS. Pure. */
#pragma once
#include "base/buf.h"
#include "providers/eks_settings.h"

#include <stdint.h>

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
void eks_set_size(const char *group, int64_t desired, struct buf *out);
void eks_terminate(const char *id, struct buf *out);
void eks_protect(const char *group, const char *const *ids, size_t count, bool is_protected, struct buf *out);
void eks_put_pool(const char *group, const struct eks_pool_size *size, struct buf *out);
/* zone NULL: the group has one. */
void eks_launch_instances(const char *group, int64_t count, const char *zone, const char *token, struct buf *out);

void eks_caller_identity(struct buf *out);
