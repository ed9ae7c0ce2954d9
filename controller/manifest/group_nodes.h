/*
 * What the manifest and the provider's block tell of the nodes of a group before one was seen. Groups as all pools
 * together describe them; what is made lives in the arena.
 */
#pragma once
#include "controller/manifest/warm_pool.h"

/* Labels that follow from the other keys of the group. */
struct schema_labels group_implied_labels(const struct group_text *g, struct arena *a);
/* These, and what stands in its key `labels`; linux, where that does not say another system. */
struct schema_labels group_node_labels(const struct group_text *g, struct arena *a);
/* Taints that its nodes keep. */
const struct block_taint *group_node_taints(const struct group_text *g, struct arena *a, size_t *count);
