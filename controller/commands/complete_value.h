/* What the value of an option may be, for completion: its choices, or what a history on this machine names. */
#pragma once
#include "base/arena.h"
#include "base/options.h"

/* What a shell shall do besides the candidates: cobra's directives. */
enum complete_rest {
	COMPLETE_FILES = 0,   /* files, when there is no candidate */
	COMPLETE_NOTHING = 4, /* nothing */
	COMPLETE_FOLDERS = 16,
};

struct complete_place {
	char *const *words; /* the line so far */
	int count;
	const struct option_row *row; /* only type, argument and choices count */
};

struct complete_values {
	const char **items; /* in the arena */
	size_t count;
	enum complete_rest rest;
};

/* Never fails: what cannot be read has no values. */
void complete_values(const struct complete_place *place, struct arena *a, struct complete_values *out);
