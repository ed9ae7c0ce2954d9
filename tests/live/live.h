/* What programs against a real API server share: steps with a name, kubectl, waiting in the loop. */
#pragma once
#include "controller/cluster/api.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct loop *loop;
static struct http *http;
static struct clock wall;
static struct kubeconfig access_config;
static struct api *api;
static const char *step_name = "";

static void fail(const char *fmt, ...) PRINTF(1, 2);
static void fail(const char *fmt, ...)
{
	va_list ap;

	fprintf(stderr, "FAILED: %s: ", step_name);
	va_start(ap, fmt);
	vfprintf(stderr, fmt, ap);
	va_end(ap);
	fputs("\n", stderr);
	exit(1);
}

static void step(const char *name)
{
	step_name = name;
	printf("-- %s\n", name);
	fflush(stdout);
}

static void shell(const char *fmt, ...) PRINTF(1, 2);
static void shell(const char *fmt, ...)
{
	char command[4096];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(command, sizeof command, fmt, ap);
	va_end(ap);
	fflush(stdout);
	if (system(command))
		fail("%s", command);
}

static void too_late(struct timer *t)
{
	*(bool *)t->user = true;
}

/* Runs the loop until the condition holds. */
static void until(bool (*is_done)(void *user), void *user, millis most)
{
	bool is_late = false;
	struct timer t = { .user = &is_late };

	timer_start(loop, &t, most, too_late);
	while (!is_done(user) && !is_late)
		loop_once(loop);
	timer_stop(&t);
	if (is_late)
		fail("not within %lld ms", (long long)most);
}

static bool is_true(void *user)
{
	return *(bool *)user;
}

/* A call that is waited for. */
static bool is_over;
static char answer[65536];

static void call_done(struct api_call *c)
{
	snprintf(answer, sizeof answer, "%s", c->response);
	is_over = true;
}

static void run_call(struct api *a, struct api_call *c)
{
	is_over = false;
	c->done = call_done;
	api_start(a, c);
	if (is_over)
		fail("it completed inside the call");
	until(is_true, &is_over, 40 * SECOND);
}
