/* A disk below SQLite that reports errors when it is told to: the usual one, with what its files are asked wrapped. */
#pragma once
#include <sqlite3.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>

static struct failing_disk {
	bool reads, is_full;
	/* Writes, syncs and truncations are counted; that of this number fails, or it and all after. 0: none does. */
	long changes, fails_at;
	bool fails_on;
	int code; /* SQLITE_FULL or SQLITE_IOERR */
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

static int failing_read(sqlite3_file *f, void *to, int len, sqlite3_int64 at)
{
	return disk.reads ? SQLITE_IOERR_READ : usual_of(f)->xRead(f, to, len, at);
}

/* SQLITE_OK, or what the next change comes to. */
static int next_change(int kind)
{
	disk.changes++;
	if (!disk.fails_at || (disk.fails_on ? disk.changes < disk.fails_at : disk.changes != disk.fails_at))
		return SQLITE_OK;
	return disk.code == SQLITE_FULL ? SQLITE_FULL : kind;
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

	return rc != SQLITE_OK ? rc : usual_of(f)->xWrite(f, from, len, at);
}

static int failing_open(sqlite3_vfs *vfs, sqlite3_filename name, sqlite3_file *f, int flags, int *out)
{
	int rc = disk.usual->xOpen(disk.usual, name, f, flags, out);
	size_t i = 0;

	(void)vfs;
	if (rc != SQLITE_OK || !f->pMethods)
		return rc;
	while (i < disk.count && disk.methods[i].usual != f->pMethods)
		i++;
	if (i == sizeof disk.methods / sizeof *disk.methods)
		return SQLITE_CANTOPEN;
	if (i == disk.count) {
		disk.methods[i].usual = f->pMethods;
		disk.methods[i].ours = *f->pMethods;
		disk.methods[i].ours.xRead = failing_read;
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
	sqlite3_vfs_register(&disk.vfs, 1);
}
