/* Brings a history to another place: a file, or a schema of PostgreSQL's that many clusters share. */
#include "base/net/retry.h"
#include "base/quantity.h"
#include "base/text.h"
#include "base/terminal.h"
#include "controller/commands/command.h"
#include "state/replica.h"

#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

extern const struct command history_command_copy;

struct copying {
	const char *from, *to;
	bool follows, sets_aside;
	millis every;
	struct progress progress;
	int64_t first, last; /* ticks that came, of this round */
	bool is_fleet_renewed;
};

static volatile sig_atomic_t is_interrupted;

static void interrupt(int number)
{
	(void)number;
	is_interrupted = 1;
}

static void show(void *user, int64_t tick)
{
	struct copying *c = user;

	c->last = tick;
	progress_show(&c->progress, tick - c->first);
}

/* What is not ours to grant is said and does not stop the copy: only questions over all clusters miss it. */
static void renew_fleet(struct copying *c, struct history *to)
{
	struct error e;

	if (!c->is_fleet_renewed && !replica_renew_fleet(to, &e))
		fprintf(stderr, "%s history copy: the views of the schema fleet are as they were: %s\n",
			command_program(), e.message);
	c->is_fleet_renewed = true;
}

static bool copy_open(struct copying *c, struct history *from, struct history *to, struct error *e)
{
	struct history_span span;
	struct replica_tail tail;

	if (!history_span(from, &span, e) || !replica_tail(to, &tail, e))
		return false;
	c->first = c->last = tail.tick < 0 ? span.first_tick - 1 : tail.tick;
	c->progress = progress_start("copying", "ticks", span.last_tick - c->first);
	bool ok = replica_copy(from, to, show, c, e);
	progress_end(&c->progress);
	renew_fleet(c, to);
	return ok;
}

static bool copy_once(struct copying *c, struct error *e)
{
	struct history *from = history_open(c->from, e);
	struct history *to = from ? replica_open(c->to, e) : NULL;
	bool ok = to && copy_open(c, from, to, e);

	if (ok)
		printf("%s: %" PRId64 " tick%s copied, up to tick %" PRId64 "\n", history_path(to), c->last - c->first,
		       c->last - c->first == 1 ? "" : "s", c->last);
	fflush(stdout);
	history_close(from);
	history_close(to);
	return ok;
}

/* What is there is another history's: it stays under another name. */
static bool set_aside(const struct copying *c, struct error *e)
{
	CLEANUP(buf_release) struct buf name = { 0 };

	if (!history_set_aside(c->to, &name, e))
		return false;
	printf("what was there is another history; it is %s now\n", name.text);
	return true;
}

static bool copy(struct copying *c, struct error *e)
{
	if (copy_once(c, e))
		return true;
	if (e->kind != ERROR_CONFLICT || !c->sets_aside)
		return false;
	return set_aside(c, e) && copy_once(c, e);
}

static void wait_for(millis duration)
{
	struct timespec time = { .tv_sec = duration / 1000, .tv_nsec = duration % 1000 * 1000000 };

	if (!is_interrupted)
		nanosleep(&time, NULL);
}

/* Until it is interrupted; a server that is away is asked again, later and later. */
static bool follow(struct copying *c, struct error *e)
{
	const struct sigaction action = { .sa_handler = interrupt };
	struct retry retry =
		retry_make(c->every, 5 * MINUTE, random_stream((uint64_t)time(NULL) ^ (uint64_t)getpid(), "copy"));

	sigaction(SIGINT, &action, NULL);
	sigaction(SIGTERM, &action, NULL);
	while (!is_interrupted) {
		if (copy(c, e)) {
			retry_reset(&retry);
			wait_for(c->every);
		} else if (error_is_transient(e)) {
			fprintf(stderr, "%s history copy: %s; tried again\n", command_program(), e->message);
			wait_for(retry_next(&retry, 0));
		} else {
			return false;
		}
	}
	return true;
}

static bool check(const struct copying *c, int left, const char *argument, struct error *e)
{
	if (left)
		return error_set(e, ERROR_INVALID, "found '%.60s'; allowed: options only: --db FROM --to TO", argument);
	if (!c->to)
		return error_set(e, ERROR_INVALID,
				 "--to is missing: a file, or postgresql://USER@HOST/DATABASE#CLUSTER");
	if (!strcmp(c->from, c->to))
		return error_set(e, ERROR_INVALID, "--db and --to name the same history");
	return true;
}

static int run(int argc, char **argv)
{
	struct copying c = { .from = "history.db", .every = 15 * SECOND };
	const struct option_row rows[] = {
		{ "db", 0, OPTION_TEXT, "FILE", "the history to copy (default: history.db); may be in PostgreSQL, too",
		  &c.from, NULL },
		{ "to", 0, OPTION_TEXT, "WHERE",
		  "a file, or postgresql://USER@HOST/DATABASE#CLUSTER; gone on with when it is there", &c.to, NULL },
		{ "follow", 'f', OPTION_FLAG, NULL, "go on with what comes, until interrupted", &c.follows, NULL },
		{ "every", 0, OPTION_PERIOD, "DURATION", "with --follow: so often (default: 15s)", &c.every, NULL },
		{ "set-aside", 0, OPTION_FLAG, NULL,
		  "when another history is there: keep it under another name, and begin anew", &c.sets_aside, NULL },
	};
	struct error e;
	int rest, code;

	if (!command_options(&history_command_copy, argc, argv, rows, sizeof rows / sizeof *rows, &rest, &code))
		return code;
	if (!check(&c, argc - rest, argv[rest], &e) || !(c.follows ? follow(&c, &e) : copy(&c, &e)))
		return command_failed(&history_command_copy, &e);
	return EXIT_DONE;
}

const struct command history_command_copy = {
	.name = "history copy",
	.usage = "history copy [--db FILE] --to FILE|postgresql://USER@HOST/DATABASE#CLUSTER [--follow]",
	.summary = "Copy a history, or go on copying it: to a file, or beside those of other clusters in PostgreSQL",
	.examples = "  preheat history copy --to 'postgresql://preheat@db.internal/fleet#prod-eu' --follow\n"
		    "  preheat explain --db 'postgresql://db.internal/fleet#prod-eu' --pool chat --largest\n"
		    "  preheat history copy --db 'postgresql://db.internal/fleet#prod-eu' --to prod-eu.db\n",
	.run = run,
};
