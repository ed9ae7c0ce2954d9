/*
 * A command run beside the loop, without a shell: standard input is empty,
 * output is caught up to a cap, a deadline ends it. A started command
 * completes exactly once, always from the loop; its memory belongs to the
 * caller until then.
 */
#pragma once
#include "base/buf.h"
#include "base/net/loop.h"

struct process_run;

struct process {
	/* Filled in by the caller; must outlive the command. */
	const char *const *argv; /* NULL-terminated; argv[0] is searched in PATH */
	const char *const *env;	 /* "NAME=value"s added to ours, and winning; NULL-terminated, may be NULL */
	millis timeout;		 /* 0 is refused */
	size_t max_output;	 /* of standard output; more is ERROR_INVALID; 0 is refused */
	int niceness;		 /* 0 to 19: how far it stands back behind others */
	/* What it writes to standard error, as it comes; NULL: nobody wants it. May not end the command. */
	void (*on_complaint)(struct process *p, const char *bytes, size_t len);
	void (*done)(struct process *p);
	void *user;

	/*
	 * Valid inside done(), and no longer. kind is ERROR_NONE when it ended by
	 * itself with any exit code; ERROR_NOT_FOUND when there is no such command,
	 * ERROR_TIMEOUT, ERROR_CANCELLED, ERROR_UNAVAILABLE when a signal ended it.
	 */
	struct error error;
	int exit_code;
	const char *output; /* standard output, NUL-terminated */
	size_t output_len;
	const char *complaint; /* the first PROCESS_COMPLAINT bytes of standard error */

	struct process_run *run; /* private; NULL at first */
};

#define PROCESS_COMPLAINT ((size_t)4096)

void process_start(struct loop *l, struct process *p);
void process_cancel(struct process *p); /* completes as ERROR_CANCELLED once it is gone; nothing when none runs */
