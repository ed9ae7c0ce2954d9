#include "state/reserve.h"

#include "base/buf.h"
#include "state/db.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

static void name_of(const char *path, struct buf *out)
{
	buf_printf(out, "%s-reserve", path);
}

int64_t reserve_free(const char *path)
{
	struct statvfs v;

	if (db_is_address(path) || statvfs(path, &v))
		return -1;
	return (int64_t)v.f_bavail * (int64_t)v.f_frsize;
}

int64_t reserve_disk(const char *path)
{
	struct statvfs v;

	if (db_is_address(path) || statvfs(path, &v))
		return -1;
	return (int64_t)v.f_blocks * (int64_t)v.f_frsize;
}

bool reserve_make(const char *path, int64_t free_bytes)
{
	enum { ROOM = 8 }; /* not what others need soon, or it would come and go */
	CLEANUP(buf_release) struct buf name = { 0 };

	name_of(path, &name);
	if (free_bytes / ROOM < RESERVE_BYTES || !access(name.text, F_OK))
		return false;
	int file = open(name.text, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, S_IRUSR | S_IWUSR);
	if (file < 0)
		return false;
	bool is_made = !posix_fallocate(file, 0, RESERVE_BYTES);
	close(file);
	if (!is_made)
		unlink(name.text);
	return is_made;
}

bool reserve_is_there(const char *path)
{
	CLEANUP(buf_release) struct buf name = { 0 };

	name_of(path, &name);
	return !access(name.text, F_OK);
}

bool reserve_give_up(const char *path, int64_t free_bytes)
{
	CLEANUP(buf_release) struct buf name = { 0 };

	name_of(path, &name);
	return free_bytes >= 0 && free_bytes < RESERVE_LOW && !unlink(name.text);
}
