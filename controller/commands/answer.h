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

/* JSON or YAML: a tree of values, where the other forms have rows. */
bool answer_is_tree(const char *form);
/* A tree on standard output, as `form` has it. `json` is JSON text that ends in a line end. */
void answer_print_tree(const struct buf *json, const char *form);
