/* Out of what AWS answered: the description of a group. Pure. */
#pragma once
#include "providers/eks_answer.h"

/* A failed launch is believed when what it left open still is so long after it, or was at an earlier look. */
#define EKS_FAILURE_SETTLES (15 * SECOND)

struct eks_seen {
	struct eks_group group;
	struct eks_nodegroup nodegroup; /* zeroed where nobody was asked */
	const struct eks_instance *pool;
	size_t pool_count;
	const struct eks_activity *activities;
	size_t activity_count;
	millis now;	     /* as AWS's clock says */
	int64_t told_before; /* number of the newest failure that an earlier look read; 0: none did */
	bool was_pool_denied;
	enum eks_warm_pool warm_pool; /* how it is sized, or to be made */
};

void eks_describe(const struct eks_seen *s, struct arena *a, struct group_description *out);

/* Machines that the warm pool shall hold. */
int64_t eks_standby(const struct eks_group *g);
/* Instances of the group that hold a place of its desired size. */
int64_t eks_alive(const struct eks_group *g);
bool eks_is_starting(const struct eks_instance *i); /* certainly: may be cancelled */
bool eks_is_in_service(const struct eks_instance *i);
bool eks_is_leaving(const struct eks_instance *i);
/* Whether activities are worth a call. */
bool eks_has_open_ends(const struct eks_group *g);
/* Who sizes the warm pool: the node group's own settings, or Auto Scaling. */
bool eks_pool_is_nodegroups(const struct eks_seen *s);
/* abilities and the sentence on what is lacking. */
unsigned eks_abilities(const struct eks_seen *s, const char **lacks);

int64_t eks_newest_failure(const struct eks_activity *items, size_t count); /* its number, 0 without */
/* Of a launch that failed; false: it says nothing of one. */
bool eks_read_failure(const struct eks_activity *y, struct arena *a, struct launch_failure *out);
/* By text, as activities and LaunchInstances tell; back_off may be NULL. */
enum error_kind eks_failure_kind(const char *code, const char *message, millis *back_off);
