/*
 * What the API server said lately, by the hash of what it was asked. Bounded:
 * when it is full, what would be forgotten first goes. Holds no token.
 */
#pragma once
#include "base/digest.h"
#include "base/millis.h"

struct gate_cache;

struct gate_fact {
	struct sha256 key;
	millis until;	  /* monotonic */
	const char *text; /* belongs to the cache; NULL: none */
};

struct gate_cache *gate_cache_new(size_t most);
void gate_cache_free(struct gate_cache *c); /* takes NULL */
/* NULL when it is not known, or no longer at `now`; valid until the cache is changed. */
const struct gate_fact *gate_cache_find(struct gate_cache *c, const struct sha256 *key, millis now);
/* `text` is copied; what was known under the key is replaced. */
void gate_cache_keep(struct gate_cache *c, const struct gate_fact *fact);
