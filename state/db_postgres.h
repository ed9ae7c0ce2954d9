/* What db_postgres.c and db_postgres_open.c share; nobody else includes this. */
#pragma once
#include "state/db_parts.h"

#include <libpq-fe.h>

struct db_postgres {
	struct db base;
	PGconn *connection;
	int statements; /* prepared ones have names */
};

extern const struct db_engine db_postgres;

/* Says what a person can do about what the server answered (NULL: about the connection); always false. */
bool db_postgres_failed(const struct db_postgres *db, const PGresult *result, struct error *e);
