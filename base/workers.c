#include "base/workers.h"

#include "base/alloc.h"
#include "base/file.h"

#include <errno.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

enum { WORKERS_MOST = 64, LOOK_MS = 200 };

/* What goes through the pipe before an answer. */
struct head {
	uint64_t job;
	bool is_error;
	struct error error;
};

struct worker {
	pid_t pid;
	int fd;	      /* -1: it has told everything */
	size_t first; /* its first job that is not answered */
	unsigned char *message;
	size_t have; /* bytes of the message so far */
};

struct crew {
	const struct workers *w;
	struct worker workers[WORKERS_MOST];
	size_t count, busy, done;
	unsigned char *answers;
	bool *is_done;
};

static size_t message_size(const struct workers *w)
{
	return sizeof(struct head) + w->answer_size;
}

static size_t cores(void)
{
	cpu_set_t set;
	int n = sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : 1;

	return n < 1 ? 1 : n > WORKERS_MOST ? WORKERS_MOST : (size_t)n;
}

static _Noreturn void work(const struct workers *w, size_t first, size_t step, int fd)
{
	unsigned char *message = xcalloc(1, message_size(w));

	for (size_t job = first; job < w->jobs; job += step) {
		struct head head = { .job = job };

		if (w->stop && *w->stop)
			break;
		memset(message, 0, message_size(w));
		head.is_error = !w->work(w->user, job, message + sizeof head, &head.error);
		if (w->stop && *w->stop)
			break;
		memcpy(message, &head, sizeof head);
		if (!file_write_all(fd, message, message_size(w)) || head.is_error)
			break;
	}
	/* Not exit(): what the parent has buffered and registered is the parent's. */
	_exit(0);
}

static bool hire(struct crew *c, size_t index, size_t step, struct error *e)
{
	struct worker *worker = &c->workers[index];
	int ends[2];

	if (pipe(ends))
		return error_set(e, ERROR_UNAVAILABLE, "a pipe to a worker: %s", strerror(errno));
	pid_t parent = getpid(), pid = fork();
	if (pid < 0) {
		close(ends[0]);
		close(ends[1]);
		return error_set(e, ERROR_UNAVAILABLE, "starting a worker process: %s", strerror(errno));
	}
	if (!pid) {
		/* A parent that is killed takes its workers with it. */
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (getppid() != parent)
			_exit(0);
		close(ends[0]);
		for (size_t i = 0; i < index; i++)
			close(c->workers[i].fd);
		work(c->w, index, step, ends[1]);
	}
	close(ends[1]);
	*worker = (struct worker){ .pid = pid, .fd = ends[0], .first = index };
	worker->message = xcalloc(1, message_size(c->w));
	c->count++;
	c->busy++;
	return true;
}

static bool take_message(struct crew *c, struct worker *worker, struct error *e)
{
	struct head head;

	memcpy(&head, worker->message, sizeof head);
	worker->have = 0;
	if (head.is_error) {
		*e = head.error;
		return error_wrap(e, "%s", c->w->name(c->w->user, (size_t)head.job));
	}
	memcpy(c->answers + head.job * c->w->answer_size, worker->message + sizeof head, c->w->answer_size);
	c->is_done[head.job] = true;
	worker->first = (size_t)head.job + c->count;
	if (c->w->done)
		c->w->done(c->w->user, ++c->done);
	return true;
}

/* Why a worker told no more: it was done, or it died. */
static bool dismiss(struct crew *c, struct worker *worker, struct error *e)
{
	int status = 0;

	close(worker->fd);
	worker->fd = -1;
	c->busy--;
	while (waitpid(worker->pid, &status, 0) < 0 && errno == EINTR)
		;
	worker->pid = 0;
	if (WIFEXITED(status) && !WEXITSTATUS(status) && !worker->have &&
	    (worker->first >= c->w->jobs || (c->w->stop && *c->w->stop)))
		return true;
	const char *name = c->w->name(c->w->user, worker->first < c->w->jobs ? worker->first : c->w->jobs - 1);
	if (WIFSIGNALED(status))
		return error_set(e, ERROR_UNAVAILABLE,
				 "%s: the worker process was ended by signal %d (%s); was memory short?", name,
				 WTERMSIG(status), strsignal(WTERMSIG(status)));
	return error_set(e, ERROR_INTERNAL, "%s: the worker process ended early with code %d", name,
			 WEXITSTATUS(status));
}

static bool listen_to(struct crew *c, struct worker *worker, struct error *e)
{
	ssize_t n = read(worker->fd, worker->message + worker->have, message_size(c->w) - worker->have);

	if (n < 0)
		return errno == EINTR || error_set(e, ERROR_UNAVAILABLE, "reading from a worker: %s", strerror(errno));
	if (n == 0)
		return dismiss(c, worker, e);
	worker->have += (size_t)n;
	return worker->have < message_size(c->w) || take_message(c, worker, e);
}

static bool supervise(struct crew *c, struct error *e)
{
	while (c->busy && !(c->w->stop && *c->w->stop)) {
		struct pollfd fds[WORKERS_MOST];

		for (size_t i = 0; i < c->count; i++)
			fds[i] = (struct pollfd){ .fd = c->workers[i].fd, .events = POLLIN };
		if (poll(fds, c->count, LOOK_MS) < 0 && errno != EINTR)
			return error_set(e, ERROR_UNAVAILABLE, "waiting for workers: %s", strerror(errno));
		for (size_t i = 0; i < c->count; i++)
			if (fds[i].fd >= 0 && fds[i].revents && !listen_to(c, &c->workers[i], e))
				return false;
	}
	return true;
}

/* Whoever still works has nothing more to say. */
static void send_home(struct crew *c)
{
	for (size_t i = 0; i < c->count; i++) {
		struct worker *worker = &c->workers[i];

		if (worker->fd >= 0)
			close(worker->fd);
		if (worker->pid > 0) {
			kill(worker->pid, SIGKILL);
			while (waitpid(worker->pid, NULL, 0) < 0 && errno == EINTR)
				;
		}
		free(worker->message);
	}
}

bool workers_run(const struct workers *w, void *answers, bool *is_done, struct error *e)
{
	struct crew c = { .w = w, .answers = answers, .is_done = is_done };
	size_t wanted = cores() < w->jobs ? cores() : w->jobs;
	bool ok = true;

	fflush(NULL);
	for (size_t i = 0; i < wanted && ok; i++)
		ok = hire(&c, i, wanted, e);
	ok = ok && supervise(&c, e);
	send_home(&c);
	return ok;
}
