/*
 * What earlier calls found of a node group, by its settings: which Auto Scaling group is under it, remembered for some
 * minutes so that EKS is not asked at every look (so is that there is none, for less long), and what its hooks and its
 * launch template said. Without it more is asked; and which machines were asked to end, so that an older read has none
 * ended again.
 */
#pragma once
#include "base/arena.h"
#include "providers/eks_wire.h"
#include "providers/instance_store.h"

#define EKS_KNOWN_FOR  (6 * MINUTE)
#define EKS_NONE_ASKED (-1)

/* Moments are of a clock that never goes back; 0: never. */
struct eks_known {
	struct eks_known *next;
	char *settings, *group; /* group: its name in the manifest */
	struct arena arena;
	struct eks_nodegroup nodegroup;
	struct error refusal; /* ERROR_NONE: found */
	millis until, read_at;
	/* As a look showed them last: */
	int64_t desired, max;
	millis shown_at; /* by AWS's clock; 0: none was */
	struct arena looked;
	const char *auto_scaling_group; /* region and name; NULL: none was shown */
	const char **staying;		/* machines that did not end, sorted */
	size_t staying_count;
	int64_t asked; /* the size that a change of ours left, until a look shows it; EKS_NONE_ASKED */
	/* Others gave it another size: when they had not yet, by AWS's clock; at how many looks it is still asked who;
	 * and who. */
	millis resized_after;
	int resizer_asks;
	char resized_by[320];
	struct eks_ended {
		char *id;
		millis until;
	} * ended; /* machines that were asked to end; an end that is refused is forgotten */
	size_t ended_count, ended_room;
	int64_t newest_failure;
	millis emptied_asked_at; /* who set the size to 0 */
	bool is_emptied;	 /* by a scheduled action, when that was asked */
	struct eks_hooks hooks;	 /* as they were told last */
	millis hooks_asked_at;
	bool are_hooks_known;
	/* As its launch template told last, and why it did not. Who cannot ask is not asked at every look. */
	millis template_asked_at;
	struct instance_store instance_store;
	struct error instance_store_trouble;
	bool is_block;	/* its machines are started in a Capacity Block */
	millis ends_at; /* of that */
	struct error end_trouble;
};

/* The entry of a settings text of the manifest, and by which name it was asked for last: few, and kept until the end.
 */
struct eks_known *eks_known_of(struct eks_known **list, const char *settings, const char *group);
void eks_known_release(struct eks_known *list);
/* Nothing is known of its node group. */
void eks_known_forget(struct eks_known *k);
/* `jitter` spreads what was found at once. */
void eks_known_found(struct eks_known *k, const struct eks_nodegroup *found, millis now, millis jitter);
/* Kept only where asking again soon would not help. */
void eks_known_refused(struct eks_known *k, const struct error *e, millis now);
/* A look is over, at that moment of AWS's clock. */
void eks_known_looked(struct eks_known *k, const struct eks_group *g, const char *region, millis at);
/* Another node group of the manifest that was there first has the same Auto Scaling group, as looks of LAG_MOST show:
 * its name, which lives as long as the entry. NULL: none. */
const char *eks_known_twin(const struct eks_known *k, const char *auto_scaling_group, const char *region, millis at);
/* It is asked to end, or that is refused for certain: what the next calls take it to be until reads must show it. */
void eks_known_ended(struct eks_known *k, const char *id, millis now);
void eks_known_stays(struct eks_known *k, const char *id);
/* Those of LAG_MOST, in the arena. */
const char *const *eks_known_endings(const struct eks_known *k, millis now, struct arena *a, size_t *count);
/* Since that: a size moved, as an update moves it, or a machine left, as an update that ends old machines first
 * (updateStrategy MINIMAL) moves none. */
bool eks_known_has_moved(const struct eks_known *k, const struct eks_group *g);
struct eks_nodegroup eks_nodegroup_copy(struct arena *a, const struct eks_nodegroup *n);
/* A look shows this size, before eks_known_looked(): whether others set it. */
void eks_known_sized(struct eks_known *k, int64_t desired);
/* Who set it, as their activities tell; "": they do not. */
void eks_known_resizer(struct eks_known *k, const char *who);
