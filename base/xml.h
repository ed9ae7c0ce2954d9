/*
 * An XML document as a tree of elements in an arena, and such elements into
 * structs by table. Made for answers of services: attributes are skipped,
 * names stand without their namespace's prefix, text between elements is
 * dropped. A document type (entities, files) is refused; depth, elements and
 * bytes are capped.
 */
#pragma once
#include "base/arena.h"
#include "base/error.h"

#include <stddef.h>

#define XML_BYTES    ((size_t)16 << 20)
#define XML_ELEMENTS ((size_t)200000)
#define XML_DEPTH    32

struct xml_node {
	const char *name;
	const char *text; /* of an element without elements, its spaces kept; else "" */
	const struct xml_node *first, *next;
};

/* Errors are ERROR_INVALID and say the line. */
bool xml_read(const char *text, size_t len, struct arena *a, const struct xml_node **root, struct error *e) MUST_USE;
/* The first element on a path of names joined by '>', below `node`; NULL when there is none, or node is NULL. */
const struct xml_node *xml_find(const struct xml_node *node, const char *path);

enum xml_type {
	XML_STRING, /* const char * : "" when absent */
	XML_INT,    /* int64_t */
	XML_BOOL,   /* bool */
	XML_TIME,   /* millis since the epoch; 0 when absent */
	XML_LIST,   /* struct xml_list of records `of`: the children of the element, all of one name */
};

struct xml_list {
	void *items;
	size_t count;
};

struct xml_table;

struct xml_field {
	const char *path; /* below the record's element */
	enum xml_type type;
	size_t offset;
	bool required;
	const struct xml_table *of;
};

struct xml_table {
	size_t size;
	const struct xml_field *fields;
	size_t count;
};

#define XML_FIELD(struct_type, member, kind, path_)                                      \
	{                                                                                \
		.path = (path_), .type = (kind), .offset = offsetof(struct_type, member) \
	}
#define XML_NEEDED(struct_type, member, kind, path_)                                                       \
	{                                                                                                  \
		.path = (path_), .type = (kind), .offset = offsetof(struct_type, member), .required = true \
	}
#define XML_TABLE(struct_type, rows)                                          \
	{                                                                     \
		sizeof(struct_type), (rows), sizeof(rows) / sizeof((rows)[0]) \
	}

/* Fills `record` (t->size bytes, zeroed here); what the table does not name is skipped. Errors are ERROR_INVALID. */
bool xml_decode(const struct xml_table *t, const struct xml_node *node, struct arena *a, void *record,
		struct error *e) MUST_USE;
