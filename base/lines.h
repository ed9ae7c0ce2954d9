/*
 * A text, line by line, from a gzip stream. A line is at most 64 KiB; a
 * longer one is an error at once, however long it is. Line ends may be LF
 * or CRLF, the last may be missing; a byte order mark at the start is
 * skipped.
 */
#pragma once
#include "base/gzip.h"

#include <stdint.h>

#define LINE_MAX_BYTES ((size_t)64 * 1024)

struct lines {
	struct gzip *source; /* borrowed */
	int64_t number;	     /* of the line last returned, from 1 */
	char *room;
	size_t at, len;
	bool is_end;
};

/* Zeroed memory plus a source is a valid reader; the first call allocates. */
void lines_release(struct lines *l);
/* The next line without its end, NUL-terminated, valid until the next call; *line is NULL at the end.
 * The text may hold any byte, NUL too. Errors name the file and the line. */
bool lines_next(struct lines *l, char **line, size_t *len, struct error *e) MUST_USE;
