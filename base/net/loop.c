#include "base/net/loop.h"

#include "base/alloc.h"

#include <assert.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

struct loop {
	struct ev_loop *ev;
};

struct loop *loop_open(void)
{
	struct loop *l = xnew(struct loop);

	if (!(l->ev = ev_loop_new(EVFLAG_AUTO | EVFLAG_NOENV))) {
		fputs("the event loop cannot be made: out of memory or of file descriptors\n", stderr);
		abort();
	}
	signal(SIGPIPE, SIG_IGN); /* TLS libraries write without MSG_NOSIGNAL */
	return l;
}

void loop_close(struct loop *l)
{
	if (!l)
		return;
	ev_loop_destroy(l->ev);
	free(l);
}

void loop_run(struct loop *l)
{
	ev_run(l->ev, 0);
}

bool loop_once(struct loop *l)
{
	return ev_run(l->ev, EVRUN_ONCE);
}

bool loop_poll(struct loop *l)
{
	return ev_run(l->ev, EVRUN_NOWAIT);
}

void loop_stop(struct loop *l)
{
	ev_break(l->ev, EVBREAK_ALL);
}

millis loop_now(const struct loop *l)
{
	struct timespec t;

	(void)l;
	clock_gettime(CLOCK_BOOTTIME, &t);
	return (millis)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

struct ev_loop *loop_ev(struct loop *l)
{
	return l->ev;
}

static void on_timer(struct ev_loop *ev, ev_timer *w, int events)
{
	struct timer *t = w->data;

	(void)ev;
	(void)events;
	t->fire(t);
}

void timer_start(struct loop *l, struct timer *t, millis after, void (*fire)(struct timer *t))
{
	assert(after >= 0 && fire);
	timer_stop(t);
	t->loop = l;
	t->fire = fire;
	/* libev counts from when the present round began, which can be long ago. */
	ev_now_update(l->ev);
	ev_timer_init(&t->watcher, on_timer, (double)after / 1000., 0.);
	t->watcher.data = t;
	if (t->is_urgent)
		ev_set_priority(&t->watcher, EV_MAXPRI);
	ev_timer_start(l->ev, &t->watcher);
}

void timer_stop(struct timer *t)
{
	if (t->loop)
		ev_timer_stop(t->loop->ev, &t->watcher);
}

bool timer_is_running(const struct timer *t)
{
	return ev_is_active(&t->watcher) || ev_is_pending(&t->watcher);
}

static void on_signal(struct ev_loop *ev, ev_signal *w, int events)
{
	struct signal_watch *s = w->data;

	(void)ev;
	(void)events;
	s->seen(s, w->signum);
}

void signal_watch_start(struct loop *l, struct signal_watch *w, int number,
			void (*seen)(struct signal_watch *w, int number))
{
	signal_watch_stop(w);
	w->loop = l;
	w->seen = seen;
	ev_signal_init(&w->watcher, on_signal, number);
	w->watcher.data = w;
	ev_signal_start(l->ev, &w->watcher);
}

void signal_watch_stop(struct signal_watch *w)
{
	if (w->loop)
		ev_signal_stop(w->loop->ev, &w->watcher);
}
