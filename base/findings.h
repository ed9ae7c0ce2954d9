/*
 * All that is wrong with an input, collected before anything is said, so
 * that a person mends it in one go. Each finding says where, what was found,
 * what is allowed and what to do. Texts are copied; control characters are
 * made visible and long texts cut.
 */
#pragma once
#include "base/arena.h"
#include "base/buf.h"

struct finding {
	const char *file;    /* as the user named it */
	size_t line, column; /* from 1; line 0: the file as a whole */
	const char *path;    /* "spec.objective.attainment", "" for a document */
	const char *found;   /* "'101%'" */
	const char *allowed; /* "a share from 50% to 99.999%" */
	const char *remedy;  /* "write it with its sign, like 99%"; "" when `allowed` says it all */
};

enum { FINDINGS_MAX = 50 };

struct findings {
	struct arena arena;
	struct finding items[FINDINGS_MAX];
	size_t count;
	size_t more;	    /* found beyond the first FINDINGS_MAX */
	bool is_incomplete; /* something named could not be read at all */
};

void findings_add(struct findings *f, const struct finding *item);
void findings_sort(struct findings *f); /* by file, line, column */
void findings_release(struct findings *f);
/* One line without the newline: "pool.yaml:12:9: spec.mode: found 'on'; allowed: act, observe; do: ...". */
void finding_print(const struct finding *item, struct buf *out);
/* The first finding as an ERROR_INVALID, and how many more there are; false. At least one must be there. */
bool findings_error(const struct findings *f, struct error *e);
