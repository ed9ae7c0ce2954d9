/* Contradictions in what has been read, before a fleet is made of it. */
#pragma once
#include "controller/manifest/manifest.h"

enum { POOLS_MAX = 5000, GROUPS_MAX = 10000 };

/* A node group with all places that name it; the records agree, or there is a finding. */
struct group_draft {
	struct group_text merged; /* node: the place of the first naming, each value where it was given */
	const struct group_text **namings;
	size_t naming_count, room;
};

struct draft {
	struct arena *arena, *scratch; /* what stays with the manifest, and what is the draft's alone */
	struct findings *findings;
	struct warm_pool *pools;
	size_t pool_count, pool_room;
	struct group_draft *groups; /* in the order of their first naming */
	size_t group_count;
	size_t *by_name; /* open hash of indices into groups, by name; group_slots of them, a power of two; SIZE_MAX:
			    free */
	size_t group_slots;
};

/* Whether the key is written in this map. */
static inline bool is_given(const struct yaml_node *map, const char *key)
{
	return yaml_child(map, key);
}

static inline const struct spec_text *draft_spec(const struct draft *d, size_t pool)
{
	return &d->pools[pool].spec;
}

static inline const struct group_text *draft_groups(const struct spec_text *s) /* s->groups.count of them */
{
	return s->groups.items;
}

size_t draft_group_index(const struct draft *d, const char *name); /* group_count when there is none */
/* Of a draft whose groups are merged: resolves what was left to follow from the rest, too. */
void draft_check(struct draft *d);
