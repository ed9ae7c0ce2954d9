#include "state/future.h"

#include "state/history_file.h"
#include "state/level.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

/* The first tick that is later; *first -1 when none is. */
static bool find_first(struct history *h, millis now, int64_t *first, struct error *e)
{
	return db_read_ints(DB_QUERY(h->db, "SELECT coalesce((SELECT min(id) FROM tick WHERE at > ?), -1)", DB_I(now)),
			    first, 1, NULL, e);
}

static bool copy_whole(struct history *h, const char *to, struct error *e)
{
	if (db_run(DB_QUERY(h->db, "VACUUM INTO ?", DB_T(to)), e)) {
		db_keep_private(to);
		return true;
	}
	unlink(to);
	return false;
}

static bool drop_ticks(struct history *h, int64_t first, struct error *e)
{
#define IS_EMPTIED "NOT EXISTS (SELECT 1 FROM tick WHERE id < ?1)"
/* Where no tick stays, what was in force last, since whenever, is so from the first that comes. */
#define IS_OVER                                                                     \
	"CASE WHEN " IS_EMPTIED " THEN tick < (SELECT max(tick) FROM manifest_use)" \
	" ELSE tick >= ?1 END"
	static const char *const sql[] = {
		"DELETE FROM decision WHERE tick >= ?1",
		("DELETE FROM checkpoint WHERE tick >= ?1 OR " IS_EMPTIED),
		("DELETE FROM writer WHERE tick >= ?1 OR " IS_EMPTIED),
		("DELETE FROM pool_use WHERE " IS_OVER),
		("DELETE FROM group_use WHERE " IS_OVER),
		("DELETE FROM manifest_use WHERE " IS_OVER),
		("UPDATE pool_use SET tick = 0 WHERE " IS_EMPTIED),
		("UPDATE group_use SET tick = 0 WHERE " IS_EMPTIED),
		("UPDATE manifest_use SET tick = 0 WHERE " IS_EMPTIED),
		("DELETE FROM fact WHERE name = 'kept_from' AND " IS_EMPTIED),
		"DELETE FROM tick WHERE id >= ?1",
	};

	for (size_t i = 0; i < sizeof sql / sizeof *sql; i++) {
		struct statement *s = db_prepare(h->db, sql[i]);

		db_bind_int(s, first);
		if (!db_run(s, e))
			return false;
	}
	return true;
}

/* Sums of hours, days and five minutes that have not begun. */
static bool drop_sums(struct history *h, millis now, struct error *e)
{
	const struct {
		const char *sql;
		millis width;
	} sums[] = {
		{ "DELETE FROM rollup WHERE hour > ?", HOUR },	   { "DELETE FROM cost WHERE hour > ?", HOUR },
		{ "DELETE FROM cost_label WHERE hour > ?", HOUR }, { "DELETE FROM quota_hour WHERE hour > ?", HOUR },
		{ "DELETE FROM lead_time WHERE day > ?", DAY },	   { "DELETE FROM gpu_holding WHERE since > ?", 1 },
	};

	for (size_t i = 0; i < sizeof sums / sizeof *sums; i++) {
		struct statement *s = db_prepare(h->db, sums[i].sql);

		db_bind_int(s, now / sums[i].width);
		if (!db_run(s, e))
			return false;
	}
	return db_run(DB_QUERY(h->db, "UPDATE gpu_holding SET until = ?1 WHERE until > ?1", DB_I(now)), e) &&
	       db_run(DB_QUERY(h->db, "DELETE FROM level WHERE number > CASE width WHEN ?1 THEN ?2 ELSE ?3 END",
			       DB_I(LEVEL_HOUR), DB_I(now / HOUR), DB_I(now / (5 * MINUTE))),
		      e);
}

/* What was asked of clouds and nodes stands, and was asked for just now for all that is known. */
static bool date_back(struct history *h, millis now, struct error *e)
{
	static const char *const sql[] = {
		"UPDATE launch SET asked_at = ?1 WHERE asked_at > ?1",
		"UPDATE launch SET ended_at = ?1 WHERE ended_at > ?1",
		"UPDATE OR REPLACE drain SET asked_at = ?1 WHERE asked_at > ?1",
		"UPDATE drain SET released_at = ?1 WHERE released_at > ?1",
		"UPDATE drain SET ended_at = ?1 WHERE ended_at > ?1",
		"UPDATE drain SET unmarked_at = ?1 WHERE unmarked_at > ?1",
	};

	for (size_t i = 0; i < sizeof sql / sizeof *sql; i++)
		if (!db_run(DB_QUERY(h->db, sql[i], DB_I(now)), e))
			return false;
	return true;
}

static bool cut(struct history *h, int64_t first, millis now, struct error *e)
{
	if (db_begin(h->db, e) && drop_ticks(h, first, e) && drop_sums(h, now, e) && date_back(h, now, e) &&
	    db_commit(h->db, e))
		return true;
	db_rollback(h->db);
	return false;
}

bool history_put_future_aside(const char *path, millis now, struct buf *aside, struct error *e)
{
	CLEANUP(buf_release) struct buf name = { 0 };
	int64_t first = -1;

	if (access(path, F_OK))
		return errno == ENOENT || error_set(e, ERROR_UNAVAILABLE, "%s: %s", path, strerror(errno));
	struct history *h = history_edit(path, e);
	if (!h)
		return false;
	bool ok = find_first(h, now, &first, e);
	if (ok && first >= 0) {
		bool is_copied = history_free_name(path, &name, e) && copy_whole(h, name.text, e);
		ok = is_copied && cut(h, first, now, e);
		if (ok)
			buf_text(aside, name.text);
		else if (is_copied)
			unlink(name.text); /* else each try would leave one */
	}
	history_close(h);
	return ok;
}
