/* Many histories behind one address. */
#include "state/history_file.h"

#include "base/uri.h"

#include <string.h>

bool history_is_fleet(const char *path)
{
	return db_is_address(path) && !strchr(path, '#');
}

struct names {
	struct arena *arena;
	struct buf found; /* const char * after const char * */
};

static void keep(void *user, const char *cluster)
{
	struct names *n = user;
	const char *name = arena_strdup(n->arena, cluster, strlen(cluster));

	buf_append(&n->found, &name, sizeof name);
}

bool history_clusters(const char *address, struct arena *a, const char *const **clusters, size_t *count,
		      struct error *e)
{
	struct names n = { .arena = a };
	bool ok = db_clusters(address, keep, &n, e);

	if (ok) {
		const char **names = arena_array(a, const char *, n.found.len / sizeof *names + 1);

		*count = n.found.len / sizeof *names;
		if (n.found.len)
			memcpy(names, n.found.text, n.found.len);
		*clusters = names;
	}
	buf_release(&n.found);
	return ok;
}

void history_show(const char *path, struct buf *out)
{
	const char *cluster = strchr(path, '#');

	if (!db_is_address(path)) {
		buf_text(out, path);
		return;
	}
	uri_show(path, out);
	buf_text(out, cluster ? cluster : "");
}
