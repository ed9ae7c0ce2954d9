/* Opening a file: is it there, is it ours, of which version. */
#include "state/db_sqlite.h"

#include "base/arena.h"
#include "base/buf.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

enum { BUSY_MS = 2000 };

static bool read_number(struct db *db, const char *sql, int64_t *value, struct error *e)
{
	struct statement *s = db_prepare(db, sql);
	bool row;

	if (!db_step(s, &row, e))
		return false;
	*value = db_column_int(s, 0);
	db_reset(s);
	return true;
}

static bool check_schema(struct db *db, const struct db_schema *schema, int64_t *version, struct error *e)
{
	int64_t mark;

	if (!read_number(db, "PRAGMA application_id", &mark, e) || !read_number(db, "PRAGMA user_version", version, e))
		return false;
	if (mark != schema->application_id)
		return error_set(e, ERROR_INVALID, "%s: an SQLite file, but not a history; name one that preheat wrote",
				 db->path);
	if (*version > schema->count)
		return error_set(e, ERROR_CONFLICT,
				 "%s: written by a newer preheat (version %lld of the file, this program knows %d); "
				 "use the newer program",
				 db->path, (long long)*version, schema->count);
	return true;
}

static bool migrate_one(struct db *db, const struct db_schema *schema, int64_t version, struct error *e)
{
	char bump[96];

	snprintf(bump, sizeof bump, "PRAGMA user_version=%d; PRAGMA application_id=%d", (int)version + 1,
		 (int)schema->application_id);
	if (db_begin(db, e) && db_exec(db, schema->migrations[version], e) && db_exec(db, bump, e) && db_commit(db, e))
		return true;
	db_rollback(db);
	return false;
}

static bool migrate(struct db *db, const struct db_schema *schema, struct error *e)
{
	int64_t version = 0, tables;

	if (!read_number(db, "SELECT count(*) FROM sqlite_schema", &tables, e))
		return false;
	if (tables > 0 && !check_schema(db, schema, &version, e))
		return false;
	/* Only an empty file can take these, and only before its first table. */
	if (!tables && !db_exec(db, "PRAGMA auto_vacuum=INCREMENTAL", e))
		return false;
	if (!db_exec(db, "PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL; PRAGMA foreign_keys=ON", e))
		return false;
	for (; version < schema->count; version++)
		if (!migrate_one(db, schema, version, e))
			return false;
	return true;
}

static struct db_sqlite *new_file(const char *path)
{
	struct db_sqlite *db = (struct db_sqlite *)db_new(&db_sqlite, path, sizeof *db);

	db->lock = -1;
	return db;
}

/* SQLite's own words for a file that is not there are "unable to open database file". */
static bool check_file(const char *path, bool must_exist, struct error *e)
{
	struct stat st;

	if (stat(path, &st)) {
		if (errno == ENOENT && !must_exist)
			return true;
		if (errno == ENOENT)
			return error_set(e, ERROR_NOT_FOUND,
					 "%s: no such file; name a history with --db FILE, or make one with "
					 "'preheat simulate'",
					 path);
		return error_set(e, ERROR_UNAVAILABLE, "%s: %s", path, strerror(errno));
	}
	if (must_exist && access(path, R_OK))
		return error_set(e, ERROR_UNAVAILABLE, "%s: %s; allow reading it", path, strerror(errno));
	if (!S_ISREG(st.st_mode))
		return error_set(e, ERROR_INVALID, "%s: not a file; name the history.db itself", path);
	if (must_exist && !st.st_size)
		return error_set(e, ERROR_INVALID, "%s: empty, no history in it; name one that preheat wrote", path);
	return true;
}

/*
 * Two writers would each number their own ticks. The lock is flock's, which goes with the process; SQLite's own are
 * POSIX's, and the system drops those of a file when any descriptor of it is closed: so this one is opened before
 * SQLite opens the file, and closed after it. Where a file system knows no such locks there is none.
 */
static bool lock_out_others(struct db_sqlite *db, struct error *e)
{
	db->lock = open(db->base.path, O_RDWR | O_CREAT | O_CLOEXEC, 0644);
	if (db->lock < 0)
		return true; /* SQLite says why */
	if (!flock(db->lock, LOCK_EX | LOCK_NB) || errno != EWOULDBLOCK)
		return true;
	return error_set(e, ERROR_UNAVAILABLE, "%s: another preheat writes it; name another file with --db",
			 db->base.path);
}

static struct db *open_for_writing(struct db_sqlite *db, const struct db_schema *schema, struct error *e)
{
	int rc = sqlite3_open_v2(db->base.path, &db->handle,
				 SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX, NULL);

	sqlite3_busy_timeout(db->handle, BUSY_MS);
	if (rc != SQLITE_OK)
		db_sqlite_failed(db, sqlite3_extended_errcode(db->handle), e);
	else if (migrate(&db->base, schema, e))
		return &db->base;
	db_close(&db->base);
	return NULL;
}

struct db *db_sqlite_open(const char *path, const struct db_schema *schema, struct error *e)
{
	if (!check_file(path, false, e))
		return NULL;
	struct db_sqlite *db = new_file(path);
	if (lock_out_others(db, e))
		return open_for_writing(db, schema, e);
	db_close(&db->base);
	return NULL;
}

struct db *db_sqlite_model(const struct db_schema *schema, struct error *e)
{
	return open_for_writing(new_file(":memory:"), schema, e);
}

static bool exists_beside(const char *path, const char *suffix)
{
	CLEANUP(buf_release) struct buf name = { 0 };
	struct stat st;

	buf_text(&name, path);
	buf_text(&name, suffix);
	return !stat(name.text, &st);
}

/*
 * A log beside the file means that somebody may be writing. Without one the
 * file stands still, and telling SQLite so lets it read from a folder that
 * may not be written, and leaves no lock files there.
 */
static void append_uri(struct buf *uri, const char *path)
{
	bool is_live = exists_beside(path, "-wal") || exists_beside(path, "-journal");

	buf_text(uri, "file:");
	for (const char *c = path; *c; c++)
		if (strchr("%?#", *c))
			buf_printf(uri, "%%%02X", (unsigned)(unsigned char)*c);
		else
			buf_append(uri, c, 1);
	buf_text(uri, is_live ? "?mode=ro" : "?mode=ro&immutable=1");
}

static bool check_readable(const struct db *db, const struct db_schema *schema, int64_t version, struct error *e)
{
	if (version >= schema->readable_from)
		return true;
	return error_set(e, ERROR_INVALID,
			 "%s: written by an older preheat (version %lld of the file, this program wants %d); "
			 "open it once with the program that writes it",
			 db->path, (long long)version, schema->readable_from);
}

struct db *db_sqlite_open_read(const char *path, const struct db_schema *schema, struct error *e)
{
	/* The file may come from anywhere. */
	static const char distrust[] = "PRAGMA trusted_schema=OFF; PRAGMA cell_size_check=ON";
	CLEANUP(buf_release) struct buf uri = { 0 };
	int64_t version;

	if (!check_file(path, true, e))
		return NULL;
	append_uri(&uri, path);
	struct db_sqlite *db = new_file(path);
	int rc = sqlite3_open_v2(uri.text, &db->handle, SQLITE_OPEN_READONLY | SQLITE_OPEN_URI | SQLITE_OPEN_NOMUTEX,
				 NULL);

	sqlite3_busy_timeout(db->handle, BUSY_MS);
	if (rc != SQLITE_OK)
		db_sqlite_failed(db, sqlite3_extended_errcode(db->handle), e);
	else if (db_exec(&db->base, distrust, e) && check_schema(&db->base, schema, &version, e) &&
		 check_readable(&db->base, schema, version, e))
		return &db->base;
	db_close(&db->base);
	return NULL;
}
