/*
 * YAML into structs by table. One row says where a key stands, its type,
 * bounds, default and meaning; the row reads, checks, and makes the
 * reference page and the JSON Schema (base/schema_describe.h). Strict: unknown keys and values of
 * another type are findings, all of them are collected.
 *
 * A record's first member is `const struct yaml_node *node`: the map it was
 * read from, NULL when it is not in the text and all is default.
 */
#pragma once
#include "base/yaml.h"

#include <stdint.h>

enum schema_type {
	/* texts */
	SCHEMA_TEXT,   /* const char * : not empty, at most `max` bytes */
	SCHEMA_NAME,   /* const char * : a DNS label or subdomain as Kubernetes has it */
	SCHEMA_VALUE,  /* const char * : what may be a label's value in Kubernetes, not empty */
	SCHEMA_KEY,    /* const char * : the key of a label, or the name of a resource, there: PREFIX/NAME or NAME */
	SCHEMA_API,    /* const char * : an apiVersion, GROUP/VERSION or VERSION */
	SCHEMA_KIND,   /* const char * : a kind of objects */
	SCHEMA_URL,    /* const char * : http:// or https:// */
	SCHEMA_PATH,   /* const char * : begins with a slash */
	SCHEMA_ZONE,   /* const char * : IANA time zone that this machine knows */
	SCHEMA_METRIC, /* const char * : the name of a metric, metric_name_parse() */
	SCHEMA_CRON,   /* const char * : five fields, checked by whoever reads them */
	/* numbers and the rest */
	SCHEMA_INTEGER,	 /* int64_t */
	SCHEMA_QUANTITY, /* int64_t : 3500, 25k */
	SCHEMA_NUMBER,	 /* int64_t : millionths */
	SCHEMA_DOLLARS,	 /* int64_t : micro-dollars */
	SCHEMA_SHARE,	 /* int64_t : parts per million, written "99.9%" */
	SCHEMA_DURATION, /* int64_t : milliseconds */
	SCHEMA_FINE,	 /* int64_t : a duration in microseconds */
	SCHEMA_TIME,	 /* int64_t : minutes after midnight, "08:00"; 24:00 is 1440 */
	SCHEMA_MOMENT,	 /* int64_t : milliseconds since the epoch, written as RFC 3339 has it */
	SCHEMA_DAYS,	 /* int64_t : bit 0 = Monday; "mon-fri", "sat,sun", or a list of these */
	SCHEMA_CHOICE,	 /* int64_t : index into `choices` */
	SCHEMA_CHOICES,	 /* int64_t : a bit per choice; a list */
	SCHEMA_LABELS,	 /* struct schema_labels : text to text */
	SCHEMA_MAP,	 /* a record of `table` in place */
	SCHEMA_LIST,	 /* struct schema_list of records of `table` */
};

/* Names of Kubernetes, as patterns and as it is checked here. */
#define SCHEMA_DNS_LABEL  "[a-z0-9]([-a-z0-9]*[a-z0-9])?"
#define SCHEMA_SUBDOMAIN  SCHEMA_DNS_LABEL "([.]" SCHEMA_DNS_LABEL ")*"
#define SCHEMA_LABEL_NAME "[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?"
bool schema_is_subdomain(const char *text, size_t len);
bool schema_is_label_key(const char *text);
bool schema_is_label_value(const char *text); /* also the empty one */

struct schema_table;

struct schema_row {
	const char *key;
	enum schema_type type;
	size_t offset;
	bool is_required;     /* where the map around it is written */
	const char *fallback; /* the default as it would be written; NULL: zero, empty */
	const char *shown;    /* what the reference says of the default when `fallback` does not tell */
	bool is_selector;     /* of labels: keys and values as Kubernetes has them; else any texts */
	int64_t min, max;     /* in the stored unit; both 0: no bounds. Of a text or list: its greatest length is max */
	const char *word;     /* a word allowed in place of a number, stored as `word_value` */
	int64_t word_value;
	const char *const *choices; /* ends in NULL */
	const struct schema_table *table;
	const char *example; /* for a message, "99%"; NULL: the type's own */
	const char *help;
};

struct schema_table {
	const char *name; /* of one record, for headings: "node group" */
	size_t size;
	const struct schema_row *rows;
	size_t count;
	const char *const *passed_over; /* keys that a server adds to what was written; ends in NULL. NULL: none */
};

#define SCHEMA_ROWS(rows_) .rows = (rows_), .count = sizeof(rows_) / sizeof((rows_)[0])

struct schema_label {
	const char *key, *value;
};
struct schema_labels {
	const struct schema_label *items;
	size_t count;
};
struct schema_list {
	const void *items; /* records of the row's table */
	size_t count;
};

enum { SCHEMA_ITEMS_MAX = 200 }; /* of a list whose row gives no max */

/* Fills `record` (zeroed or not) from a map; defaults where the text has nothing. A value that is wrong leaves its
 * default and a finding. `node` NULL: all default, no finding for what is required. */
void schema_read(const struct schema_table *t, const struct yaml_node *node, void *record, struct arena *a,
		 struct findings *f);
/* A whole file with one document (for other files than manifests): what is wrong goes to the findings. False when the
 * file cannot be read. */
bool schema_load(const char *path, const struct schema_table *t, void *record, struct arena *a, struct findings *f,
		 struct error *e) MUST_USE;

/* A finding at the value of `node`; `found` NULL quotes the value. */
void schema_find(struct findings *f, const struct yaml_node *node, const char *found, const char *allowed,
		 const char *remedy);
/* A finding for `key` of `map`: at its value, or at the map when it is not written. */
void schema_find_key(struct findings *f, const struct yaml_node *map, const char *key, const char *found,
		     const char *allowed, const char *remedy);

/* "a share from 50% to 99.999%, like 99%": one text for messages, the reference page and the schema. */
void schema_allowed(const struct schema_row *row, struct buf *out);

/* The value as a person would write it. Scalars and choices only. */
void schema_format(const struct schema_row *row, const void *record, struct buf *out);

/* Two records of the table say the same. Of one map they do. */
bool schema_equal(const struct schema_table *t, const void *a, const void *b);

/* Stores the value of `node`, or leaves a finding and returns false. Not for maps and lists of records. */
bool schema_value_read(const struct schema_row *row, const struct yaml_node *node, void *record, struct arena *a,
		       struct findings *f);
