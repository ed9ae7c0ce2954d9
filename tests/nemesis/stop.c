#include "tests/nemesis/stop.h"

#include <dlfcn.h>
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

enum { KEYS = 64, TIMERS = 4 };
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
	bool is_tls_write; /* within SSL_write() of a write */
	long asked;	   /* requests that an answer may come to */
	struct {
		timer_t id;
		clockid_t clock;
		struct timespec at; /* as it was asked for; 0: not set */
	} timers[TIMERS];
	size_t timer_count;
} now;

/* The library's own. */
#define REAL(type, name, ...)             \
	static type (*real)(__VA_ARGS__); \
	if (!real)                        \
	*(void **)&real = dlsym(RTLD_NEXT, #name)

/* --- time --- */

static struct timespec real_time(clockid_t id)
{
	struct timespec t;

	REAL(int, clock_gettime, clockid_t, struct timespec *);
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

	REAL(int, timer_settime, timer_t, int, const struct itimerspec *, struct itimerspec *);
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

static void point(const char *where)
{
	if (!now.is_on)
		return;
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
	REAL(int, clock_gettime, clockid_t, struct timespec *);
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

/* libev asks for the time by number. */
long syscall(long number, ...)
{
	va_list ap;
	long a[6];

	va_start(ap, number);
	for (size_t i = 0; i < 6; i++)
		a[i] = va_arg(ap, long);
	va_end(ap);
	REAL(long, syscall, long, ...);
	if (number == SYS_clock_gettime)
		return clock_gettime((clockid_t)a[0], (struct timespec *)a[1]);
	return real(number, a[0], a[1], a[2], a[3], a[4], a[5]);
}

int timer_settime(timer_t id, int flags, const struct itimerspec *it, struct itimerspec *old)
{
	REAL(int, timer_settime, timer_t, int, const struct itimerspec *, struct itimerspec *);
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

ssize_t send(int fd, const void *bytes, size_t len, int flags)
{
	REAL(ssize_t, send, int, const void *, size_t, int);
	if (!now.is_on)
		return real(fd, bytes, len, flags);
	bool is_write = now.is_tls_write || goes_out((uintptr_t)fd, bytes, len)->is_write;
	before_send("send", is_write);
	ssize_t sent = real(fd, bytes, len, flags);
	int why = errno;
	if (is_write)
		left(bytes, sent);
	errno = why;
	point("send");
	return sent;
}

int SSL_write(void *ssl, const void *bytes, int len);
int SSL_write(void *ssl, const void *bytes, int len)
{
	REAL(int, SSL_write, void *, const void *, int);
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
	REAL(int, SSL_read, void *, void *, int);
	int got = real(ssl, bytes, room);
	if (now.is_on)
		came_in((uintptr_t)ssl, bytes, got);
	return got;
}

void SSL_free(void *ssl);
void SSL_free(void *ssl)
{
	REAL(void, SSL_free, void *);
	if (now.is_on && ssl)
		forget((uintptr_t)ssl);
	real(ssl);
}

ssize_t recv(int fd, void *bytes, size_t room, int flags)
{
	REAL(ssize_t, recv, int, void *, size_t, int);
	point("recv");
	ssize_t got = real(fd, bytes, room, flags);
	int why = errno;
	if (now.is_on && !(flags & MSG_PEEK))
		came_in((uintptr_t)fd, bytes, got);
	errno = why;
	point("recv");
	return got;
}

int socket(int family, int type, int protocol)
{
	REAL(int, socket, int, int, int);
	point("socket");
	int fd = real(family, type, protocol);
	point("socket");
	return fd;
}

int connect(int fd, const struct sockaddr *to, socklen_t len)
{
	REAL(int, connect, int, const struct sockaddr *, socklen_t);
	point("connect");
	int code = real(fd, to, len), why = errno;
	errno = why;
	point("connect");
	return code;
}

int close(int fd)
{
	REAL(int, close, int);
	point("close");
	if (now.is_on)
		forget((uintptr_t)fd);
	int code = real(fd);
	point("close");
	return code;
}

int getsockname(int fd, struct sockaddr *at, socklen_t *len)
{
	REAL(int, getsockname, int, struct sockaddr *, socklen_t *);
	point("getsockname");
	int code = real(fd, at, len);
	point("getsockname");
	return code;
}

int getpeername(int fd, struct sockaddr *at, socklen_t *len)
{
	REAL(int, getpeername, int, struct sockaddr *, socklen_t *);
	point("getpeername");
	int code = real(fd, at, len);
	point("getpeername");
	return code;
}

int getsockopt(int fd, int level, int name, void *value, socklen_t *len)
{
	REAL(int, getsockopt, int, int, int, void *, socklen_t *);
	point("getsockopt");
	int code = real(fd, level, name, value, len);
	point("getsockopt");
	return code;
}

int setsockopt(int fd, int level, int name, const void *value, socklen_t len)
{
	REAL(int, setsockopt, int, int, int, const void *, socklen_t);
	point("setsockopt");
	int code = real(fd, level, name, value, len);
	point("setsockopt");
	return code;
}

int poll(struct pollfd *fds, nfds_t count, int wait)
{
	REAL(int, poll, struct pollfd *, nfds_t, int);
	point("poll");
	int ready = real(fds, count, wait);
	point("poll");
	return ready;
}

int epoll_ctl(int epoll, int what, int fd, struct epoll_event *event)
{
	REAL(int, epoll_ctl, int, int, int, struct epoll_event *);
	point("epoll_ctl");
	int code = real(epoll, what, fd, event);
	int why = errno;
	point("epoll_ctl");
	errno = why;
	return code;
}

/* What nobody answers any more is not waited for: the clocks are turned to when the wait would be over. */
int epoll_wait(int epoll, struct epoll_event *events, int room, int wait)
{
	REAL(int, epoll_wait, int, struct epoll_event *, int, int);
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
