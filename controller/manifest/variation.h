/* A manifest with another objective, budget or size of one pool: for asking what that would have come to. */
#pragma once
#include "controller/manifest/manifest.h"

/* As options say them, [POOL=]VALUE each; NULL: as it is. */
struct variation {
	const char *objective;	    /* "llm/chat=2s,99.5%" */
	const char *violation_cost; /* "chat=0.01": dollars */
	const char *budget;	    /* "chat=200": dollars an hour */
	const char *max;	    /* "chat=40": replicas */
	const struct variation_names *names;
};

/* What messages call them. */
struct variation_names {
	const char *objective, *violation_cost, *budget, *max;
};

bool variation_is_any(const struct variation *c);
/*
 * The manifest with these changes, what is changed copied into the arena. A budget that pools share is changed for all
 * of them. The most replicas are spread over the node groups in order of preference, for all pools that use them.
 * `only`: the pool that is meant where none is named, or NULL: the manifest's one.
 */
bool variation_apply(const struct variation *c, const char *only, struct manifest *m, struct arena *a,
		     struct error *e) MUST_USE;
