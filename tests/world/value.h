/* JSON that can be changed: what a played API server keeps. */
#pragma once
#include "base/buf.h"

#include <stdbool.h>
#include <stdint.h>

enum value_kind { VALUE_PLAIN /* null, true, a number: as written */, VALUE_TEXT, VALUE_LIST, VALUE_OBJECT };

struct value {
	enum value_kind kind;
	char *key;  /* in an object; else NULL */
	char *text; /* of plain ones and texts */
	struct value *first, *next;
};

struct value *value_parse(const char *text, size_t len); /* NULL: it is no JSON */
/* The same of a text that is right, with ' for ". */
struct value *value_of(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
struct value *value_copy(const struct value *v);
void value_free(struct value *v); /* takes NULL */
void value_print(const struct value *v, struct buf *out);

/* Paths are keys joined by '>'. */
struct value *value_at(const struct value *v, const char *path);	  /* NULL: there is none */
const char *value_text(const struct value *v, const char *path);	  /* "": there is none */
int64_t value_int(const struct value *v, const char *path);		  /* 0: there is none; a quantity's digits */
bool value_is(const struct value *v, const char *path, const char *text); /* whether it says that */
/* Makes what is missing on the way; takes `item`. NULL takes away what is there. */
void value_set(struct value *v, const char *path, struct value *item);
void value_set_text(struct value *v, const char *path, const char *text);
void value_set_int(struct value *v, const char *path, int64_t number);
void value_add(struct value *list, struct value *item);		/* at the end; takes `item` */
void value_merge(struct value *v, const struct value *patch);	/* RFC 7396 */
bool value_equal(const struct value *a, const struct value *b); /* the order of members counts */
