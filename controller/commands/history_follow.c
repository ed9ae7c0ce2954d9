#include "controller/commands/history_follow.h"

#include "controller/commands/command.h"
#include "controller/commands/history_rows.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { LOOKS_PER_SECOND = 2 };

/* A file as it lies there. All zero for what is no file: the address of a server. */
struct look {
	dev_t device;
	ino_t number;
	off_t size, log_size;
	struct timespec written, log_written;
};

struct following {
	struct question *question;
	const char *path; /* of the file, or the address */
	struct history_filter filter;
	enum table_format format;
	struct table_stream stream;
	int64_t printed;   /* the last tick that was looked at */
	millis printed_to; /* when it ended */
	struct look seen;  /* when it was opened */
	bool is_away;	   /* said that it cannot be read */
	sigset_t usual;	   /* signals that may come while waiting */
};

static volatile sig_atomic_t is_interrupted;

static void interrupt(int number)
{
	(void)number;
	is_interrupted = 1;
}

/* Only while waiting, so that none is missed between a look and the wait. */
static void catch_signals(struct following *f)
{
	const struct sigaction action = { .sa_handler = interrupt };
	sigset_t held;

	sigemptyset(&held);
	sigaddset(&held, SIGINT);
	sigaddset(&held, SIGTERM);
	sigprocmask(SIG_BLOCK, &held, &f->usual);
	sigaction(SIGINT, &action, NULL);
	sigaction(SIGTERM, &action, NULL);
}

/* False when whoever reads standard output has left. */
static bool wait_a_moment(const struct following *f)
{
	const struct timespec moment = { .tv_nsec = 1000000000 / LOOKS_PER_SECOND };
	struct pollfd out = { .fd = STDOUT_FILENO };

	return ppoll(&out, 1, &moment, &f->usual) <= 0 || !(out.revents & POLLERR);
}

static void say(const struct following *f, const char *what)
{
	fprintf(stderr, "%s history: %s: %s\n", command_program(), f->question->db, what);
}

static bool print_rows(struct following *f, struct error *e)
{
	struct table *t = history_rows(f->question, &f->filter, table_is_for_programs(f->format), e);

	if (!t)
		return false;
	table_print_portion(t, f->format, &f->stream, stdout);
	table_free(t);
	if (fflush(stdout) == 0)
		return true;
	return error_set(e, errno == EPIPE ? ERROR_CANCELLED : ERROR_UNAVAILABLE, "standard output: %s",
			 strerror(errno));
}

/* From the tick after the last one that was printed. */
static bool print_new(struct following *f, const struct history_span *span, struct error *e)
{
	if (f->printed >= 0 && span->last_tick < f->printed) {
		fprintf(stderr, "%s history: %s: it ends at tick %lld now; going on from there\n", command_program(),
			f->question->db, (long long)span->last_tick);
		f->printed = span->last_tick;
	}
	if (span->last_tick <= f->printed)
		return true;
	if (f->printed >= 0 && span->first_tick > f->printed + 1)
		fprintf(stderr, "%s history: %s: ticks %lld to %lld were dropped before they were read\n",
			command_program(), f->question->db, (long long)f->printed + 1, (long long)span->first_tick - 1);
	f->filter.from = f->printed + 1;
	f->filter.to = span->last_tick;
	f->filter.most = INT64_MAX;
	f->printed = span->last_tick;
	f->printed_to = span->to;
	return print_rows(f, e);
}

static struct look look_at(const char *path)
{
	CLEANUP(buf_release) struct buf log = { 0 };
	struct look now = { 0 };
	struct stat st;

	buf_printf(&log, "%s-wal", path);
	if (stat(path, &st) == 0)
		now = (struct look){
			.device = st.st_dev, .number = st.st_ino, .size = st.st_size, .written = st.st_mtim
		};
	if (now.number && stat(log.text, &st) == 0) {
		now.log_size = st.st_size;
		now.log_written = st.st_mtim;
	}
	return now;
}

static bool is_same_time(struct timespec a, struct timespec b)
{
	return a.tv_sec == b.tv_sec && a.tv_nsec == b.tv_nsec;
}

static bool is_untouched(const struct look *a, const struct look *b)
{
	return a->number && a->number == b->number && a->device == b->device && a->size == b->size &&
	       a->log_size == b->log_size && is_same_time(a->written, b->written) &&
	       is_same_time(a->log_written, b->log_written);
}

static void close_now(struct question *q)
{
	question_close(q);
	q->history = NULL;
}

/* A file without a log is read as one that nobody writes, and pools may have come: only opening tells. */
static bool open_again(struct following *f, struct error *e)
{
	struct question *q = f->question;

	close_now(q);
	q->may_be_empty = true;
	if (!question_open(q, e)) {
		close_now(q);
		return false;
	}
	f->filter.pool = q->pool_index;
	return true;
}

/* What cannot be read now may be readable soon: a file that is being put in place, a server that is away. */
static bool bear(struct following *f, const struct error *e)
{
	if (e->kind != ERROR_NOT_FOUND && e->kind != ERROR_INVALID && !error_is_transient(e))
		return false;
	if (!f->is_away)
		fprintf(stderr, "%s history: %s; waiting for it\n", command_program(), e->message);
	f->is_away = true;
	return true;
}

/* From the first tick in it that ended later than what was printed. */
static bool open_another(struct following *f, struct error *e)
{
	const struct question *q = f->question;

	if (!open_again(f, e))
		return false;
	f->is_away = false;
	f->printed = q->span.first_tick - 1;
	if (q->span.last_tick < q->span.first_tick || q->span.from > f->printed_to)
		return true;
	return history_tick_at(q->history, f->printed_to, &f->printed, e);
}

/* Another file in its place, or none. What was written last to the old one is read from the handle that is open. */
static bool leave(struct following *f, bool is_gone, struct error *e)
{
	struct history_span span;

	if (history_span(f->question->history, &span, e) && !print_new(f, &span, e))
		return false;
	say(f, is_gone ? "it is gone; waiting for another" : "another file is there now; going on with that");
	close_now(f->question);
	f->is_away = is_gone;
	return true;
}

static bool look(struct following *f, struct error *e)
{
	struct look now = look_at(f->path);
	bool is_other = f->seen.number && (now.number != f->seen.number || now.device != f->seen.device);

	if (is_untouched(&now, &f->seen) && f->question->history)
		return true;
	if (is_other && f->question->history && !leave(f, !now.number, e))
		return false;
	if (f->seen.number && !now.number)
		return true;
	bool is_open = f->question->history ? open_again(f, e) : open_another(f, e);
	if (!is_open)
		return bear(f, e);
	f->seen = now;
	return print_new(f, &f->question->span, e);
}

bool history_follow(struct question *q, const struct history_filter *filter, const char *form, struct error *e)
{
	CLEANUP(arena_release) struct arena paths = { 0 };
	struct following f = { .question = q, .filter = *filter, .format = table_format_of(form), .printed = -1 };
	bool ok = true;

	f.path = arena_strdup(&paths, history_path(q->history), strlen(history_path(q->history)));
	f.seen = look_at(f.path);
	catch_signals(&f);
	if (q->span.last_tick >= q->span.first_tick) {
		f.printed = q->span.last_tick;
		f.printed_to = q->span.to;
		ok = print_rows(&f, e);
	}
	while (ok && !is_interrupted) {
		if (!wait_a_moment(&f))
			return error_set(e, ERROR_CANCELLED, "nobody reads");
		ok = is_interrupted || look(&f, e);
	}
	return ok;
}
