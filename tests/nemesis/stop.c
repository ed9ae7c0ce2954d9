#include "tests/nemesis/stop.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

enum { KEYS = 64, TIMERS = 4, KINDS = 96 };
static const int ANSWER_MS = 200; /* as long as a server of this machine may take */

/* What a connection carries: by its socket, or by its SSL. */
struct carried {
	uintptr_t key;
	bool is_write, is_lease, is_asked; /* asked: no answer came yet */
	millis sent_at;
};

static struct {
	bool is_on;
	struct stop stop;
	struct stop_seen *seen;
	millis turned, slept; /* of all clocks; of those that run in suspend, beside */
	struct carried carried[KEYS];
	bool is_tls_write;	  /* within SSL_write() of a write */
	long asked;		  /* requests that an answer may come to */
	const char *kinds[KINDS]; /* of calls that were made */
	struct {
		timer_t id;
		clockid_t clock;
		struct timespec at; /* as it was asked for; 0: not set */
	} timers[TIMERS];
	size_t timer_count;
} now;

/* The library's own. */
#define REAL(name)                 \
	static typeof(&name) real; \
	if (!real)                 \
	*(void **)&real = dlsym(RTLD_NEXT, #name)

/* --- time --- */

static struct timespec real_time(clockid_t id)
{
	struct timespec t;

	REAL(clock_gettime);
	real(id, &t);
	return t;
}

static millis ahead(clockid_t id)
{
	bool sleeps = id == CLOCK_BOOTTIME || id == CLOCK_REALTIME;

	return now.turned + (sleeps ? now.slept : 0);
}

static millis boot_now(void)
{
	struct timespec t = real_time(CLOCK_BOOTTIME);

	return (millis)t.tv_sec * SECOND + t.tv_nsec / 1000000 + ahead(CLOCK_BOOTTIME);
}

static struct timespec moved(struct timespec t, millis by)
{
	int64_t nanos = (int64_t)t.tv_sec * 1000000000 + t.tv_nsec + by * 1000000;

	nanos = nanos > 0 ? nanos : 1;
	return (struct timespec){ .tv_sec = nanos / 1000000000, .tv_nsec = nanos % 1000000000 };
}

static void set_timer(size_t i)
{
	struct itimerspec it = { 0 }, left = { 0 };
	struct timespec at = now.timers[i].at, real_now = real_time(now.timers[i].clock);

	REAL(timer_settime);
	if (!at.tv_sec && !at.tv_nsec) {
		real(now.timers[i].id, 0, &it, NULL);
		return;
	}
	it.it_value = moved(at, -ahead(now.timers[i].clock));
	bool is_due = it.it_value.tv_sec < real_now.tv_sec ||
		      (it.it_value.tv_sec == real_now.tv_sec && it.it_value.tv_nsec <= real_now.tv_nsec);
	real(now.timers[i].id, TIMER_ABSTIME, &it, NULL);
	if (!is_due)
		return;
	now.timers[i].at = (struct timespec){ 0 };
	do /* until it has fired: the signal comes before a call of the kernel's returns */
		timer_gettime(now.timers[i].id, &left);
	while (left.it_value.tv_sec || left.it_value.tv_nsec);
}

static void turn(millis all, millis slept)
{
	now.turned += all;
	now.slept += slept;
	now.seen->ahead = now.turned + now.slept;
	for (size_t i = 0; i < now.timer_count; i++)
		if (now.timers[i].at.tv_sec || now.timers[i].at.tv_nsec)
			set_timer(i);
}

/* --- the stop --- */

static void stand_still(const char *where)
{
	now.seen->has_stopped = true;
	snprintf(now.seen->where, sizeof now.seen->where, "%s", where);
	if (now.stop.kind == STOP_SIGNAL)
		raise(SIGSTOP);
	else
		turn(now.stop.kind == STOP_PROCESS ? now.stop.lasts : 0,
		     now.stop.kind == STOP_MACHINE ? now.stop.lasts : 0);
}

static void count_kind(const char *name)
{
	size_t i = 0;

	while (i < (size_t)now.seen->kinds && strcmp(now.kinds[i], name) != 0)
		i++;
	if (i == KINDS)
		abort();
	if (i == (size_t)now.seen->kinds) {
		now.kinds[i] = name;
		now.seen->kinds++;
	}
}

static void point(const char *where)
{
	if (!now.is_on)
		return;
	count_kind(where);
	long call = now.seen->calls++;
	if (now.stop.kind != STOP_NOT && call == now.stop.at && !now.seen->has_stopped)
		stand_still(where);
}

static void before_send(const char *where, bool is_write)
{
	point(where);
	if (now.is_on && is_write && now.stop.kind != STOP_NOT && now.stop.at < 0 && !now.seen->has_stopped)
		stand_still(where);
}

/* --- what is carried --- */

static struct carried *carried_by(uintptr_t key)
{
	struct carried *free_one = NULL;

	for (size_t i = 0; i < KEYS; i++) {
		if (now.carried[i].key == key)
			return &now.carried[i];
		if (!now.carried[i].key && !free_one)
			free_one = &now.carried[i];
	}
	if (!free_one)
		abort();
	*free_one = (struct carried){ .key = key };
	return free_one;
}

static void forget(uintptr_t key)
{
	for (size_t i = 0; i < KEYS; i++)
		if (now.carried[i].key == key) {
			now.asked -= now.carried[i].is_asked;
			now.carried[i] = (struct carried){ 0 };
		}
}

static bool begins(const char *text, size_t len, const char *with)
{
	return len >= strlen(with) && memcmp(text, with, strlen(with)) == 0;
}

/* Text goes out that may begin a request. */
static struct carried *goes_out(uintptr_t key, const char *text, size_t len)
{
	struct carried *c = carried_by(key);
	bool writes = begins(text, len, "POST ") || begins(text, len, "PUT ") || begins(text, len, "PATCH ") ||
		      begins(text, len, "DELETE ");

	if (!writes && !begins(text, len, "GET "))
		return c;
	size_t line = strcspn(text, "\r");
	bool is_lease = memmem(text, line < len ? line : len, "/leases", 7) != NULL;
	/* What AWS and who gives out tokens are asked with a POST, though it changes nothing. */
	bool only_reads = memmem(text, len, "\nAction=Describe", 16) || memmem(text, len, "/oauth2/", 8);
	c->is_write = writes && !is_lease && !only_reads;
	c->is_lease = writes && is_lease;
	c->sent_at = boot_now();
	now.asked += !c->is_asked;
	c->is_asked = true;
	return c;
}

static void came_in(uintptr_t key, const char *text, long len)
{
	struct carried *c = carried_by(key);

	if (len <= 0 || !begins(text, (size_t)len, "HTTP/1.1 "))
		return;
	now.asked -= c->is_asked;
	c->is_asked = false;
	if (c->is_lease && begins(text, (size_t)len, "HTTP/1.1 20"))
		now.seen->ends_at = c->sent_at + now.stop.renew_deadline;
	c->is_lease = false;
}

static void left(const char *text, long len)
{
	if (len <= 0)
		return;
	now.seen->sends++;
	if (boot_now() < now.seen->ends_at)
		return;
	if (!now.seen->late++)
		snprintf(now.seen->what, sizeof now.seen->what, "%.*s", len < 150 ? (int)len : 150, text);
}

/* --- the C library's calls --- */

int clock_gettime(clockid_t id, struct timespec *t)
{
	REAL(clock_gettime);
	if (!now.is_on)
		return real(id, t);
	point("clock_gettime");
	int code = real(id, t);
	if (code == 0)
		*t = moved(*t, ahead(id));
	point("clock_gettime");
	return code;
}

time_t time(time_t *out)
{
	struct timespec t;

	clock_gettime(CLOCK_REALTIME, &t);
	if (out)
		*out = t.tv_sec;
	return t.tv_sec;
}

/* libev asks for the time by number, libcrypto for random bytes. */
long syscall(long number, ...)
{
	va_list ap;
	long a[6];

	va_start(ap, number);
	for (size_t i = 0; i < 6; i++)
		a[i] = va_arg(ap, long);
	va_end(ap);
	REAL(syscall);
	if (number == SYS_clock_gettime)
		return clock_gettime((clockid_t)a[0], (struct timespec *)a[1]);
	point("syscall");
	long got = real(number, a[0], a[1], a[2], a[3], a[4], a[5]);
	int why = errno;
	point("syscall");
	errno = why;
	return got;
}

int timer_settime(timer_t id, int flags, const struct itimerspec *it, struct itimerspec *old)
{
	REAL(timer_settime);
	if (!now.is_on)
		return real(id, flags, it, old);
	point("timer_settime");
	size_t i = 0;
	while (i < now.timer_count && now.timers[i].id != id)
		i++;
	if (i == TIMERS || flags != TIMER_ABSTIME)
		abort();
	now.timer_count += i == now.timer_count;
	now.timers[i].id = id;
	now.timers[i].clock = CLOCK_BOOTTIME;
	now.timers[i].at = it->it_value;
	set_timer(i);
	point("timer_settime");
	return 0;
}

/* Bytes are to go out on a socket: whether they are of a write. */
static bool before_bytes(const char *where, int fd, const void *bytes, size_t len)
{
	bool is_write = now.is_tls_write || goes_out((uintptr_t)fd, bytes, len)->is_write;

	before_send(where, is_write);
	return is_write;
}

static ssize_t after_bytes(const char *where, const void *bytes, ssize_t sent, bool is_write)
{
	int why = errno;

	if (is_write)
		left(bytes, sent);
	point(where);
	errno = why;
	return sent;
}

ssize_t send(int fd, const void *bytes, size_t len, int flags)
{
	REAL(send);
	if (!now.is_on)
		return real(fd, bytes, len, flags);
	bool is_write = before_bytes("send", fd, bytes, len);
	return after_bytes("send", bytes, real(fd, bytes, len, flags), is_write);
}

ssize_t sendto(int fd, const void *bytes, size_t len, int flags, const struct sockaddr *to, socklen_t to_len)
{
	REAL(sendto);
	if (!now.is_on)
		return real(fd, bytes, len, flags, to, to_len);
	bool is_write = before_bytes("sendto", fd, bytes, len);
	return after_bytes("sendto", bytes, real(fd, bytes, len, flags, to, to_len), is_write);
}

ssize_t sendmsg(int fd, const struct msghdr *m, int flags)
{
	static const struct iovec nothing = { .iov_base = "" };
	REAL(sendmsg);
	if (!now.is_on)
		return real(fd, m, flags);
	const struct iovec *first = m->msg_iovlen ? m->msg_iov : &nothing;
	bool is_write = before_bytes("sendmsg", fd, first->iov_base, first->iov_len);
	return after_bytes("sendmsg", first->iov_base, real(fd, m, flags), is_write);
}

int SSL_write(void *ssl, const void *bytes, int len);
int SSL_write(void *ssl, const void *bytes, int len)
{
	REAL(SSL_write);
	if (!now.is_on)
		return real(ssl, bytes, len);
	now.is_tls_write = goes_out((uintptr_t)ssl, bytes, (size_t)len)->is_write;
	int sent = real(ssl, bytes, len);
	now.is_tls_write = false;
	return sent;
}

int SSL_read(void *ssl, void *bytes, int room);
int SSL_read(void *ssl, void *bytes, int room)
{
	REAL(SSL_read);
	int got = real(ssl, bytes, room);
	if (now.is_on)
		came_in((uintptr_t)ssl, bytes, got);
	return got;
}

void SSL_free(void *ssl);
void SSL_free(void *ssl)
{
	REAL(SSL_free);
	if (now.is_on && ssl)
		forget((uintptr_t)ssl);
	real(ssl);
}

ssize_t recv(int fd, void *bytes, size_t room, int flags)
{
	REAL(recv);
	point("recv");
	ssize_t got = real(fd, bytes, room, flags);
	int why = errno;
	if (now.is_on && !(flags & MSG_PEEK))
		came_in((uintptr_t)fd, bytes, got);
	errno = why;
	point("recv");
	return got;
}

/* Calls that are made as they are, and may be stood still at before and after. */
#define STANDS_AT(type, name, params, ...)    \
	type name params                      \
	{                                     \
		REAL(name);                   \
		point(#name);                 \
		type got = real(__VA_ARGS__); \
		int why = errno;              \
		point(#name);                 \
		errno = why;                  \
		return got;                   \
	}

STANDS_AT(int, socket, (int family, int type, int protocol), family, type, protocol)
STANDS_AT(int, socketpair, (int family, int type, int protocol, int pair[2]), family, type, protocol, pair)
STANDS_AT(int, connect, (int fd, const struct sockaddr *to, socklen_t len), fd, to, len)
STANDS_AT(int, shutdown, (int fd, int how), fd, how)
STANDS_AT(int, getsockname, (int fd, struct sockaddr *at, socklen_t *len), fd, at, len)
STANDS_AT(int, getpeername, (int fd, struct sockaddr *at, socklen_t *len), fd, at, len)
STANDS_AT(int, getsockopt, (int fd, int level, int name, void *value, socklen_t *len), fd, level, name, value, len)
STANDS_AT(int, setsockopt, (int fd, int level, int name, const void *value, socklen_t len), fd, level, name, value, len)
STANDS_AT(int, poll, (struct pollfd * fds, nfds_t count, int wait), fds, count, wait)
STANDS_AT(int, epoll_create1, (int flags), flags)
STANDS_AT(int, epoll_ctl, (int epoll, int what, int fd, struct epoll_event *event), epoll, what, fd, event)
STANDS_AT(int, eventfd, (unsigned int count, int flags), count, flags)

/* Files: those of SQLite, which asks for offsets of 64 bits by name, and ours. */
STANDS_AT(ssize_t, read, (int fd, void *bytes, size_t room), fd, bytes, room)
STANDS_AT(ssize_t, pread, (int fd, void *bytes, size_t room, off_t at), fd, bytes, room, at)
STANDS_AT(ssize_t, pread64, (int fd, void *bytes, size_t room, off64_t at), fd, bytes, room, at)
STANDS_AT(ssize_t, write, (int fd, const void *bytes, size_t len), fd, bytes, len)
STANDS_AT(ssize_t, pwrite, (int fd, const void *bytes, size_t len, off_t at), fd, bytes, len, at)
STANDS_AT(ssize_t, pwrite64, (int fd, const void *bytes, size_t len, off64_t at), fd, bytes, len, at)
STANDS_AT(int, fsync, (int fd), fd)
STANDS_AT(int, fdatasync, (int fd), fd)
STANDS_AT(int, ftruncate, (int fd, off_t len), fd, len)
STANDS_AT(int, ftruncate64, (int fd, off64_t len), fd, len)
STANDS_AT(int, posix_fallocate, (int fd, off_t at, off_t len), fd, at, len)
STANDS_AT(int, flock, (int fd, int what), fd, what)
STANDS_AT(int, stat, (const char *path, struct stat *seen), path, seen)
STANDS_AT(int, stat64, (const char *path, struct stat64 *seen), path, seen)
STANDS_AT(int, lstat, (const char *path, struct stat *seen), path, seen)
STANDS_AT(int, lstat64, (const char *path, struct stat64 *seen), path, seen)
STANDS_AT(int, fstat, (int fd, struct stat *seen), fd, seen)
STANDS_AT(int, fstat64, (int fd, struct stat64 *seen), fd, seen)
STANDS_AT(int, statvfs, (const char *path, struct statvfs *seen), path, seen)
STANDS_AT(int, access, (const char *path, int mode), path, mode)
STANDS_AT(int, fchmod, (int fd, mode_t mode), fd, mode)
STANDS_AT(int, fchown, (int fd, uid_t user, gid_t group), fd, user, group)
STANDS_AT(int, unlink, (const char *path), path)
STANDS_AT(int, rename, (const char *from, const char *to), from, to)
STANDS_AT(int, linkat, (int from_dir, const char *from, int to_dir, const char *to, int flags), from_dir, from, to_dir,
	  to, flags)
STANDS_AT(ssize_t, readlink, (const char *path, char *out, size_t room), path, out, room)
STANDS_AT(void *, mmap, (void *at, size_t len, int protection, int flags, int fd, off_t from), at, len, protection,
	  flags, fd, from)
STANDS_AT(void *, mmap64, (void *at, size_t len, int protection, int flags, int fd, off64_t from), at, len, protection,
	  flags, fd, from)
STANDS_AT(int, munmap, (void *at, size_t len), at, len)
STANDS_AT(ssize_t, getrandom, (void *bytes, size_t len, unsigned int flags), bytes, len, flags)
STANDS_AT(int, getentropy, (void *bytes, size_t len), bytes, len)
STANDS_AT(int, usleep, (useconds_t wait), wait)
STANDS_AT(int, timer_create, (clockid_t clock, struct sigevent *how, timer_t *id), clock, how, id)
STANDS_AT(int, timer_delete, (timer_t id), id)

/* One argument more, or none: passed on as it is. */
#define STANDS_AT_MORE(name, params, ...)                       \
	int name params                                         \
	{                                                       \
		va_list ap;                                     \
		REAL(name);                                     \
		va_start(ap, last);                             \
		void *more = va_arg(ap, void *);                \
		va_end(ap);                                     \
		point(#name);                                   \
		int got = real(__VA_ARGS__, more), why = errno; \
		point(#name);                                   \
		errno = why;                                    \
		return got;                                     \
	}

STANDS_AT_MORE(open, (const char *path, int last, ...), path, last)
STANDS_AT_MORE(open64, (const char *path, int last, ...), path, last)
STANDS_AT_MORE(fcntl, (int fd, int last, ...), fd, last)
STANDS_AT_MORE(fcntl64, (int fd, int last, ...), fd, last)

int gettimeofday(struct timeval *restrict t, void *restrict zone)
{
	struct timespec got;

	(void)zone;
	int code = clock_gettime(CLOCK_REALTIME, &got);
	*t = (struct timeval){ .tv_sec = got.tv_sec, .tv_usec = got.tv_nsec / 1000 };
	return code;
}

int close(int fd)
{
	REAL(close);
	point("close");
	if (now.is_on)
		forget((uintptr_t)fd);
	int code = real(fd);
	point("close");
	return code;
}

/* What nobody answers any more is not waited for: the clocks are turned to when the wait would be over. */
int epoll_wait(int epoll, struct epoll_event *events, int room, int wait)
{
	REAL(epoll_wait);
	if (!now.is_on)
		return real(epoll, events, room, wait);
	point("epoll_wait");
	int patience = now.asked ? ANSWER_MS : 2;
	int ready = real(epoll, events, room, wait >= 0 && wait < patience ? wait : patience);
	if (ready == 0 && wait > patience)
		turn(wait - patience, 0);
	point("epoll_wait");
	return ready;
}

void stop_begin(const struct stop *s, struct stop_seen *seen)
{
	*seen = (struct stop_seen){ 0 };
	now.stop = *s;
	now.seen = seen;
	now.is_on = true;
}
