#include "controller/web/daily.h"

#include "base/alloc.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/net/process.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { NICENESS = 10, ARGUMENTS_MOST = 12 };

const char *const daily_state_names[] = { "never", "trying", "tried", "failed", NULL };

struct daily {
	struct daily_setup setup;
	const struct daily_question *question;
	struct clock clock;
	struct arena arena; /* of what is shown */
	struct daily_shown shown;
	millis ended_at; /* of the last try, whatever came of it */
	char message[512];
	struct process process;
	struct timer start, look;
	const char *argv[ARGUMENTS_MOST + 4]; /* of the command */
};

static const char *path_beside(const char *history, const struct daily_question *q, struct arena *a)
{
	CLEANUP(buf_release) struct buf path = { 0 };

	buf_printf(&path, "%s%s", history, q->suffix);
	return arena_strdup(a, path.text, path.len);
}

/* The file is what the command said; its time is when. */
bool daily_read(const char *history, const struct daily_question *question, struct arena *a, struct daily_shown *out,
		struct error *e)
{
	CLEANUP(buf_release) struct buf text = { 0 };
	const char *path = path_beside(history, question, a);
	struct stat st;

	*out = (struct daily_shown){ .message = "" };
	if (stat(path, &st))
		return true;
	if (!file_read(path, question->output_most, &text, e))
		return false;
	out->answer = question->read(text.text, text.len, a, e);
	if (!out->answer)
		return error_wrap(e, "%s", path);
	out->state = DAILY_TRIED;
	out->tried_at = (millis)st.st_mtime * SECOND;
	return true;
}

/* Those of before stay when there are no new ones. */
static bool take_output(struct daily *d, const struct process *p, struct error *e)
{
	struct arena a = { 0 };
	const void *answer = d->question->read(p->output, p->output_len, &a, e);
	struct error unkept;

	if (!answer) {
		arena_release(&a);
		return false;
	}
	arena_release(&d->arena);
	d->arena = a;
	d->shown = (struct daily_shown){ DAILY_TRIED, d->ended_at, answer, "" };
	/* A folder that takes no files costs no more than another try after the next restart. */
	if (d->setup.is_kept)
		(void)!file_write(path_beside(d->setup.history, d->question, &d->arena), p->output, p->output_len,
				  &unkept);
	return true;
}

/* The first line is the command's one message. */
static void fail(struct daily *d, const struct process *p, const struct error *e)
{
	const char *words = e->kind != ERROR_NONE ? e->message
			    : *p->complaint	  ? p->complaint
						  : "it ended without an answer";

	snprintf(d->message, sizeof d->message, "%.*s", (int)strcspn(words, "\n"), words);
	d->shown.state = DAILY_FAILED;
	d->shown.message = d->message;
}

static void on_done(struct process *p)
{
	struct daily *d = p->user;
	struct error e = p->error;

	d->ended_at = clock_now(&d->clock);
	if (e.kind != ERROR_NONE || p->exit_code || !take_output(d, p, &e))
		fail(d, p, &e);
}

static void start(struct timer *t)
{
	struct daily *d = t->user;
	size_t n = 0;

	d->argv[n++] = d->setup.program;
	for (const char *const *argument = d->question->arguments; *argument && n <= ARGUMENTS_MOST; argument++)
		d->argv[n++] = *argument;
	d->argv[n++] = "--db";
	d->argv[n++] = d->setup.history;
	d->argv[n] = NULL;
	d->process = (struct process){ .argv = d->argv,
				       .timeout = d->question->timeout,
				       .max_output = d->question->output_most,
				       .niceness = NICENESS,
				       .done = on_done,
				       .user = d };
	process_start(d->setup.loop, &d->process);
}

void daily_ask(struct daily *d)
{
	if (d->shown.state == DAILY_TRYING)
		return;
	d->shown.state = DAILY_TRYING;
	timer_start(d->setup.loop, &d->start, 0, start);
}

const struct daily_shown *daily_look(struct daily *d)
{
	millis pause = d->shown.state == DAILY_FAILED ? HOUR : DAY;

	if (!d->ended_at || clock_now(&d->clock) - d->ended_at >= pause)
		daily_ask(d);
	return &d->shown;
}

static void look(struct timer *t)
{
	struct daily *d = t->user;

	daily_look(d);
	timer_start(d->setup.loop, t, d->setup.looks_every, look);
}

struct daily *daily_open(const struct daily_setup *setup, const struct daily_question *question)
{
	struct daily *d = xcalloc(1, sizeof *d);
	struct error unread;

	d->setup = *setup;
	d->question = question;
	d->clock = clock_open();
	d->start.user = d->look.user = d;
	if (!setup->is_kept || !daily_read(setup->history, question, &d->arena, &d->shown, &unread))
		d->shown = (struct daily_shown){ .message = "" };
	d->ended_at = d->shown.tried_at;
	if (setup->looks_every)
		timer_start(setup->loop, &d->look, setup->looks_every, look);
	return d;
}

void daily_close(struct daily *d)
{
	if (!d)
		return;
	timer_stop(&d->start);
	timer_stop(&d->look);
	process_cancel(&d->process);
	while (d->process.run && loop_once(d->setup.loop))
		;
	arena_release(&d->arena);
	free(d);
}
