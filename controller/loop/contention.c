#include "controller/loop/contention.h"

void contention_ours(struct contention *c, int64_t change, millis now)
{
	if (!change)
		return;
	c->own = change;
	c->own_at = now;
}

bool contention_undoes(const struct contention *c, int64_t change, millis within, millis now)
{
	return c->own && (change > 0) != (c->own > 0) && now - c->own_at <= within;
}

/* The oldest of the last few is not long ago, or it goes on after a hold. */
static bool is_fight(const struct contention *c, millis now)
{
	if (c->quiet && c->undone)
		return true;
	return c->undone >= CONTENTION_REVERSALS &&
	       now - c->undone_at[c->undone % CONTENTION_REVERSALS] <= CONTENTION_SPAN;
}

bool contention_theirs(struct contention *c, int64_t change, millis now)
{
	bool was_held = c->is_held;
	int64_t machines = change > 0 ? change : -change;

	if (!change)
		return false;
	c->changed_at = now;
	if (contention_undoes(c, change, CONTENTION_SOON, now)) {
		c->undone_at[c->undone++ % CONTENTION_REVERSALS] = now;
		c->machines = machines > c->machines ? machines : c->machines;
		c->own = 0;
	}
	if (was_held || !is_fight(c, now))
		return false;
	c->is_held = true;
	c->quiet = c->quiet ? 2 * c->quiet : CONTENTION_QUIET;
	c->quiet = c->quiet < CONTENTION_QUIET_MOST ? c->quiet : CONTENTION_QUIET_MOST;
	return true;
}

bool contention_ends(struct contention *c, millis now)
{
	if (c->quiet && !c->is_held && now - c->ended_at > c->quiet + CONTENTION_SOON)
		*c = (struct contention){ 0 };
	if (!c->is_held || now - c->changed_at < c->quiet)
		return false;
	*c = (struct contention){ .machines = c->machines, .quiet = c->quiet, .ended_at = now };
	return true;
}

void contention_resume(struct contention *c, bool is_held, millis quiet, int64_t machines, millis since)
{
	*c = (struct contention){ .is_held = is_held, .quiet = quiet, .machines = machines };
	*(is_held ? &c->changed_at : &c->ended_at) = since;
}
