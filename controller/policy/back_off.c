#include "controller/policy/back_off.h"

#include "base/error.h"

static const millis STOCKOUT_BACKOFF = 3 * MINUTE, QUOTA_BACKOFF = 10 * MINUTE, OTHER_BACKOFF = MINUTE;
static const millis LONGEST_BACKOFF = 30 * MINUTE, WAKE_BACKOFF = MINUTE;

static void back_off(struct group_memory *g, const struct event_input *e, millis now)
{
	millis first = e->value == ERROR_STOCKOUT ? STOCKOUT_BACKOFF
		       : e->value == ERROR_QUOTA  ? QUOTA_BACKOFF
						  : OTHER_BACKOFF;

	if (e->kind == START_WAKE) {
		if (g->wakes_blocked_until != NO_STANDBY)
			g->wakes_blocked_until = now + WAKE_BACKOFF;
		return;
	}
	/* Several refusals of one request count once: the back-off is over only after blocked_until. */
	if (g->blocked_until > now)
		return;
	for (int64_t i = 0; i < g->refusals && first < LONGEST_BACKOFF; i++)
		first *= 2;
	g->blocked_until = now + (first < LONGEST_BACKOFF ? first : LONGEST_BACKOFF);
	g->refusals++;
	g->refused_with = e->value;
}

/* The cloud says how long. */
static void block(struct group_memory *g, const struct event_input *e, millis now)
{
	millis lasts = e->value < SECOND ? SECOND : e->value > DAY ? DAY : e->value;

	if (g->blocked_until < now + lasts)
		g->blocked_until = now + lasts;
	g->refusals++;
	g->refused_with = e->what == EVENT_NO_QUOTA ? ERROR_QUOTA : ERROR_STOCKOUT;
}

/* It was held only because nobody could tell of it. */
static void take_off(struct group_memory *g)
{
	if (g->refused_with != ERROR_UNAVAILABLE)
		return;
	g->blocked_until = 0;
	g->refusals = 0;
}

static void note_standby(struct group_memory *g, bool has)
{
	if (!has)
		g->wakes_blocked_until = NO_STANDBY;
	else if (g->wakes_blocked_until == NO_STANDBY)
		g->wakes_blocked_until = 0;
}

/* What no back-off reaches stands there because the clock was set back. */
static void mend(struct group_memory *g, millis now)
{
	if (g->blocked_until > now + DAY)
		g->blocked_until = 0;
	if (g->wakes_blocked_until > now + DAY && g->wakes_blocked_until != NO_STANDBY)
		g->wakes_blocked_until = 0;
}

void back_off_observe(struct group_memory *groups, const struct snapshot *s, size_t pool)
{
	const struct pool_snapshot *seen = &s->pools[pool];

	for (size_t i = 0; i < s->fleet->pools[pool].group_count; i++)
		mend(&groups[s->fleet->pools[pool].groups[i]], s->now);
	for (size_t i = 0; i < seen->event_count; i++) {
		const struct event_input *e = &seen->events[i];
		if (e->group < 0 || (size_t)e->group >= s->fleet->pools[pool].group_count)
			continue;
		struct group_memory *g = &groups[s->fleet->pools[pool].groups[e->group]];
		if (e->what == EVENT_REFUSED)
			back_off(g, e, s->now);
		else if (e->what == EVENT_NO_STOCK || e->what == EVENT_NO_QUOTA)
			block(g, e, s->now);
		else if (e->what == EVENT_DESCRIBED)
			take_off(g);
		else if (e->what == EVENT_STANDBY)
			note_standby(g, e->value != 0);
		else if (e->what == EVENT_SERVING && e->kind == START_COLD)
			g->refusals = 0;
	}
}

enum limit back_off_limit(const struct group_memory *g)
{
	return g->refused_with == ERROR_QUOTA ? LIMIT_QUOTA : LIMIT_STOCKOUT;
}
