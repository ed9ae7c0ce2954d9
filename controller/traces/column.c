#include "controller/traces/column.h"

#include "base/decimal.h"
#include "base/quote.h"

bool column_error(const struct column *c, struct place where, struct cell cell, struct error *e)
{
	char room[QUOTE_ROOM];

	return error_set(e, ERROR_INVALID, "%s:%lld: column %s: found %s; allowed: %s", where.file,
			 (long long)where.line, c->name, cell.len ? quote(room, cell.text, cell.len) : "nothing",
			 c->allowed);
}

bool column_parse(const struct column *c, struct place where, struct cell cell, int64_t *out, struct error *e)
{
	int64_t value;

	if (decimal_parse(cell.text, cell.len, c->places, &value) != DECIMAL_OK || value > c->most)
		return column_error(c, where, cell, e);
	*out = value;
	return true;
}
