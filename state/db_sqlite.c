#include "state/db_sqlite.h"

#include <stdlib.h>
#include <unistd.h>

struct sqlite_statement {
	struct statement base;
	sqlite3_stmt *handle;
	int bound;
	int failure; /* first bad result code since the last reset */
};

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

bool db_sqlite_failed(const struct db_sqlite *db, int code, struct error *e)
{
	if (code == SQLITE_IOERR_SHORT_READ)
		code = SQLITE_CORRUPT;
	for (size_t i = 0; i < sizeof remedies / sizeof *remedies; i++)
		if (remedies[i].code == (code & 0xff))
			return error_set(e, remedies[i].kind, "%s: %s", db->base.path, remedies[i].text);
	return error_set(e, ERROR_INTERNAL, "%s: %s (SQLite code %d)", db->base.path, sqlite3_errmsg(db->handle), code);
}

static bool exec(struct db *base, const char *sql, struct error *e)
{
	struct db_sqlite *db = (struct db_sqlite *)base;

	return sqlite3_exec(db->handle, sql, NULL, NULL, NULL) == SQLITE_OK ||
	       db_sqlite_failed(db, sqlite3_extended_errcode(db->handle), e);
}

static void rollback(struct db *base)
{
	struct db_sqlite *db = (struct db_sqlite *)base;

	if (!sqlite3_get_autocommit(db->handle))
		sqlite3_exec(db->handle, "ROLLBACK", NULL, NULL, NULL);
}

static void close_file(struct db *base)
{
	struct db_sqlite *db = (struct db_sqlite *)base;

	sqlite3_close(db->handle);
	if (db->lock >= 0)
		close(db->lock);
	free(db);
}

static bool has_table(struct db *db, const char *name, bool *has, struct error *e)
{
	struct statement *s = db_prepare(db, "SELECT count(*) FROM sqlite_schema WHERE type = 'table' AND name = ?");
	bool row;

	db_bind_text(s, name);
	if (!db_step(s, &row, e))
		return false;
	*has = db_column_int(s, 0) > 0;
	db_reset(s);
	return true;
}

static struct statement *prepare(struct db *base, const char *sql)
{
	struct db_sqlite *db = (struct db_sqlite *)base;
	struct sqlite_statement *s = db_memory(sizeof *s);

	s->failure = sqlite3_prepare_v3(db->handle, sql, -1, SQLITE_PREPARE_PERSISTENT, &s->handle, NULL);
	return &s->base;
}

static int bind_value(sqlite3_stmt *handle, int place, const struct db_value *v)
{
	switch (v->kind) {
	case DB_INT:
		return sqlite3_bind_int64(handle, place, v->number);
	case DB_TEXT:
		return sqlite3_bind_text(handle, place, v->bytes, (int)v->len, SQLITE_STATIC);
	case DB_BYTES:
		return sqlite3_bind_blob64(handle, place, v->bytes, v->len, SQLITE_STATIC);
	case DB_NULL:
	default:
		return sqlite3_bind_null(handle, place);
	}
}

static void bind(struct statement *base, const struct db_value *v)
{
	struct sqlite_statement *s = (struct sqlite_statement *)base;
	int rc = bind_value(s->handle, ++s->bound, v);

	if (s->failure == SQLITE_OK)
		s->failure = rc;
}

static bool step(struct statement *base, bool *row, struct error *e)
{
	struct sqlite_statement *s = (struct sqlite_statement *)base;
	struct db_sqlite *db = (struct db_sqlite *)base->db;
	int rc = s->failure ? s->failure : sqlite3_step(s->handle);

	*row = rc == SQLITE_ROW;
	return rc == SQLITE_ROW || rc == SQLITE_DONE ||
	       db_sqlite_failed(db, s->failure ? rc : sqlite3_extended_errcode(db->handle), e);
}

static void reset(struct statement *base)
{
	struct sqlite_statement *s = (struct sqlite_statement *)base;

	if (!s->handle)
		return; /* never prepared: its failure stays */
	sqlite3_reset(s->handle);
	s->bound = 0;
	s->failure = SQLITE_OK;
}

static void drop(struct statement *base)
{
	sqlite3_finalize(((struct sqlite_statement *)base)->handle);
	free(base);
}

static int columns(const struct statement *base)
{
	return sqlite3_column_count(((const struct sqlite_statement *)base)->handle);
}

static void column(const struct statement *base, int column, struct db_value *out)
{
	sqlite3_stmt *handle = ((const struct sqlite_statement *)base)->handle;

	switch (sqlite3_column_type(handle, column)) {
	case SQLITE_INTEGER:
		*out = (struct db_value){ .kind = DB_INT, .number = sqlite3_column_int64(handle, column) };
		return;
	case SQLITE_TEXT:
		out->kind = DB_TEXT;
		out->bytes = sqlite3_column_text(handle, column);
		break;
	case SQLITE_BLOB:
		out->kind = DB_BYTES;
		out->bytes = sqlite3_column_blob(handle, column);
		break;
	default:
		return;
	}
	out->len = (size_t)sqlite3_column_bytes(handle, column);
}

static bool set_durable(struct db *db, bool durable, struct error *e)
{
	return exec(db, durable ? "PRAGMA synchronous=FULL" : "PRAGMA synchronous=NORMAL", e);
}

static int64_t last_id(const struct db *db)
{
	return sqlite3_last_insert_rowid(((const struct db_sqlite *)db)->handle);
}

const struct db_engine db_sqlite = {
	.begin = "BEGIN IMMEDIATE",
	.prepare = prepare,
	.bind = bind,
	.step = step,
	.reset = reset,
	.columns = columns,
	.column = column,
	.drop = drop,
	.exec = exec,
	.has_table = has_table,
	.rollback = rollback,
	.close = close_file,
	.set_durable = set_durable,
	.last_id = last_id,
};

const char *db_library_version(void)
{
	return sqlite3_libversion();
}
