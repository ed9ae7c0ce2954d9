#include "state/db.h"

#include "base/arena.h"
#include "base/buf.h"

#include <errno.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct statement {
	sqlite3_stmt *handle;
	const char *sql;
	int bound;
	int failure; /* first bad result code since the last reset */
	struct db *db;
	struct statement *next;
};

struct db {
	sqlite3 *handle;
	char *path;
	struct statement *statements;
};

enum { BUSY_MS = 2000 };

/* What a person can do about each failure of SQLite. */
static const struct remedy {
	int code;
	enum error_kind kind;
	const char *text;
} remedies[] = {
	{ SQLITE_FULL, ERROR_UNAVAILABLE, "the disk is full; free some space and try again" },
	{ SQLITE_BUSY, ERROR_UNAVAILABLE, "locked by another program; wait until it is done, or stop it" },
	{ SQLITE_LOCKED, ERROR_UNAVAILABLE, "locked by another program; wait until it is done, or stop it" },
	{ SQLITE_READONLY, ERROR_UNAVAILABLE, "read-only; allow writing to the file and its folder" },
	{ SQLITE_PERM, ERROR_UNAVAILABLE, "no permission; allow access to the file and its folder" },
	{ SQLITE_NOTADB, ERROR_INVALID, "not a history file; name one that preheat wrote" },
	{ SQLITE_CORRUPT, ERROR_INVALID, "damaged or cut short; take a copy that is whole, or simulate again" },
	{ SQLITE_CANTOPEN, ERROR_UNAVAILABLE, "cannot be opened; check that the folder exists and may be used" },
	{ SQLITE_IOERR, ERROR_UNAVAILABLE, "the disk reports an error" },
	{ SQLITE_TOOBIG, ERROR_INVALID, "damaged: a value is too large" },
};

static bool failed(const struct db *db, int code, struct error *e)
{
	if (code == SQLITE_IOERR_SHORT_READ)
		code = SQLITE_CORRUPT;
	for (size_t i = 0; i < sizeof remedies / sizeof *remedies; i++)
		if (remedies[i].code == (code & 0xff))
			return error_set(e, remedies[i].kind, "%s: %s", db->path, remedies[i].text);
	return error_set(e, ERROR_INTERNAL, "%s: %s (SQLite code %d)", db->path, sqlite3_errmsg(db->handle), code);
}

bool db_exec(struct db *db, const char *sql, struct error *e)
{
	int rc = sqlite3_exec(db->handle, sql, NULL, NULL, NULL);

	return rc == SQLITE_OK || failed(db, sqlite3_extended_errcode(db->handle), e);
}

bool db_begin(struct db *db, struct error *e)
{
	return db_exec(db, "BEGIN IMMEDIATE", e);
}

bool db_commit(struct db *db, struct error *e)
{
	return db_exec(db, "COMMIT", e);
}

void db_rollback(struct db *db)
{
	if (!sqlite3_get_autocommit(db->handle))
		sqlite3_exec(db->handle, "ROLLBACK", NULL, NULL, NULL);
}

bool db_set_durable(struct db *db, bool durable, struct error *e)
{
	return db_exec(db, durable ? "PRAGMA synchronous=FULL" : "PRAGMA synchronous=NORMAL", e);
}

int64_t db_last_id(const struct db *db)
{
	return sqlite3_last_insert_rowid(db->handle);
}

const char *db_path(const struct db *db)
{
	return db->path;
}

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

static struct db *db_new(const char *path)
{
	struct db *db = calloc(1, sizeof *db);

	if (!db || !(db->path = strdup(path))) {
		fputs("out of memory\n", stderr);
		abort();
	}
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

struct db *db_open(const char *path, const struct db_schema *schema, struct error *e)
{
	if (!check_file(path, false, e))
		return NULL;
	struct db *db = db_new(path);
	int rc = sqlite3_open_v2(path, &db->handle, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX,
				 NULL);

	sqlite3_busy_timeout(db->handle, BUSY_MS);
	if (rc != SQLITE_OK)
		failed(db, sqlite3_extended_errcode(db->handle), e);
	else if (migrate(db, schema, e))
		return db;
	db_close(db);
	return NULL;
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

static bool check_current(const struct db *db, const struct db_schema *schema, int64_t version, struct error *e)
{
	if (version == schema->count)
		return true;
	return error_set(e, ERROR_INVALID,
			 "%s: written by an older preheat (version %lld of the file, this program wants %d); "
			 "open it once with the program that writes it",
			 db->path, (long long)version, schema->count);
}

struct db *db_open_read(const char *path, const struct db_schema *schema, struct error *e)
{
	/* The file may come from anywhere. */
	static const char distrust[] = "PRAGMA trusted_schema=OFF; PRAGMA cell_size_check=ON";
	CLEANUP(buf_release) struct buf uri = { 0 };
	int64_t version;

	if (!check_file(path, true, e))
		return NULL;
	append_uri(&uri, path);
	struct db *db = db_new(path);
	int rc = sqlite3_open_v2(uri.text, &db->handle, SQLITE_OPEN_READONLY | SQLITE_OPEN_URI | SQLITE_OPEN_NOMUTEX,
				 NULL);

	sqlite3_busy_timeout(db->handle, BUSY_MS);
	if (rc != SQLITE_OK)
		failed(db, sqlite3_extended_errcode(db->handle), e);
	else if (db_exec(db, distrust, e) && check_schema(db, schema, &version, e) &&
		 check_current(db, schema, version, e))
		return db;
	db_close(db);
	return NULL;
}

void db_close(struct db *db)
{
	if (!db)
		return;
	while (db->statements) {
		struct statement *next = db->statements->next;
		sqlite3_finalize(db->statements->handle);
		free(db->statements);
		db->statements = next;
	}
	sqlite3_close(db->handle);
	free(db->path);
	free(db);
}

struct statement *db_prepare(struct db *db, const char *sql)
{
	struct statement *s;

	for (s = db->statements; s; s = s->next)
		if (s->sql == sql || !strcmp(s->sql, sql)) {
			db_reset(s);
			return s;
		}
	s = calloc(1, sizeof *s);
	if (!s) {
		fputs("out of memory\n", stderr);
		abort();
	}
	s->db = db;
	s->sql = sql;
	s->failure = sqlite3_prepare_v3(db->handle, sql, -1, SQLITE_PREPARE_PERSISTENT, &s->handle, NULL);
	s->next = db->statements;
	db->statements = s;
	return s;
}

static void note(struct statement *s, int rc)
{
	if (s->failure == SQLITE_OK)
		s->failure = rc;
}

void db_bind_int(struct statement *s, int64_t value)
{
	note(s, sqlite3_bind_int64(s->handle, ++s->bound, value));
}

void db_bind_null(struct statement *s)
{
	note(s, sqlite3_bind_null(s->handle, ++s->bound));
}

void db_bind_text(struct statement *s, const char *value)
{
	note(s, sqlite3_bind_text(s->handle, ++s->bound, value, -1, SQLITE_STATIC));
}

void db_bind_bytes(struct statement *s, const void *bytes, size_t len)
{
	note(s, sqlite3_bind_blob64(s->handle, ++s->bound, bytes, len, SQLITE_STATIC));
}

bool db_step(struct statement *s, bool *row, struct error *e)
{
	int rc = s->failure ? s->failure : sqlite3_step(s->handle);

	*row = rc == SQLITE_ROW;
	if (rc == SQLITE_ROW || rc == SQLITE_DONE)
		return true;
	failed(s->db, s->failure ? rc : sqlite3_extended_errcode(s->db->handle), e);
	db_reset(s);
	return false;
}

bool db_run(struct statement *s, struct error *e)
{
	bool row;
	bool ok = db_step(s, &row, e);

	db_reset(s);
	return ok;
}

void db_reset(struct statement *s)
{
	if (!s->handle)
		return; /* never prepared: its failure stays */
	sqlite3_reset(s->handle);
	s->bound = 0;
	s->failure = SQLITE_OK;
}

int64_t db_column_int(const struct statement *s, int column)
{
	return sqlite3_column_int64(s->handle, column);
}

bool db_column_is_null(const struct statement *s, int column)
{
	return sqlite3_column_type(s->handle, column) == SQLITE_NULL;
}

const char *db_column_text(const struct statement *s, int column)
{
	const char *text = (const char *)sqlite3_column_text(s->handle, column);

	return text ? text : "";
}

const void *db_column_bytes(const struct statement *s, int column, size_t *len)
{
	const void *bytes = sqlite3_column_blob(s->handle, column);

	*len = (size_t)sqlite3_column_bytes(s->handle, column);
	return bytes;
}

int db_columns(const struct statement *s)
{
	return sqlite3_column_count(s->handle);
}

enum db_kind db_column_kind(const struct statement *s, int column)
{
	switch (sqlite3_column_type(s->handle, column)) {
	case SQLITE_INTEGER:
		return DB_INT;
	case SQLITE_TEXT:
		return DB_TEXT;
	case SQLITE_BLOB:
		return DB_BYTES;
	default:
		return DB_NULL;
	}
}

const char *db_library_version(void)
{
	return sqlite3_libversion();
}
