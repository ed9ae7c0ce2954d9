/* The C library's calls on files, those of SQLite and ours, linked over: one of them fails when it is told to. */
#pragma once
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

static struct failing_calls {
	bool is_on;
	long calls, fails_at; /* the one of this number, or it and all after; 0: none */
	bool fails_on;
	int code;	 /* EIO: any may; ENOSPC, EDQUOT: those that need room */
	const char *who; /* failed first */
} calls;

static bool fails(const char *name, bool needs_room)
{
	if (!calls.is_on || (calls.code != EIO && !needs_room))
		return false;
	calls.calls++;
	if (!calls.fails_at || (calls.fails_on ? calls.calls < calls.fails_at : calls.calls != calls.fails_at))
		return false;
	calls.who = calls.who ? calls.who : name;
	errno = calls.code;
	return true;
}

#define MAY_FAIL(type, name, needs_room, params, ...)                           \
	type name params                                                        \
	{                                                                       \
		static typeof(&name) real;                                      \
		if (!real)                                                      \
			*(void **)&real = dlsym(RTLD_NEXT, #name);              \
		return fails(#name, needs_room) ? (type)-1 : real(__VA_ARGS__); \
	}

MAY_FAIL(ssize_t, read, false, (int fd, void *bytes, size_t room), fd, bytes, room)
MAY_FAIL(ssize_t, pread64, false, (int fd, void *bytes, size_t room, off64_t at), fd, bytes, room, at)
MAY_FAIL(ssize_t, write, true, (int fd, const void *bytes, size_t len), fd, bytes, len)
MAY_FAIL(ssize_t, pwrite64, true, (int fd, const void *bytes, size_t len, off64_t at), fd, bytes, len, at)
MAY_FAIL(int, ftruncate64, true, (int fd, off64_t len), fd, len)
MAY_FAIL(int, flock, false, (int fd, int what), fd, what)
MAY_FAIL(int, stat, false, (const char *file, struct stat *seen), file, seen)
MAY_FAIL(int, stat64, false, (const char *file, struct stat64 *seen), file, seen)
MAY_FAIL(int, lstat64, false, (const char *file, struct stat64 *seen), file, seen)
MAY_FAIL(int, fstat, false, (int fd, struct stat *seen), fd, seen)
MAY_FAIL(int, fstat64, false, (int fd, struct stat64 *seen), fd, seen)
MAY_FAIL(int, access, false, (const char *file, int mode), file, mode)
MAY_FAIL(int, chmod, false, (const char *file, mode_t mode), file, mode)
MAY_FAIL(int, fchmod, false, (int fd, mode_t mode), fd, mode)
MAY_FAIL(int, fchown, false, (int fd, uid_t user, gid_t group), fd, user, group)
MAY_FAIL(int, unlink, false, (const char *file), file)
MAY_FAIL(int, rename, true, (const char *from, const char *to), from, to)
MAY_FAIL(void *, mmap64, false, (void *at, size_t len, int protection, int flags, int fd, off64_t from), at, len,
	 protection, flags, fd, from)

/* Nobody pulls the plug: they would only take their time. */
int fsync(int fd)
{
	(void)fd;
	return fails("fsync", true) ? -1 : 0;
}

int fdatasync(int fd)
{
	(void)fd;
	return fails("fdatasync", true) ? -1 : 0;
}

int posix_fallocate(int fd, off_t at, off_t len)
{
	static typeof(&posix_fallocate) real;

	if (!real)
		*(void **)&real = dlsym(RTLD_NEXT, "posix_fallocate");
	return fails("posix_fallocate", true) ? calls.code : real(fd, at, len);
}

#define OPEN_MAY_FAIL(name)                                                          \
	int name(const char *file, int flags, ...)                                   \
	{                                                                            \
		static typeof(&name) real;                                           \
		va_list ap;                                                          \
		va_start(ap, flags);                                                 \
		unsigned mode = flags & O_CREAT ? va_arg(ap, unsigned) : 0;          \
		va_end(ap);                                                          \
		if (!real)                                                           \
			*(void **)&real = dlsym(RTLD_NEXT, #name);                   \
		return fails(#name, flags & O_CREAT) ? -1 : real(file, flags, mode); \
	}

OPEN_MAY_FAIL(open)
OPEN_MAY_FAIL(open64)
