/* Rows of a question into an array; private to this folder. */
#pragma once
#include "state/history_file.h"

struct rows {
	struct history *history;
	struct arena *arena; /* of texts, and of the array */
	struct buf found;    /* records, one behind the other */
};

/* Appends the row that the statement stands on; false ends it with the error. */
typedef bool rows_take_fn(struct rows *r, const struct statement *s, struct error *e);

/* All rows of a bound statement. What was found is freed when it fails. */
bool rows_read(struct rows *r, struct statement *s, rows_take_fn *take, struct error *e) MUST_USE;
/* What was found, copied into the arena; the buffer is freed. */
void *rows_array(struct rows *r, size_t record_size, size_t *count);
const char *rows_text(const struct rows *r, const struct statement *s, int column);
/* Sums of an hour that can be; else ERROR_INVALID. A right schema says nothing of who wrote the numbers. */
bool rows_check_hour(const struct rows *r, int64_t hour, const int64_t *sums, size_t count, struct error *e) MUST_USE;
