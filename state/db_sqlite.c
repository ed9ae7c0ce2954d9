#include "base/arena.h"
#include "base/buf.h"
#include "state/db_engine.h"

#include <errno.h>
#include <fcntl.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#define IN_MEMORY ":memory:" /* SQLite's own name for a database without a file */

struct db_sqlite {
	struct db base;
	sqlite3 *handle;
	int lock;	 /* of the one writer; -1: only read */
	int lock_errno;	 /* why nothing is written without one; 0: it is there, or its file system knows none */
	bool is_writer;	 /* it was opened for writing, whole */
	struct stat log; /* that is written; st_ino 0: none yet */
};

struct sqlite_statement {
	struct statement base;
	sqlite3_stmt *handle;
	int bound;
	int failure; /* first bad result code since the last reset */
};

/* What a person can do about each failure of SQLite. */
static const struct remedy {
	int code;
	enum error_kind kind;
	const char *text;
} remedies[] = {
	{ SQLITE_FULL, ERROR_UNAVAILABLE, "the disk is full; free some space and try again" },
	{ SQLITE_BUSY, ERROR_UNAVAILABLE, "locked by another program; wait until it is done, or stop it" },
	{ SQLITE_LOCKED, ERROR_UNAVAILABLE, "locked by another program; wait until it is done, or stop it" },
	{ SQLITE_READONLY, ERROR_UNAVAILABLE, "read-only; allow writing to the file and its folder" },
	{ SQLITE_PERM, ERROR_UNAVAILABLE, "no permission; allow access to the file and its folder" },
	{ SQLITE_NOTADB, ERROR_INVALID, "not a history file; name one that preheat wrote" },
	{ SQLITE_CORRUPT, ERROR_INVALID, "damaged or cut short; take a copy that is whole, or simulate again" },
	{ SQLITE_CANTOPEN, ERROR_UNAVAILABLE, "cannot be opened; check that the folder exists and may be used" },
	{ SQLITE_IOERR, ERROR_UNAVAILABLE, "the disk reports an error" },
	{ SQLITE_CONSTRAINT, ERROR_INVALID, "damaged: its rows contradict each other" },
	{ SQLITE_TOOBIG, ERROR_INVALID, "damaged: a value is too large" },
};

static int errno_of(sqlite3_file *file)
{
	int number = 0;

	if (file && file->pMethods)
		file->pMethods->xFileControl(file, SQLITE_FCNTL_LAST_ERRNO, &number);
	return number;
}

/* What the kernel said of the file or its log; it may be of an earlier call. */
static bool was_told(sqlite3 *handle, int number)
{
	sqlite3_file *file = NULL, *log = NULL;

	sqlite3_file_control(handle, "main", SQLITE_FCNTL_FILE_POINTER, &file);
	sqlite3_file_control(handle, "main", SQLITE_FCNTL_JOURNAL_POINTER, &log);
	return errno_of(file) == number || errno_of(log) == number;
}

/* A quota is no other thing than a full disk to whoever reads it. Of a commit sqlite3_system_errno() knows nothing. */
static bool is_over_quota(sqlite3 *handle)
{
	int number = sqlite3_system_errno(handle);

	return number ? number == EDQUOT : was_told(handle, EDQUOT);
}

/* An EIO of the kernel's that SQLite tells as damage: the file may be whole, and who opens it again finds out. */
static bool is_unread(sqlite3 *handle)
{
	return was_told(handle, EIO) || was_told(handle, ENXIO);
}

/* Says what a person can do about it; always false. */
static bool failed(struct db_sqlite *db, int code, struct error *e)
{
	if (code == SQLITE_IOERR_WRITE && is_over_quota(db->handle))
		code = SQLITE_FULL;
	else if ((code & 0xff) == SQLITE_CORRUPT && is_unread(db->handle))
		code = SQLITE_IOERR;
	db->base.lacks_room = code == SQLITE_FULL;
	if (code == SQLITE_IOERR_SHORT_READ)
		code = SQLITE_CORRUPT;
	for (size_t i = 0; i < sizeof remedies / sizeof *remedies; i++)
		if (remedies[i].code == (code & 0xff))
			return error_set(e, remedies[i].kind, "%s: %s", db->base.path, remedies[i].text);
	return error_set(e, ERROR_INTERNAL, "%s: %s (SQLite code %d)", db->base.path, sqlite3_errmsg(db->handle), code);
}

static bool exec(struct db *base, const char *sql, struct error *e)
{
	struct db_sqlite *db = (struct db_sqlite *)base;

	return sqlite3_exec(db->handle, sql, NULL, NULL, NULL) == SQLITE_OK ||
	       failed(db, sqlite3_extended_errcode(db->handle), e);
}

static void rollback(struct db *base)
{
	struct db_sqlite *db = (struct db_sqlite *)base;

	if (!sqlite3_get_autocommit(db->handle))
		sqlite3_exec(db->handle, "ROLLBACK", NULL, NULL, NULL);
}

static void close_file(struct db *base)
{
	struct db_sqlite *db = (struct db_sqlite *)base;

	if (db->is_writer && db->lock >= 0) {
		/* Else a reader that has it open leaves the last minutes in the log; one that reads just now still
		 * does. */
		sqlite3_busy_timeout(db->handle, 0);
		sqlite3_wal_checkpoint_v2(db->handle, NULL, SQLITE_CHECKPOINT_TRUNCATE, NULL, NULL);
	}
	sqlite3_close(db->handle);
	if (db->lock >= 0)
		close(db->lock);
	free(db);
}

static bool has_table(struct db *db, const char *name, bool *has, struct error *e)
{
	return db_read_bool(
		DB_QUERY(db, "SELECT count(*) FROM sqlite_schema WHERE type = 'table' AND name = ?", DB_T(name)), has,
		e);
}

static struct statement *prepare(struct db *base, const char *sql)
{
	struct db_sqlite *db = (struct db_sqlite *)base;
	struct sqlite_statement *s = db_memory(sizeof *s);

	s->failure = sqlite3_prepare_v3(db->handle, sql, -1, SQLITE_PREPARE_PERSISTENT, &s->handle, NULL);
	return &s->base;
}

static int bind_value(sqlite3_stmt *handle, int place, const struct db_value *v)
{
	switch (v->kind) {
	case DB_INT:
		return sqlite3_bind_int64(handle, place, v->number);
	case DB_TEXT:
		return sqlite3_bind_text(handle, place, v->bytes, (int)v->len, SQLITE_STATIC);
	case DB_BYTES:
		return sqlite3_bind_blob64(handle, place, v->bytes, v->len, SQLITE_STATIC);
	case DB_NULL:
	default:
		return sqlite3_bind_null(handle, place);
	}
}

static void bind(struct statement *base, const struct db_value *v)
{
	struct sqlite_statement *s = (struct sqlite_statement *)base;
	int rc = bind_value(s->handle, ++s->bound, v);

	if (s->failure == SQLITE_OK)
		s->failure = rc;
}

static bool step(struct statement *base, bool *row, struct error *e)
{
	struct sqlite_statement *s = (struct sqlite_statement *)base;
	struct db_sqlite *db = (struct db_sqlite *)base->db;
	int rc = s->failure ? s->failure : sqlite3_step(s->handle);

	*row = rc == SQLITE_ROW;
	return rc == SQLITE_ROW || rc == SQLITE_DONE ||
	       failed(db, s->failure ? rc : sqlite3_extended_errcode(db->handle), e);
}

static void reset(struct statement *base)
{
	struct sqlite_statement *s = (struct sqlite_statement *)base;

	if (!s->handle)
		return; /* never prepared: its failure stays */
	sqlite3_reset(s->handle);
	s->bound = 0;
	s->failure = SQLITE_OK;
}

static void drop(struct statement *base)
{
	sqlite3_finalize(((struct sqlite_statement *)base)->handle);
	free(base);
}

static int columns(const struct statement *base)
{
	return sqlite3_column_count(((const struct sqlite_statement *)base)->handle);
}

static void column(const struct statement *base, int column, struct db_value *out)
{
	sqlite3_stmt *handle = ((const struct sqlite_statement *)base)->handle;

	switch (sqlite3_column_type(handle, column)) {
	case SQLITE_INTEGER:
		*out = (struct db_value){ .kind = DB_INT, .number = sqlite3_column_int64(handle, column) };
		return;
	case SQLITE_TEXT:
		out->kind = DB_TEXT;
		out->bytes = sqlite3_column_text(handle, column);
		break;
	case SQLITE_BLOB:
		out->kind = DB_BYTES;
		out->bytes = sqlite3_column_blob(handle, column);
		break;
	default:
		return;
	}
	out->len = (size_t)sqlite3_column_bytes(handle, column);
}

static bool set_durable(struct db *db, bool durable, struct error *e)
{
	return exec(db, durable ? "PRAGMA synchronous=FULL" : "PRAGMA synchronous=NORMAL", e);
}

static int64_t last_id(const struct db *db)
{
	return sqlite3_last_insert_rowid(((const struct db_sqlite *)db)->handle);
}

/* --- the file of a writer: in its place, and private --- */

static bool is_same_file(const struct stat *a, const struct stat *b)
{
	return a->st_dev == b->st_dev && a->st_ino == b->st_ino;
}

static bool look_beside(const char *path, const char *suffix, struct stat *st)
{
	CLEANUP(buf_release) struct buf name = { 0 };

	buf_printf(&name, "%s%s", path, suffix);
	return !stat(name.text, st);
}

/*
 * Somebody may remove or replace the file, or its log, under us: SQLite would go on writing what has no name, which is
 * gone with the process, and another writer may have opened the path.
 */
static bool check_place(struct db *base, struct error *e)
{
	struct db_sqlite *db = (struct db_sqlite *)base;
	struct stat ours, there;

	if (db->lock < 0 || fstat(db->lock, &ours))
		return true;
	if (stat(base->path, &there) && errno != ENOENT && errno != ENOTDIR)
		return error_set(e, ERROR_UNAVAILABLE, "%s: %s", base->path, strerror(errno));
	bool is_there = look_beside(base->path, "", &there);
	if (!is_there || !is_same_file(&ours, &there))
		return error_set(e, ERROR_UNAVAILABLE,
				 "%s: %s while it was written; bring it back (or a follower's copy), and start preheat "
				 "again",
				 base->path, is_there ? "replaced by another file" : "removed");
	if (!db->log.st_ino) {
		if (!look_beside(base->path, "-wal", &db->log))
			db->log.st_ino = 0;
		return true;
	}
	return (look_beside(base->path, "-wal", &there) && is_same_file(&db->log, &there)) ||
	       error_set(e, ERROR_UNAVAILABLE,
			 "%s-wal: removed or replaced while it was written; start preheat again, which goes on from "
			 "what is in %s",
			 base->path, base->path);
}

void db_keep_private(const char *path)
{
	enum { OTHERS = S_IRWXG | S_IRWXO };
	struct stat st;

	/* Where the file is another user's, who may write it is not ours to say. */
	if (!stat(path, &st) && S_ISREG(st.st_mode) && (st.st_mode & OTHERS) && st.st_uid == geteuid())
		(void)!chmod(path, st.st_mode & S_IRWXU);
}

static void keep_all_private(const char *path)
{
	static const char *const suffixes[] = { "", "-wal", "-shm" };

	for (size_t i = 0; i < sizeof suffixes / sizeof *suffixes; i++) {
		CLEANUP(buf_release) struct buf name = { 0 };

		buf_printf(&name, "%s%s", path, suffixes[i]);
		db_keep_private(name.text);
	}
}

/* Opening a file: is it there, is it ours, of which version. */

enum { BUSY_MS = 2000 };

static bool check_schema(struct db *db, const struct db_schema *schema, int64_t *version, struct error *e)
{
	int64_t mark;

	if (!db_read_ints(db_prepare(db, "PRAGMA application_id"), &mark, 1, NULL, e) ||
	    !db_read_ints(db_prepare(db, "PRAGMA user_version"), version, 1, NULL, e))
		return false;
	if (mark != schema->application_id)
		return error_set(e, ERROR_INVALID, "%s: an SQLite file, but not a history; name one that preheat wrote",
				 db->path);
	if (*version > schema->count)
		return error_set(e, ERROR_CONFLICT,
				 "%s: written by a newer preheat (version %lld of the file, this program knows %d); "
				 "use the newer program",
				 db->path, (long long)*version, schema->count);
	return true;
}

static bool migrate_one(struct db *db, const struct db_schema *schema, int64_t version, struct error *e)
{
	char bump[96];

	snprintf(bump, sizeof bump, "PRAGMA user_version=%d; PRAGMA application_id=%d", (int)version + 1,
		 (int)schema->application_id);
	if (db_begin(db, e) && db_exec(db, schema->migrations[version], e) && db_exec(db, bump, e) && db_commit(db, e))
		return true;
	db_rollback(db);
	return false;
}

static bool migrate(struct db *db, const struct db_schema *schema, struct error *e)
{
	int64_t version = 0, tables;

	if (!db_read_ints(db_prepare(db, "SELECT count(*) FROM sqlite_schema"), &tables, 1, NULL, e))
		return false;
	if (tables > 0 && !check_schema(db, schema, &version, e))
		return false;
	/* Only an empty file can take these, and only before its first table. */
	if (!tables && !db_exec(db, "PRAGMA auto_vacuum=INCREMENTAL", e))
		return false;
	if (!db_exec(db, "PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL; PRAGMA foreign_keys=ON", e))
		return false;
	for (; version < schema->count; version++)
		if (!migrate_one(db, schema, version, e))
			return false;
	return true;
}

static struct db_sqlite *new_file(const char *path)
{
	struct db_sqlite *db = (struct db_sqlite *)db_new(&db_sqlite, path, sizeof *db);

	db->lock = -1;
	return db;
}

/* SQLite's own words for a file that is not there are "unable to open database file". */
static bool check_file(const char *path, bool must_exist, struct error *e)
{
	struct stat st;

	if (stat(path, &st)) {
		if (errno == ENOENT && !must_exist)
			return true;
		if (errno == ENOENT)
			return error_set(e, ERROR_NOT_FOUND,
					 "%s: no such file; name a history: a file that run, record or simulate wrote",
					 path);
		return error_set(e, ERROR_UNAVAILABLE, "%s: %s", path, strerror(errno));
	}
	if (must_exist && access(path, R_OK))
		return error_set(e, ERROR_UNAVAILABLE, "%s: %s; allow reading it", path, strerror(errno));
	if (!S_ISREG(st.st_mode))
		return error_set(e, ERROR_INVALID, "%s: not a file; name the history.db itself", path);
	if (must_exist && !st.st_size)
		return error_set(e, ERROR_INVALID, "%s: empty, no history in it; name one that preheat wrote", path);
	return true;
}

static bool knows_no_locks(int number)
{
	return number == EOPNOTSUPP || number == EINVAL || number == ENOSYS;
}

/*
 * Two writers would each number their own ticks. The lock is flock's, which goes with the process; SQLite's own are
 * POSIX's, and the system drops those of a file when any descriptor of it is closed: so this one is opened before
 * SQLite opens the file, and closed after it. Where a file system knows no such locks there is none.
 */
static bool lock_out_others(struct db_sqlite *db, struct error *e)
{
	db->lock = open(db->base.path, O_RDWR | O_CREAT | O_CLOEXEC, S_IRUSR | S_IWUSR);
	if (db->lock < 0) {
		db->lock_errno = errno;
		return true; /* SQLite says more of why, where it cannot open it either */
	}
	int why = flock(db->lock, LOCK_EX | LOCK_NB) ? errno : 0;
	if (why == EWOULDBLOCK)
		return error_set(e, ERROR_UNAVAILABLE, "%s: another preheat writes it; name another file with --db",
				 db->base.path);
	db->lock_errno = why && !knows_no_locks(why) ? why : 0;
	keep_all_private(db->base.path); /* SQLite makes its logs with the rights of the file */
	return true;
}

/* Without a lock another may write it, too. */
static bool is_locked(struct db_sqlite *db, struct error *e)
{
	if (db->lock_errno == EACCES || db->lock_errno == EROFS)
		return failed(db, SQLITE_READONLY, e);
	return !db->lock_errno || error_set(e, ERROR_UNAVAILABLE,
					    "%s: cannot be locked, so another preheat may write it: %s; check its disk",
					    db->base.path, strerror(db->lock_errno));
}

/* SQLite deletes the log when it closes a file: of one that could not be opened it may not know what is in there. */
static void keep_log(struct db_sqlite *db)
{
	int keeps = 1;

	if (db->handle)
		sqlite3_file_control(db->handle, "main", SQLITE_FCNTL_PERSIST_WAL, &keeps);
}

static struct db *open_for_writing(struct db_sqlite *db, const struct db_schema *schema, struct error *e)
{
	int rc = sqlite3_open_v2(db->base.path, &db->handle,
				 SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX, NULL);

	sqlite3_busy_timeout(db->handle, BUSY_MS);
	if (rc != SQLITE_OK)
		failed(db, sqlite3_extended_errcode(db->handle), e);
	else
		db->is_writer = is_locked(db, e) && migrate(&db->base, schema, e);
	if (db->is_writer)
		return &db->base;
	keep_log(db);
	db_close(&db->base);
	return NULL;
}

static struct db *open_writing(const char *path, const struct db_schema *schema, struct error *e)
{
	bool is_file = strcmp(path, IN_MEMORY) != 0;

	if (is_file && !check_file(path, false, e))
		return NULL;
	struct db_sqlite *db = new_file(path);
	if (!is_file || lock_out_others(db, e))
		return open_for_writing(db, schema, e);
	db_close(&db->base);
	return NULL;
}

struct db *db_sqlite_model(const struct db_schema *schema, struct error *e)
{
	return open_writing(IN_MEMORY, schema, e);
}

/*
 * A log beside the file means that somebody may be writing. Without one the
 * file stands still, and telling SQLite so lets it read from a folder that
 * may not be written, and leaves no lock files there.
 */
static void append_uri(struct buf *uri, const char *path)
{
	struct stat st;
	bool is_live = look_beside(path, "-wal", &st) || look_beside(path, "-journal", &st);

	buf_text(uri, "file:");
	for (const char *c = path; *c; c++)
		if (strchr("%?#", *c))
			buf_printf(uri, "%%%02X", (unsigned)(unsigned char)*c);
		else
			buf_append(uri, c, 1);
	buf_text(uri, is_live ? "?mode=ro" : "?mode=ro&immutable=1");
}

static bool check_readable(const struct db *db, const struct db_schema *schema, int64_t version, struct error *e)
{
	if (version >= schema->readable_from)
		return true;
	return error_set(e, ERROR_INVALID,
			 "%s: written by an older preheat (version %lld of the file, this program wants %d); "
			 "open it once with the program that writes it",
			 db->path, (long long)version, schema->readable_from);
}

static struct db *open_reading(const char *path, const struct db_schema *schema, struct error *e)
{
	/* The file may come from anywhere. */
	static const char distrust[] = "PRAGMA trusted_schema=OFF; PRAGMA cell_size_check=ON";
	CLEANUP(buf_release) struct buf uri = { 0 };
	int64_t version;

	if (!check_file(path, true, e))
		return NULL;
	append_uri(&uri, path);
	struct db_sqlite *db = new_file(path);
	int rc = sqlite3_open_v2(uri.text, &db->handle, SQLITE_OPEN_READONLY | SQLITE_OPEN_URI | SQLITE_OPEN_NOMUTEX,
				 NULL);

	sqlite3_busy_timeout(db->handle, BUSY_MS);
	if (rc != SQLITE_OK)
		failed(db, sqlite3_extended_errcode(db->handle), e);
	else if (db_exec(&db->base, distrust, e) && check_schema(&db->base, schema, &version, e) &&
		 check_readable(&db->base, schema, version, e))
		return &db->base;
	db_close(&db->base);
	return NULL;
}

static struct db *open_file(const char *path, const struct db_schema *schema, bool writes, struct error *e)
{
	return writes ? open_writing(path, schema, e) : open_reading(path, schema, e);
}

const struct db_engine db_sqlite = {
	.open = open_file,
	.begin = "BEGIN IMMEDIATE",
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
	.close = close_file,
	.set_durable = set_durable,
	.last_id = last_id,
	.check_place = check_place,
};

const char *db_library_version(void)
{
	return sqlite3_libversion();
}
