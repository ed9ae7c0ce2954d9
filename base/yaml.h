/*
 * YAML text into a tree of values that know their place. The plain part of
 * YAML that manifests need: maps with text keys, lists, scalars, several
 * documents. Anchors, aliases, tags and directives are refused, as are
 * repeated keys. What the text may cost is capped; what is wrong goes to the
 * findings with line and column.
 */
#pragma once
#include "base/buf.h"
#include "base/findings.h"

enum yaml_kind { YAML_SCALAR, YAML_LIST, YAML_MAP };

struct yaml_node {
	enum yaml_kind kind;
	const char *file;
	size_t line, column; /* of the value, from 1 */
	const char *text;    /* of a scalar */
	bool is_plain;	     /* a scalar without quotes */
	const struct yaml_node *parent;
	const char *key; /* in a map, else NULL */
	size_t key_line, key_column;
	size_t index;			/* among the parent's children */
	struct yaml_node *first, *last; /* children, in the order of the text */
	struct yaml_node *next;
	size_t count;
};

struct yaml_documents {
	struct yaml_node **roots; /* NULL: nothing in that document */
	size_t count;
	size_t nodes; /* values in all of them */
};

enum {
	YAML_BYTES_MAX = 16 << 20,
	YAML_NODES_MAX = 500000,
	YAML_KEYS_MAX = 1000, /* of one map */
	YAML_DEPTH_MAX = 24,
	YAML_DOCUMENTS_MAX = 10000
};

/* What a text may cost, and whether it may use what manifests need not: tags (which are passed over), anchors, aliases
 * (which are written out, and cost as much) and the merge key "<<" (which is gone then). */
struct yaml_limits {
	size_t bytes, nodes, depth, documents;
	bool takes_all;
};

struct yaml_source {
	const char *file, *text;
	size_t len;
	struct yaml_limits limits;
};

/* False when the text cannot be read to its end. A repeated key is a finding that does not stop it. The tree lives in
 * the arena; `file` and `text` need not outlive the call. */
bool yaml_parse(const char *file, const char *text, size_t len, struct arena *a, struct yaml_documents *out,
		struct findings *f) MUST_USE;
/* The same within other limits. */
bool yaml_parse_source(const struct yaml_source *s, struct arena *a, struct yaml_documents *out,
		       struct findings *f) MUST_USE;

const struct yaml_node *yaml_child(const struct yaml_node *map, const char *key); /* NULL when absent or no map */
/* The same along keys, which end in NULL; NULL where one is absent. */
const struct yaml_node *yaml_walk(const struct yaml_node *map, const char *const *keys);
#define YAML_AT(map, ...) yaml_walk((map), (const char *const[]){ __VA_ARGS__, NULL })
const char *yaml_text(const struct yaml_node *map, const char *key); /* of a scalar; NULL: there is none */
/* "spec.nodeGroups[1].max"; "" for a root. */
void yaml_path(const struct yaml_node *node, struct buf *out);
/* What a plain scalar means to other readers of YAML: "a number", "a truth value", "nothing", or NULL for text. */
const char *yaml_plain_meaning(const struct yaml_node *scalar);

/* JSON text as YAML, value by value, in the layout that kubectl uses: lists stand below their key without indent. */

/* Appends one document that ends in a line end. Texts that another reader could take for something else are quoted.
 * ERROR_INVALID for what is no JSON; `out` may hold a part of it then. */
bool yaml_write_json(const char *json, size_t len, struct buf *out, struct error *e) MUST_USE;
