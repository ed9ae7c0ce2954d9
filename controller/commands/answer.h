/* How answers are printed: the same rows and values in every form, with one option for all verbs. */
#pragma once
#include "base/buf.h"
#include "base/table.h"

#define ANSWER_FORMS "table|wide|json|csv|yaml"
/* The row of an option table; `target` holds "table" before. */
#define ANSWER_OPTION(target)                                                                       \
	{                                                                                           \
		"output", 'o', OPTION_CHOICE, "FORMAT", "how it is printed", (target), ANSWER_FORMS \
	}

/* Not for people: csv, json, yaml. */
bool answer_is_for_programs(const char *form);

/* An answer that is a tree of values, as JSON text that ends in a line end. */
struct answer {
	struct buf json;
	const char *rows; /* path to the list or map whose members are the rows of CSV; NULL: the whole is one row */
	const char *key;  /* the first column, of a map; else NULL */
};
/* On standard output, in a form for programs. */
void answer_print(const struct answer *a, const char *form);
void answer_release(struct answer *a);
