/* A history in PostgreSQL: questions in its words, statements, its address and schema, the views over all clusters. */
#include "base/arena.h"
#include "state/db_engine.h"

#include <ctype.h>
#include <endian.h>
#include <inttypes.h>
#include <libpq-fe.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* --- questions, as PostgreSQL understands them --- */

static bool begins(const char *text, const char *with)
{
	return !strncmp(text, with, strlen(with));
}

/* "?" is the next parameter, "?3" the third. */
static const char *parameter(const char *c, int *next, struct buf *out)
{
	const char *end = c + 1;

	while (isdigit((unsigned char)*end))
		end++;
	if (end == c + 1)
		buf_printf(out, "$%d", ++*next);
	else
		buf_printf(out, "$%.*s", (int)(end - c - 1), c + 1);
	return end;
}

/* Past "INDEXED BY name": a hint to SQLite. */
static const char *past_hint(const char *c)
{
	c += strlen("INDEXED BY ");
	while (isalnum((unsigned char)*c) || *c == '_')
		c++;
	return *c == ' ' ? c + 1 : c;
}

/* The smaller of two has a name of its own there; of one it is what groups have. */
static const char *past_extreme(const char *c, struct buf *out)
{
	bool is_least = begins(c, "min(");
	int depth = 0;

	for (const char *in = c + 3; *in; in++) {
		depth += *in == '(' ? 1 : *in == ')' ? -1 : 0;
		if (!depth)
			return NULL;
		if (depth == 1 && *in == ',') {
			buf_text(out, is_least ? "least(" : "greatest(");
			return c + 4;
		}
	}
	return NULL;
}

static bool begins_word(const char *sql, const char *c, const char *word)
{
	return begins(c, word) && (c == sql || (!isalnum((unsigned char)c[-1]) && c[-1] != '_'));
}

/* One piece of a statement; returns what is behind it. */
static const char *piece(const char *sql, const char *c, int *next, struct buf *out)
{
	if (*c == '?')
		return parameter(c, next, out);
	if (begins_word(sql, c, "INDEXED BY "))
		return past_hint(c);
	if (begins_word(sql, c, "AS INTEGER)")) {
		buf_text(out, "AS bigint)");
		return c + strlen("AS INTEGER)");
	}
	const char *inside = begins_word(sql, c, "min(") || begins_word(sql, c, "max(") ? past_extreme(c, out) : NULL;
	if (inside)
		return inside;
	const char *quoted = *c == '\'' ? strchr(c + 1, '\'') : NULL;
	size_t len = quoted ? (size_t)(quoted - c) + 1 : 1;
	buf_append(out, c, len);
	return c + len;
}

static const char *past_insert(const char *sql, struct db_translation *out)
{
	static const struct {
		const char *words;
		enum db_conflict conflict;
	} forms[] = { { "INSERT OR REPLACE INTO ", DB_CONFLICT_REPLACES },
		      { "INSERT OR IGNORE INTO ", DB_CONFLICT_IGNORES } };

	for (size_t i = 0; i < sizeof forms / sizeof *forms; i++) {
		if (!begins(sql, forms[i].words))
			continue;
		sql += strlen(forms[i].words);
		snprintf(out->table, sizeof out->table, "%.*s", (int)strcspn(sql, " ("), sql);
		out->conflict = forms[i].conflict;
		buf_text(&out->sql, "INSERT INTO ");
		return sql;
	}
	return sql;
}

void db_translate(const char *sql, struct db_translation *out)
{
	int next = 0;

	*out = (struct db_translation){ .conflict = DB_CONFLICT_FAILS };
	for (const char *c = past_insert(sql, out); *c;)
		c = piece(sql, c, &next, &out->sql);
	if (out->conflict == DB_CONFLICT_IGNORES)
		buf_text(&out->sql, " ON CONFLICT DO NOTHING");
}

static const char *type_of(const char *type)
{
	if (!strcmp(type, "TEXT"))
		return "text";
	return strcmp(type, "BLOB") ? "bigint" : "bytea";
}

static void put_column(const struct db_column *c, struct buf *out)
{
	buf_printf(out, "\"%s\" %s%s", c->name, type_of(c->type), c->is_required || c->key ? " NOT NULL" : "");
	if (*c->fallback)
		buf_printf(out, " DEFAULT %s", c->fallback);
}

static void put_key(const struct db_column *columns, size_t count, struct buf *out)
{
	const char *before = ", PRIMARY KEY (";
	bool has_key = false;

	for (int place = 1; place <= (int)count; place++)
		for (size_t i = 0; i < count; i++)
			if (columns[i].key == place) {
				buf_printf(out, "%s\"%s\"", before, columns[i].name);
				before = ", ";
				has_key = true;
			}
	if (has_key)
		buf_text(out, ")");
}

void db_translate_table(const char *table, const struct db_column *columns, size_t count, struct buf *out)
{
	buf_printf(out, "CREATE TABLE IF NOT EXISTS \"%s\" (", table);
	for (size_t i = 0; i < count; i++) {
		buf_text(out, i ? ", " : "");
		put_column(&columns[i], out);
	}
	put_key(columns, count, out);
	buf_text(out, ");\n");
	for (size_t i = 0; i < count; i++) {
		if (columns[i].key)
			continue;
		buf_printf(out, "ALTER TABLE \"%s\" ADD COLUMN IF NOT EXISTS ", table);
		put_column(&columns[i], out);
		buf_text(out, ";\n");
	}
}

void db_translate_index(const char *sql, struct buf *out)
{
	static const char words[] = "CREATE INDEX ";

	buf_printf(out, "CREATE INDEX IF NOT EXISTS %s;\n", begins(sql, words) ? sql + strlen(words) : sql);
}

struct db_postgres {
	struct db base;
	PGconn *connection;
	int statements; /* prepared ones have names */
};

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
	{ "28", ERROR_AUTH,
	  "the server does not let this user in; check user, password (PGPASSWORD or PGPASSFILE) and pg_hba.conf" },
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

/* Says what a person can do about it; always false. */
static bool failed(const struct db_postgres *db, const PGresult *result, struct error *e)
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
	bool ok = is_well(result) || failed(db, result, e);

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
	return db_read_bool(
		DB_QUERY(db, "SELECT count(*) FROM pg_tables WHERE schemaname = current_schema() AND tablename = ?",
			 DB_T(name)),
		has, e);
}

/* "ON CONFLICT (key) DO UPDATE SET ...", told by the server, which knows the table. */
static bool put_replacement(struct db *db, struct db_translation *t, struct error *e)
{
	struct statement *s = DB_QUERY(
		db,
		"WITH key AS (SELECT a.attname FROM pg_index i JOIN pg_attribute a ON a.attrelid = i.indrelid"
		" AND a.attnum = ANY (i.indkey) WHERE i.indrelid = to_regclass(?1) AND i.indisprimary),"
		" rest AS (SELECT attname FROM pg_attribute WHERE attrelid = to_regclass(?1) AND attnum > 0"
		" AND NOT attisdropped AND attname NOT IN (SELECT attname FROM key))"
		" SELECT ' ON CONFLICT (' || (SELECT string_agg(quote_ident(attname), ', ') FROM key) || ') DO '"
		" || coalesce('UPDATE SET ' || (SELECT string_agg(quote_ident(attname) || ' = excluded.' ||"
		" quote_ident(attname), ', ') FROM rest), 'NOTHING')",
		DB_T(t->table));
	bool row;

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
	bool ok = is_well(result) || failed(db, result, e);

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
	return is_well(s->result) || failed(db, s->result, e);
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

/* A history in PostgreSQL: its address, its schema, and the views over all of them. */

enum { CLUSTER_MAX = 56, COLUMNS_MAX = 64, ASIDE_MOST = 99 };

#define FLEET "fleet" /* the schema of the views over all clusters */

/* Each ends in the mark's table, by which a schema is known for a history. */
#define CLUSTERS                                                                                             \
	"SELECT n.nspname::text FROM pg_namespace n JOIN pg_class c ON c.relnamespace = n.oid AND c.relname" \
	" = 'preheat_history' WHERE has_schema_privilege(n.oid, 'USAGE') ORDER BY 1"

/* --- the address --- */

static bool is_cluster(const char *name)
{
	size_t len = strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789-_");

	return len && !name[len] && len <= CLUSTER_MAX && name[0] >= 'a' && name[0] <= 'z' && strncmp(name, "pg_", 3) &&
	       strcmp(name, "public") && strcmp(name, FLEET) && strcmp(name, "information_schema");
}

/* The address as it may be shown: a password never is. */
static void shown_address(PGconn *connection, const char *cluster, char *out, size_t size)
{
	const char *host = PQhost(connection), *database = PQdb(connection);

	snprintf(out, size, "postgresql://%s/%s%s%s", host ? host : "", database ? database : "", *cluster ? "#" : "",
		 cluster);
}

static struct db_postgres *connect_to(const char *address, struct error *e)
{
	const char *mark = strchr(address, '#');
	const char *cluster = mark ? mark + 1 : "";
	CLEANUP(buf_release) struct buf server = { 0 };
	char shown[512];

	buf_append(&server, address, mark ? (size_t)(mark - address) : strlen(address));
	/* What stands before dbname is the default for what the address says. */
	const char *const names[] = { "connect_timeout",
				      "keepalives_idle",
				      "keepalives_interval",
				      "keepalives_count",
				      "tcp_user_timeout",
				      "fallback_application_name",
				      "dbname",
				      NULL };
	const char *const values[] = { "10", "15", "5", "3", "30000", "preheat", server.text, NULL };
	PGconn *connection = PQconnectdbParams(names, values, 1);

	shown_address(connection, cluster, shown, sizeof shown);
	struct db_postgres *db = (struct db_postgres *)db_new(&db_postgres, shown, sizeof *db);
	db->connection = connection;
	if (PQstatus(connection) == CONNECTION_OK)
		return db;
	failed(db, NULL, e);
	db_close(&db->base);
	return NULL;
}

static bool tell_clusters(struct db *db, void (*tell)(void *user, const char *cluster), void *user, struct error *e)
{
	struct statement *s = db_prepare(db, CLUSTERS);
	bool ok;

	while (db_next(s, &ok, e))
		tell(user, db_column_text(s, 0));
	return ok;
}

bool db_clusters(const char *address, void (*tell)(void *user, const char *cluster), void *user, struct error *e)
{
	struct db_postgres *db = connect_to(address, e);

	if (!db)
		return false;
	bool ok = tell_clusters(&db->base, tell, user, e);
	db_close(&db->base);
	return ok;
}

/* --- the schema --- */

static void put_name(void *user, const char *cluster)
{
	struct buf *names = user;

	buf_printf(names, "%s%s", names->len ? ", " : "", cluster);
}

static bool no_cluster(struct db *db, const char *cluster, struct error *e)
{
	CLEANUP(buf_release) struct buf names = { .cap = 512 };

	if (!tell_clusters(db, put_name, &names, e))
		return false;
	return error_set(e, ERROR_NOT_FOUND, "%s: %s%s%s; there is: %s", db->path,
			 *cluster ? "no history of a cluster '"
				  : "the address ends without the name of a cluster ('#NAME')",
			 cluster, *cluster ? "'" : "", names.len ? names.text : "none yet");
}

static bool use_schema(struct db *db, const char *cluster, struct error *e)
{
	CLEANUP(buf_release) struct buf sql = { 0 };

	buf_printf(&sql, "SET search_path TO \"%s\"", cluster);
	return db_exec(db, sql.text, e);
}

static bool read_version(struct db *db, int64_t *version, struct error *e)
{
	return db_read_ints(db_prepare(db, "SELECT version FROM preheat_history"), version, 1, NULL, e);
}

static bool check_version(struct db *db, const struct db_schema *schema, bool writes, struct error *e)
{
	int64_t version;

	if (!read_version(db, &version, e))
		return false;
	if (version > schema->count)
		return error_set(e, ERROR_CONFLICT,
				 "%s: written by a newer preheat (version %" PRId64 ", this program knows %d); "
				 "use the newer program",
				 db->path, version, schema->count);
	return writes || version >= schema->readable_from ||
	       error_set(e, ERROR_INVALID,
			 "%s: written by an older preheat (version %" PRId64 ", this program wants %d); "
			 "copy to it once with this program",
			 db->path, version, schema->readable_from);
}

static bool put_columns(struct db *model, const char *table, struct buf *sql, struct error *e)
{
	CLEANUP(arena_release) struct arena a = { 0 };
	struct db_column columns[COLUMNS_MAX];
	struct statement *s = DB_QUERY(model,
				       "SELECT name, type, coalesce(dflt_value, ''), \"notnull\", pk FROM"
				       " pragma_table_info(?) ORDER BY cid",
				       DB_T(table));
	size_t count = 0;
	bool ok = true;

	while (count < COLUMNS_MAX && db_next(s, &ok, e))
		columns[count++] = (struct db_column){ db_column_copy(s, 0, &a), db_column_copy(s, 1, &a),
						       db_column_copy(s, 2, &a), db_column_int(s, 3) == 1,
						       (int)db_column_int(s, 4) };
	db_reset(s);
	db_translate_table(table, columns, count, sql);
	return ok;
}

/* One schema: the tables are those that a file of SQLite's gets, read off one that is made in memory. */
static bool put_schema(const struct db_schema *schema, struct buf *sql, struct error *e)
{
	struct db *model = db_sqlite_model(schema, e);
	bool ok;

	if (!model)
		return false;
	struct statement *s =
		db_prepare(model, "SELECT type, name, sql FROM sqlite_schema WHERE sql IS NOT NULL AND name NOT"
				  " LIKE 'sqlite_%' ORDER BY type DESC, rowid");
	while (db_next(s, &ok, e)) {
		if (!strcmp(db_column_text(s, 0), "index"))
			db_translate_index(db_column_text(s, 2), sql);
		else if (!strcmp(db_column_text(s, 0), "table") && !put_columns(model, db_column_text(s, 1), sql, e)) {
			ok = false;
			break;
		}
	}
	db_close(model);
	return ok;
}

/* Only who makes it needs the right to. */
static bool put_new_schema(struct db *db, const char *name, struct buf *sql, struct error *e)
{
	bool is;

	if (!db_read_bool(DB_QUERY(db, "SELECT count(*) FROM pg_namespace WHERE nspname = ?", DB_T(name)), &is, e))
		return false;
	if (!is)
		buf_printf(sql, "CREATE SCHEMA \"%s\";\n", name);
	return true;
}

static bool make_schema(struct db *db, const struct db_schema *schema, const char *cluster, struct error *e)
{
	CLEANUP(buf_release) struct buf sql = { 0 };

	if (!put_new_schema(db, cluster, &sql, e))
		return false;
	buf_printf(&sql,
		   "SET search_path TO \"%s\";\n"
		   "CREATE TABLE IF NOT EXISTS preheat_history (version bigint NOT NULL);\n",
		   cluster);
	if (!put_schema(schema, &sql, e))
		return false;
	buf_printf(&sql, "DELETE FROM preheat_history; INSERT INTO preheat_history VALUES (%d);\n", schema->count);
	if (db_begin(db, e) && db_exec(db, sql.text, e) && db_commit(db, e))
		return true;
	db_rollback(db);
	return false;
}

/* One writer, as of a file; the lock goes with the connection. */
static bool lock_cluster(struct db *db, const char *cluster, struct error *e)
{
	bool is_ours;

	if (!db_read_bool(
		    DB_QUERY(db, "SELECT pg_try_advisory_lock(hashtextextended('preheat ' || ?, 0))", DB_T(cluster)),
		    &is_ours, e))
		return false;
	return is_ours || error_set(e, ERROR_UNAVAILABLE, "%s: another preheat writes it", db->path);
}

static bool is_there(struct db *db, const char *cluster, bool *is, struct error *e)
{
	return db_read_bool(DB_QUERY(db,
				     "SELECT count(*) FROM pg_namespace n JOIN pg_class c ON c.relnamespace = n.oid AND"
				     " c.relname = 'preheat_history' WHERE n.nspname = ? AND"
				     " has_schema_privilege(n.oid, 'USAGE')",
				     DB_T(cluster)),
			    is, e);
}

static bool set_up(struct db *db, const struct db_schema *schema, const char *cluster, bool writes, struct error *e)
{
	static const char session[] =
		"SET client_min_messages = warning; SET statement_timeout = '60s'; SET lock_timeout = '10s'";
	int64_t version = 0;
	bool is;

	if (!db_exec(db, session, e) || (!writes && !db_exec(db, "SET default_transaction_read_only = on", e)) ||
	    !is_there(db, cluster, &is, e))
		return false;
	if (!is && !writes)
		return no_cluster(db, cluster, e);
	if (is && (!use_schema(db, cluster, e) || !check_version(db, schema, writes, e)))
		return false;
	if (!writes)
		return true;
	if (!lock_cluster(db, cluster, e) || (is && !read_version(db, &version, e)))
		return false;
	return version == schema->count || make_schema(db, schema, cluster, e);
}

static struct db *open_cluster(const char *address, const struct db_schema *schema, bool writes, struct error *e)
{
	const char *mark = strchr(address, '#');
	const char *cluster = mark ? mark + 1 : "";

	if ((mark || writes) && !is_cluster(cluster)) {
		error_set(e, ERROR_INVALID,
			  "--db: found '#%.60s' behind the address of a database; allowed: '#' and the name of a "
			  "cluster: lower-case letters, digits, - and _, beginning with a letter, and not pg_..., "
			  "public or " FLEET,
			  cluster);
		return NULL;
	}
	struct db_postgres *db = connect_to(address, e);
	if (!db || set_up(&db->base, schema, cluster, writes, e))
		return db ? &db->base : NULL;
	db_close(&db->base);
	return NULL;
}

bool db_set_cluster_aside(const char *address, struct buf *name, struct error *e)
{
	const char *cluster = strchr(address, '#') ? strchr(address, '#') + 1 : "";
	struct db_postgres *db = is_cluster(cluster) ? connect_to(address, e) : NULL;
	bool is = true, ok = db;

	for (int i = 1; ok && is && i <= ASIDE_MOST; i++) {
		buf_clear(name);
		buf_printf(name, "%s-%d", cluster, i);
		ok = is_there(&db->base, name->text, &is, e);
	}
	if (ok && is)
		ok = error_set(e, ERROR_CONFLICT,
			       "%s: too many were set aside already; drop some of the schemas %s-1 to %s-%d",
			       db->base.path, cluster, cluster, ASIDE_MOST);
	CLEANUP(buf_release) struct buf sql = { 0 };
	buf_printf(&sql, "ALTER SCHEMA \"%s\" RENAME TO \"%s\"", cluster, name->text);
	ok = ok && db_exec(&db->base, sql.text, e);
	db_close(db ? &db->base : NULL);
	return ok;
}

/* --- all clusters at once --- */

/* A view per table: its rows of every cluster that has it in this form. */
static bool put_view(struct db *db, const char *table, struct buf *sql, struct error *e)
{
	struct statement *s =
		db_prepare(db, "SELECT n.nspname::text, string_agg(quote_ident(a.attname), ', ' ORDER BY a.attname) "
			       "FROM pg_namespace n"
			       " JOIN pg_class m ON m.relnamespace = n.oid AND m.relname = 'preheat_history'"
			       " JOIN pg_class c ON c.relnamespace = n.oid AND c.relname = ?"
			       " JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped"
			       " WHERE has_schema_privilege(n.oid, 'USAGE') GROUP BY 1 HAVING string_agg(a.attname, ' "
			       "' ORDER BY a.attname) ="
			       " (SELECT string_agg(o.attname, ' ' ORDER BY o.attname) FROM pg_attribute o WHERE "
			       "o.attrelid = to_regclass(?)"
			       " AND o.attnum > 0 AND NOT o.attisdropped) ORDER BY 1");
	const char *before = "";
	bool ok;

	DB_BIND(s, DB_T(table), DB_T(table));
	buf_printf(sql, "DROP VIEW IF EXISTS " FLEET ".\"%s\"; CREATE VIEW " FLEET ".\"%s\" AS ", table, table);
	while (db_next(s, &ok, e)) {
		buf_printf(sql, "%sSELECT '%s'::text AS cluster, %s FROM \"%s\".\"%s\"", before, db_column_text(s, 0),
			   db_column_text(s, 1), db_column_text(s, 0), table);
		before = " UNION ALL ";
	}
	buf_text(sql, ";\n");
	return ok;
}

bool db_renew_fleet(struct db *db, struct error *e)
{
	CLEANUP(buf_release) struct buf sql = { 0 };
	struct statement *s =
		db_prepare(db, "SELECT tablename::text FROM pg_tables WHERE schemaname = current_schema() AND"
			       " tablename <> 'preheat_history' ORDER BY 1");
	bool ok;

	if (!put_new_schema(db, FLEET, &sql, e))
		return false;
	while (db_next(s, &ok, e))
		if (!put_view(db, db_column_text(s, 0), &sql, e))
			return false;
	if (!ok)
		return false;
	if (db_begin(db, e) && db_exec(db, sql.text, e) && db_commit(db, e))
		return true;
	db_rollback(db);
	return false;
}

const struct db_engine db_postgres = {
	.open = open_cluster,
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
