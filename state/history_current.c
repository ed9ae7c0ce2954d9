/* Whether a reader still reads what stands at the path. */
#include "state/history_file.h"

#include <stdio.h>
#include <sys/stat.h>

static bool is_live(const char *path)
{
	CLEANUP(buf_release) struct buf name = { 0 };
	struct stat st;

	buf_printf(&name, "%s-wal", path);
	return !stat(name.text, &st);
}

/* Which file stands at the path; of one that nobody writes also which state of it, as it is read without locks. */
static bool look_at_file(const char *path, struct history_mark *m, struct error *e)
{
	struct stat st;

	m->is_live = is_live(path);
	if (stat(path, &st))
		return error_set(e, ERROR_NOT_FOUND, "%s: gone", path);
	m->device = (int64_t)st.st_dev;
	m->file = (int64_t)st.st_ino;
	if (!m->is_live) {
		m->size = st.st_size;
		m->changed = st.st_mtim.tv_sec * SECOND + st.st_mtim.tv_nsec / 1000000;
	}
	return true;
}

static bool look(struct history *h, struct history_mark *m, struct error *e)
{
	struct statement *s = db_prepare(h->db, "SELECT count(*), max(tick) FROM manifest_use");
	bool row;

	*m = (struct history_mark){ 0 };
	if ((!db_is_address(db_path(h->db)) && !look_at_file(db_path(h->db), m, e)) || !db_step(s, &row, e))
		return false;
	m->uses = row ? db_column_int(s, 0) : 0;
	m->last_use = row ? db_column_int(s, 1) : 0;
	db_reset(s);
	return true;
}

bool history_mark(struct history *h, struct error *e)
{
	return look(h, &h->mark, e);
}

bool history_is_current(struct history *h)
{
	const struct history_mark *was = &h->mark;
	struct history_mark now;
	struct error e;

	return look(h, &now, &e) && now.is_live == was->is_live && now.device == was->device && now.file == was->file &&
	       now.size == was->size && now.changed == was->changed && now.uses == was->uses &&
	       now.last_use == was->last_use;
}
