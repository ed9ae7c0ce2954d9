/*
 * What goes out of the program: structs described by rows. A row says where a
 * member stands in its struct, how it is written, and what it means; it
 * writes the JSON and the JSON Schema of it. The writer only reads; what a
 * struct points to need not outlive the call.
 *
 * Every member is always written. What is not known is null, never 0:
 * RECORD_ABSENT, a NULL pointer, a time of 0.
 */
#pragma once
#include "base/buf.h"
#include "base/millis.h"

#include <stddef.h>
#include <stdint.h>

#define RECORD_ABSENT INT64_MIN

struct record_shape;

/* Of a list: structs of the row's shape, or int64_t, or const char *. */
struct record_items {
	const void *items;
	size_t count;
};

enum record_type {
	RECORD_TYPE_TEXT,    /* const char * */
	RECORD_TYPE_CHARS,   /* a text in an array of its own */
	RECORD_TYPE_TIME,    /* millis since the epoch; RFC 3339 in UTC */
	RECORD_TYPE_NUMBER,  /* int64_t / 10^digits, exactly */
	RECORD_TYPE_FLAG,    /* bool */
	RECORD_TYPE_OBJECT,  /* a struct of the shape, in place */
	RECORD_TYPE_POINTER, /* a pointer to one */
	RECORD_TYPE_LIST,    /* struct record_items */
	RECORD_TYPE_TEXTS,   /* the same of const char * */
	RECORD_TYPE_NUMBERS, /* the same of int64_t, of which some may be absent */
	RECORD_TYPE_OTHER,   /* only described, by `schema` */
};

struct record_member {
	const char *name;
	enum record_type type;
	size_t offset;
	int digits;	    /* of numbers: 6 writes 480000 as 0.48; 0: an integer */
	bool may_be_null;   /* says the schema */
	bool empty_is_null; /* "" and 0 are not known either */
	bool is_last;	    /* written after the others, wherever its row stands */
	bool is_apart;	    /* the caller writes it, after all of them */
	const struct record_shape *of;
	const char *const *choices;	 /* of a text; ends in NULL */
	void (*schema)(struct buf *out); /* of RECORD_TYPE_OTHER: the members of its schema */
	const char *help;
};

struct record_shape {
	const char *name; /* of the schema */
	size_t size;	  /* of the struct */
	const struct record_member *members;
	size_t count;
};
#define RECORD_SHAPE(name_, record, members_)                                          \
	{                                                                              \
		.name = (name_), .size = sizeof(struct record), .members = (members_), \
		.count = sizeof(members_) / sizeof *(members_)                         \
	}

/* How rows begin: { "late", RECORD_COUNT(window, late), .help = "..." }. A member of another type does not compile. */
#define RECORD_OFFSET(record, member, ...) \
	offsetof(struct record, member) + 0 * _Generic(((struct record *)0)->member, __VA_ARGS__)
#define RECORD_TEXT(record, member) \
	.type = RECORD_TYPE_TEXT, .offset = RECORD_OFFSET(record, member, const char * : 0, char * : 0)
#define RECORD_CHARS(record, member) .type = RECORD_TYPE_CHARS, .offset = offsetof(struct record, member)
#define RECORD_TIME(record, member)  .type = RECORD_TYPE_TIME, .offset = RECORD_OFFSET(record, member, millis : 0)
#define RECORD_COUNT(record, member) RECORD_NUMBER(record, member, 0)
#define RECORD_NUMBER(record, member, digits_) \
	.type = RECORD_TYPE_NUMBER, .offset = RECORD_OFFSET(record, member, int64_t : 0), .digits = (digits_)
#define RECORD_FLAG(record, member) .type = RECORD_TYPE_FLAG, .offset = RECORD_OFFSET(record, member, bool : 0)
#define RECORD_OBJECT(record, member, shape) \
	.type = RECORD_TYPE_OBJECT, .offset = offsetof(struct record, member), .of = &(shape)
#define RECORD_POINTER(record, member, shape) \
	.type = RECORD_TYPE_POINTER, .offset = offsetof(struct record, member), .of = &(shape)
#define RECORD_LIST(record, member, shape) \
	.type = RECORD_TYPE_LIST, .offset = RECORD_OFFSET(record, member, struct record_items : 0), .of = &(shape)
#define RECORD_TEXTS(record, member) \
	.type = RECORD_TYPE_TEXTS, .offset = RECORD_OFFSET(record, member, struct record_items : 0)
#define RECORD_NUMBERS(record, member, digits_)                                                        \
	.type = RECORD_TYPE_NUMBERS, .offset = RECORD_OFFSET(record, member, struct record_items : 0), \
	.digits = (digits_)
/* Written apart, as a list of the shape, or as what `schema_` says. */
#define RECORD_LIST_APART(shape)   .type = RECORD_TYPE_LIST, .of = &(shape), .is_apart = true
#define RECORD_OBJECT_APART(shape) .type = RECORD_TYPE_POINTER, .of = &(shape), .is_apart = true
#define RECORD_OTHER(schema_)	   .type = RECORD_TYPE_OTHER, .schema = (schema_), .is_apart = true

/* {"name":value,...} */
void record_write(const struct record_shape *s, const void *record, struct buf *out);
/* The same without braces, and without what is apart. */
void record_write_members(const struct record_shape *s, const void *record, struct buf *out);
/* "NAME":{...} of the shape and of all that it is made of, as components of an OpenAPI document. `done` has the names
 * of those that were written. */
void record_write_schemas(const struct record_shape *s, struct buf *done, struct buf *out);

/* Single members, each with its comma. */
void json_member(const char *name, struct buf *out);			    /* "name": */
void json_member_text(const char *name, const char *text, struct buf *out); /* NULL: null */
/* "type":["string","null"]; `types` are names between commas. */
void json_schema_type(const char *types, bool may_be_null, struct buf *out);
/* {"$ref":"#/components/schemas/NAME"} */
void json_schema_ref(const char *name, struct buf *out);
