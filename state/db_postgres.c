/* Statements of a history in PostgreSQL. Answers are small (one decision, a page of hits), so each is taken whole. */
#include "state/db_postgres.h"

#include "state/db_translate.h"

#include <endian.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
	PARAMETERS_MAX = 64,
	OID_BOOL = 16, /* of pg_type.dat: they never change */
	OID_BYTEA = 17,
	OID_INT8 = 20,
	OID_INT2 = 21,
	OID_INT4 = 23,
	OID_TEXT = 25,
};

struct postgres_statement {
	struct statement base;
	struct db_translation translation;
	char name[24]; /* of the prepared statement; empty: it is not yet */
	struct db_value bound[PARAMETERS_MAX];
	int count;
	PGresult *result;
	int row;
	struct error failure; /* of preparing */
};

static const struct remedy {
	const char *state; /* SQLSTATE, or how it begins: appendix A of PostgreSQL's manual */
	enum error_kind kind;
	const char *text;
} remedies[] = {
	{ "28", ERROR_AUTH, "the server does not let this user in; check user, password (PGPASSFILE) and pg_hba.conf" },
	{ "42501", ERROR_AUTH, "the user may not do that there; grant it, or name another user" },
	{ "3F000", ERROR_AUTH, "the user may not use that schema; grant it, or name another user" },
	{ "25006", ERROR_AUTH, "opened for reading only" },
	{ "3D000", ERROR_NOT_FOUND, "no such database; create it, or name another" },
	{ "53100", ERROR_UNAVAILABLE, "the server's disk is full" },
	{ "53300", ERROR_UNAVAILABLE, "the server has no connection left; try again later" },
	{ "57014", ERROR_UNAVAILABLE, "the server took longer than a minute; try again, or ask for less" },
	{ "57P", ERROR_UNAVAILABLE, "the server starts or stops; try again later" },
	{ "55P03", ERROR_UNAVAILABLE, "locked by another program; try again later" },
	{ "40", ERROR_UNAVAILABLE, "another program changes it; try again" },
	{ "42P01", ERROR_INVALID, "not a history, or damaged: a table is missing" },
	{ "23", ERROR_INVALID, "damaged: its rows contradict each other" },
};

/* The first line, without "ERROR: " and what stands behind it. */
static void first_line(const char *message, char *out, size_t size)
{
	const char *colon = strncmp(message, "ERROR:", strlen("ERROR:")) ? NULL : strchr(message, ':');

	message = colon ? colon + 1 + strspn(colon + 1, " ") : message;
	snprintf(out, size, "%.*s", (int)strcspn(message, "\n"), message);
}

bool db_postgres_failed(const struct db_postgres *db, const PGresult *result, struct error *e)
{
	const char *state = result ? PQresultErrorField(result, PG_DIAG_SQLSTATE) : NULL;
	char said[256];

	first_line(result ? PQresultErrorMessage(result) : PQerrorMessage(db->connection), said, sizeof said);
	for (size_t i = 0; state && i < sizeof remedies / sizeof *remedies; i++)
		if (!strncmp(state, remedies[i].state, strlen(remedies[i].state)))
			return error_set(e, remedies[i].kind, "%s: %s (%s)", db->base.path, remedies[i].text, said);
	if (!state)
		return error_set(e, ERROR_UNAVAILABLE, "%s: the server cannot be reached: %s", db->base.path, said);
	return error_set(e, ERROR_INTERNAL, "%s: %s (SQLSTATE %s)", db->base.path, said, state);
}

static bool is_well(const PGresult *result)
{
	ExecStatusType status = PQresultStatus(result);

	return status == PGRES_COMMAND_OK || status == PGRES_TUPLES_OK;
}

static bool exec(struct db *base, const char *sql, struct error *e)
{
	struct db_postgres *db = (struct db_postgres *)base;
	PGresult *result = PQexec(db->connection, sql);
	bool ok = is_well(result) || db_postgres_failed(db, result, e);

	PQclear(result);
	return ok;
}

static void rollback(struct db *base)
{
	struct db_postgres *db = (struct db_postgres *)base;

	if (PQtransactionStatus(db->connection) != PQTRANS_IDLE)
		PQclear(PQexec(db->connection, "ROLLBACK"));
}

static void close_connection(struct db *base)
{
	PQfinish(((struct db_postgres *)base)->connection);
	free(base);
}

static bool has_table(struct db *db, const char *name, bool *has, struct error *e)
{
	struct statement *s =
		db_prepare(db, "SELECT count(*) FROM pg_tables WHERE schemaname = current_schema() AND tablename = ?");
	bool row;

	db_bind_text(s, name);
	if (!db_step(s, &row, e))
		return false;
	*has = db_column_int(s, 0) > 0;
	db_reset(s);
	return true;
}

/* "ON CONFLICT (key) DO UPDATE SET ...", told by the server, which knows the table. */
static bool put_replacement(struct db *db, struct db_translation *t, struct error *e)
{
	struct statement *s = db_prepare(
		db, "WITH key AS (SELECT a.attname FROM pg_index i JOIN pg_attribute a ON a.attrelid = i.indrelid"
		    " AND a.attnum = ANY (i.indkey) WHERE i.indrelid = to_regclass(?1) AND i.indisprimary),"
		    " rest AS (SELECT attname FROM pg_attribute WHERE attrelid = to_regclass(?1) AND attnum > 0"
		    " AND NOT attisdropped AND attname NOT IN (SELECT attname FROM key))"
		    " SELECT ' ON CONFLICT (' || (SELECT string_agg(quote_ident(attname), ', ') FROM key) || ') DO '"
		    " || coalesce('UPDATE SET ' || (SELECT string_agg(quote_ident(attname) || ' = excluded.' ||"
		    " quote_ident(attname), ', ') FROM rest), 'NOTHING')");
	bool row;

	db_bind_text(s, t->table);
	if (!db_step(s, &row, e))
		return false;
	buf_text(&t->sql, db_column_text(s, 0));
	db_reset(s);
	return true;
}

static struct statement *prepare(struct db *db, const char *sql)
{
	struct postgres_statement *s = db_memory(sizeof *s);

	db_translate(sql, &s->translation);
	if (s->translation.conflict == DB_CONFLICT_REPLACES)
		put_replacement(db, &s->translation, &s->failure);
	return &s->base;
}

static void bind(struct statement *base, const struct db_value *value)
{
	struct postgres_statement *s = (struct postgres_statement *)base;

	if (s->count == PARAMETERS_MAX)
		abort(); /* statements are ours */
	s->bound[s->count] = *value;
	if (value->kind == DB_INT)
		s->bound[s->count].number = (int64_t)htobe64((uint64_t)value->number);
	s->count++;
}

/* Its parameters are of the kinds that are bound first; those of a null the server finds out. */
static bool prepare_there(struct postgres_statement *s, struct error *e)
{
	static const Oid types[] = { [DB_NULL] = 0, [DB_INT] = OID_INT8, [DB_TEXT] = OID_TEXT, [DB_BYTES] = OID_BYTEA };
	struct db_postgres *db = (struct db_postgres *)s->base.db;
	Oid of[PARAMETERS_MAX];
	char name[sizeof s->name];

	for (int i = 0; i < s->count; i++)
		of[i] = types[s->bound[i].kind];
	snprintf(name, sizeof name, "s%d", db->statements++);
	PGresult *result = PQprepare(db->connection, name, s->translation.sql.text, s->count, of);
	bool ok = is_well(result) || db_postgres_failed(db, result, e);

	PQclear(result);
	if (ok)
		memcpy(s->name, name, sizeof name);
	return ok;
}

static bool execute(struct postgres_statement *s, struct error *e)
{
	struct db_postgres *db = (struct db_postgres *)s->base.db;
	const char *values[PARAMETERS_MAX];
	int lengths[PARAMETERS_MAX], formats[PARAMETERS_MAX];

	if (s->failure.kind != ERROR_NONE) {
		*e = s->failure;
		return false;
	}
	if (!*s->name && !prepare_there(s, e))
		return false;
	for (int i = 0; i < s->count; i++) {
		const struct db_value *v = &s->bound[i];

		values[i] = v->kind == DB_NULL	? NULL
			    : v->kind == DB_INT ? (const char *)&v->number
			    : v->len		? v->bytes
						: "";
		lengths[i] = v->kind == DB_INT ? (int)sizeof v->number : (int)v->len;
		formats[i] = 1;
	}
	s->result = PQexecPrepared(db->connection, s->name, s->count, values, lengths, formats, 1);
	s->row = -1;
	return is_well(s->result) || db_postgres_failed(db, s->result, e);
}

static bool step(struct statement *base, bool *row, struct error *e)
{
	struct postgres_statement *s = (struct postgres_statement *)base;

	*row = false;
	if (!s->result && !execute(s, e))
		return false;
	*row = ++s->row < PQntuples(s->result);
	return true;
}

static void reset(struct statement *base)
{
	struct postgres_statement *s = (struct postgres_statement *)base;

	PQclear(s->result);
	s->result = NULL;
	s->count = 0;
}

static void drop(struct statement *base)
{
	struct postgres_statement *s = (struct postgres_statement *)base;

	PQclear(s->result);
	buf_release(&s->translation.sql);
	free(s);
}

static int columns(const struct statement *base)
{
	return PQnfields(((const struct postgres_statement *)base)->result);
}

/* Whole numbers come as they are in memory, most significant byte first. */
static int64_t number_of(const char *bytes, int len)
{
	int64_t number = len && (bytes[0] & 0x80) ? -1 : 0;

	for (int i = 0; i < len; i++)
		number = (int64_t)((uint64_t)number << 8 | (unsigned char)bytes[i]);
	return number;
}

static void column(const struct statement *base, int column, struct db_value *out)
{
	const struct postgres_statement *s = (const struct postgres_statement *)base;

	if (PQgetisnull(s->result, s->row, column))
		return;
	out->bytes = PQgetvalue(s->result, s->row, column);
	out->len = (size_t)PQgetlength(s->result, s->row, column);
	switch (PQftype(s->result, column)) {
	case OID_BOOL:
	case OID_INT2:
	case OID_INT4:
	case OID_INT8:
		out->kind = DB_INT;
		out->number = number_of(out->bytes, (int)out->len);
		return;
	case OID_BYTEA:
		out->kind = DB_BYTES;
		return;
	default:
		out->kind = DB_TEXT; /* libpq ends it with a NUL */
	}
}

const struct db_engine db_postgres = {
	.begin = "BEGIN",
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
	.close = close_connection,
};
