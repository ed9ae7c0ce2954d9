#include "state/db_engine.h"

#include "base/alloc.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void *db_memory(size_t size)
{
	return xcalloc(1, size);
}

struct db *db_new(const struct db_engine *engine, const char *path, size_t size)
{
	struct db *db = db_memory(size);

	db->engine = engine;
	db->path = xstrdup(path);
	return db;
}

bool db_is_address(const char *path)
{
	return !strncmp(path, "postgresql://", strlen("postgresql://")) ||
	       !strncmp(path, "postgres://", strlen("postgres://"));
}

static const struct db_engine *engine_of(const char *path)
{
	return db_is_address(path) ? &db_postgres : &db_sqlite;
}

struct db *db_open(const char *path, const struct db_schema *schema, struct error *e)
{
	return engine_of(path)->open(path, schema, true, e);
}

struct db *db_open_read(const char *path, const struct db_schema *schema, struct error *e)
{
	return engine_of(path)->open(path, schema, false, e);
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

bool db_lacks_room(const struct db *db)
{
	return db->lacks_room;
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
	db->lacks_room = false;
	return db_exec(db, db->engine->begin, e);
}

bool db_commit(struct db *db, struct error *e)
{
	return (!db->engine->check_place || db->engine->check_place(db, e)) && db_exec(db, "COMMIT", e);
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

struct statement *db_bind(struct statement *s, const struct db_value *values, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		struct db_value v = values[i];

		if (v.kind == DB_TEXT && !v.bytes)
			v.kind = DB_NULL;
		if (v.kind == DB_TEXT)
			v.len = strlen(v.bytes);
		s->db->engine->bind(s, &v);
	}
	return s;
}

void db_bind_int(struct statement *s, int64_t value)
{
	db_bind_ints(s, &value, 1);
}

void db_bind_ints(struct statement *s, const int64_t *values, size_t count)
{
	for (size_t i = 0; i < count; i++)
		DB_BIND(s, DB_I(values[i]));
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

bool db_next(struct statement *s, bool *ok, struct error *e)
{
	bool row;

	*ok = db_step(s, &row, e);
	if (*ok && row)
		return true;
	if (*ok)
		db_reset(s);
	return false;
}

bool db_read_ints(struct statement *s, int64_t *values, int count, bool *there, struct error *e)
{
	bool row;

	if (!db_step(s, &row, e))
		return false;
	if (row)
		db_column_ints(s, 0, values, count);
	else
		memset(values, 0, (size_t)count * sizeof *values);
	if (there)
		*there = row;
	db_reset(s);
	return true;
}

bool db_read_bool(struct statement *s, bool *is, struct error *e)
{
	int64_t value = 0;
	bool ok = db_read_ints(s, &value, 1, NULL, e);

	*is = value > 0;
	return ok;
}

void db_reset(struct statement *s)
{
	s->db->engine->reset(s);
}

struct db_value db_column(const struct statement *s, int column)
{
	struct db_value v = { .kind = DB_NULL };

	s->db->engine->column(s, column, &v);
	return v;
}

int64_t db_column_int(const struct statement *s, int column)
{
	return db_column(s, column).number;
}

void db_column_ints(const struct statement *s, int column, int64_t *values, int count)
{
	for (int i = 0; i < count; i++)
		values[i] = db_column_int(s, column + i);
}

bool db_column_is_null(const struct statement *s, int column)
{
	return db_column(s, column).kind == DB_NULL;
}

const char *db_column_text(const struct statement *s, int column)
{
	struct db_value v = db_column(s, column);

	return v.kind == DB_TEXT ? v.bytes : "";
}

const char *db_column_copy(const struct statement *s, int column, struct arena *a)
{
	const char *text = db_column_text(s, column);

	return arena_strdup(a, text, strlen(text));
}

int db_columns(const struct statement *s)
{
	return s->db->engine->columns(s);
}

const void *db_column_bytes(const struct statement *s, int column, size_t *len)
{
	struct db_value v = db_column(s, column);

	*len = v.len;
	return v.bytes;
}
