/*
 * WarmPool manifests: from files, folders or a text to the fleet that the
 * policy works on. Everything wrong is collected, with file, line, column,
 * path, what was found, what is allowed and what to do.
 */
#pragma once
#include "controller/manifest/warm_pool.h"

struct manifest {
	struct fleet_spec fleet;
	const struct warm_pool *pools; /* as written, one per fleet.pools */
	/* One per fleet.groups: what all pools say of it together, with the provider that follows from its block. */
	const struct group_text *groups;
	const char *text; /* all of it as one stream of documents; manifest_load_text reads it again */
	size_t text_len;
};

/*
 * Reads files, folders (their *.yaml and *.yml, by name) or "-". False with the first thing wrong in `e`: ERROR_INVALID
 * with all of them in `f` when the text is wrong. A path that cannot be read is a finding, too: `f` is incomplete then,
 * and `e` is about the first such path.
 * The manifest lives in the arena; `out` is filled on success only.
 */
bool manifest_load(const char *const *paths, size_t count, struct arena *a, struct manifest *out, struct findings *f,
		   struct error *e) MUST_USE;
/* The same from a text; `name` stands for the file in messages. */
bool manifest_load_text(const char *name, const char *text, struct arena *a, struct manifest *out, struct findings *f,
			struct error *e) MUST_USE;

/* A text that was read once, for all manifests that it is a part of. It makes sense by itself, whatever other texts
 * say: each key has a value that may stand there. Counted: whoever holds it lets go of it. */
struct manifest_part {
	const char *name, *text;
	size_t text_len;
	struct warm_pool *pools;
	size_t pool_count, nodes, documents;
	size_t holders;
	struct arena arena;
};
/* NULL with the first thing wrong in `e` (ERROR_INVALID) and all of them in `f`. */
struct manifest_part *manifest_part_read(const char *name, const char *text, struct findings *f, struct error *e);
struct manifest_part *manifest_part_hold(struct manifest_part *p);
void manifest_part_let_go(struct manifest_part *p); /* NULL: nothing */
/* As if their texts stood one after the other. The manifest's arena holds them. */
bool manifest_load_parts(struct manifest_part *const *parts, size_t count, struct arena *a, struct manifest *out,
			 struct findings *f, struct error *e) MUST_USE;

/* The same from WarmPools among other objects that were read already: no text is kept (`text` is ""). */
bool manifest_load_roots(const struct yaml_node *const *roots, size_t count, struct arena *a, struct manifest *out,
			 struct findings *f, struct error *e) MUST_USE;

/*
 * What a cluster needs and a simulation does not: the labels of the serving pods and, where nodes are bought, a
 * provider's block per node group. False with the first in `e` (ERROR_INVALID) and all in `f`.
 */
bool manifest_check_live(const struct manifest *m, bool buys, struct findings *f, struct error *e) MUST_USE;

/*
 * Whoever may write WarmPools is not trusted with the controller's own files: pools that do not stand in the text named
 * `trusted` may name files below MANIFEST_CREDENTIALS only. False with the first in `e` (ERROR_INVALID) and all in `f`.
 */
bool manifest_check_objects(const struct manifest *m, const char *trusted, struct findings *f,
			    struct error *e) MUST_USE;
#define MANIFEST_CREDENTIALS "/etc/preheat/credentials/"

/* Whether a key of the group is written anywhere, or its value is the default. */
bool manifest_group_gives(const struct manifest *m, size_t group, const char *key);
/* The label by which the nodes of a group are known, as its provider gives it. */
struct schema_label manifest_group_label(const struct manifest *m, size_t group);
