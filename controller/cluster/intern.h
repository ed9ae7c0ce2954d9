/*
 * Values that many objects share, kept once and counted: texts, and sets
 * made of them. Equal values have equal addresses. What is in a set is held
 * by the set.
 */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * An open-addressing table of pointers to structs that carry their own hash.
 * A slot is 8 bytes; the table keeps itself at most three quarters full and
 * shrinks again. Order is that of hashes: never shown to anybody.
 */

struct store {
	void **slots;
	size_t room, count; /* room: a power of two, 0 at first */
	size_t hash_offset; /* of the uint32_t in the structs */
};

/* Whether an item of equal hash is the one looked for. */
typedef bool store_same_fn(const void *item, const void *key);

void *store_find(const struct store *s, uint32_t hash, store_same_fn *same, const void *key);
void store_add(struct store *s, void *item);	/* must not be there yet */
void store_remove(struct store *s, void *item); /* must be there */
void store_release(struct store *s);		/* the items stay */

/* Walks the items: for (size_t at = 0; (item = store_next(s, &at));) Nothing may be added or removed meanwhile. */
void *store_next(const struct store *s, size_t *at);

uint32_t hash_bytes(uint32_t hash, const void *bytes, size_t len); /* 0 starts */
uint32_t hash_text(uint32_t hash, const char *text);		   /* its end counts too */
uint32_t hash_any_case(const char *text);			   /* a providerID is told in different cases */

/* Rows of a fixed number of words; a NULL word is allowed where a text is. */
enum intern_kind {
	INTERN_TEXT,
	INTERN_LABELS,	     /* struct label */
	INTERN_RESOURCES,    /* struct resource */
	INTERN_TAINTS,	     /* struct taint */
	INTERN_TOLERATIONS,  /* struct toleration */
	INTERN_REQUIREMENTS, /* struct requirement */
	INTERN_OWNER,	     /* struct pod_owner */
	INTERN_NAMES,	     /* struct name */
	INTERN_CLAIMS,	     /* struct claim */
	INTERN_PORTS,	     /* struct host_port */
	INTERN_POD_TERMS,    /* struct pod_term */
	INTERN_SPREADS,	     /* struct spread */
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

struct name {
	const char *text;
};
struct name_set {
	struct name items[1];
};

/* What a pod names that must be there before it may run. */
enum claim_kind {
	CLAIM_VOLUME,	     /* a PersistentVolumeClaim */
	CLAIM_DEVICE,	     /* a ResourceClaim */
	CLAIM_DEVICE_TO_COME /* one that is made from a template, and is not there yet; the name is the pod's own */
};
struct claim {
	const char *name;
	int64_t kind; /* enum claim_kind */
};
struct claim_set {
	struct claim items[1];
};

struct host_port {
	const char *ip; /* NULL: all addresses */
	const char *protocol;
	int64_t port;
};
struct host_port_set {
	struct host_port items[1];
};

/* A term of a required pod affinity or anti-affinity. */
struct pod_term {
	const char *topology;
	const struct requirement_set *selector; /* of labels; NULL selects all */
	const struct name_set *namespaces;
	const struct requirement_set *of_namespaces; /* labels of further namespaces; NULL with the flag: all */
	int64_t flags;				     /* enum pod_term_flag */
};
enum pod_term_flag { TERM_SELECTS_NOTHING = 1, TERM_SELECTS_NAMESPACES = 2, TERM_IN_OWN_NAMESPACE = 4 };
struct pod_term_set {
	struct pod_term items[1];
};

/* A topology spread constraint that must be kept (DoNotSchedule). */
struct spread {
	const char *topology;
	const struct requirement_set *selector; /* as of a term */
	int64_t max_skew, min_domains;
	int64_t flags; /* enum spread_flag */
};
enum spread_flag { SPREAD_SELECTS_NOTHING = 1, SPREAD_OVER_ALL_NODES = 2, SPREAD_HONORS_TAINTS = 4 };
struct spread_set {
	struct spread items[1];
};

/* What a pod asks of a node, and of where others run. What only a pod without a node asks is not kept of the others. */
struct pod_shape {
	const struct label_set *selector; /* spec.nodeSelector */
	const struct resources *requests;
	const struct toleration_set *tolerations;
	const struct requirement_set *affinity; /* required node affinity */
	const struct host_port_set *ports;
	const struct pod_term_set *apart; /* required anti-affinity: it keeps others away, too */
	const struct pod_term_set *near;  /* required affinity; without a node only */
	const struct spread_set *spreads; /* without a node only */
	const struct claim_set *claims;	  /* of devices; without a node those of volumes, too */
	const char *scheduler;		  /* NULL: default-scheduler; without a node only */
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
void intern_hold(const void *value);		   /* one more; NULL is allowed */
size_t intern_rows_in(const void *set);		   /* rows; not of NULL */
static inline size_t intern_count(const void *set) /* 0 for NULL */
{
	return set == NULL ? 0 : intern_rows_in(set);
}

const char *label_set_get(const struct label_set *set, const char *key); /* NULL without */
int64_t resources_get(const struct resources *set, const char *name);	 /* thousandths, 0 without */
