/*
 * Until when sockets may send, held by the kernel: at that time each socket
 * that is held is reset, and what its buffer still has is thrown away. The
 * kernel tells a process that was stopped, or a machine that slept, before
 * its next instruction; no look of ours at a clock stands so close to the
 * byte that leaves.
 *
 * For one thread, which opened it. It takes the signal SIGRTMIN.
 */
#pragma once
#include "base/millis.h"

#include <stdbool.h>

struct fence;

enum { FENCE_SOCKETS = 1024 };

/* The two ends of a TCP connection, as inet_ntop() writes them. */
struct fence_ends {
	const char *ip, *peer_ip;
	int port, peer_port;
};

struct fence *fence_open(void);
void fence_close(struct fence *f); /* takes NULL */
/* By loop_now(). 0: no limit, as at first. A kernel that gives no timer is told to the log, and the time is over. */
void fence_set(struct fence *f, millis until);
bool fence_is_over(const struct fence *f);

/*
 * Knows a socket from its opening until just before it is closed. One that was never held may close untold. False:
 * there are too many.
 */
bool fence_know(struct fence *f, int fd);
void fence_forget(struct fence *f, int fd);
/*
 * Holds the socket with these ends for `owner`, whose bytes may follow; false when none is known. What was held for
 * that owner is let go.
 */
bool fence_hold(struct fence *f, const struct fence_ends *ends, const void *owner);
void fence_let_go(struct fence *f, const void *owner);
/* Resets at once what is held for the owner. */
void fence_cut(struct fence *f, const void *owner);
