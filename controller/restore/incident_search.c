#include "controller/restore/incident_search.h"

#include "base/alloc.h"
#include "controller/restore/restore.h"
#include "state/level.h"

#include <stdlib.h>
#include <string.h>

struct stretch {
	millis from, to; /* ticks that end after the one and not after the other */
};

struct search {
	struct history *h;
	const struct incident_question *q;
	struct arena *arena;
	size_t pools;
	struct incident_fold *folds; /* one per pool of the history */
	struct incident_found *found;
	size_t count, room;
	struct stretch *late;
	size_t late_count, late_room;
};

static void keep(struct search *s, size_t pool, const struct incident *i)
{
	if (s->count == s->room) {
		s->room = s->room ? 2 * s->room : 64;
		s->found = xrealloc(s->found, s->room, sizeof *s->found);
	}
	s->found[s->count++] = (struct incident_found){ pool, *i };
}

static bool is_asked(const struct search *s, size_t pool)
{
	return s->q->pool == ANY || (size_t)s->q->pool == pool;
}

static void take(void *user, const struct cursor_tick *t)
{
	struct search *s = user;
	struct incident ended;

	for (size_t i = 0; i < t->snapshot.fleet->pool_count; i++)
		if (t->damage[i].kind == ERROR_NONE && is_asked(s, t->pools[i]) &&
		    incident_add_tick(&s->folds[t->pools[i]], &t->snapshot, i, t->plans[i], &ended))
			keep(s, t->pools[i], &ended);
	if (s->q->progress)
		s->q->progress(s->q->user, t->snapshot.tick);
}

static void add_late(struct search *s, millis from, millis to)
{
	if (s->late_count == s->late_room) {
		s->late_room = s->late_room ? 2 * s->late_room : 64;
		s->late = xrealloc(s->late, s->late_room, sizeof *s->late);
	}
	s->late[s->late_count++] = (struct stretch){ from, to };
}

/* What no row tells of is read whole: rows of five minutes are younger than some ticks. */
static bool find_late(struct search *s, size_t pool, struct stretch all, struct error *e)
{
	const struct level_question q = { pool, LEVEL_FIVE_MINUTES, all.from, all.to };
	const millis width = level_millis(LEVEL_FIVE_MINUTES);
	struct level_row *rows;
	millis known_from;
	size_t count;

	if (!level_first(s->h, pool, LEVEL_FIVE_MINUTES, &known_from, e) ||
	    !level_read(s->h, &q, s->arena, &rows, &count, e))
		return false;
	if (known_from == ABSENT || known_from > all.from)
		add_late(s, all.from, known_from == ABSENT || known_from > all.to ? all.to : known_from);
	for (size_t i = 0; i < count; i++)
		if (rows[i].sums.late > 0)
			add_late(s, rows[i].from, rows[i].from + width);
	return true;
}

static int by_begin_of_stretch(const void *a, const void *b)
{
	const struct stretch *x = a, *y = b;

	return (x->from > y->from) - (x->from < y->from);
}

static int by_begin(const void *a, const void *b)
{
	const struct incident_found *x = a, *y = b;

	if (x->what.from != y->what.from)
		return x->what.from > y->what.from ? 1 : -1;
	return (x->pool > y->pool) - (x->pool < y->pool);
}

/* Rows of all pools that touch are read in one go. */
static bool walk_late(struct search *s, struct error *e)
{
	int64_t next = s->q->first;

	if (s->late_count)
		qsort(s->late, s->late_count, sizeof *s->late, by_begin_of_stretch);
	for (size_t i = 0; i < s->late_count;) {
		struct stretch all = s->late[i++];
		int64_t first, last;

		while (i < s->late_count && s->late[i].from <= all.to) {
			all.to = s->late[i].to > all.to ? s->late[i].to : all.to;
			i++;
		}
		if (!history_tick_at(s->h, all.from, &first, e) || !history_tick_at(s->h, all.to, &last, e))
			return false;
		first = first > next ? first : next;
		last = last < s->q->last ? last : s->q->last;
		if (first <= last && !tick_walk(s->h, &(struct tick_walk){ first, last, take, s }, e))
			return false;
		next = last >= first ? last + 1 : next;
	}
	return true;
}

static bool search(struct search *s, struct error *e)
{
	struct stretch all;
	struct incident ended;

	if (!history_tick_end(s->h, s->q->first, &all.from, e) || !history_tick_end(s->h, s->q->last, &all.to, e))
		return false;
	all.from--;
	for (size_t i = 0; i < s->pools; i++)
		if (is_asked(s, i) && !find_late(s, i, all, e))
			return false;
	if (!walk_late(s, e))
		return false;
	for (size_t i = 0; i < s->pools; i++)
		if (incident_end(&s->folds[i], &ended))
			keep(s, i, &ended);
	if (s->count)
		qsort(s->found, s->count, sizeof *s->found, by_begin);
	return true;
}

bool incident_search(struct history *h, const struct incident_question *q, struct arena *a,
		     struct incident_found **found, size_t *count, struct error *e)
{
	struct search s = { .h = h, .q = q, .arena = a };

	history_pools(h, &s.pools);
	s.folds = xcalloc(s.pools + 1, sizeof *s.folds);
	bool ok = search(&s, e);
	if (ok) {
		*found = arena_array(a, struct incident_found, s.count + 1);
		if (s.count)
			memcpy(*found, s.found, s.count * sizeof *s.found);
		*count = s.count;
	}
	free(s.folds);
	free(s.found);
	free(s.late);
	return ok;
}
