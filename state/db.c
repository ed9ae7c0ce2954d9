#include "state/db_parts.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

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
	{ SQLITE_CONSTRAINT, ERROR_INVALID, "damaged: its rows contradict each other" },
	{ SQLITE_TOOBIG, ERROR_INVALID, "damaged: a value is too large" },
};

bool db_failed(const struct db *db, int code, struct error *e)
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

	return rc == SQLITE_OK || db_failed(db, sqlite3_extended_errcode(db->handle), e);
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
	if (db->lock >= 0)
		close(db->lock);
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
	db_failed(s->db, s->failure ? rc : sqlite3_extended_errcode(s->db->handle), e);
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
