#include "state/rows.h"

#include <string.h>

/* Far beyond any fleet and time, and far from where sums of them overflow. */
static const int64_t SUM_MOST = INT64_C(1000000000000000), HOUR_MOST = 2000000;

bool rows_read(struct rows *r, struct statement *s, rows_take_fn *take, struct error *e)
{
	bool row = true;

	while (row) {
		bool ok = db_step(s, &row, e);
		if (ok && row && !take(r, s, e)) {
			db_reset(s);
			ok = false;
		}
		if (!ok) {
			buf_release(&r->found);
			return false;
		}
	}
	return true;
}

void *rows_array(struct rows *r, size_t record_size, size_t *count)
{
	char *items = arena_alloc(r->arena, r->found.len + 1, 16);

	if (r->found.len)
		memcpy(items, r->found.text, r->found.len);
	*count = r->found.len / record_size;
	buf_release(&r->found);
	return items;
}

const char *rows_text(const struct rows *r, const struct statement *s, int column)
{
	const char *text = db_column_text(s, column);

	return arena_strdup(r->arena, text, strlen(text));
}

bool rows_check_hour(const struct rows *r, int64_t hour, const int64_t *sums, size_t count, struct error *e)
{
	bool can_be = hour >= 0 && hour <= HOUR_MOST;

	for (size_t i = 0; i < count; i++)
		can_be = can_be && sums[i] >= 0 && sums[i] <= SUM_MOST;
	return can_be || error_set(e, ERROR_INVALID, "%s: damaged: the sums of hour %lld cannot be",
				   db_path(r->history->db), (long long)hour);
}
