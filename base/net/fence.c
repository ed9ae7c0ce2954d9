#include "base/net/fence.h"

#include "base/alloc.h"
#include "base/log.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#ifndef sigev_notify_thread_id
#define sigev_notify_thread_id _sigev_un._tid
#endif

/* Read in the signal's handler, which may come between any two instructions. */
struct place {
	volatile sig_atomic_t fd; /* -1: free */
	volatile sig_atomic_t is_held;
	const void *owner; /* NULL: nobody's */
};

struct fence {
	struct place places[FENCE_SOCKETS];
	timer_t timer;
	bool has_timer, has_failed;
	millis until;
};

/* An end to the connection without a word from what waits in its buffer. A signal handler may do that. */
static void reset(struct place *p)
{
	const struct sockaddr nobody = { .sa_family = AF_UNSPEC };

	(void)connect(p->fd, &nobody, sizeof nobody);
}

static void on_time(int number, siginfo_t *told, void *context)
{
	struct fence *f = told->si_value.sival_ptr;
	int kept = errno;

	(void)number;
	(void)context;
	if (told->si_code != SI_TIMER)
		return;
	for (size_t i = 0; i < FENCE_SOCKETS; i++)
		if (f->places[i].is_held)
			reset(&f->places[i]);
	errno = kept;
}

static struct timespec boot_time(void)
{
	struct timespec t;

	clock_gettime(CLOCK_BOOTTIME, &t);
	return t;
}

/* To this thread alone: another could take the signal while this one goes on to send. */
static bool make_timer(struct fence *f)
{
	struct sigaction act = { .sa_sigaction = on_time, .sa_flags = SA_SIGINFO | SA_RESTART };
	struct sigevent event = { .sigev_notify = SIGEV_THREAD_ID,
				  .sigev_signo = SIGRTMIN,
				  .sigev_value.sival_ptr = f };

	event.sigev_notify_thread_id = gettid();
	sigemptyset(&act.sa_mask);
	return sigaction(SIGRTMIN, &act, NULL) == 0 && timer_create(CLOCK_BOOTTIME, &event, &f->timer) == 0;
}

struct fence *fence_open(void)
{
	struct fence *f = xcalloc(1, sizeof *f);

	for (size_t i = 0; i < FENCE_SOCKETS; i++)
		f->places[i].fd = -1;
	return f;
}

void fence_close(struct fence *f)
{
	if (!f)
		return;
	if (f->has_timer)
		timer_delete(f->timer);
	free(f);
}

void fence_set(struct fence *f, millis until)
{
	struct itimerspec at = { .it_value = { .tv_sec = (time_t)(until / SECOND),
					       .tv_nsec = (long)(until % SECOND) * 1000000 } };

	f->until = until;
	if (!until && !f->has_timer)
		return;
	f->has_timer = f->has_timer || make_timer(f);
	f->has_failed = !f->has_timer || timer_settime(f->timer, TIMER_ABSTIME, &at, NULL) != 0;
	if (f->has_failed)
		log_error("writes-not-fenced", LOG_S("error", strerror(errno)),
			  LOG_S("remedy", "nothing is written: let the process have a POSIX timer"), LOG_END);
}

bool fence_is_over(const struct fence *f)
{
	struct timespec now = boot_time();

	return f->until && (f->has_failed || (millis)now.tv_sec * SECOND + now.tv_nsec / 1000000 >= f->until);
}

static struct place *place_of(struct fence *f, int fd)
{
	for (size_t i = 0; i < FENCE_SOCKETS; i++)
		if (f->places[i].fd == fd)
			return &f->places[i];
	return NULL;
}

static struct place *held_for(struct fence *f, const void *owner)
{
	for (size_t i = 0; i < FENCE_SOCKETS; i++)
		if (f->places[i].owner == owner)
			return &f->places[i];
	return NULL;
}

bool fence_know(struct fence *f, int fd)
{
	struct place *p = place_of(f, fd);

	p = p ? p : place_of(f, -1); /* the number again: the one before was closed untold, as failed connects are */
	if (!p)
		return false;
	p->fd = fd;
	return true;
}

void fence_forget(struct fence *f, int fd)
{
	struct place *p = place_of(f, fd);

	if (!p)
		return;
	p->is_held = 0; /* first: the number may be another's soon */
	p->owner = NULL;
	p->fd = -1;
}

static bool is_end(int (*name)(int fd, struct sockaddr *at, socklen_t *len), int fd, const char *ip, int port)
{
	union {
		struct sockaddr any;
		struct sockaddr_in v4;
		struct sockaddr_in6 v6;
	} at = { .v6 = { 0 } };
	socklen_t len = sizeof at;
	char text[INET6_ADDRSTRLEN] = "";

	if (name(fd, &at.any, &len) != 0)
		return false;
	bool is_v6 = at.any.sa_family == AF_INET6;
	if (ntohs(is_v6 ? at.v6.sin6_port : at.v4.sin_port) != port)
		return false;
	return inet_ntop(at.any.sa_family, is_v6 ? (void *)&at.v6.sin6_addr : (void *)&at.v4.sin_addr, text,
			 sizeof text) &&
	       strcmp(text, ip) == 0;
}

/* Should the process die meanwhile: then the kernel forgets what waits in the buffer, and does not send it on. */
static void forget_at_end(int fd, bool is_on)
{
	const struct linger at_once = { .l_onoff = is_on, .l_linger = 0 };

	(void)setsockopt(fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
}

bool fence_hold(struct fence *f, const struct fence_ends *ends, const void *owner)
{
	fence_let_go(f, owner);
	for (size_t i = 0; i < FENCE_SOCKETS; i++) {
		struct place *p = &f->places[i];
		if (p->fd < 0 || !is_end(getsockname, p->fd, ends->ip, ends->port) ||
		    !is_end(getpeername, p->fd, ends->peer_ip, ends->peer_port))
			continue;
		forget_at_end(p->fd, true);
		p->owner = owner;
		p->is_held = 1;
		return true;
	}
	return false;
}

void fence_let_go(struct fence *f, const void *owner)
{
	struct place *p = held_for(f, owner);

	if (!p)
		return;
	forget_at_end(p->fd, false);
	p->is_held = 0;
	p->owner = NULL;
}

void fence_cut(struct fence *f, const void *owner)
{
	struct place *p = held_for(f, owner);

	if (p)
		reset(p);
}
