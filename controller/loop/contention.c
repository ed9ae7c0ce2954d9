#include "controller/loop/contention.h"

void contention_ours(struct contention *c, int64_t change, millis now)
{
	if (!change)
		return;
	c->own = change;
	c->own_at = now;
}

static bool undoes(const struct contention *c, int64_t change, millis now)
{
	return c->own && (change > 0) != (c->own > 0) && now - c->own_at <= CONTENTION_SPAN;
}

/* The oldest of the last few is not long ago. */
static bool is_fight(const struct contention *c, millis now)
{
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
	if (undoes(c, change, now)) {
		c->undone_at[c->undone++ % CONTENTION_REVERSALS] = now;
		c->machines = machines > c->machines ? machines : c->machines;
		c->own = 0;
	}
	c->is_held |= is_fight(c, now);
	return c->is_held && !was_held;
}

bool contention_ends(struct contention *c, millis now)
{
	if (!c->is_held || now - c->changed_at < CONTENTION_QUIET)
		return false;
	*c = (struct contention){ 0 };
	return true;
}
