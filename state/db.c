#include "state/db_parts.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void *db_memory(size_t size)
{
	void *memory = calloc(1, size);

	if (!memory) {
		fputs("out of memory\n", stderr);
		abort();
	}
	return memory;
}

struct db *db_new(const struct db_engine *engine, const char *path, size_t size)
{
	struct db *db = db_memory(size);

	db->engine = engine;
	db->path = strdup(path);
	if (!db->path)
		abort();
	return db;
}

bool db_is_address(const char *path)
{
	return !strncmp(path, "postgresql://", strlen("postgresql://")) ||
	       !strncmp(path, "postgres://", strlen("postgres://"));
}

struct db *db_open(const char *path, const struct db_schema *schema, struct error *e)
{
	return db_is_address(path) ? db_postgres_open(path, schema, true, e) : db_sqlite_open(path, schema, e);
}

struct db *db_open_read(const char *path, const struct db_schema *schema, struct error *e)
{
	return db_is_address(path) ? db_postgres_open(path, schema, false, e) : db_sqlite_open_read(path, schema, e);
}

void db_close(struct db *db)
{
	if (!db)
		return;
	while (db->statements) {
		struct statement *next = db->statements->next;
		db->engine->drop(db->statements);
		db->statements = next;
	}
	free(db->path);
	db->engine->close(db);
}

const char *db_path(const struct db *db)
{
	return db->path;
}

bool db_has_table(struct db *db, const char *name, bool *has, struct error *e)
{
	return db->engine->has_table(db, name, has, e);
}

bool db_exec(struct db *db, const char *sql, struct error *e)
{
	return db->engine->exec(db, sql, e);
}

bool db_begin(struct db *db, struct error *e)
{
	return db_exec(db, db->engine->begin, e);
}

bool db_commit(struct db *db, struct error *e)
{
	return db_exec(db, "COMMIT", e);
}

void db_rollback(struct db *db)
{
	db->engine->rollback(db);
}

bool db_set_durable(struct db *db, bool durable, struct error *e)
{
	return !db->engine->set_durable || db->engine->set_durable(db, durable, e);
}

int64_t db_last_id(const struct db *db)
{
	return db->engine->last_id ? db->engine->last_id(db) : 0;
}

struct statement *db_prepare(struct db *db, const char *sql)
{
	struct statement *s;

	for (s = db->statements; s; s = s->next)
		if (s->sql == sql || !strcmp(s->sql, sql)) {
			db_reset(s);
			return s;
		}
	s = db->engine->prepare(db, sql);
	s->db = db;
	s->sql = sql;
	s->next = db->statements;
	db->statements = s;
	return s;
}

void db_bind_int(struct statement *s, int64_t value)
{
	s->db->engine->bind(s, &(struct db_value){ .kind = DB_INT, .number = value });
}

void db_bind_null(struct statement *s)
{
	s->db->engine->bind(s, &(struct db_value){ .kind = DB_NULL });
}

void db_bind_text(struct statement *s, const char *value)
{
	s->db->engine->bind(s, &(struct db_value){ .kind = DB_TEXT, .bytes = value, .len = strlen(value) });
}

void db_bind_bytes(struct statement *s, const void *bytes, size_t len)
{
	s->db->engine->bind(s, &(struct db_value){ .kind = DB_BYTES, .bytes = bytes, .len = len });
}

bool db_step(struct statement *s, bool *row, struct error *e)
{
	if (s->db->engine->step(s, row, e))
		return true;
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
	s->db->engine->reset(s);
}

static struct db_value column_of(const struct statement *s, int column)
{
	struct db_value v = { .kind = DB_NULL };

	s->db->engine->column(s, column, &v);
	return v;
}

int64_t db_column_int(const struct statement *s, int column)
{
	return column_of(s, column).number;
}

bool db_column_is_null(const struct statement *s, int column)
{
	return column_of(s, column).kind == DB_NULL;
}

const char *db_column_text(const struct statement *s, int column)
{
	struct db_value v = column_of(s, column);

	return v.kind == DB_TEXT ? v.bytes : "";
}

const void *db_column_bytes(const struct statement *s, int column, size_t *len)
{
	struct db_value v = column_of(s, column);

	*len = v.len;
	return v.bytes;
}

int db_columns(const struct statement *s)
{
	return s->db->engine->columns(s);
}

enum db_kind db_column_kind(const struct statement *s, int column)
{
	return column_of(s, column).kind;
}
