/*
 * Questions to SQLite as PostgreSQL understands them. Pure; texts are ours,
 * so this knows what we write and no more: parameters, INDEXED BY, INSERT OR
 * REPLACE and OR IGNORE, min and max of two, whole numbers of 64 bits, and
 * how a table is made.
 */
#pragma once
#include "base/buf.h"

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
