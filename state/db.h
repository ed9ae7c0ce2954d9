/*
 * The database behind a narrow door: a file of SQLite's, or a cluster's
 * schema in PostgreSQL, in the same tables, asked the same questions. No
 * other folder includes sqlite3.h or libpq-fe.h. Every error names the file
 * or the server and says what a person can do.
 *
 * Questions are written in what both understand: no bare number as a
 * condition, CASE for the smaller of two. INDEXED BY, INSERT OR REPLACE and
 * OR IGNORE are translated (db_engine.h).
 */
#pragma once
#include "base/arena.h"
#include "base/buf.h"
#include "base/error.h"

#include <stddef.h>
#include <stdint.h>

struct db;
struct statement;

/* What a file must be: its mark (application_id) and its migrations, which user_version counts. */
struct db_schema {
	int32_t application_id;
	const char *const *migrations; /* append only: released entries never change */
	int count;
	int readable_from; /* so many migrations are enough for reading; what came later may be missing then */
};

/*
 * A path is a file's, or the address of a history in PostgreSQL: "postgresql://USER@HOST/DATABASE#CLUSTER", whose part
 * before the # goes to libpq as it is (so PGPASSFILE, PGSERVICE and the others work), and whose CLUSTER is the name of
 * the schema that its tables are in. What is said of files holds for them in meaning; several may write.
 */
bool db_is_address(const char *path);
/* The names of the clusters that an address without one leads to, one by one; the text is the caller's to copy. */
bool db_clusters(const char *address, void (*tell)(void *user, const char *cluster), void *user,
		 struct error *e) MUST_USE;
/* Makes the views of the schema "fleet" anew: every table of all clusters, with the column cluster before the others.
 */
bool db_renew_fleet(struct db *db, struct error *e) MUST_USE;

/* Gives a cluster's schema another name, NAME-1 or the next that is free, which is appended to `name`. */
bool db_set_cluster_aside(const char *address, struct buf *name, struct error *e) MUST_USE;

/*
 * Opens for writing, in WAL mode, and migrates; a new file is made when none is there. NULL on failure: ERROR_CONFLICT
 * for a file of a newer program. The file and its logs are the owner's alone (0600), also when they were wider before.
 */
struct db *db_open(const char *path, const struct db_schema *schema, struct error *e);
/*
 * Opens for reading, also while another process writes; never makes a file
 * and never leaves one behind. The schema must be readable: ask
 * db_has_table() for what came later.
 */
struct db *db_open_read(const char *path, const struct db_schema *schema, struct error *e);
/* Takes the rights of group and others from a file that is there and ours. */
void db_keep_private(const char *path);
void db_close(struct db *db); /* takes NULL; what is not committed is rolled back */
const char *db_path(const struct db *db);
bool db_lacks_room(const struct db *db); /* what failed last found none on the disk, or a quota is used up */
bool db_has_table(struct db *db, const char *name, bool *has, struct error *e) MUST_USE;

bool db_begin(struct db *db, struct error *e) MUST_USE;
/* Fails for a file that is no longer what stands at its path: what nobody can find is not recorded. */
bool db_commit(struct db *db, struct error *e) MUST_USE;
void db_rollback(struct db *db); /* harmless when nothing is open */
bool db_exec(struct db *db, const char *sql, struct error *e) MUST_USE;
/* Of a file, from the next transaction on: a commit reaches the disk before it returns (costs a sync), or soon after.
 */
bool db_set_durable(struct db *db, bool durable, struct error *e) MUST_USE;
int64_t db_last_id(const struct db *db); /* of a file */

enum db_kind { DB_NULL, DB_INT, DB_TEXT, DB_BYTES };
struct db_value {
	enum db_kind kind;
	int64_t number;
	const void *bytes; /* of texts and bytes; texts end with a NUL */
	size_t len;	   /* not of texts to bind */
};
#define DB_I(value)                               \
	{                                         \
		.kind = DB_INT, .number = (value) \
	}
#define DB_T(text)                               \
	{                                        \
		.kind = DB_TEXT, .bytes = (text) \
	} /* NULL: nothing */
#define DB_B(start, size)                                         \
	{                                                         \
		.kind = DB_BYTES, .bytes = (start), .len = (size) \
	}

/*
 * Prepared on first use and kept; `sql` is a literal. Values bind in order;
 * the first failure sticks and is reported by the step, so callers check
 * once. Texts and bytes must live until the step.
 */
#define DB_QUERY(db, sql, ...) \
	db_bind(db_prepare(db, sql), DB_VALUES(__VA_ARGS__), sizeof(DB_VALUES(__VA_ARGS__)) / sizeof(struct db_value))
#define DB_BIND(s, ...) db_bind(s, DB_VALUES(__VA_ARGS__), sizeof(DB_VALUES(__VA_ARGS__)) / sizeof(struct db_value))
#define DB_VALUES(...)	((const struct db_value[]){ __VA_ARGS__ })
struct statement *db_prepare(struct db *db, const char *sql);
struct statement *db_bind(struct statement *s, const struct db_value *values, size_t count);
void db_bind_int(struct statement *s, int64_t value);
void db_bind_ints(struct statement *s, const int64_t *values, size_t count);
bool db_run(struct statement *s, struct error *e) MUST_USE;		/* no rows   */
bool db_step(struct statement *s, bool *row, struct error *e) MUST_USE; /* next row */
/* The same for loops: false after the last row, and with *ok false and the error. A loop that is left earlier resets.
 */
bool db_next(struct statement *s, bool *ok, struct error *e) MUST_USE;
/* The first columns of the only row, 0 for NULL; without a row 0 and, unless NULL, *there is false. */
bool db_read_ints(struct statement *s, int64_t *values, int count, bool *there, struct error *e) MUST_USE;
/* Whether the first column of the only row is above 0. */
bool db_read_bool(struct statement *s, bool *is, struct error *e) MUST_USE;
void db_reset(struct statement *s);
int64_t db_column_int(const struct statement *s, int column);
void db_column_ints(const struct statement *s, int column, int64_t *values, int count);
bool db_column_is_null(const struct statement *s, int column);
const char *db_column_text(const struct statement *s, int column);		 /* "" for NULL; until reset */
const void *db_column_bytes(const struct statement *s, int column, size_t *len); /* until reset */

const char *db_column_copy(const struct statement *s, int column, struct arena *a); /* of a text */

/* Of the row that the statement stands on. */
int db_columns(const struct statement *s);
struct db_value db_column(const struct statement *s, int column);

/* Version of SQLite that runs: "3.40.1". */
const char *db_library_version(void);
