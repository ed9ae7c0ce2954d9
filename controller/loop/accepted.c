#include "controller/loop/accepted.h"

#include "base/alloc.h"

#include <stdlib.h>
#include <string.h>

/* The cloud's clock and ours are never further apart, or a failure is believed later. */
static const millis CLOCKS_APART = 30 * SECOND;

struct accepted accepted_none(void)
{
	return (struct accepted){ .least = -1, .standby = -1, .most = -1, .before = -1 };
}

void accepted_release(struct accepted *a)
{
	for (size_t i = 0; i < a->count; i++)
		free(a->removals[i].id);
	free(a->removals);
	*a = accepted_none();
}

static void forget(struct accepted *a, bool (*is_over)(const struct accepted_removal *r, millis now), millis now)
{
	size_t kept = 0;

	for (size_t i = 0; i < a->count; i++)
		if (is_over(&a->removals[i], now))
			free(a->removals[i].id);
		else
			a->removals[kept++] = a->removals[i];
	a->count = kept;
}

static bool is_old(const struct accepted_removal *r, millis now)
{
	return r->until <= now;
}

/* What was stopped is woken by a growth, and back under its name. */
static bool is_old_or_stopped(const struct accepted_removal *r, millis now)
{
	return is_old(r, now) || r->verb == PROVIDER_STOP;
}

static void note_removals(struct accepted *a, const struct accepted_call *c)
{
	a->calls++;
	for (size_t i = 0; i < c->id_count; i++) {
		a->removals = xgrow(a->removals, a->count, &a->room, sizeof *a->removals);
		a->removals[a->count++] =
			(struct accepted_removal){ .id = xstrdup(c->ids[i]),
						   .verb = c->verb,
						   .call = a->calls,
						   .may_be_left = c->verb != PROVIDER_REMOVE || c->is_recalled,
						   .until = c->mono + LAG_MOST,
						   .at = c->at };
	}
	a->least -= (int64_t)c->id_count < a->least ? (int64_t)c->id_count : a->least;
	if (c->verb != PROVIDER_REMOVE || c->size <= 0)
		return;
	a->before = c->size;
	a->before_until = c->mono + LAG_MOST;
	a->has_fallen = false;
}

void accepted_note(struct accepted *a, const struct accepted_call *c)
{
	forget(a, c->verb == PROVIDER_GROW ? is_old_or_stopped : is_old, c->mono);
	a->at = c->at;
	if (c->verb == PROVIDER_GROW) {
		a->least = c->desired;
		a->least_until = c->mono + LAG_MOST;
		a->standby = -1; /* it wakes machines */
		a->before = a->most = -1;
	} else if (c->verb == PROVIDER_STANDBY) {
		a->standby = c->desired;
		a->standby_until = c->mono + LAG_MOST;
	} else {
		note_removals(a, c);
		a->standby = -1;
	}
	if (c->verb != PROVIDER_CANCEL)
		return;
	if (a->least > c->desired)
		a->least = c->desired;
	a->most = c->desired;
	a->most_until = c->mono + LAG_MOST;
}

static const struct machine *find(const struct group_description *d, const char *id)
{
	for (size_t i = 0; i < d->machine_count; i++)
		if (!strcmp(d->machines[i].id, id))
			return &d->machines[i];
	return NULL;
}

/* There, and the machine that was named: a later one may have its name. A removal may have made it stand by. */
static bool is_there(const struct accepted_removal *r, const struct group_description *d)
{
	const struct machine *m = find(d, r->id);

	return m && m->state != MACHINE_TERMINATING && !m->is_standby &&
	       (m->launched_at <= 0 || m->launched_at <= r->at);
}

/* One that ran before a cancel came says nothing. */
static bool is_left_alone(const struct accepted_removal *r, const struct group_description *d)
{
	const struct machine *m = find(d, r->id);

	return r->verb == PROVIDER_CANCEL && m && m->state == MACHINE_RUNNING;
}

/* Of the machines that a call named one went at least: the rest was left alone, as some do not stop, a cancel comes too
 * late for some, and one operation may not end all. */
static bool has_effect(const struct accepted *a, const struct group_description *d, int64_t call)
{
	for (size_t i = 0; i < a->count; i++)
		if (a->removals[i].call == call && (!d->ends_one_by_one || a->removals[i].may_be_left) &&
		    (a->removals[i].is_gone || !is_there(&a->removals[i], d)))
			return true;
	return false;
}

static bool removals_show(const struct accepted *a, const struct group_description *d, millis began)
{
	for (size_t i = 0; i < a->count; i++) {
		const struct accepted_removal *r = &a->removals[i];
		if (r->until <= began || !is_there(r, d) || is_left_alone(r, d))
			continue;
		if (r->is_gone || !has_effect(a, d, r->call))
			return false;
	}
	return true;
}

static int64_t alive_in(const struct group_description *d)
{
	int64_t alive = 0;

	for (size_t i = 0; i < d->machine_count; i++)
		alive += d->machines[i].state != MACHINE_TERMINATING && !d->machines[i].is_standby;
	return alive;
}

/*
 * Where operations take turns, as on AKS, the size falls with the end of one and is a read of its own, which may be an
 * older copy than the list: as large as before a removal, beside a list in which its machines are gone and no others
 * came. While the cloud is at work that is as it should be, until the size was seen to fall.
 */
static bool size_is_older(const struct accepted *a, const struct group_description *d, millis began)
{
	if (!d->takes_turns || a->before < 0 || a->before_until <= began || d->desired < a->before ||
	    (d->is_busy && !a->has_fallen && d->desired == a->before))
		return false;
	return alive_in(d) < d->desired;
}

bool accepted_leaves_doubt(const struct accepted *a, const struct group_description *d, millis began)
{
	return a->most >= 0 && a->most_until > began && d->desired > a->most;
}

/* A cancel leaves what is there, and no size beyond that. */
static bool is_before_cancel(const struct accepted *a, const struct group_description *d, millis began)
{
	return accepted_leaves_doubt(a, d, began) && alive_in(d) < d->desired;
}

/* A machine that was seen to be gone: the list is an older copy, also while the cloud is at work. */
static bool brings_back(const struct accepted *a, const struct group_description *d, millis began)
{
	for (size_t i = 0; i < a->count; i++)
		if (a->removals[i].is_gone && a->removals[i].until > began && is_there(&a->removals[i], d) &&
		    !is_left_alone(&a->removals[i], d))
			return true;
	return false;
}

/* Machines that failed to launch since the call. */
static int64_t failed_since(const struct accepted *a, const struct group_description *d, int64_t last_failure)
{
	int64_t failed = 0;

	for (size_t i = 0; i < d->failure_count; i++)
		if (d->failures[i].id > last_failure &&
		    (d->failures[i].at <= 0 || d->failures[i].at + CLOCKS_APART >= a->at))
			failed += d->failures[i].count;
	return failed;
}

/* Where nothing launches them anew, what failed lowers the size again, by so many machines. */
static bool is_lowered(const struct accepted *a, const struct group_description *d, int64_t last_failure)
{
	int64_t failed = failed_since(a, d, last_failure);

	return failed > 0 && !d->replaces_lost && (a->least < 0 || d->desired + d->standby + failed >= a->least);
}

bool accepted_shows(const struct accepted *a, const struct group_description *d, millis began, int64_t last_failure)
{
	bool size_shows = a->least < 0 || d->desired >= a->least || a->least_until <= began;
	bool standby_shows = a->standby < 0 || d->standby == a->standby || a->standby_until <= began;

	if ((!size_shows || !standby_shows) && is_lowered(a, d, last_failure))
		size_shows = standby_shows = true;
	if (size_is_older(a, d, began) || brings_back(a, d, began))
		return false;
	if (d->is_busy) /* machines and standby are not done yet, as it says itself; a size is raised at once */
		return size_shows;
	return size_shows && standby_shows && removals_show(a, d, began) && !is_before_cancel(a, d, began);
}

static bool is_named(const struct accepted *a, const char *id)
{
	for (size_t i = 0; i < a->count; i++)
		if (!strcmp(a->removals[i].id, id))
			return true;
	return false;
}

bool accepted_forgets(const struct accepted *a, const struct group_description *before,
		      const struct group_description *d, millis began, int64_t last_failure)
{
	bool is_recent = a->least >= 0 && began < a->least_until && !failed_since(a, d, last_failure);

	for (size_t i = 0; i < d->machine_count; i++)
		is_recent = is_recent && find(before, d->machines[i].id);
	for (size_t i = 0; is_recent && d->desired == before->desired && i < before->machine_count; i++) {
		const struct machine *m = &before->machines[i];
		if (m->state == MACHINE_PENDING && !m->is_standby && !is_named(a, m->id) && !find(d, m->id))
			return true;
	}
	return false;
}

/* What an operation ends shows only once that is over, and older reads come for so long after that. */
static void note_shown(struct accepted *a, const struct group_description *d, millis began)
{
	for (size_t i = 0; i < a->count; i++) {
		struct accepted_removal *r = &a->removals[i];
		if (r->is_gone || r->verb == PROVIDER_STOP || is_there(r, d))
			continue;
		r->is_gone = true;
		r->until = began + LAG_MOST;
	}
	if (a->has_fallen || a->before < 0)
		return;
	a->has_fallen = d->desired < a->before;
	if (a->has_fallen || d->is_busy)
		a->before_until = began + LAG_MOST;
}

void accepted_seen(struct accepted *a, const struct group_description *d, millis began)
{
	note_shown(a, d, began);
	if (a->least > d->desired)
		a->least = d->desired;
	if (!d->is_busy)
		a->standby = -1;
}
