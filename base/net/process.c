#include "base/net/process.h"

#include "base/alloc.h"
#include "base/arena.h"
#include "base/text.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#define REAP_EVERY ((millis)10)

struct stream {
	ev_io io; /* its fd is -1 once closed */
	struct process_run *run;
	struct buf text;
	bool is_complaint;
};

struct process_run {
	struct loop *loop;
	struct process *process;
	pid_t pid; /* 0: it never ran */
	struct stream output, complaint;
	struct timer deadline, reap;
};

struct shown_command {
	char text[QUOTE_ROOM];
};

/* Arguments may hold secrets. */
static struct shown_command shown(const struct process *p)
{
	struct shown_command s;

	quote(s.text, p->argv[0], strlen(p->argv[0]));
	return s;
}

static void stream_close(struct stream *s)
{
	if (s->io.fd < 0)
		return;
	ev_io_stop(loop_ev(s->run->loop), &s->io);
	close(s->io.fd);
	s->io.fd = -1;
}

static void finish(struct process_run *run)
{
	struct process *p = run->process;

	timer_stop(&run->deadline);
	stream_close(&run->output);
	stream_close(&run->complaint);
	p->output = run->output.text.text ? run->output.text.text : "";
	p->output_len = run->output.text.len;
	p->complaint = run->complaint.text.text ? run->complaint.text.text : "";
	p->run = NULL;
	p->done(p); /* may start p anew, and may free it */
	buf_release(&run->output.text);
	buf_release(&run->complaint.text);
	free(run);
}

static void on_reap(struct timer *t)
{
	struct process_run *run = t->user;
	struct process *p = run->process;
	int status = 0;

	if (run->pid && waitpid(run->pid, &status, WNOHANG) == 0) {
		timer_start(run->loop, t, REAP_EVERY, on_reap);
		return;
	}
	if (p->error.kind == ERROR_NONE && WIFSIGNALED(status))
		error_set(&p->error, ERROR_UNAVAILABLE, "command %s: ended by signal %d", shown(p).text,
			  WTERMSIG(status));
	p->exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : 0;
	finish(run);
}

static void reap(struct process_run *run)
{
	stream_close(&run->output);
	stream_close(&run->complaint);
	timer_start(run->loop, &run->reap, 0, on_reap);
}

/* It and what it started; p->error says why. */
static void end(struct process_run *run)
{
	if (run->pid)
		kill(-run->pid, SIGKILL);
	reap(run);
}

static void on_deadline(struct timer *t)
{
	struct process_run *run = t->user;
	struct process *p = run->process;

	if (p->error.kind != ERROR_NONE)
		return;
	error_set(&p->error, ERROR_TIMEOUT, "command %s: not done within %" PRId64 " ms, ended", shown(p).text,
		  p->timeout);
	end(run);
}

static void keep(struct stream *s, const char *bytes, size_t len)
{
	struct process *p = s->run->process;
	size_t cap = s->is_complaint ? PROCESS_COMPLAINT : p->max_output;
	size_t room = cap - s->text.len;

	if (s->is_complaint && p->on_complaint)
		p->on_complaint(p, bytes, len);

	buf_append(&s->text, bytes, len < room ? len : room);
	if (len <= room || s->is_complaint)
		return;
	error_set(&p->error, ERROR_INVALID, "command %s: it wrote more than %zu bytes, ended", shown(p).text, cap);
	end(s->run);
}

static void on_output(struct ev_loop *ev, ev_io *w, int events)
{
	struct stream *s = w->data;
	struct process_run *run = s->run;
	char bytes[4096];
	ssize_t n = read(w->fd, bytes, sizeof bytes);

	(void)ev;
	(void)events;
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n > 0) {
		keep(s, bytes, (size_t)n);
		return;
	}
	stream_close(s);
	if (run->output.io.fd < 0 && run->complaint.io.fd < 0)
		reap(run);
}

static bool stream_open(struct process_run *run, struct stream *s, int *theirs)
{
	int ends[2];

	if (pipe2(ends, O_CLOEXEC) != 0)
		return false;
	fcntl(ends[0], F_SETFL, O_NONBLOCK);
	ev_io_init(&s->io, on_output, ends[0], EV_READ);
	s->io.data = s;
	s->run = run;
	ev_io_start(loop_ev(run->loop), &s->io);
	*theirs = ends[1];
	return true;
}

static bool is_named_in(const char *entry, const char *const *env)
{
	size_t name = strcspn(entry, "=") + 1;

	for (; env && *env; env++)
		if (strncmp(entry, *env, name) == 0)
			return true;
	return false;
}

static char **environment(const char *const *added, struct arena *a)
{
	size_t room = 1, n = 0;

	for (char **e = environ; e && *e; e++)
		room++;
	for (const char *const *e = added; e && *e; e++)
		room++;
	char **all = arena_array(a, char *, room);
	for (char **e = environ; e && *e; e++)
		if (!is_named_in(*e, added))
			all[n++] = *e;
	for (const char *const *e = added; e && *e; e++)
		all[n++] = (char *)(uintptr_t)*e;
	return all;
}

static int spawn(struct process_run *run, int output, int complaint)
{
	CLEANUP(arena_release) struct arena a = { 0 };
	posix_spawn_file_actions_t files;
	posix_spawnattr_t how;
	sigset_t none, ignored;

	sigemptyset(&none);
	sigemptyset(&ignored);
	sigaddset(&ignored, SIGPIPE);
	posix_spawn_file_actions_init(&files);
	posix_spawn_file_actions_addopen(&files, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
	posix_spawn_file_actions_adddup2(&files, output, STDOUT_FILENO);
	posix_spawn_file_actions_adddup2(&files, complaint, STDERR_FILENO);
	posix_spawn_file_actions_addclosefrom_np(&files, STDERR_FILENO + 1);
	posix_spawnattr_init(&how);
	posix_spawnattr_setflags(&how, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
	posix_spawnattr_setsigmask(&how, &none);
	posix_spawnattr_setsigdefault(&how, &ignored);
	char *const *argv = (char *const *)(uintptr_t)run->process->argv;
	int failure = posix_spawnp(&run->pid, argv[0], &files, &how, argv, environment(run->process->env, &a));
	posix_spawnattr_destroy(&how);
	posix_spawn_file_actions_destroy(&files);
	if (failure)
		run->pid = 0;
	else if (run->process->niceness)
		setpriority(PRIO_PROCESS, (id_t)run->pid, run->process->niceness);
	return failure;
}

static void begin(struct process_run *run)
{
	struct process *p = run->process;
	int output = -1, complaint = -1, failure;

	if (stream_open(run, &run->output, &output) && stream_open(run, &run->complaint, &complaint))
		failure = spawn(run, output, complaint);
	else
		failure = errno;
	if (output >= 0)
		close(output);
	if (complaint >= 0)
		close(complaint);
	if (!failure)
		return;
	if (failure == ENOENT)
		error_set(&p->error, ERROR_NOT_FOUND, "command %s: not found%s", shown(p).text,
			  strchr(p->argv[0], '/') ? "" : " in PATH, install it or give its whole path");
	else
		error_set(&p->error, failure == EACCES ? ERROR_AUTH : ERROR_UNAVAILABLE, "command %s: %s",
			  shown(p).text, strerror(failure));
	end(run);
}

void process_start(struct loop *l, struct process *p)
{
	struct process_run *run = xnew(struct process_run);

	assert(p->timeout > 0 && p->max_output > 0 && p->done && !p->run);
	run->loop = l;
	run->process = p;
	run->output.io.fd = run->complaint.io.fd = -1;
	run->complaint.is_complaint = true;
	run->deadline.user = run->reap.user = run;
	p->run = run;
	p->error = (struct error){ 0 };
	p->exit_code = 0;
	timer_start(l, &run->deadline, p->timeout, on_deadline);
	begin(run);
}

void process_cancel(struct process *p)
{
	if (!p->run || p->error.kind != ERROR_NONE)
		return;
	error_set(&p->error, ERROR_CANCELLED, "command %s: cancelled", shown(p).text);
	end(p->run);
}
