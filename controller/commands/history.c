/* preheat history: decisions as rows. */
#include "controller/commands/history.h"

#include "base/net/retry.h"
#include "base/quantity.h"
#include "base/text.h"
#include "base/table.h"
#include "base/terminal.h"
#include "controller/commands/print.h"
#include "controller/commands/command.h"
#include "controller/explain/explain.h"
#include "providers/provider.h"
#include "state/db.h"
#include "state/drain_record.h"
#include "state/share_record.h"
#include "state/replica.h"

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

/* Decisions as rows of a table. */

/* Decisions as they are written, by whichever process writes them. */

/* What retention left of a history: sums per hour. */

/* A column shows one field of a decision; those without a field are filled by name. */
static const struct column {
	struct table_column table;
	const char *field;
} decision_columns[] = {
	{ { .name = "time" }, NULL },
	{ { .name = "tick", .is_right = true, .is_wide = true }, NULL },
	{ { .name = "pool" }, NULL },
	{ { .name = "namespace", .is_wide = true }, NULL },
	{ { .name = "demand_milli", .title = "DEMAND", .is_right = true }, "demand_milli" },
	{ { .name = "running_milli", .title = "RUNNING", .is_right = true, .is_wide = true }, "running_milli" },
	{ { .name = "waiting_now", .title = "WAITING", .is_right = true, .is_wide = true }, "waiting_now" },
	{ { .name = "ready", .title = "HOT", .is_right = true }, "ready" },
	{ { .name = "on_the_way", .title = "STARTING", .is_right = true }, "on_the_way" },
	{ { .name = "standby", .title = "STANDBY", .is_right = true, .is_wide = true }, "standby" },
	{ { .name = "lent", .title = "LENT", .is_right = true, .is_wide = true }, "lent" },
	{ { .name = "wished", .title = "WISHED", .is_right = true, .is_wide = true }, "wished" },
	{ { .name = "decided", .title = "DECIDED", .is_right = true }, "decided" },
	{ { .name = "held_by", .title = "HELD BY" }, "held_by" },
	{ { .name = "rule", .title = "RULE", .is_right = true, .is_wide = true }, "rule" },
	{ { .name = "dollars_per_hour_micro", .title = "COST/H", .is_right = true, .is_wide = true },
	  "dollars_per_hour" },
	{ { .name = "started", .title = "STARTED", .is_right = true, .is_wide = true }, "started" },
	{ { .name = "late", .title = "LATE", .is_right = true }, "late" },
	{ { .name = "self_test", .title = "SELF-TEST", .is_wide = true }, "self_test" },
};

enum { COLUMN_COUNT = sizeof decision_columns / sizeof *decision_columns };

static const struct field_info *field_of(const char *name, size_t *index)
{
	for (*index = 0; *index < pool_decision_info.count; ++*index)
		if (!strcmp(pool_decision_info.fields[*index].name, name))
			return &pool_decision_info.fields[*index];
	return NULL;
}

static void add_field(struct table *t, const char *name, const struct pool_decision *d)
{
	CLEANUP(buf_release) struct buf shown = { 0 }, raw = { 0 };
	size_t index;
	const struct field_info *f = field_of(name, &index);
	int64_t value = ((const int64_t *)d)[index];

	if (value == ABSENT) {
		table_absent(t);
		return;
	}
	explain_value(f, value, 0, &shown);
	if (!strncmp(f->unit, "enum:", 5)) {
		table_text(t, shown.text);
		return;
	}
	buf_printf(&raw, "%lld", (long long)value);
	table_value(t, shown.text, raw.text);
}

static void add_decision(struct table *t, const struct history_args *q, const struct tick_record *r, bool is_unpriced,
			 bool for_programs)
{
	CLEANUP(buf_release) struct buf time = { 0 };
	size_t count;
	const struct history_pool *pools = history_pools(q->history, &count);

	history_args_print_time(q, r->now, for_programs, &time);
	table_text(t, time.text);
	table_count(t, r->tick);
	table_text(t, pools[r->pool].name);
	table_text(t, pools[r->pool].namespace);
	struct pool_decision d = r->plan.decision;
	if (is_unpriced)
		d.dollars_per_hour = ABSENT;
	for (size_t i = 0; i < COLUMN_COUNT; i++)
		if (decision_columns[i].field)
			add_field(t, decision_columns[i].field, &d);
	if (r->plan.decision.held_by != LIMIT_NONE)
		table_style(t, STYLE_WARN);
}

/* Ticks of the filter, from the oldest of the hits on where these are all that may be, that none of them is of. */
static int64_t count_folded(const struct history_filter *f, const struct history_hit *hits, size_t count)
{
	int64_t first = count && (int64_t)count == f->most ? hits[count - 1].tick : f->from, shown = 0;

	for (size_t i = 0; i < count; i++)
		shown += i == 0 || hits[i].tick != hits[i - 1].tick;
	return f->to - first + 1 - shown;
}

/* Those that the filter lets through, newest last; the caller frees, before the question is closed. NULL with an error.
 */
static struct table *history_rows(struct history_args *q, const struct history_filter *f, bool for_programs,
				  int64_t *folded, struct error *e)
{
	struct table_column *shown = arena_array(&q->arena, struct table_column, COLUMN_COUNT);
	struct history_hit *hits;
	size_t count;

	if (!history_find(q->history, f, &q->arena, &hits, &count, e))
		return NULL;
	*folded = f->changed_only ? count_folded(f, hits, count) : 0;
	for (size_t i = 0; i < COLUMN_COUNT; i++)
		shown[i] = decision_columns[i].table;
	struct table *t = table_new(shown, COLUMN_COUNT);
	const bool *is_unpriced = history_args_unpriced(q);
	for (size_t i = count; i-- > 0;) { /* the newest last */
		struct tick_record r;

		if (!history_read(q->history, hits[i].tick, hits[i].pool, &r, e)) {
			table_free(t);
			return NULL;
		}
		add_decision(t, q, &r, is_unpriced[r.pool], for_programs);
	}
	return t;
}

enum { LOOKS_PER_SECOND = 2 };

/* A file as it lies there. All zero for what is no file: the address of a server. */
struct file_state {
	dev_t device;
	ino_t number;
	off_t size, log_size;
	struct timespec written, log_written;
};

struct following {
	struct history_args *args;
	const char *path; /* of the file, or the address */
	struct history_filter filter;
	enum table_format format;
	struct table_stream stream;
	int64_t printed;	/* the last tick that was looked at */
	millis printed_to;	/* when it ended */
	struct file_state seen; /* when it was opened */
	bool is_away;		/* said that it cannot be read */
	sigset_t usual;		/* signals that may come while waiting */
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
	fprintf(stderr, "%s history: %s: %s\n", command_program(), f->args->db, what);
}

static bool print_rows(struct following *f, struct error *e)
{
	struct table *t = history_rows(f->args, &f->filter, table_is_for_programs(f->format), &(int64_t){ 0 }, e);

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
			f->args->db, (long long)span->last_tick);
		f->printed = span->last_tick;
	}
	if (span->last_tick <= f->printed)
		return true;
	if (f->printed >= 0 && span->first_tick > f->printed + 1)
		fprintf(stderr, "%s history: %s: ticks %lld to %lld were dropped before they were read\n",
			command_program(), f->args->db, (long long)f->printed + 1, (long long)span->first_tick - 1);
	f->filter.from = f->printed + 1;
	f->filter.to = span->last_tick;
	f->filter.most = INT64_MAX;
	f->printed = span->last_tick;
	f->printed_to = span->to;
	return print_rows(f, e);
}

static struct file_state file_state_of(const char *path)
{
	CLEANUP(buf_release) struct buf log = { 0 };
	struct file_state now = { 0 };
	struct stat st;

	buf_printf(&log, "%s-wal", path);
	if (stat(path, &st) == 0)
		now = (struct file_state){
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

static bool is_untouched(const struct file_state *a, const struct file_state *b)
{
	return a->number && a->number == b->number && a->device == b->device && a->size == b->size &&
	       a->log_size == b->log_size && is_same_time(a->written, b->written) &&
	       is_same_time(a->log_written, b->log_written);
}

static void close_now(struct history_args *q)
{
	history_args_close(q);
	q->history = NULL;
}

/* A file without a log is read as one that nobody writes, and pools may have come: only opening tells. */
static bool open_again(struct following *f, struct error *e)
{
	struct history_args *q = f->args;

	close_now(q);
	q->may_be_empty = true;
	if (!history_args_open(q, e)) {
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
	const struct history_args *q = f->args;

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

	if (history_span(f->args->history, &span, e) && !print_new(f, &span, e))
		return false;
	say(f, is_gone ? "it is gone; waiting for another" : "another file is there now; going on with that");
	close_now(f->args);
	f->is_away = is_gone;
	return true;
}

static bool follow_once(struct following *f, struct error *e)
{
	struct file_state now = file_state_of(f->path);
	bool is_other = f->seen.number && (now.number != f->seen.number || now.device != f->seen.device);

	if (is_untouched(&now, &f->seen) && f->args->history)
		return true;
	if (is_other && f->args->history && !leave(f, !now.number, e))
		return false;
	if (f->seen.number && !now.number)
		return true;
	bool is_open = f->args->history ? open_again(f, e) : open_another(f, e);
	if (!is_open)
		return bear(f, e);
	f->seen = now;
	return print_new(f, &f->args->span, e);
}

/*
 * First those of the filter, then what comes, until SIGINT, SIGTERM, or until nobody reads standard output any more
 * (ERROR_CANCELLED). The question is open, and stays with the caller. What becomes of the file meanwhile (set aside,
 * replaced, gone, thinned) is said on standard error, and what stands in its place is gone on with.
 */
static bool history_follow(struct history_args *q, const struct history_filter *filter, const char *form,
			   struct error *e)
{
	CLEANUP(arena_release) struct arena paths = { 0 };
	struct following f = { .args = q, .filter = *filter, .format = table_format_of(form), .printed = -1 };
	bool ok = true;

	f.path = arena_strdup(&paths, history_path(q->history), strlen(history_path(q->history)));
	f.seen = file_state_of(f.path);
	catch_signals(&f);
	if (q->span.last_tick >= q->span.first_tick) {
		f.printed = q->span.last_tick;
		f.printed_to = q->span.to;
		ok = print_rows(&f, e);
	}
	while (ok && !is_interrupted) {
		if (!wait_a_moment(&f))
			return error_set(e, ERROR_CANCELLED, "nobody reads");
		ok = is_interrupted || follow_once(&f, e);
	}
	return ok;
}

static void add_hour(struct table *t, const struct history_args *q, const struct history_hour *h, bool is_unpriced,
		     bool for_programs)
{
	CLEANUP(buf_release) struct buf time = { 0 };
	size_t count;
	const struct history_pool *pools = history_pools(q->history, &count);
	millis at = h->hour * HOUR;

	history_args_print_time(q, at, for_programs, &time);
	table_text(t, time.text);
	table_text(t, pools[h->pool].name);
	table_count(t, h->ticks);
	table_count(t, h->arrived);
	table_count(t, h->started);
	table_count(t, h->late);
	table_decimal(t, (double)h->replica_ms / HOUR, 2);
	is_unpriced ? table_absent(t) : table_decimal(t, (double)h->micro_dollars / 1e6, 2);
	table_count(t, h->asked);
}

/* Prints a row per hour and pool. */
static bool history_hours_print(struct history_args *q, const char *output, struct error *e)
{
	static const struct table_column hour_columns[] = {
		{ .name = "hour" },
		{ .name = "pool" },
		{ .name = "ticks", .is_right = true },
		{ .name = "arrived", .is_right = true },
		{ .name = "started", .is_right = true },
		{ .name = "late", .is_right = true },
		{ .name = "replica_hours", .title = "REPLICA H", .is_right = true },
		{ .name = "dollars", .is_right = true },
		{ .name = "changes", .is_right = true },
	};
	enum table_format format = table_format_of(output);
	struct history_hour *hours;
	size_t count;

	if (!history_hours(q->history, q->pool_index, &q->arena, &hours, &count, e))
		return false;
	struct table *t = table_new(hour_columns, sizeof hour_columns / sizeof *hour_columns);
	const bool *is_unpriced = history_args_unpriced(q);
	for (size_t i = 0; i < count; i++)
		add_hour(t, q, &hours[i], is_unpriced[hours[i].pool], table_is_for_programs(format));
	table_print(t, format, stdout);
	table_free(t);
	if (!count)
		fprintf(stderr, "No sums: nothing was dropped from %s yet (--retain does that).\n",
			history_path(q->history));
	return true;
}

static bool answers_yes(void)
{
	char answer[16] = "";

	return fgets(answer, sizeof answer, stdin) && (!strcasecmp(answer, "y\n") || !strcasecmp(answer, "yes\n"));
}

/* What goes is gone: a person is asked, anything else must have said so. *agreed: whether to go on. */
static bool may_drop(struct history_args *q, int64_t first_left, bool *agreed, struct error *e)
{
	CLEANUP(buf_release) struct buf text = { 0 };
	int64_t ticks = q->span.last_tick - q->span.first_tick + 1;
	millis until;

	if (!history_tick_end(q->history, first_left - 1, &until, e))
		return false;
	buf_printf(&text, "%s of %s ticks would be dropped for good, ",
		   human_count(first_left - q->span.first_tick).text, human_count(ticks).text);
	history_args_print_time(q, q->span.from, false, &text);
	buf_text(&text, " to ");
	history_args_print_time(q, until, false, &text);
	buf_text(&text, ", with their decisions, provider calls and drains; sums per hour would stay");
	if (!isatty(STDIN_FILENO))
		return error_set(e, ERROR_INVALID,
				 "%s: %s; found no terminal to ask on; do: add --yes to drop them, or copy them first "
				 "('history copy')",
				 history_path(q->history), text.text);
	fprintf(stderr, "%s: %s.\nDrop them? [y/N] ", history_path(q->history), text.text);
	*agreed = answers_yes();
	return true;
}

/* Drops ticks that ended longer before the end than `keep`, and says how many. */
static bool history_hours_retain(struct history_args *q, millis keep, bool is_agreed, struct error *e)
{
	int64_t dropped, first_left;

	if (!history_retain_from(q->history, q->span.to - keep, &first_left, e))
		return false;
	if (!is_agreed && first_left > q->span.first_tick && !may_drop(q, first_left, &is_agreed, e))
		return false;
	if (!is_agreed && first_left > q->span.first_tick) {
		puts("nothing was dropped");
		return true;
	}
	struct history *h = history_edit(history_path(q->history), e);
	if (!h)
		return false;
	if (!history_retain(h, q->span.to - keep, &dropped, e)) {
		history_close(h);
		return false;
	}
	printf("%lld ticks dropped, %lld left; sums per hour stay (--hours)\n", (long long)dropped,
	       (long long)(q->span.last_tick - q->span.first_tick + 1 - dropped));
	return history_finish(h, e);
}

static const struct table_column launch_columns[] = {
	{ .name = "time" },
	{ .name = "tick", .is_right = true, .is_wide = true },
	{ .name = "group" },
	{ .name = "verb" },
	{ .name = "target", .is_right = true },
	{ .name = "machines", .is_wide = true },
	{ .name = "outcome" },
	{ .name = "took_ms", .title = "TOOK", .is_right = true, .is_wide = true },
	{ .name = "term", .is_right = true, .is_wide = true },
	{ .name = "token", .is_wide = true },
	{ .name = "operation", .is_wide = true },
};

static const struct table_column move_columns[] = {
	{ .name = "time" },
	{ .name = "pool" },
	{ .name = "move" },
	{ .name = "node", .is_wide = true },
	{ .name = "outcome" },
	{ .name = "took_ms", .title = "TOOK", .is_right = true },
	{ .name = "why" },
	{ .name = "share", .is_wide = true },
	{ .name = "pod", .is_wide = true },
	{ .name = "tick", .is_right = true, .is_wide = true },
	{ .name = "term", .is_right = true, .is_wide = true },
};

static const struct table_column drain_columns[] = {
	{ .name = "time" },
	{ .name = "tick", .is_right = true, .is_wide = true },
	{ .name = "pool" },
	{ .name = "group", .is_wide = true },
	{ .name = "node" },
	{ .name = "fate", .is_wide = true },
	{ .name = "outcome" },
	{ .name = "took_ms", .title = "TOOK", .is_right = true },
	{ .name = "unmarked", .is_wide = true },
	{ .name = "released", .is_wide = true },
	{ .name = "machine", .is_wide = true },
	{ .name = "term", .is_right = true, .is_wide = true },
	{ .name = "why", .is_wide = true },
};

static void add_moment(struct table *t, const struct history_args *q, millis at, bool for_programs)
{
	CLEANUP(buf_release) struct buf time = { 0 };

	if (!at) {
		table_absent(t);
		return;
	}
	history_args_print_time(q, at, for_programs, &time);
	table_text(t, time.text);
}

static void add_took(struct table *t, bool is_known, millis took)
{
	CLEANUP(buf_release) struct buf text = { 0 }, raw = { 0 };

	if (!is_known) {
		table_absent(t);
		return;
	}
	duration_format(took, &text);
	buf_printf(&raw, "%lld", (long long)took);
	table_value(t, text.text, raw.text);
}

static void add_move(struct table *t, const struct history_args *q, const struct engine_move_record *m,
		     bool for_programs)
{
	add_moment(t, q, m->asked_at, for_programs);
	table_text(t, m->pool);
	table_text(t, m->is_wake ? "wake" : "sleep");
	table_text(t, m->slot);
	table_text(t, m->outcome ? m->outcome : "open");
	add_took(t, m->outcome != NULL, m->took);
	table_text(t, m->why);
	table_text(t, m->share);
	table_text(t, m->pod);
	table_count(t, m->tick);
	table_count(t, m->term);
	if (!m->ended_at)
		table_style(t, STYLE_WARN);
}

static void add_drain(struct table *t, const struct history_args *q, const struct drain_record *d, bool for_programs)
{
	add_moment(t, q, d->asked_at, for_programs);
	table_count(t, d->tick);
	table_text(t, d->pool);
	table_text(t, d->group);
	table_text(t, d->node);
	table_text(t, d->fate);
	table_text(t, d->outcome ? d->outcome : "open");
	add_took(t, d->outcome != NULL, d->ended_at - d->asked_at);
	add_moment(t, q, d->unmarked_at, for_programs);
	add_moment(t, q, d->released_at, for_programs);
	table_text(t, d->machine);
	table_count(t, d->term);
	table_text(t, d->why);
	if (!d->unmarked_at)
		table_style(t, STYLE_WARN);
}

const char *history_launches_verb(int64_t verb)
{
	return verb >= 0 && verb < PROVIDER_VERB_COUNT ? provider_verb_name((enum provider_verb)verb) : "?";
}

/* Only sizes are targets; what is removed or stopped is named. */
static void add_target(struct table *t, const struct launch *l)
{
	CLEANUP(buf_release) struct buf ids = { 0 };

	if (l->machine_count)
		table_absent(t);
	else
		table_count(t, l->target);
	buf_text(&ids, "");
	for (size_t i = 0; i < l->machine_count; i++)
		buf_printf(&ids, i ? " %s" : "%s", l->machines[i]);
	table_text(t, ids.text);
}

static void add_outcome(struct table *t, const struct launch *l)
{
	CLEANUP(buf_release) struct buf took = { 0 }, raw = { 0 };

	table_text(t, l->outcome ? l->outcome : "open");
	if (!l->outcome) {
		table_absent(t);
		return;
	}
	duration_format(l->ended_at - l->asked_at, &took);
	buf_printf(&raw, "%lld", (long long)(l->ended_at - l->asked_at));
	table_value(t, took.text, raw.text);
}

static void add_launch(struct table *t, const struct history_args *q, const struct launch *l, bool for_programs)
{
	CLEANUP(buf_release) struct buf time = { 0 };

	history_args_print_time(q, l->asked_at, for_programs, &time);
	table_text(t, time.text);
	table_count(t, l->tick);
	table_text(t, l->group);
	table_text(t, history_launches_verb(l->verb));
	add_target(t, l);
	add_outcome(t, l);
	table_count(t, l->term);
	table_text(t, l->token);
	table_text(t, l->operation);
	if (!l->outcome)
		table_style(t, STYLE_WARN);
}

/* Prints a row per call that the filter lets through, the newest last. */
static bool history_launches_print(struct history_args *q, const struct launch_filter *f, const char *output,
				   struct error *e)
{
	enum table_format format = table_format_of(output);
	struct launch *launches;
	size_t count;

	if (!launch_find(q->history, f, &q->arena, &launches, &count, e))
		return false;
	struct table *t = table_new(launch_columns, sizeof launch_columns / sizeof *launch_columns);
	for (size_t i = 0; i < count; i++)
		add_launch(t, q, &launches[i], table_is_for_programs(format));
	table_print(t, format, stdout);
	table_free(t);
	if (!count)
		fprintf(stderr, "Nothing was asked of a provider in that time; a simulation has none.\n");
	return true;
}

/* Brings a history to another place: a file, or a schema of PostgreSQL's that many clusters share. */

static const struct command history_command_copy;

struct copying {
	const char *from, *to;
	bool follows, sets_aside;
	millis every;
	struct progress progress;
	int64_t first, last; /* ticks that came, of this round */
	bool is_fleet_renewed;
};

static void show_copied(void *user, int64_t tick)
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
	bool ok = replica_copy(from, to, show_copied, c, e);
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

/* The folder must be there, and the target no folder itself. */
static bool check_target(const char *path, struct error *e)
{
	const char *slash = strrchr(path, '/');
	CLEANUP(buf_release) struct buf folder = { 0 };
	struct stat st;

	if (db_is_address(path))
		return true;
	if (!*path || (slash && !slash[1]) || (!stat(path, &st) && S_ISDIR(st.st_mode)))
		return error_set(e, ERROR_INVALID,
				 "--target: found '%.200s', which names a folder; do: name a file in it, as in "
				 "history.db",
				 path);
	if (!slash || slash == path)
		return true;
	buf_append(&folder, path, (size_t)(slash - path));
	if (!stat(folder.text, &st) && S_ISDIR(st.st_mode))
		return true;
	return error_set(
		e, ERROR_NOT_FOUND,
		"--target: found '%.200s', but there is no folder %.200s; do: make it, or name a file elsewhere", path,
		folder.text);
}

static bool check(const struct copying *c, int left, const char *argument, struct error *e)
{
	if (left)
		return error_set(e, ERROR_INVALID, "found '%.60s'; allowed: options only: --db FROM --target TO",
				 argument);
	if (!c->to)
		return error_set(e, ERROR_INVALID,
				 "--target is missing: a file, or postgresql://USER@HOST/DATABASE#CLUSTER");
	if (!strcmp(c->from, c->to))
		return error_set(e, ERROR_INVALID, "--db and --target name the same history");
	return check_target(c->to, e);
}

static int run_copy(int argc, char **argv)
{
	struct copying c = { .from = "history.db", .every = 15 * SECOND };
	const struct option_row rows[] = {
		{ "db", 0, OPTION_TEXT, "FILE", "the history to copy (default: history.db); also one in PostgreSQL",
		  &c.from, NULL },
		{ "target", 0, OPTION_TEXT, "WHERE",
		  "a file, or postgresql://USER@HOST/DATABASE#CLUSTER; continued if it exists", &c.to, NULL },
		{ "follow", 0, OPTION_FLAG, NULL, "keep copying until interrupted", &c.follows, NULL },
		{ "every", 0, OPTION_PERIOD, "DURATION", "with --follow: how often (default: 15s)", &c.every, NULL },
		{ "set-aside", 0, OPTION_FLAG, NULL,
		  "if the target holds another history: rename that and start a new copy", &c.sets_aside, NULL },
	};
	struct error e;
	int rest, code;

	if (!command_options(&history_command_copy, argc, argv, rows, sizeof rows / sizeof *rows, &rest, &code))
		return code;
	if (!check(&c, argc - rest, argv[rest], &e) || !(c.follows ? follow(&c, &e) : copy(&c, &e)))
		return command_failed(&history_command_copy, &e);
	return EXIT_DONE;
}

static const struct option_rule copy_rules[] = {
	{ "every", OPTION_NEEDS, "follow" },
	{ 0 },
};

static const struct command history_command_copy = {
	.name = "history copy",
	.usage = "history copy [--db FILE] --target FILE|postgresql://USER@HOST/DATABASE#CLUSTER [--follow]",
	.summary = "Copy a history once or continuously: to a file, or to PostgreSQL beside other clusters",
	.examples = "  preheat history copy --target 'postgresql://preheat@db.internal/fleet#prod-eu' --follow\n"
		    "  preheat explain --db 'postgresql://db.internal/fleet#prod-eu' --pool chat --largest\n"
		    "  preheat history copy --db 'postgresql://db.internal/fleet#prod-eu' --target prod-eu.db\n",
	.rules = copy_rules,
	.run = run_copy,
};

extern const struct command history_command_export;

static const struct command *const verbs[] = { &history_command_copy, &history_command_export, NULL };

struct asked {
	struct history_args args;
	const char *from, *to, *group, *limit, *output;
	bool is_all, is_hours, is_launches, is_drains, is_moves, follows, is_agreed;
	int64_t most;
	millis retain; /* 0: keep all */
};

static bool find_limit(const char *name, int64_t *limit, struct error *e)
{
	CLEANUP(buf_release) struct buf known = { .cap = 256 };

	for (int i = 0; i < LIMIT_COUNT; i++) {
		if (!strcmp(name, limit_name((enum limit)i))) {
			*limit = i;
			return true;
		}
		buf_printf(&known, "%s%s", i ? ", " : "", limit_name((enum limit)i));
	}
	return error_set(e, ERROR_INVALID, "--limit: found '%.40s'; allowed: %s", name, known.text);
}

static bool check_group(const struct asked *a, struct error *e)
{
	CLEANUP(buf_release) struct buf known = { .cap = 256 };
	size_t count;
	const struct history_pool *pools = history_pools(a->args.history, &count);

	for (size_t p = 0; p < count; p++)
		for (size_t g = 0; g < pools[p].group_count; g++) {
			if (!strcmp(pools[p].groups[g], a->group))
				return true;
			buf_printf(&known, "%s%s", known.len ? ", " : "", pools[p].groups[g]);
		}
	return error_set(e, ERROR_NOT_FOUND, "--group: no node group '%.60s' in %s; there is: %s", a->group,
			 history_path(a->args.history), known.text ? known.text : "none");
}

/* Whoever asks for a group or a limit wants every tick in which it held. */
static bool is_folded(const struct asked *a)
{
	return !a->is_all && !a->group && !a->limit;
}

static bool fill_filter(const struct asked *a, struct history_filter *f, struct error *e)
{
	const struct history_args *q = &a->args;

	*f = (struct history_filter){
		.pool = q->pool_index, .group = a->group, .limit = ANY, .changed_only = is_folded(a), .most = a->most
	};
	if (a->limit && !find_limit(a->limit, &f->limit, e))
		return false;
	if (a->group && !check_group(a, e))
		return false;
	return history_args_ticks(q, a->from, a->to, &f->from, &f->to, e);
}

static bool print_drains(struct asked *a, struct error *e)
{
	enum table_format format = table_format_of(a->output);
	struct drain_filter f = { INT64_MIN, INT64_MAX, a->group, a->most };
	struct history_args *q = &a->args;
	struct drain_record *drains;
	size_t count;

	if ((a->group && !check_group(a, e)) || (a->from && !history_args_time(q, "from", a->from, &f.from, e)) ||
	    (a->to && !history_args_time(q, "to", a->to, &f.to, e)) ||
	    !drain_record_find(q->history, &f, &q->arena, &drains, &count, e))
		return false;
	struct table *t = table_new(drain_columns, sizeof drain_columns / sizeof *drain_columns);
	for (size_t i = 0; i < count; i++)
		add_drain(t, q, &drains[i], table_is_for_programs(format));
	table_print(t, format, stdout);
	table_free(t);
	if (!count)
		fprintf(stderr, "No node was drained in that time; a simulation drains none.\n");
	return true;
}

/* When the share of a pool, or any, went over to another rule. */
static void add_choice(struct table *t, const struct history_args *q, const struct share_choice_record *r,
		       bool for_programs)
{
	add_moment(t, q, r->since, for_programs);
	table_text(t, "");
	table_text(t, "rule");
	table_text(t, "");
	table_text(t, "done");
	add_took(t, false, 0);
	table_text(t, r->why);
	table_text(t, r->share);
	table_text(t, "");
	table_text(t, "");
	table_text(t, "");
}

/* In the order of their time; of a share's choices those that changed its rule. */
static void add_moves(struct table *t, const struct asked *a, const struct engine_move_record *moves, size_t count,
		      const struct share_choices *choices)
{
	bool for_programs = table_is_for_programs(table_format_of(a->output));
	size_t next = 0;

	for (size_t i = 0; i <= count; i++) {
		for (; next < choices->count && (i == count || choices->items[next].since <= moves[i].asked_at); next++)
			if (*choices->items[next].why)
				add_choice(t, &a->args, &choices->items[next], for_programs);
		if (i < count)
			add_move(t, &a->args, &moves[i], for_programs);
	}
}

/* NAMESPACE/NAME of the share in which the pool moved last, or that it is in by the manifest in force at the end; NULL:
 * none. */
static const char *share_asked(struct asked *a, const struct engine_move_record *moves, size_t count)
{
	struct history_args *q = &a->args;
	struct history_stretch stretch;
	struct manifest m;

	if (count)
		return moves[count - 1].share;
	if (!history_args_last_manifest(q, &stretch, &m))
		return NULL;
	for (size_t i = 0; i < stretch.pool_count && i < m.fleet.pool_count; i++) {
		const struct pool_spec *p = &m.fleet.pools[i];
		CLEANUP(buf_release) struct buf share = { 0 };
		if ((int64_t)stretch.pools[i] != q->pool_index || !pool_is_in_share(p))
			continue;
		buf_printf(&share, "%s/%s", p->namespace, p->share);
		return arena_strdup(&q->arena, share.text, share.len);
	}
	return NULL;
}

/* Of all shares where no pool is asked for. */
static bool find_choices(struct asked *a, const struct engine_move_filter *f, const struct engine_move_record *moves,
			 size_t count, struct share_choices *found, struct error *e)
{
	const struct share_choice_filter filter = { f->from, f->to, f->pool ? share_asked(a, moves, count) : NULL,
						    f->most };

	*found = (struct share_choices){ 0 };
	return (f->pool && !filter.share) || share_choice_find(a->args.history, &filter, &a->args.arena, found, e);
}

static bool print_moves(struct asked *a, struct error *e)
{
	enum table_format format = table_format_of(a->output);
	struct history_args *q = &a->args;
	struct engine_move_filter f = { .from = INT64_MIN, .to = INT64_MAX, .most = a->most };
	CLEANUP(buf_release) struct buf pool = { 0 };
	struct engine_move_record *moves;
	struct share_choices choices;
	size_t count, pools;

	if (q->pool) {
		const struct history_pool *p = &history_pools(q->history, &pools)[q->pool_index];
		buf_printf(&pool, "%s/%s", p->namespace, p->name);
		f.pool = pool.text;
	}
	if ((a->from && !history_args_time(q, "from", a->from, &f.from, e)) ||
	    (a->to && !history_args_time(q, "to", a->to, &f.to, e)) ||
	    !engine_move_find(q->history, &f, &q->arena, &moves, &count, e) ||
	    !find_choices(a, &f, moves, count, &choices, e))
		return false;
	struct table *t = table_new(move_columns, sizeof move_columns / sizeof *move_columns);
	add_moves(t, a, moves, count, &choices);
	table_print(t, format, stdout);
	if (!table_rows(t))
		fprintf(stderr,
			"No engine was put to sleep or woken in that time; only pools with spec.share have that.\n");
	table_free(t);
	return true;
}

static bool print_history(struct asked *a, struct error *e)
{
	enum table_format format = table_format_of(a->output);
	struct history_filter filter;
	int64_t folded;

	if (a->args.may_be_empty && a->args.span.last_tick < a->args.span.first_tick)
		filter = (struct history_filter){ .pool = a->args.pool_index,
						  .limit = ANY,
						  .changed_only = is_folded(a) };
	else if (!fill_filter(a, &filter, e))
		return false;
	if (a->follows)
		return history_follow(&a->args, &filter, a->output, e);
	struct table *t = history_rows(&a->args, &filter, table_is_for_programs(format), &folded, e);
	if (!t)
		return false;
	if (table_rows(t) || !folded || table_is_for_programs(format))
		table_print(t, format, stdout);
	if (folded > 0 && !table_is_for_programs(format))
		printf("%s%s tick%s without a change; --all shows %s.\n", table_rows(t) ? "\n" : "",
		       human_count(folded).text, folded == 1 ? "" : "s", folded == 1 ? "it" : "them");
	else if (!table_rows(t))
		fprintf(stderr, "No decision matches; %s has ticks %lld to %lld.\n", history_path(a->args.history),
			(long long)a->args.span.first_tick, (long long)a->args.span.last_tick);
	table_free(t);
	return true;
}

static bool check_questions(const struct asked *a, struct error *e)
{
	bool filters = a->args.pool || a->from || a->to || a->group || a->limit || a->is_all;

	if (a->is_launches && (a->args.pool || a->limit || a->is_all || a->is_hours || a->retain))
		return error_set(
			e, ERROR_INVALID,
			"--launches prints calls to providers, which are about node groups; beside it: --from, "
			"--to, --group, --number");
	if (a->is_drains && (a->args.pool || a->limit || a->is_all || a->is_hours || a->is_launches || a->retain))
		return error_set(e, ERROR_INVALID,
				 "--drains prints nodes that were drained; beside it: --from, --to, --group, --number");
	if (a->is_moves &&
	    (a->group || a->limit || a->is_all || a->is_hours || a->is_launches || a->is_drains || a->retain))
		return error_set(
			e, ERROR_INVALID,
			"--moves prints engines that slept or woke; beside it: --pool, --from, --to, --number");
	if (a->follows && (a->to || a->is_hours || a->is_launches || a->is_drains || a->is_moves || a->retain))
		return error_set(
			e, ERROR_INVALID,
			"--follow prints decisions as they come; give it without --to, --hours, --launches, --drains, "
			"--moves and --retain");
	if (a->retain && (filters || a->is_hours))
		return error_set(e, ERROR_INVALID,
				 "--retain drops ticks of all pools and prints no decisions; give it alone, with --db");
	return true;
}

static bool print_launches(struct asked *a, struct error *e)
{
	struct launch_filter f = { INT64_MIN, INT64_MAX, a->group, a->most };
	struct history_args *q = &a->args;

	if ((a->group && !check_group(a, e)) || (a->from && !history_args_time(q, "from", a->from, &f.from, e)) ||
	    (a->to && !history_args_time(q, "to", a->to, &f.to, e)))
		return false;
	return history_launches_print(q, &f, a->output, e);
}

static bool answer(struct asked *a, struct error *e)
{
	if (!check_questions(a, e))
		return false;
	a->args.may_be_empty = a->follows;
	if (!history_args_open(&a->args, e))
		return false;
	if (a->retain)
		return history_hours_retain(&a->args, a->retain, a->is_agreed, e);
	if (a->is_launches)
		return print_launches(a, e);
	if (a->is_drains)
		return print_drains(a, e);
	if (a->is_moves)
		return print_moves(a, e);
	return a->is_hours ? history_hours_print(&a->args, a->output, e) : print_history(a, e);
}

static int show(int argc, char **argv)
{
	struct asked a = { .args = HISTORY_ARGS_DEFAULTS, .output = "table", .most = 50 };
	const struct option_row rows[] = {
		HISTORY_ARGS_OPTIONS(&a.args),
		{ "from", 0, OPTION_TEXT, "TIME", "decisions from this time on; -2h counts from the end", &a.from,
		  NULL },
		{ "to", 0, OPTION_TEXT, "TIME", "decisions up to this time", &a.to, NULL },
		{ "group", 'g', OPTION_TEXT, "GROUP", "only decisions that changed or limited this node group",
		  &a.group, NULL },
		{ "limit", 0, OPTION_TEXT, "LIMIT", "only decisions with this limit: budget, max, stock-out, ...",
		  &a.limit, NULL },
		{ "all", 'a', OPTION_FLAG, NULL, "every tick, also without a change; so do --group and --limit",
		  &a.is_all, NULL },
		{ "number", 0, OPTION_POSITIVE, "N", "at most this many, the newest (default: 50)", &a.most, NULL },
		{ "follow", 0, OPTION_FLAG, NULL, "keep printing new decisions until interrupted", &a.follows, NULL },
		{ "hours", 0, OPTION_FLAG, NULL, "instead: sums per hour of ticks that were dropped", &a.is_hours,
		  NULL },
		{ "launches", 0, OPTION_FLAG, NULL,
		  "instead: provider calls and their outcome; with --from, --to, --group, --number", &a.is_launches,
		  NULL },
		{ "drains", 0, OPTION_FLAG, NULL,
		  "instead: drained nodes and the outcome; with --from, --to, --group, --number", &a.is_drains, NULL },
		{ "moves", 0, OPTION_FLAG, NULL,
		  "instead: sleeps and wakes of engines in a share, and its rules; with --pool, --from, --to, --number",
		  &a.is_moves, NULL },
		{ "retain", 0, OPTION_PERIOD, "AGE",
		  "instead: drop ticks older than this, keep hourly sums; asks first", &a.retain, NULL },
		{ "yes", 'y', OPTION_FLAG, NULL, "with --retain: drop them without asking", &a.is_agreed, NULL },
		PRINT_OPTION(&a.output),
	};
	struct error e;
	int rest, code;

	if (!command_options(&command_history, argc, argv, rows, sizeof rows / sizeof *rows, &rest, &code))
		return code;
	bool ok = rest < argc
			  ? error_set(&e, ERROR_INVALID,
				      "found '%.60s'; allowed: copy, export, or options only; a history is named by "
				      "--db FILE",
				      argv[rest])
			  : answer(&a, &e);
	return history_args_finish(&a.args, &command_history, ok, &e);
}

static int run(int argc, char **argv)
{
	const struct command *below = argc > 1 ? command_find(&command_history, argv[1]) : NULL;

	return below ? below->run(argc - 1, argv + 1) : show(argc, argv);
}

static const struct option_rule rules[] = {
	{ "yes", OPTION_NEEDS, "retain" },	 { "number", OPTION_EXCLUDES, "retain" },
	{ "output", OPTION_EXCLUDES, "retain" }, { "from", OPTION_EXCLUDES, "hours" },
	{ "to", OPTION_EXCLUDES, "hours" },	 { "group", OPTION_EXCLUDES, "hours" },
	{ "limit", OPTION_EXCLUDES, "hours" },	 { "all", OPTION_EXCLUDES, "hours" },
	{ "number", OPTION_EXCLUDES, "hours" },	 { 0 },
};

const struct command command_history = {
	.name = "history",
	.usage = "history [--db FILE] [--pool POOL] [--from TIME] [--to TIME]",
	.summary = "Decisions that changed something, newest last, by pool, time, group or limit",
	.examples = "  preheat history --db out/history.db --number 20\n"
		    "  preheat history --from -1h --pool chat --all -o wide\n"
		    "  preheat history --limit stock-out -o csv\n"
		    "  preheat history --follow\n",
	.notes = "Without --all only decisions that asked for something: starts, wakes, releases. Below a table stands "
		 "how "
		 "many\n"
		 "ticks between them had no change; csv, json and yaml have the same rows and no such count.\n",
	.verbs = verbs,
	.rules = rules,
	.run = run,
};
