/*
 * A JSON file of the published contracts, flat: every scalar with the path
 * to it. For tests that compare what we send with what a model knows.
 */
#pragma once
#include "base/arena.h"

#include <stdbool.h>

struct contract_value {
	const char *path, *text;
};

struct contract {
	struct arena arena;
	struct contract_value *values;
	size_t count, room, items; /* items: of the list that is open at the second level, counted from 1 */
	const char *counted;	   /* path whose objects are numbered: "requests[]" becomes "requests[3]" */
};

/* False, and says so, where the contracts are not there. */
bool contract_read(struct contract *c, const char *name);
void contract_release(struct contract *c);
const char *contract_text(const struct contract *c, const char *path); /* NULL where there is none */
