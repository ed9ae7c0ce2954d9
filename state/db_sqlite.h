/* What db_sqlite.c and db_sqlite_open.c share; nobody else includes this. */
#pragma once
#include "state/db_parts.h"

#include <sqlite3.h>

struct db_sqlite {
	struct db base;
	sqlite3 *handle;
	int lock; /* of the one writer; -1: only read */
};

extern const struct db_engine db_sqlite;

/* Says what a person can do about a result code of SQLite; always false. */
bool db_sqlite_failed(const struct db_sqlite *db, int code, struct error *e);
