#include "controller/loop/parts.h"

/* Less is a clock that is put right; more, and what waits would be given up, or never. */
static const millis BACK_MOST = MINUTE, FORTH_MOST = DAY;

static void note(struct controller *c)
{
	c->timed_at = clock_now(c->clock);
	c->timed_mono = clock_mono(c->clock);
}

/* What objects say of their times is of the clock as it is now: it means nothing beside ours. */
static void shift(struct controller *c, millis by, const char *why)
{
	c->own_clock.ahead += by;
	cluster_ignore_stamps(c->cluster, true);
	log_warn("clock-not-followed", LOG_S("why", why), LOG_I("ahead_ms", c->own_clock.ahead), LOG_END);
}

void time_begin(struct controller *c)
{
	millis behind = history_last_at(c->history) - clock_now(c->clock);

	if (behind > BACK_MOST)
		shift(c, behind, "the machine's clock is behind the history: is one of both wrong?");
	note(c);
}

void time_follow(struct controller *c)
{
	millis passed = clock_mono(c->clock) - c->timed_mono;
	millis jump = clock_now(c->clock) - c->timed_at - passed;

	if (jump < -BACK_MOST || jump > FORTH_MOST)
		shift(c, -jump, "the machine's clock jumped");
	note(c);
}
