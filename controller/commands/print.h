/* How answers are printed: the same rows and values in every form, with one option for all verbs. */
#pragma once
#include "base/buf.h"
#include "base/table.h"
#include "controller/policy/fields.h"

#define PRINT_FORMS "table|wide|json|csv|yaml"
/* The row of an option table; `target` holds "table" before. */
#define PRINT_OPTION(target)                                                                       \
	{                                                                                          \
		"output", 'o', OPTION_CHOICE, "FORMAT", "how it is printed", (target), PRINT_FORMS \
	}

/* Not for people: csv, json, yaml. */
bool print_is_for_programs(const char *form);

/* An answer that is a tree of values, as JSON text that ends in a line end. */
struct printed_tree {
	struct buf json;
	const char *rows; /* path to the list or map whose members are the rows of CSV; NULL: the whole is one row */
	const char *key;  /* the first column, of a map; else NULL */
};
/* On standard output, in a form for programs. */
void print_tree(const struct printed_tree *a, const char *form);
void print_tree_release(struct printed_tree *a);

/* Members of an object, with a comma where one belongs. */
void print_json_name(const char *key, struct buf *out);
void print_json_text(const char *key, const char *text, struct buf *out); /* NULL: null */
void print_json_number(const char *key, int64_t number, struct buf *out); /* ABSENT: null */
void print_json_bool(const char *key, bool is_so, struct buf *out);
