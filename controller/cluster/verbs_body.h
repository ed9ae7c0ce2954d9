/* Pieces of patches. */
#pragma once
#include "controller/cluster/verbs.h"

#define MERGE_PATCH "application/merge-patch+json"

/* "KEY":{...} with null for what is taken away; nothing for no pairs. */
void verbs_pairs(const char *key, const struct verb_pair *pairs, size_t count, struct buf *out);
/* "key":"value"; nothing for a NULL value. */
void verbs_member(const char *key, const char *value, struct buf *out);
