/* An Auto Scaling group, out of what AWS answered: what it is like, and what a change has to do there. Pure. */
#pragma once
#include "providers/eks_wire.h"
#include "providers/instance_store.h"

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
	/* Machines that were asked to end within LAG_MOST, whatever an older read shows. */
	const char *const *ended;
	size_t ended_count;
	bool was_pool_denied;
	bool sets_new;		      /* the settings want the group to protect what is new, and it may */
	enum eks_warm_pool warm_pool; /* how it is sized, or to be made */
	const struct instance_store *instance_store; /* of its launch template; NULL: nobody asked */
};

/* Description, abilities and failures; not what the settings forbid, nor what a change does besides. */
void eks_describe(const struct eks_seen *s, struct arena *a, struct group_description *out);
/* What EKS itself does with the node group, as a sentence; "" for nothing. Only what is ours to know of: whose it is
 * the caller knows. */
const char *eks_busy_with(const struct eks_settings *settings, const struct eks_nodegroup *n, struct arena *a);
/* What the next change does beside what it is asked for, into the description. */
void eks_tell_besides(const struct eks_seen *s, const struct eks_settings *settings, struct arena *a,
		      struct group_description *d);
/* A Capacity Block of which nobody knows when it ends, and why (ERROR_NONE: nothing names its reservation): a caution.
 */
void eks_tell_end_unknown(const struct error *why, struct arena *a, struct group_description *d);
/* That nobody knows whether images outlive a stop, and why: a caution. */
void eks_tell_disks_unknown(const struct error *why, struct arena *a, struct group_description *d);
/* How long a machine that ends there runs on, and what hooks do that nobody may expect: cautions. */
void eks_tell_hooks(const struct eks_hooks *h, struct arena *a, struct group_description *d);
/* An instance refresh that goes on: a caution. */
void eks_tell_refresh(const struct eks_refresh *r, struct arena *a, struct group_description *d);
/* It ends, and hooks may hold it; whether any does. */
bool eks_is_ending(const struct eks_instance *i);
bool eks_has_endings(const struct eks_group *g);
/* Newest first: whether a scheduled action set the size to 0, as the last that changed it. */
bool eks_emptied_by_schedule(const struct eks_activity *items, size_t count);
/* Newest first: who gave the group this size, not before that moment of AWS's clock, as a phrase; "" where the last
 * that changed it does not tell. */
const char *eks_resized_by(const struct eks_activity *items, size_t count, int64_t size, millis after, struct arena *a);
/* That a schedule emptied it, as a sentence. */
const char *eks_emptied_by(const struct eks_group *g, struct arena *a);
/* Whether activities are worth a call. */
bool eks_has_open_ends(const struct eks_group *g);
int64_t eks_newest_failure(const struct eks_activity *items, size_t count); /* its number, 0 without */
/* By text, as activities and LaunchInstances tell; back_off may be NULL. */
enum error_kind eks_failure_kind(const char *code, const char *message, millis *back_off);

/* What a change does, in the order of the verb's plan. Zeroed: nothing. */
struct eks_change {
	const char **victims, **to_protect, **to_release; /* to_release: from protection */
	size_t victim_count, protect_count, release_count;
	bool must_set_new, protects_new; /* the group's own setting, to the latter */
	bool is_outdated;		 /* refused, as the call's member says */
	bool must_size;
	int64_t target;	   /* of the desired size */
	int64_t to_launch; /* by LaunchInstances, in place of must_size */
	/* The warm pool's own size: through Auto Scaling, or through the node group, whichever sizes it. */
	bool must_put_pool, must_configure_pool;
	bool must_wait_for_pool; /* and nothing more until that is over */
	struct eks_pool_size pool_size;
};

/* Why nothing of the group is changed, with the remedy, in the arena; NULL: it may be. */
const char *eks_why_untouched(const struct eks_group *g, const struct eks_settings *settings, struct arena *a);
/* Lists live in the arena. A change that is refused is ERROR_INVALID or ERROR_CONFLICT. */
bool eks_decide(const struct eks_seen *s, const struct eks_settings *settings, const struct provider_call *c,
		struct arena *a, struct eks_change *out, struct error *e) MUST_USE;
/* Of a cancel, after its victims ended and the group was read again: what Auto Scaling got meanwhile stays. */
void eks_decide_rest(const struct eks_seen *s, const struct provider_call *c, struct arena *a, struct eks_change *x);
