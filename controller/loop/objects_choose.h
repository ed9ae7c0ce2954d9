/*
 * Which of the WarmPools in the API server make the manifest in force. One
 * that makes no sense, alone or beside the others, is refused with the
 * reason, and what it said before stays in force where that still fits. Who
 * is in force already comes before who changed, and older objects before
 * newer ones: nobody is pushed out by a newcomer. Nothing here is asked or
 * told.
 */
#pragma once
#include "controller/manifest/manifest.h"

struct pool_object {
	char *namespace, *name, *uid;
	char *spec;	/* JSON */
	char *former;	/* the spec that was in force last; NULL: none was */
	char *refusal;	/* why `spec` is left out; NULL: it is in force */
	bool is_former; /* it is left out, and `former` is in force in its place */
	int64_t generation;
	millis created;
	uint64_t uid_high, uid_low;
};

/*
 * `items` by namespace and name. Sets refusal, former and is_former of all; `out` without a pool is possible. `files`
 * are always in force. False when they alone make no sense.
 */
bool objects_choose(struct pool_object *items, size_t count, const struct manifest *files, struct arena *a,
		    struct manifest *out) MUST_USE;
void pool_object_release(struct pool_object *o);
