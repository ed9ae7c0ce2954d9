/* What the files db*.c share; nobody else includes this. */
#pragma once
#include "state/db.h"

struct db_value {
	enum db_kind kind;
	int64_t number;
	const void *bytes; /* of texts and bytes; texts end with a NUL */
	size_t len;
};

/* What a database has to do. Rows are read one by one; a value lasts until the next step or reset. */
struct db_engine {
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
};

/* Zeroed memory that begins with a struct db; ends the process when there is none. */
struct db *db_new(const struct db_engine *engine, const char *path, size_t size);
void *db_memory(size_t size);

struct db *db_sqlite_open(const char *path, const struct db_schema *schema, struct error *e);
struct db *db_sqlite_open_read(const char *path, const struct db_schema *schema, struct error *e);
/* An empty one in memory. */
struct db *db_sqlite_model(const struct db_schema *schema, struct error *e);
struct db *db_postgres_open(const char *address, const struct db_schema *schema, bool writes, struct error *e);
