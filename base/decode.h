/*
 * JSON into structs by table, as it streams by. A table names the members
 * that are wanted; everything else is skipped at the cost of finding its
 * end. What is read is checked strictly, what is skipped only for balance.
 * Depth, bytes of a record and items of a list are capped.
 *
 *	struct node { const char *name; int64_t gpus; struct decoded_list taints; };
 *	static const struct field node_fields[] = {
 *		{ "metadata>name", FIELD_STRING, offsetof(struct node, name), true },
 *		FIELD(struct node, gpus, FIELD_COUNT, "status>allocatable>nvidia.com/gpu"),
 *		{ "spec>taints", FIELD_LIST, offsetof(struct node, taints), .of = &taint_record },
 *	};
 *	static const struct record_spec node_record = { "items[]", sizeof(struct node), node_fields, 3 };
 */
#pragma once
#include "base/arena.h"
#include "base/error.h"

#include <stddef.h>
#include <stdint.h>

enum field_type {
	FIELD_STRING, /* const char * : NULL when absent or null; never holds a NUL byte */
	FIELD_INT,    /* int64_t : a whole number, negative too */
	FIELD_BOOL,   /* bool */
	FIELD_COUNT,  /* int64_t : 8, "8", and Kubernetes quantities in whole units, rounded up: "2Gi", "1500m" is 2 */
	FIELD_TIME,   /* millis since the epoch (int64_t) of an RFC 3339 text; 0 when absent */
	FIELD_LIST,   /* struct decoded_list : an array of records `of` */
	FIELD_MAP,    /* struct decoded_map : an object's members that `wants`; text or scalars as they stand */
	FIELD_RAW,    /* struct decoded_text : the JSON text of the value; alive as long as the text decoded */
};

struct decoded_list {
	void *items; /* `count` records of of->size, in order */
	size_t count;
};

struct decoded_pair {
	const char *key, *value;
};

struct decoded_map {
	const struct decoded_pair *pairs; /* in the order of the text */
	size_t count;
};

struct decoded_text {
	const char *text; /* not NUL-terminated; NULL when absent */
	size_t len;
};

/* What a FIELD_RAW has, with its sign, in units of 10^-places. False, `out` untouched, where that is no number. */
bool decoded_number(const struct decoded_text *t, int places, int64_t *out) MUST_USE;

struct record_spec;

struct field {
	const char *path; /* keys from the record's object joined by '>': label keys hold '.' and '/'; "": itself */
	enum field_type type;
	size_t offset;
	bool required;
	const struct record_spec *of;		    /* FIELD_LIST; its path is not used */
	bool (*wants)(const char *key, size_t len); /* FIELD_MAP; NULL: all of it */
};

#define FIELD(struct_type, member, kind, path_)                                          \
	{                                                                                \
		.path = (path_), .type = (kind), .offset = offsetof(struct_type, member) \
	}

/*
 * `path` says where records stand in a stream: "items[]" (each item), "data>result[]", "" (each document of the
 * stream: JSON Lines). The items of a FIELD_LIST may be scalars: then one field of path "".
 */
struct record_spec {
	const char *path;
	size_t size;
	const struct field *fields;
	size_t field_count;
};

/* A table made ready, to be kept by whoever decodes often. The spec must outlive it. */
struct decode_plan;
struct decode_plan *decode_plan_new(const struct record_spec *spec);
void decode_plan_free(struct decode_plan *p); /* takes NULL */

/*
 * One whole JSON value into `record` (spec->size bytes, zeroed here). Texts, lists and maps live in the arena. Errors
 * are ERROR_INVALID: "metadata>name: found 3; allowed: text (byte 17)"; the record is then in no defined state. A NULL
 * text, of an empty answer or an absent FIELD_RAW, is an empty one.
 */
bool decode_record(const struct decode_plan *p, const char *text, size_t len, struct arena *a, void *record,
		   struct error *e) MUST_USE;

/* Called once per complete record; it, and all it points to, lives until the call returns. False ends the decoding. */
typedef bool record_fn(void *user, void *record, struct error *e);

struct decoder_setup {
	const char *name; /* of the source, for messages; borrowed */
	const struct decode_plan *records;
	record_fn *emit;
	void *user;
	/* Members of the document around the records, such as metadata>continue; may be NULL. */
	const struct decode_plan *document;
	void *document_record; /* filled in as members are seen; texts live until decoder_close() */
	size_t record_cap;     /* bytes of one record, and of a document's member; 0: DECODE_RECORD_CAP */
};

#define DECODE_RECORD_CAP   ((size_t)8 << 20)
#define DECODE_DEPTH	    256
#define DECODE_ITEMS	    ((size_t)100000) /* of one list, pairs of one map */
#define DECODE_OUTER_LEVELS 8		     /* of a record_spec's path */

struct decoder;
struct decoder *decoder_open(const struct decoder_setup *s);
void decoder_close(struct decoder *d); /* takes NULL */
/* The next bytes, cut anywhere. Errors begin with "NAME: byte N: "; nothing may be fed after one. */
bool decoder_feed(struct decoder *d, const char *bytes, size_t len, struct error *e) MUST_USE;
/* After the last bytes: an open document is an error. */
bool decoder_finish(struct decoder *d, struct error *e) MUST_USE;
