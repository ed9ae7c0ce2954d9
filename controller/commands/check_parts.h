/* What the files of `preheat check` share. */
#pragma once
#include "controller/commands/access.h"
#include "controller/contract/contract.h"

/* Everything that was read, and what is wrong with it. */
struct checked {
	struct arena *arena;
	struct findings *findings;
	const struct yaml_node **pools; /* WarmPools, and what should be one */
	size_t pool_count;
	const struct yaml_node **objects;
	size_t object_count;
	size_t passed_over; /* of kinds that no rule is about */
	size_t charts;	    /* of Helm, whose templates were passed over */
	bool is_whole;	    /* objects came from a cluster */

	struct manifest manifest;
	bool has_manifest; /* there are pools, and nothing is wrong with them */
	struct contract_report report;
};

void checked_add(struct checked *c, const struct yaml_node *root, bool is_named);
/* Files, folders and "-". False: something could not be read at all; the rest was. */
bool check_read_paths(struct checked *c, const char *const *paths, size_t count, struct error *e) MUST_USE;
/* Objects of a cluster, by lists in pages. */
bool check_read_cluster(struct checked *c, const struct access_options *o, struct error *e) MUST_USE;

/* check_pools.c: what the pools are understood to say. */
void check_print_pools(const struct manifest *m);
/* check_print.c */
void check_print(const struct checked *c, const char *form);
/* check_sarif.c */
void check_write_sarif(const struct checked *c, struct buf *out);
/* "Deployment llm/chat" */
void check_object_name(const struct contract_object *o, struct buf *out);
