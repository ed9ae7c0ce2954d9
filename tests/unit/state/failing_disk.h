/* A disk below SQLite that reports errors when it is told to: the usual one, with reads and writes of its files
 * wrapped. */
#pragma once
#include <sqlite3.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>

static struct failing_disk {
	bool reads, is_full;
	/* Whether so many bytes more find room; NULL: they do. */
	bool (*has_room)(sqlite3_int64 bytes);
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

static int failing_write(sqlite3_file *f, const void *from, int len, sqlite3_int64 at)
{
	sqlite3_int64 size = 0;

	if (disk.has_room && usual_of(f)->xFileSize(f, &size) == SQLITE_OK && at + len > size &&
	    !disk.has_room(at + len - size))
		return SQLITE_FULL;
	return disk.is_full ? SQLITE_FULL : usual_of(f)->xWrite(f, from, len, at);
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
