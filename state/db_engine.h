/* What a database behind db.h has to do: the interface of its engines. */
#pragma once
#include "state/db.h"

/* What a database has to do. Rows are read one by one; a value lasts until the next step or reset. */
struct db_engine {
	/* A path that is this engine's; NULL on failure. */
	struct db *(*open)(const char *path, const struct db_schema *schema, bool writes, struct error *e);
	const char *begin;
	struct statement *(*prepare)(struct db *db, const char *sql);
	void (*bind)(struct statement *s, const struct db_value *value);
	bool (*step)(struct statement *s, bool *row, struct error *e);
	void (*reset)(struct statement *s);
	int (*columns)(const struct statement *s);
	void (*column)(const struct statement *s, int column, struct db_value *out);
	void (*drop)(struct statement *s);
	bool (*exec)(struct db *db, const char *sql, struct error *e);
	bool (*has_table)(struct db *db, const char *name, bool *has, struct error *e);
	void (*rollback)(struct db *db);
	void (*close)(struct db *db); /* frees it */
	/* of files; NULL elsewhere */
	bool (*set_durable)(struct db *db, bool durable, struct error *e);
	int64_t (*last_id)(const struct db *db);
	bool (*check_place)(struct db *db, struct error *e); /* before a commit */
};

/* Each engine's own begin with these. */
struct statement {
	struct db *db;
	const char *sql;
	struct statement *next;
};

struct db {
	const struct db_engine *engine;
	char *path;
	struct statement *statements;
	bool lacks_room; /* of what failed last */
};

/* Zeroed memory that begins with a struct db; ends the process when there is none. */
struct db *db_new(const struct db_engine *engine, const char *path, size_t size);
void *db_memory(size_t size);

extern const struct db_engine db_sqlite, db_postgres;
/* An empty one in memory. */
struct db *db_sqlite_model(const struct db_schema *schema, struct error *e);

/*
 * Questions to SQLite as PostgreSQL understands them. Pure; texts are ours,
 * so this knows what we write and no more: parameters, INDEXED BY, INSERT OR
 * REPLACE and OR IGNORE, min and max of two, whole numbers of 64 bits, and
 * how a table is made.
 */
/* What an insert does with a row that is there. */
enum db_conflict { DB_CONFLICT_FAILS, DB_CONFLICT_IGNORES, DB_CONFLICT_REPLACES };

struct db_translation {
	struct buf sql;		   /* the caller releases it */
	enum db_conflict conflict; /* IGNORES is in sql already; for REPLACES the caller appends the clause */
	char table[64];		   /* of the insert */
};

void db_translate(const char *sql, struct db_translation *out);

/* A column as SQLite's table_info tells it. */
struct db_column {
	const char *name, *type, *fallback; /* INTEGER, TEXT or BLOB; a literal or "" */
	bool is_required;
	int key; /* its place in the primary key, from 1; 0: none */
};

/* "CREATE TABLE IF NOT EXISTS ..." and, for a table of before, "ALTER TABLE ... ADD COLUMN IF NOT EXISTS ..." */
void db_translate_table(const char *table, const struct db_column *columns, size_t count, struct buf *out);
/* "CREATE INDEX name ON ..." as it may be said twice. */
void db_translate_index(const char *sql, struct buf *out);
