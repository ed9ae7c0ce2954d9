/* Another objective, budget or size of one pool, in place of a whole other manifest. */
#pragma once
#include "controller/manifest/manifest.h"

/* As options say them, [POOL=]VALUE each; NULL: as it is. */
struct replay_change {
	const char *objective;	    /* "llm/chat=2s,99.5%" */
	const char *violation_cost; /* "chat=0.01": dollars */
	const char *budget;	    /* "chat=200": dollars an hour */
	const char *max;	    /* "chat=40": replicas */
};

bool replay_change_is_any(const struct replay_change *c);
/*
 * The manifest with these changes, what is changed copied into the arena. A budget that pools share is changed for all
 * of them. The most replicas are spread over the node groups in order of preference, for all pools that use them.
 * `only`: the pool that is meant where none is named, or NULL: the manifest's one.
 */
bool replay_change_apply(const struct replay_change *c, const char *only, struct manifest *m, struct arena *a,
			 struct error *e) MUST_USE;
