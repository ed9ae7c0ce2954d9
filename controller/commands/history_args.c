#include "controller/commands/history_args.h"

#include "base/quantity.h"
#include "base/schedule.h"
#include "base/terminal.h"
#include "controller/explain/explain.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

static const char *file_of(struct history_args *q)
{
	CLEANUP(buf_release) struct buf path = { 0 };
	struct stat st;

	if (stat(q->db, &st) || !S_ISDIR(st.st_mode))
		return q->db;
	buf_printf(&path, "%s/history.db", q->db);
	return arena_strdup(&q->arena, path.text, path.len);
}

/* Once: a history that is followed is opened again and again. */
static void tell_of_zone(const struct history_args *q)
{
	static bool is_told;
	const char *mistaken = q->is_utc || is_told ? NULL : zone_mistaken();

	is_told = true;
	if (mistaken)
		fprintf(stderr, "Note: TZ is '%.60s', which this machine does not know; times are in UTC.\n", mistaken);
}

bool history_args_open(struct history_args *q, struct error *e)
{
	size_t pool;

	tell_of_zone(q);
	q->pool_index = ANY;
	q->history = q->needs_no_records ? history_open_sums(file_of(q), e) : history_open(file_of(q), e);
	if (!q->history && e->kind == ERROR_NOT_FOUND) {
		const struct error why = *e;
		return error_set(e, why.kind, "%s (--db FILE)", why.message);
	}
	if (!q->history || !history_span(q->history, &q->span, e))
		return false;
	if (q->span.last_tick < q->span.first_tick && !q->may_be_empty)
		return error_set(e, ERROR_NOT_FOUND, "%s: no decisions in it yet", history_path(q->history));
	if (!q->pool)
		return true;
	if (!history_find_pool(q->history, q->pool, &pool, e))
		return false;
	q->pool_index = (int64_t)pool;
	return true;
}

void history_args_close(struct history_args *q)
{
	history_close(q->history);
	arena_release(&q->arena);
}

millis history_args_offset(const struct history_args *q, millis at)
{
	return q->is_utc ? 0 : zone_offset(at);
}

/* As it is printed: on the clock of --utc or of this machine. */
static bool local_time(const struct history_args *q, const char *text, millis *at)
{
	CLEANUP(buf_release) struct buf zoned = { 0 };

	const char *minutes = strchr(text, ':');

	buf_printf(&zoned, "%s%sZ", text, !minutes ? "T00:00:00" : strchr(minutes + 1, ':') ? "" : ":00");
	if (!options_time(zoned.text, q->span.to, at))
		return false;
	*at -= history_args_offset(q, *at);
	return true;
}

/* One or two digits up to `most`, and moves behind them. */
static bool digits(const char **text, int most, int *out)
{
	size_t len = strspn(*text, "0123456789");

	*out = 0;
	for (size_t i = 0; i < len && i < 3; i++)
		*out = *out * 10 + ((*text)[i] - '0');
	*text += len;
	return len >= 1 && len <= 2 && *out <= most;
}

/* "3:12", the last before the end of the history; "today 3:12" and "yesterday 3:12" of the day in which it ends. */
static bool time_of_day(const struct history_args *q, const char *text, millis *at)
{
	millis end = q->span.to + history_args_offset(q, q->span.to), day = end - end % DAY;
	bool is_yesterday = !strncmp(text, "yesterday ", 10), is_today = !strncmp(text, "today ", 6);
	int hours, minutes, seconds = 0;

	text += is_yesterday ? 10 : is_today ? 6 : 0;
	if (!digits(&text, 23, &hours) || *text++ != ':' || !digits(&text, 59, &minutes))
		return false;
	if (*text == ':' && (text++, !digits(&text, 59, &seconds)))
		return false;
	*at = day + hours * HOUR + minutes * MINUTE + seconds * SECOND;
	if (is_yesterday || (!is_today && *at > end))
		*at -= DAY;
	*at -= history_args_offset(q, *at);
	return !*text;
}

bool history_args_time(const struct history_args *q, const char *option, const char *text, millis *at, struct error *e)
{
	millis after;

	if (*text == '+' && duration_parse(text + 1, strlen(text + 1), &after)) {
		*at = q->span.from + after;
		return true;
	}
	if (options_time(text, q->span.to, at) || time_of_day(q, text, at) || local_time(q, text, at))
		return true;
	return error_set(e, ERROR_INVALID,
			 "--%s: found '%.60s'; allowed: a time such as 2024-05-10T08:00:00Z, '2024-05-10 08:00', 3:12, "
			 "'yesterday 3:12', -2h before the end of the history, +2h after its first tick",
			 option, text);
}

bool history_args_ticks(const struct history_args *q, const char *from, const char *to, int64_t *first, int64_t *last,
			struct error *e)
{
	millis after = q->span.from - 1, until = q->span.to;

	if ((from && !history_args_time(q, "from", from, &after, e)) ||
	    (to && !history_args_time(q, "to", to, &until, e)))
		return false;
	if (from && to && after > until)
		return error_set(e, ERROR_INVALID, "--from %s is later than --to %s; swap them", from, to);
	if (!history_tick_at(q->history, after, first, e) || !history_tick_at(q->history, until, last, e))
		return false;
	*first += after >= q->span.from;
	*last -= until < q->span.from;
	return true;
}

struct shown_walk {
	const struct tick_walk *walk;
	struct progress progress;
};

static void take_and_show(void *user, const struct cursor_tick *t)
{
	struct shown_walk *s = user;

	s->walk->take(s->walk->user, t);
	progress_show(&s->progress, t->snapshot.tick - s->walk->first + 1);
}

bool history_args_walk(struct history_args *q, const struct tick_walk *walk, struct error *e)
{
	struct shown_walk s = { walk, progress_start("reading", "ticks", walk->last - walk->first + 1) };
	bool ok = tick_walk(q->history, &(struct tick_walk){ walk->first, walk->last, take_and_show, &s }, e);

	progress_end(&s.progress);
	return ok;
}

void history_args_print_time(const struct history_args *q, millis at, bool for_programs, struct buf *out)
{
	if (for_programs)
		explain_time_rfc3339(at, out);
	else
		explain_time(at, history_args_offset(q, at), out);
}

bool history_args_manifest(struct history *h, int64_t tick, struct arena *a, struct manifest *m, struct error *e)
{
	CLEANUP(findings_release) struct findings findings = { 0 };
	const char *text;

	return history_manifest(h, tick, a, &text, e) && (manifest_load_text("manifest", text, a, m, &findings, e) ||
							  error_wrap(e, "%s: its manifest", history_path(h)));
}

bool history_args_last_manifest(struct history_args *q, struct history_stretch *stretch, struct manifest *m)
{
	struct error why;

	return history_stretch_at(q->history, q->span.last_tick, &q->arena, stretch, &why) &&
	       history_args_manifest(q->history, q->span.last_tick, &q->arena, m, &why);
}

const bool *history_args_unpriced(struct history_args *q)
{
	struct history_stretch stretch;
	struct manifest m;
	size_t count;

	history_pools(q->history, &count);
	bool *is_unpriced = arena_array(&q->arena, bool, count + 1);
	if (!history_args_last_manifest(q, &stretch, &m))
		return is_unpriced;
	for (size_t i = 0; i < stretch.pool_count && i < m.fleet.pool_count; i++)
		is_unpriced[stretch.pools[i]] = m.fleet.pools[i].is_unpriced;
	return is_unpriced;
}

bool history_args_are_options(const char *argument, struct error *e)
{
	return !argument ||
	       error_set(e, ERROR_INVALID, "found '%.60s'; allowed: options only, a history is named by --db FILE",
			 argument);
}

int history_args_finish(struct history_args *q, const struct command *c, bool ok, const struct error *e)
{
	int code = ok ? EXIT_DONE : command_failed(c, e);

	history_args_close(q);
	return code;
}
