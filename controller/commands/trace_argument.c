#include "controller/commands/trace_argument.h"

#include "base/arena.h"
#include "base/buf.h"
#include "base/text.h"

#include <string.h>

static void pool_names(const struct fleet_spec *fleet, struct buf *out)
{
	for (size_t i = 0; i < fleet->pool_count; i++)
		buf_printf(out, i ? ", %s" : "%s", fleet->pools[i].name);
}

bool trace_argument_split(const struct fleet_spec *fleet, const char *text, size_t *pool, const char **path,
			  struct error *e)
{
	CLEANUP(buf_release) struct buf names = { 0 };
	const char *equals = strchr(text, '='), *slash = strchr(text, '/');
	char room[QUOTE_ROOM];

	pool_names(fleet, &names);
	if (!equals || (slash && slash < equals)) {
		*pool = 0;
		*path = text;
		return fleet->pool_count == 1 ||
		       error_set(e, ERROR_INVALID, "--trace %s: say whose traffic it is, POOL=FILE; pools: %s",
				 quote(room, text, strlen(text)), names.text);
	}
	*path = equals + 1;
	for (*pool = 0; *pool < fleet->pool_count; ++*pool) {
		const char *name = fleet->pools[*pool].name;
		if (strlen(name) == (size_t)(equals - text) && !strncmp(name, text, strlen(name)))
			return true;
	}
	return error_set(e, ERROR_INVALID, "--trace: no pool is called %s; pools: %s",
			 quote(room, text, (size_t)(equals - text)), names.text);
}
