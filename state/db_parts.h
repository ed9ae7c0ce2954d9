/* What db.c and db_open.c share; nobody else includes this. */
#pragma once
#include "state/db.h"

#include <sqlite3.h>

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
	int lock; /* of the one writer; -1: only read */
};

/* Says what a person can do about a result code of SQLite; always false. */
bool db_failed(const struct db *db, int code, struct error *e);
