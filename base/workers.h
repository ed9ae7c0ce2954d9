/*
 * The same work for many numbered jobs, on all cores: a process a core, each
 * taking every n-th job and telling its answers through a pipe. The answers
 * stand in the order of the jobs, however many processes there are.
 */
#pragma once
#include "base/error.h"

#include <stddef.h>

struct workers {
	size_t jobs, answer_size; /* answers are plain bytes of one size */
	/* In a child process: fills a zeroed answer. Memory that it takes is given back when the job is done by itself.
	 */
	bool (*work)(void *user, size_t job, void *answer, struct error *e);
	const char *(*name)(void *user, size_t job); /* for messages */
	void (*done)(void *user, size_t count);	     /* in the parent, for progress; NULL: nobody wants to know */
	void *user;
	const volatile int *stop; /* NULL, or not 0 as soon as no more is wanted */
};

/* `answers`: jobs * answer_size bytes; `is_done`: one flag a job. A job that fails or a process that dies is an error
 * that names the job, and ends the others. Stopped early: true, with the jobs done so far. */
bool workers_run(const struct workers *w, void *answers, bool *is_done, struct error *e) MUST_USE;
