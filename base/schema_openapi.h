/*
 * A table of base/schema.h as the structural OpenAPI v3 schema of a
 * CustomResourceDefinition, in YAML: types, bounds, choices, patterns,
 * defaults, and rules (CEL) for what a pattern cannot say.
 */
#pragma once
#include "base/schema.h"

/* What must hold within every record of a table, in CEL over `self`. */
struct openapi_rule {
	const char *table; /* name of the table */
	const char *rule, *message;
};

/* Defaults that the server must not fill in, because it matters whether they were written. */
struct openapi_silence {
	const char *table, *key; /* key NULL: all of the table, and of the tables in it */
};

struct openapi_setup {
	const struct openapi_rule *rules;
	size_t rule_count;
	const struct openapi_silence *silences;
	size_t silence_count;
	const char *const *filled; /* keys of maps that the server makes when they are absent; ends in NULL */
};

/* The lines under a key that stands at column `indent`. */
void schema_write_openapi(const struct schema_table *t, const struct openapi_setup *setup, int indent, struct buf *out);
