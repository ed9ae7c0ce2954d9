/*
 * Values that many objects share, kept once and counted: texts, and sets
 * made of them. Equal values have equal addresses. What is in a set is held
 * by the set.
 */
#pragma once
#include "controller/cluster/store.h"

/* Rows of a fixed number of words; a NULL word is allowed where a text is. */
enum intern_kind {
	INTERN_TEXT,
	INTERN_LABELS,	     /* struct label */
	INTERN_RESOURCES,    /* struct resource */
	INTERN_TAINTS,	     /* struct taint */
	INTERN_TOLERATIONS,  /* struct toleration */
	INTERN_REQUIREMENTS, /* struct requirement */
	INTERN_OWNER,	     /* struct pod_owner */
	INTERN_SHAPE,	     /* struct pod_shape */
	INTERN_KIND_COUNT
};

struct label {
	const char *key, *value;
};
struct resource {
	const char *name;
	int64_t milli; /* thousandths of a unit */
};
struct taint {
	const char *key, *value, *effect;
};
struct toleration {
	const char *key, *value, *effect; /* NULL: any */
	int64_t is_equal;		  /* 0: the key's presence is enough */
};

/* One value of one expression of one term of a node affinity; a row even for an expression without values. */
struct requirement {
	int64_t term, expression;
	int64_t operation; /* enum requirement_operation */
	const char *key;   /* NULL: metadata.name */
	const char *value; /* NULL without */
};
enum requirement_operation {
	REQUIRE_IN,
	REQUIRE_NOT_IN,
	REQUIRE_EXISTS,
	REQUIRE_ABSENT,
	REQUIRE_MORE,
	REQUIRE_LESS,
	REQUIRE_UNKNOWN /* an operator that we do not know: never fulfilled */
};

/* Sets end where intern_count() says; NULL is the empty set. Sorted by the first text, so that equal sets are one. */
struct label_set {
	struct label items[1];
};
struct resources {
	struct resource items[1];
};
struct taint_set {
	struct taint items[1];
};
struct toleration_set {
	struct toleration items[1];
};
struct requirement_set {
	struct requirement items[1];
};

/* What a pod asks of a node. */
struct pod_shape {
	const struct label_set *selector; /* spec.nodeSelector */
	const struct resources *requests;
	const struct toleration_set *tolerations;
	const struct requirement_set *affinity; /* required node affinity */
};

struct intern {
	struct store store;
};

void intern_open(struct intern *in);
void intern_close(struct intern *in); /* everything must have been dropped */

/* One more reference to the value; `rows` is copied, texts in it must be interned (each is held anew). */
const void *intern_rows(struct intern *in, enum intern_kind kind, const void *rows, size_t count);
const char *intern_text(struct intern *in, const char *text); /* NULL gives NULL */
const char *intern_bytes(struct intern *in, const char *text, size_t len);
/* One reference less; NULL is allowed. */
void intern_drop(struct intern *in, const void *value);
void intern_hold(const void *value);  /* one more; NULL is allowed */
size_t intern_count(const void *set); /* rows; 0 for NULL */

const char *label_set_get(const struct label_set *set, const char *key); /* NULL without */
int64_t resources_get(const struct resources *set, const char *name);	 /* thousandths, 0 without */
