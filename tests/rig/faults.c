/*
 * Preloaded into a program of the rig: its wall clock goes wrong, calls on the files of one path fail or find no room,
 * and its connections to a port lead to another one, where a scenario has a line that can be cut. What is wrong just
 * now stands in a file that both have mapped, named by RIG_FAULTS (tests/scenario/faulty.py writes it).
 */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

enum { PORTS = 8 };

static volatile struct {
	int64_t ahead_ms; /* of the wall clock */
	int64_t room;	  /* bytes by which the files may grow */
	int64_t struck;	  /* calls that failed for what is set here */
	int32_t error;	  /* of each call on the files; 0: none */
	int32_t is_told;  /* the disk tells of itself that there is no more room than that; else it is a quota */
	uint16_t ports[PORTS][2];
	char path[256]; /* what the files' names begin with */
} * now;

/* The library's own. */
#define REAL(type, name, ...)             \
	static type (*real)(__VA_ARGS__); \
	if (!real)                        \
	*(void **)&real = dlsym(RTLD_NEXT, #name)

__attribute__((constructor)) static void begin(void)
{
	const char *name = getenv("RIG_FAULTS");
	int file = name ? open(name, O_RDWR | O_CLOEXEC) : -1;
	void *at = file >= 0 ? mmap(NULL, sizeof *now, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0) : MAP_FAILED;

	if (at == MAP_FAILED) {
		fprintf(stderr, "RIG_FAULTS: %s\n", strerror(errno));
		_exit(3);
	}
	close(file);
	now = at;
}

/* --- time: the wall's alone --- */

int clock_gettime(clockid_t id, struct timespec *t)
{
	REAL(int, clock_gettime, clockid_t, struct timespec *);
	int result = real(id, t);

	if (now && (id == CLOCK_REALTIME || id == CLOCK_REALTIME_COARSE)) {
		int64_t nanos = t->tv_nsec + now->ahead_ms % 1000 * 1000000;

		t->tv_sec += now->ahead_ms / 1000 + (nanos < 0 ? -1 : nanos / 1000000000);
		t->tv_nsec = nanos < 0 ? nanos + 1000000000 : nanos % 1000000000;
	}
	return result;
}

int gettimeofday(struct timeval *restrict t, void *restrict zone)
{
	struct timespec wall;

	(void)zone;
	clock_gettime(CLOCK_REALTIME, &wall);
	*t = (struct timeval){ .tv_sec = wall.tv_sec, .tv_usec = wall.tv_nsec / 1000 };
	return 0;
}

time_t time(time_t *t)
{
	struct timespec wall;

	clock_gettime(CLOCK_REALTIME, &wall);
	if (t)
		*t = wall.tv_sec;
	return wall.tv_sec;
}

/* --- files --- */

static bool strike(int error)
{
	__atomic_add_fetch(&now->struck, 1, __ATOMIC_RELAXED);
	errno = error;
	return true;
}

static bool is_of_path(const char *name)
{
	char path[sizeof now->path];

	memcpy(path, (const char *)now->path, sizeof path);
	return path[0] && !strncmp(name, path, strlen(path));
}

static bool fails_at(const char *name)
{
	return now && now->error && is_of_path(name) && strike(now->error);
}

static bool is_ours(int fd)
{
	char link[32], name[512];

	snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
	ssize_t len = readlink(link, name, sizeof name - 1);
	name[len > 0 ? len : 0] = '\0';
	return is_of_path(name);
}

static bool fails(int fd)
{
	return now && now->error && is_ours(fd) && strike(now->error);
}

/* Whether a file may end there; what is overwritten takes no room. */
static bool lacks_room(int fd, off_t end)
{
	struct stat st;

	if (fails(fd))
		return true;
	if (!now || now->room == INT64_MAX || !is_ours(fd) || fstat(fd, &st) || end <= st.st_size)
		return false;
	if (__atomic_sub_fetch(&now->room, end - st.st_size, __ATOMIC_RELAXED) >= 0)
		return false;
	__atomic_add_fetch(&now->room, end - st.st_size, __ATOMIC_RELAXED);
	return strike(now->is_told ? ENOSPC : EDQUOT);
}

static void give_room(int64_t bytes)
{
	if (now->room != INT64_MAX && bytes > 0)
		__atomic_add_fetch(&now->room, bytes, __ATOMIC_RELAXED);
}

int open(const char *name, int flags, ...)
{
	REAL(int, open, const char *, int, ...);
	va_list more;

	va_start(more, flags);
	mode_t mode = flags & (O_CREAT | O_TMPFILE) ? va_arg(more, mode_t) : 0;
	va_end(more);
	return fails_at(name) ? -1 : real(name, flags, mode);
}

ssize_t read(int fd, void *to, size_t len)
{
	REAL(ssize_t, read, int, void *, size_t);
	return fails(fd) ? -1 : real(fd, to, len);
}

ssize_t pread(int fd, void *to, size_t len, off_t at)
{
	REAL(ssize_t, pread, int, void *, size_t, off_t);
	return fails(fd) ? -1 : real(fd, to, len, at);
}

ssize_t write(int fd, const void *from, size_t len)
{
	REAL(ssize_t, write, int, const void *, size_t);
	return now && lacks_room(fd, lseek(fd, 0, SEEK_CUR) + (off_t)len) ? -1 : real(fd, from, len);
}

ssize_t pwrite(int fd, const void *from, size_t len, off_t at)
{
	REAL(ssize_t, pwrite, int, const void *, size_t, off_t);
	return lacks_room(fd, at + (off_t)len) ? -1 : real(fd, from, len, at);
}

int fsync(int fd)
{
	REAL(int, fsync, int);
	return fails(fd) ? -1 : real(fd);
}

int fdatasync(int fd)
{
	REAL(int, fdatasync, int);
	return fails(fd) ? -1 : real(fd);
}

int ftruncate(int fd, off_t len)
{
	REAL(int, ftruncate, int, off_t);
	struct stat st;

	if (lacks_room(fd, len))
		return -1;
	if (now && is_ours(fd) && !fstat(fd, &st))
		give_room(st.st_size - len);
	return real(fd, len);
}

int posix_fallocate(int fd, off_t at, off_t len)
{
	REAL(int, posix_fallocate, int, off_t, off_t);
	return lacks_room(fd, at + len) ? errno : real(fd, at, len);
}

int unlink(const char *name)
{
	REAL(int, unlink, const char *);
	struct stat st;

	if (fails_at(name))
		return -1;
	if (now && is_of_path(name) && !stat(name, &st))
		give_room(st.st_size);
	return real(name);
}

int rename(const char *from, const char *to)
{
	REAL(int, rename, const char *, const char *);
	return fails_at(from) ? -1 : real(from, to);
}

int statvfs(const char *restrict name, struct statvfs *restrict v)
{
	REAL(int, statvfs, const char *, struct statvfs *);
	int result = fails_at(name) ? -1 : real(name, v);

	if (!result && now && now->is_told && is_of_path(name))
		v->f_bfree = v->f_bavail = (fsblkcnt_t)now->room / v->f_frsize;
	return result;
}

/* The same where off_t has 64 bits in any case. */
int open64(const char *name, int flags, ...) __attribute__((alias("open")));
ssize_t pread64(int fd, void *to, size_t len, off_t at) __attribute__((alias("pread")));
ssize_t pwrite64(int fd, const void *from, size_t len, off_t at) __attribute__((alias("pwrite")));
int ftruncate64(int fd, off_t len) __attribute__((alias("ftruncate")));

/* --- lines: what is told of a connection is as it was asked for --- */

/* From one side of the table to the other. */
static void lead(struct sockaddr_in *at, int from)
{
	for (size_t i = 0; i < PORTS; i++)
		if (now->ports[i][from] && now->ports[i][from] == ntohs(at->sin_port)) {
			at->sin_port = htons(now->ports[i][!from]);
			return;
		}
}

/* The address stays: whoever listens at the other port for all of them finds it there. */
int connect(int fd, const struct sockaddr *to, socklen_t len)
{
	REAL(int, connect, int, const struct sockaddr *, socklen_t);
	struct sockaddr_in other;

	if (!now || to->sa_family != AF_INET)
		return real(fd, to, len);
	memcpy(&other, to, sizeof other);
	lead(&other, 0);
	return real(fd, (const struct sockaddr *)&other, sizeof other);
}

int getpeername(int fd, struct sockaddr *restrict at, socklen_t *restrict len)
{
	REAL(int, getpeername, int, struct sockaddr *, socklen_t *);
	int result = real(fd, at, len);

	if (!result && now && at->sa_family == AF_INET)
		lead((struct sockaddr_in *)at, 1);
	return result;
}
