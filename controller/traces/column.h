/*
 * One cell of a table of traffic: a number with limits. A mistake becomes
 * "FILE:LINE: column NAME: found X; allowed: ...".
 */
#pragma once
#include "base/error.h"

#include <stddef.h>
#include <stdint.h>

struct cell {
	const char *text; /* not NUL-terminated */
	size_t len;
};

struct column {
	const char *name;
	int places;   /* 3: seconds kept as milliseconds */
	int64_t most; /* in kept units */
	const char *allowed;
};

struct place {
	const char *file;
	int64_t line;
};

bool column_parse(const struct column *c, struct place where, struct cell cell, int64_t *out, struct error *e) MUST_USE;
/* False, for anything else that is wrong with a cell. */
bool column_error(const struct column *c, struct place where, struct cell cell, struct error *e);
