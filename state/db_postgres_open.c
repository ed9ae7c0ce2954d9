/* A history in PostgreSQL: its address, its schema, and the views over all of them. */
#include "state/db_postgres.h"
#include "state/db_translate.h"

#include "base/arena.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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
	db_postgres_failed(db, NULL, e);
	db_close(&db->base);
	return NULL;
}

static bool tell_clusters(struct db *db, void (*tell)(void *user, const char *cluster), void *user, struct error *e)
{
	struct statement *s = db_prepare(db, CLUSTERS);
	bool row = true;

	while (row) {
		if (!db_step(s, &row, e))
			return false;
		if (row)
			tell(user, db_column_text(s, 0));
	}
	db_reset(s);
	return true;
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
	struct statement *s = db_prepare(db, "SELECT version FROM preheat_history");
	bool row;

	*version = 0;
	if (!db_step(s, &row, e))
		return false;
	if (row)
		*version = db_column_int(s, 0);
	db_reset(s);
	return true;
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

static const char *kept(struct arena *a, const struct statement *s, int column)
{
	const char *text = db_column_text(s, column);

	return arena_strdup(a, text, strlen(text));
}

static bool put_columns(struct db *model, const char *table, struct buf *sql, struct error *e)
{
	CLEANUP(arena_release) struct arena a = { 0 };
	struct db_column columns[COLUMNS_MAX];
	struct statement *s = db_prepare(
		model,
		"SELECT name, type, coalesce(dflt_value, ''), \"notnull\", pk FROM pragma_table_info(?) ORDER BY cid");
	size_t count = 0;
	bool row = true;

	db_bind_text(s, table);
	while (row && count < COLUMNS_MAX) {
		if (!db_step(s, &row, e))
			return false;
		if (row)
			columns[count++] = (struct db_column){ kept(&a, s, 0), kept(&a, s, 1), kept(&a, s, 2),
							       db_column_int(s, 3) == 1, (int)db_column_int(s, 4) };
	}
	db_reset(s);
	db_translate_table(table, columns, count, sql);
	return true;
}

/* One schema: the tables are those that a file of SQLite's gets, read off one that is made in memory. */
static bool put_schema(const struct db_schema *schema, struct buf *sql, struct error *e)
{
	struct db *model = db_sqlite_model(schema, e);
	bool row = true;

	if (!model)
		return false;
	struct statement *s =
		db_prepare(model, "SELECT type, name, sql FROM sqlite_schema WHERE sql IS NOT NULL AND name NOT"
				  " LIKE 'sqlite_%' ORDER BY type DESC, rowid");
	while (row && db_step(s, &row, e)) {
		if (row && !strcmp(db_column_text(s, 0), "table") && !put_columns(model, db_column_text(s, 1), sql, e))
			break;
		if (row && !strcmp(db_column_text(s, 0), "index"))
			db_translate_index(db_column_text(s, 2), sql);
	}
	db_close(model);
	return !row;
}

/* Only who makes it needs the right to. */
static bool put_new_schema(struct db *db, const char *name, struct buf *sql, struct error *e)
{
	struct statement *s = db_prepare(db, "SELECT count(*) FROM pg_namespace WHERE nspname = ?");
	bool row;

	db_bind_text(s, name);
	if (!db_step(s, &row, e))
		return false;
	if (db_column_int(s, 0) == 0)
		buf_printf(sql, "CREATE SCHEMA \"%s\";\n", name);
	db_reset(s);
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
static bool lock_out_others(struct db *db, const char *cluster, struct error *e)
{
	struct statement *s = db_prepare(db, "SELECT pg_try_advisory_lock(hashtextextended('preheat ' || ?, 0))");
	bool row;

	db_bind_text(s, cluster);
	if (!db_step(s, &row, e))
		return false;
	bool is_ours = db_column_int(s, 0) == 1;

	db_reset(s);
	return is_ours || error_set(e, ERROR_UNAVAILABLE, "%s: another preheat writes it", db->path);
}

static bool is_there(struct db *db, const char *cluster, bool *is, struct error *e)
{
	struct statement *s = db_prepare(
		db, "SELECT count(*) FROM pg_namespace n JOIN pg_class c ON c.relnamespace = n.oid AND c.relname ="
		    " 'preheat_history' WHERE n.nspname = ? AND has_schema_privilege(n.oid, 'USAGE')");
	bool row;

	db_bind_text(s, cluster);
	if (!db_step(s, &row, e))
		return false;
	*is = db_column_int(s, 0) > 0;
	db_reset(s);
	return true;
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
	if (!lock_out_others(db, cluster, e) || (is && !read_version(db, &version, e)))
		return false;
	return version == schema->count || make_schema(db, schema, cluster, e);
}

struct db *db_postgres_open(const char *address, const struct db_schema *schema, bool writes, struct error *e)
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
	bool row = true, is_first = true;

	db_bind_text(s, table);
	db_bind_text(s, table);
	buf_printf(sql, "DROP VIEW IF EXISTS " FLEET ".\"%s\"; CREATE VIEW " FLEET ".\"%s\" AS ", table, table);
	while (row) {
		if (!db_step(s, &row, e))
			return false;
		if (row)
			buf_printf(sql, "%sSELECT '%s'::text AS cluster, %s FROM \"%s\".\"%s\"",
				   is_first ? "" : " UNION ALL ", db_column_text(s, 0), db_column_text(s, 1),
				   db_column_text(s, 0), table);
		is_first = false;
	}
	db_reset(s);
	buf_text(sql, ";\n");
	return true;
}

bool db_renew_fleet(struct db *db, struct error *e)
{
	CLEANUP(buf_release) struct buf sql = { 0 };
	struct statement *s =
		db_prepare(db, "SELECT tablename::text FROM pg_tables WHERE schemaname = current_schema() AND"
			       " tablename <> 'preheat_history' ORDER BY 1");
	bool row = true;

	if (!put_new_schema(db, FLEET, &sql, e))
		return false;
	while (row) {
		if (!db_step(s, &row, e))
			return false;
		if (row && !put_view(db, db_column_text(s, 0), &sql, e))
			return false;
	}
	db_reset(s);
	if (db_begin(db, e) && db_exec(db, sql.text, e) && db_commit(db, e))
		return true;
	db_rollback(db);
	return false;
}
