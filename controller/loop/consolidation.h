/*
 * Nodes of the pool that takes any that are half empty: where every pod there has a place elsewhere, one of them at a
 * time is emptied, so that its machine goes. Pods move one after the other, each once those before it run again, and
 * only as long as the rest still has a place (cluster_move()). Groups that other pools name, too, are theirs to fill.
 */
#pragma once
#include "controller/loop/scale_down.h"

struct consolidation {
	struct idle_nodes movable; /* how long each has been so */
	char node[254];		   /* that would be emptied next; "": none */
	size_t position;	   /* of its group in the pool */
	int64_t pods;		   /* that would move */
	char why[256];		   /* "its 2 pods fit on y, saves $1.21 an hour" */
};

enum move_step { MOVE_NEXT, MOVE_WAIT, MOVE_NEVER };

/* Chooses the node, before what the pool decides on is read. Who would go is told in the log, in a dry run, too. */
void consolidation_look(struct controller *c, size_t pool);
/* The node that was chosen goes, as the pool's decision for the group says. */
void consolidation_begin(struct controller *c, size_t pool, size_t position);
/*
 * Whether the node may go for the pool, as far as those are concerned who run there beside its replicas and beside GPU
 * pods, and must go elsewhere. One such node goes at a time (MOVE_WAIT). MOVE_NEVER: they have no place; `why` (in the
 * arena) says so.
 */
enum move_step consolidation_displaces(const struct controller *c, const struct node *n, size_t pool, struct arena *a,
				       const char **why);
/* Of a node that is emptied so: whether the next of its pods may be asked to go. MOVE_NEVER: what is left has no place
 * any more; `why` (in the arena) says so. */
enum move_step consolidation_step(struct controller *c, size_t pool, const struct node *n, struct arena *a,
				  const char **why);
