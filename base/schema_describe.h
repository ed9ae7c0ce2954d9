/*
 * What the tables of base/schema.h say: for people (Markdown), for editors
 * (JSON Schema 2020-12), and for API servers, as the structural OpenAPI v3
 * schema of a CustomResourceDefinition in YAML, with rules (CEL) for what a
 * pattern cannot say.
 */
#pragma once
#include "base/schema.h"

/* A section per map and list, a row per key; a table that several keys share is printed once. */
void schema_write_markdown(const struct schema_table *t, struct buf *out);
/* One JSON object. `id` names the schema, `title` the thing described. */
void schema_write_json(const struct schema_table *t, const char *id, const char *title, struct buf *out);

/* What must hold within every record of a table, in CEL over `self`. */
struct openapi_rule {
	const char *table; /* name of the table */
	const char *rule, *message;
};

/* Defaults that the server must not fill in, because it matters whether they were written. */
struct openapi_silence {
	const char *table, *key; /* key NULL: all of the table, and of the tables in it */
};

/*
 * CEL for the milliseconds, as a double, of the duration that the text `x` says: CEL itself knows no days and weeks.
 * Written so that the server can tell beforehand how much it may cost.
 */
#define OPENAPI_MILLIS(x)                                                                               \
	"(604800000.0 * double('0' + " x ".substring(0, " x ".contains('w') ? " x ".indexOf('w') : 0))" \
	" + 86400000.0 * double('0' + " x ".substring(" x ".indexOf('w') + 1, " x ".contains('d') ? " x \
	".indexOf('d') : " x ".indexOf('w') + 1))"                                                      \
	" + double(duration('0s' + " x ".substring(" x ".contains('d') ? " x ".indexOf('d') + 1 : " x   \
	".indexOf('w') + 1)).getMilliseconds()))"

struct openapi_setup {
	const struct openapi_rule *rules;
	size_t rule_count;
	const struct openapi_silence *silences;
	size_t silence_count;
	const char *const *filled; /* keys of maps that the server makes when they are absent; ends in NULL */
};

/* The lines under a key that stands at column `indent`. */
void schema_write_openapi(const struct schema_table *t, const struct openapi_setup *setup, int indent, struct buf *out);
