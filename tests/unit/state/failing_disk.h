/* A disk below SQLite that reports errors when it is told to: the usual one, with reads and writes of its files
 * wrapped. */
#pragma once
#include <sqlite3.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>

static struct failing_disk {
	bool reads, is_full;
	/* Writes, syncs and truncations are counted, and with SQLITE_IOERR all else that may fail: opening, reading,
	 * asking for a size, deleting. That of this number fails, or it and all after. 0: none does. */
	long changes, fails_at;
	bool fails_on;
	int code; /* SQLITE_FULL or SQLITE_IOERR */
	/* Whether so many bytes more find room; NULL: they do. */
	bool (*has_room)(sqlite3_int64 bytes);
	/* Files on another disk, which is well; NULL: none is. Asked when a file is opened. */
	bool (*spares)(const char *name);
	sqlite3_vfs vfs, *usual;
	struct {
		const sqlite3_io_methods *usual;
		sqlite3_io_methods ours;
	} methods[8];
	size_t count;
} disk;

static const sqlite3_io_methods *usual_of(sqlite3_file *f)
{
	for (size_t i = 0; i < disk.count; i++)
		if (f->pMethods == &disk.methods[i].ours)
			return disk.methods[i].usual;
	return NULL;
}

/* SQLITE_OK, or what the next change comes to. */
static int next_change(int kind)
{
	disk.changes++;
	if (!disk.fails_at || (disk.fails_on ? disk.changes < disk.fails_at : disk.changes != disk.fails_at))
		return SQLITE_OK;
	return disk.code == SQLITE_FULL ? SQLITE_FULL : kind;
}

/* Of what a full disk does not hinder. */
static int next_other(int kind)
{
	return disk.code == SQLITE_IOERR ? next_change(kind) : SQLITE_OK;
}

static int failing_read(sqlite3_file *f, void *to, int len, sqlite3_int64 at)
{
	int rc = disk.reads ? SQLITE_IOERR_READ : next_other(SQLITE_IOERR_READ);

	return rc != SQLITE_OK ? rc : usual_of(f)->xRead(f, to, len, at);
}

static int failing_size(sqlite3_file *f, sqlite3_int64 *size)
{
	int rc = next_other(SQLITE_IOERR_FSTAT);

	return rc != SQLITE_OK ? rc : usual_of(f)->xFileSize(f, size);
}

static int failing_delete(sqlite3_vfs *vfs, const char *name, int syncs)
{
	int rc = next_other(SQLITE_IOERR_DELETE);

	(void)vfs;
	return rc != SQLITE_OK ? rc : disk.usual->xDelete(disk.usual, name, syncs);
}

static int failing_sync(sqlite3_file *f, int flags)
{
	int rc = next_change(SQLITE_IOERR_FSYNC);

	return rc != SQLITE_OK ? rc : usual_of(f)->xSync(f, flags);
}

static int failing_truncate(sqlite3_file *f, sqlite3_int64 size)
{
	int rc = next_change(SQLITE_IOERR_TRUNCATE);

	return rc != SQLITE_OK ? rc : usual_of(f)->xTruncate(f, size);
}

static int failing_write(sqlite3_file *f, const void *from, int len, sqlite3_int64 at)
{
	int rc = disk.is_full ? SQLITE_FULL : next_change(SQLITE_IOERR_WRITE);
	sqlite3_int64 size = 0;

	if (rc == SQLITE_OK && disk.has_room && usual_of(f)->xFileSize(f, &size) == SQLITE_OK && at + len > size &&
	    !disk.has_room(at + len - size))
		rc = SQLITE_FULL;
	return rc != SQLITE_OK ? rc : usual_of(f)->xWrite(f, from, len, at);
}

static int failing_open(sqlite3_vfs *vfs, sqlite3_filename name, sqlite3_file *f, int flags, int *out)
{
	bool is_spared = disk.spares && name && disk.spares(name);
	int rc = is_spared ? SQLITE_OK : next_other(SQLITE_CANTOPEN);
	size_t i = 0;

	(void)vfs;
	f->pMethods = NULL;
	if (rc == SQLITE_OK)
		rc = disk.usual->xOpen(disk.usual, name, f, flags, out);
	if (rc != SQLITE_OK || !f->pMethods || is_spared)
		return rc;
	while (i < disk.count && disk.methods[i].usual != f->pMethods)
		i++;
	if (i == sizeof disk.methods / sizeof *disk.methods)
		return SQLITE_CANTOPEN;
	if (i == disk.count) {
		disk.methods[i].usual = f->pMethods;
		disk.methods[i].ours = *f->pMethods;
		disk.methods[i].ours.xRead = failing_read;
		disk.methods[i].ours.xFileSize = failing_size;
		disk.methods[i].ours.xWrite = failing_write;
		disk.methods[i].ours.xSync = failing_sync;
		disk.methods[i].ours.xTruncate = failing_truncate;
		disk.count++;
	}
	f->pMethods = &disk.methods[i].ours;
	return rc;
}

/* All files of this process from now on. */
static inline void disk_begin(void)
{
	disk.usual = sqlite3_vfs_find(NULL);
	disk.vfs = *disk.usual;
	disk.vfs.zName = "failing";
	disk.vfs.pNext = NULL;
	disk.vfs.xOpen = failing_open;
	disk.vfs.xDelete = failing_delete;
	sqlite3_vfs_register(&disk.vfs, 1);
}
