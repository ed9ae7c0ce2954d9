/*
 * A process that stands still between any two of its system calls, as the C
 * library makes them: those of libcurl, libev, OpenSSL and SQLite and our own
 * are linked over. To a process a stop is only that its clocks have moved on:
 * so they are turned, and kernel timers that were due meanwhile fire, as they
 * do before a process that was stopped runs its next instruction. Waiting
 * takes no time either.
 *
 * The law is looked at where bytes leave: none of a request that writes while
 * the lease is not ours, counted from when its last renewal was sent.
 */
#pragma once
#include "base/millis.h"

#include <stdbool.h>

enum stop_kind {
	STOP_NOT,
	STOP_PROCESS, /* SIGSTOP, SIGCONT: all clocks moved on */
	STOP_MACHINE, /* suspend: CLOCK_MONOTONIC did not */
	STOP_SIGNAL,  /* in truth, by SIGSTOP, for whoever started us to end */
};

struct stop {
	enum stop_kind kind;
	long at; /* the call; -1: the first that sends a write */
	millis lasts;
	millis renew_deadline; /* of the lease */
};

/* What became of it; shared with whoever looks on. */
struct stop_seen {
	volatile long calls, sends, late; /* late: sends that broke the law */
	volatile int kinds;		  /* of calls */
	volatile bool has_stopped;
	volatile millis ahead;	 /* of CLOCK_BOOTTIME: so far the clocks were turned */
	volatile millis ends_at; /* of the lease, by CLOCK_BOOTTIME as we see it; 0: not ours */
	char what[160];		 /* the first late bytes */
	char where[32];		 /* the call before or after which it stood */
};

/* From now on, in this process. */
void stop_begin(const struct stop *s, struct stop_seen *seen);
