#include "controller/policy/incident.h"

#include "controller/policy/queue_wait.h"

#include <string.h>

static bool is_missed(const struct incident *i)
{
	return (double)i->late * 1e6 > (double)i->allowed_ppm * (double)i->started;
}

bool incident_end(struct incident_fold *f, struct incident *ended)
{
	bool is_one = f->open.late && is_missed(&f->open);

	if (is_one)
		*ended = f->open;
	f->open = (struct incident){ 0 };
	return is_one;
}

/* Nothing where the pool has no such group: records of others may hold anything. */
static void keep_name(char to[INCIDENT_GROUP], const struct fleet_spec *fleet, const struct pool_spec *spec,
		      size_t group)
{
	if (group >= spec->group_count)
		return;
	const char *name = fleet->groups[spec->groups[group]].name;
	size_t len = strnlen(name, INCIDENT_GROUP - 1);
	memcpy(to, name, len);
	to[len] = '\0';
}

struct start_seen {
	int64_t group, kind;
	millis age;
	bool has_come;
};

/* What came goes before what was on its way and may have been cancelled. What is refilled is stopped again, and was not
 * waited for. */
static void note_start(struct incident *i, const struct fleet_spec *fleet, const struct pool_spec *spec,
		       struct start_seen start)
{
	if (start.kind == START_REFILL || start.group < 0 || (size_t)start.group >= spec->group_count ||
	    start.has_come < i->start_has_come || (start.has_come == i->start_has_come && start.age <= i->start_age))
		return;
	keep_name(i->group, fleet, spec, (size_t)start.group);
	i->start_age = start.age;
	i->start_kind = (enum start_kind)start.kind;
	i->start_has_come = start.has_come;
}

static void note_starts(struct incident *i, const struct snapshot *s, size_t pool)
{
	const struct pool_snapshot *in = &s->pools[pool];
	const struct pool_spec *spec = &s->fleet->pools[pool];

	for (size_t k = 0; k < in->start_count; k++) {
		const struct start_input *start = &in->starts[k];
		note_start(i, s->fleet, spec,
			   (struct start_seen){ start->group, start->kind, s->now - start->asked_at, false });
	}
	for (size_t k = 0; k < in->event_count; k++) {
		const struct event_input *ev = &in->events[k];
		if (ev->what == EVENT_SERVING)
			note_start(i, s->fleet, spec, (struct start_seen){ ev->group, ev->kind, ev->value, true });
	}
}

static void note_refusal(struct incident *i, const struct fleet_spec *fleet, const struct pool_spec *spec,
			 const struct pool_plan *plan)
{
	for (size_t k = 0; k < plan->group_count && i->refused_by == LIMIT_NONE; k++) {
		enum limit by = (enum limit)plan->groups[k].held_by;
		if (!limit_is_refusal(by))
			continue;
		i->refused_by = by;
		keep_name(i->refused_group, fleet, spec, k);
	}
}

static void note_given_up(struct incident *i, const struct fleet_spec *fleet, const struct pool_spec *spec,
			  const struct pool_snapshot *in)
{
	for (size_t k = 0; k < in->event_count; k++) {
		const struct event_input *ev = &in->events[k];
		if (ev->what != EVENT_STUCK)
			continue;
		i->given_up += ev->count > 0 ? ev->count : 1;
		if (ev->group >= 0)
			keep_name(i->given_up_group, fleet, spec, (size_t)ev->group);
	}
}

static void add_sums(struct incident *i, const struct cost_sums *sums, const struct pool_decision *d)
{
	millis wait = queue_wait(d);

	i->late += sums->late;
	i->started += sums->started;
	for (size_t c = 0; c < LATE_CAUSE_COUNT; c++)
		i->late_by[c] += sums->late_by[c];
	if (d->held_by >= 0 && d->held_by < LIMIT_COUNT)
		i->late_at_limit[d->held_by] += sums->late;
	if (wait > i->longest_wait)
		i->longest_wait = wait;
}

static void note_worst(struct incident *i, const struct snapshot *s, const struct cost_sums *sums,
		       const struct pool_decision *d)
{
	millis wait = queue_wait(d);
	const struct incident_tick t = { s->tick,  sums->late,	 s->now, wait == ABSENT ? INT64_MAX : wait,
					 d->ready, d->on_the_way };

	for (size_t c = 0; c < LATE_CAUSE_COUNT; c++) {
		struct incident_tick *worst = &i->worst[c];
		bool is_worse = t.wait > worst->wait || (t.wait == worst->wait && t.late > worst->late);
		if (sums->late_by[c] && (!worst->late || is_worse))
			*worst = t;
	}
}

bool incident_add_tick(struct incident_fold *f, const struct snapshot *s, size_t pool, const struct pool_plan *plan,
		       struct incident *ended)
{
	struct incident *i = &f->open;
	struct cost_sums sums = { 0 };
	int64_t busy_ppm = ABSENT; /* of GPUs, which are not asked for here */
	bool is_apart = s->now - s->interval - i->to > INCIDENT_CALM;
	bool has_ended = is_apart && incident_end(f, ended);

	cost_add_tick(&sums, &(struct cost_tick){ s, pool, plan, s->interval, NULL }, &busy_ppm);
	if (!sums.late)
		return has_ended;
	if (!i->late)
		*i = (struct incident){ .from = s->now - s->interval };
	i->to = s->now;
	i->allowed_ppm = s->fleet->pools[pool].objective_late_ppm;
	add_sums(i, &sums, &plan->decision);
	note_worst(i, s, &sums, &plan->decision);
	note_starts(i, s, pool);
	note_refusal(i, s->fleet, &s->fleet->pools[pool], plan);
	note_given_up(i, s->fleet, &s->fleet->pools[pool], &s->pools[pool]);
	return has_ended;
}

static size_t largest(const int64_t *counts, size_t n)
{
	size_t most = 0;

	for (size_t i = 1; i < n; i++)
		if (counts[i] > counts[most])
			most = i;
	return most;
}

enum late_cause incident_cause(const struct incident *i)
{
	return (enum late_cause)largest(i->late_by, LATE_CAUSE_COUNT);
}

const struct incident_tick *incident_worst(const struct incident *i)
{
	return &i->worst[incident_cause(i)];
}

enum limit incident_limit(const struct incident *i)
{
	return (enum limit)largest(i->late_at_limit, LIMIT_COUNT);
}
