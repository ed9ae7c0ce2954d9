/*
 * The one event loop: timers and signals on libev. Single thread. Everything
 * is called from loop_run() or loop_once(), never from the call that asked.
 *
 * A timer or a signal watch is embedded where it is used, zeroed at first;
 * its memory belongs to the caller, who stops it before the memory goes.
 */
#pragma once
#include "base/error.h"
#include "base/millis.h"

#include <ev.h>

struct loop;

/* From then on a peer that is gone is an error of the write: SIGPIPE is ignored. */
struct loop *loop_open(void);
void loop_close(struct loop *l); /* everything on it must have been stopped; takes NULL */
void loop_run(struct loop *l);	 /* until loop_stop(), or until nothing is left to wait for */
/* Waits for at least one event and serves what is there; false when nothing is left to wait for. */
bool loop_once(struct loop *l);
bool loop_poll(struct loop *l); /* the same without waiting */
void loop_stop(struct loop *l); /* loop_run() returns after the present event */
/* Milliseconds of the machine, those that it slept included; never goes back. Timers do not run while it sleeps. */
millis loop_now(const struct loop *l);

/* Once, `after` milliseconds from now (0: as soon as the loop runs). A timer that runs is set anew. */
struct timer {
	void (*fire)(struct timer *t); /* set by timer_start; may start, stop or free the timer */
	void *user;		       /* the caller's */
	struct loop *loop;
	bool is_urgent;	  /* of all that is due it fires first; set before timer_start() */
	ev_timer watcher; /* private */
};

void timer_start(struct loop *l, struct timer *t, millis after, void (*fire)(struct timer *t));
void timer_stop(struct timer *t); /* nothing when it does not run, or was zeroed */
bool timer_is_running(const struct timer *t);

struct signal_watch {
	void (*seen)(struct signal_watch *w, int number); /* set by signal_watch_start */
	void *user;
	struct loop *loop;
	ev_signal watcher; /* private */
};

/* From then on the signal no longer has its usual effect. One loop of the program may watch a given signal. */
void signal_watch_start(struct loop *l, struct signal_watch *w, int number,
			void (*seen)(struct signal_watch *w, int number));
void signal_watch_stop(struct signal_watch *w);

/* For the other files of this room, and for tests with sockets of their own. */
struct ev_loop *loop_ev(struct loop *l);
