#include "controller/loop/clock_skew.h"

#include "controller/loop/controller_state.h"
#include "state/future.h"

#include <stdio.h>
#include <string.h>

/* Less is a clock that is put right; more, and what waits would be given up, or never. */
static const millis BACK_MOST = MINUTE, FORTH_MOST = DAY;

/* One of several servers may be wrong, and answer for a while. */
static const millis WRONG_FOR = 5 * MINUTE;

static bool is_far(millis apart)
{
	return apart > BACK_MOST || apart < -BACK_MOST;
}

/* False as well where our time is not the world's. */
static bool server_told(const struct controller *c, millis *machine_ahead)
{
	return c->api && c->skew.clock.speed == 1 && !c->settings.recorded && api_clock_ahead(c->api, machine_ahead);
}

static void note_time(struct controller *c)
{
	c->skew.at = clock_now(c->clock);
	c->skew.mono = clock_mono(c->clock);
}

/* What objects say of their times is of the clock as it is now: it means nothing beside ours. */
static void shift(struct controller *c, millis by, const char *why)
{
	c->skew.clock.ahead += by;
	c->skew.clock.told_ahead += by;
	cluster_ignore_stamps(c->cluster, true);
	log_warn("clock-not-followed", LOG_S("why", why), LOG_I("ahead_ms", c->skew.clock.ahead), LOG_END);
}

static void put_future_aside(struct controller *c)
{
	CLEANUP(buf_release) struct buf name = { 0 };
	struct error e = { 0 };

	if (!history_put_future_aside(c->settings.history_path, clock_now(c->clock) + BACK_MOST, &name, &e))
		log_warn("future-not-set-aside", LOG_E(&e), LOG_END);
	else if (name.len)
		log_warn("future-set-aside", LOG_S("as", name.text),
			 LOG_S("why", "ticks that end later than it is by the API server's clock; the file that goes "
				      "on ends before them"),
			 LOG_END);
}

static void take_time(struct controller *c, millis machine_ahead)
{
	millis by = is_far(machine_ahead) ? -machine_ahead : 0;
	if (by)
		log_warn("clock-put-right", LOG_S("why", "the machine's clock is not the API server's"),
			 LOG_I("machine_ahead_ms", machine_ahead), LOG_END);
	millis before = c->skew.clock.ahead;
	c->skew.clock.ahead = c->settings.clock->ahead + by;
	c->skew.clock.told_ahead = 0;
	if (is_far(c->skew.clock.ahead - before))
		c->skew.right_since = clock_now(c->clock);
	c->skew.machine_ahead = machine_ahead;
	c->skew.ahead = c->skew.wrong_since = 0;
	cluster_ignore_stamps(c->cluster, false);
}

void clock_skew_check(struct controller *c)
{
	millis machine_ahead;

	if (!server_told(c, &machine_ahead))
		return;
	take_time(c, machine_ahead);
	put_future_aside(c);
}

void clock_skew_begin(struct controller *c)
{
	millis behind = history_last_at(c->history) - clock_now(c->clock);

	if (behind > BACK_MOST)
		shift(c, behind, "the machine's clock is behind the history: is one of both wrong?");
	note_time(c);
}

static void compare(struct controller *c)
{
	struct clock_skew *s = &c->skew;

	if (!server_told(c, &s->machine_ahead)) /* what it told stands */
		return;
	s->ahead = clock_now(c->clock) - (clock_now(c->settings.clock) - s->machine_ahead);
	s->clock.told_ahead = is_far(s->ahead) ? s->ahead : 0;
	cluster_ignore_stamps(c->cluster, s->clock.told_ahead != 0);
	if (!is_far(s->ahead))
		s->wrong_since = 0;
	else if (!s->wrong_since)
		s->wrong_since = clock_mono(c->clock);
}

/* From the server's time, which it goes on telling by a clock that never jumps: somebody puts the machine's right. */
static bool is_apart(const struct controller *c)
{
	millis machine_ahead;

	return server_told(c, &machine_ahead) &&
	       is_far(clock_now(c->clock) - (clock_now(c->settings.clock) - machine_ahead));
}

void clock_skew_keep(struct controller *c)
{
	millis machine_ahead;

	if (is_apart(c) && server_told(c, &machine_ahead))
		take_time(c, machine_ahead);
}

void clock_skew_follow(struct controller *c)
{
	millis passed = clock_mono(c->clock) - c->skew.mono;
	millis jump = clock_now(c->clock) - c->skew.at - passed;

	if (jump < -BACK_MOST || jump > FORTH_MOST || (jump > BACK_MOST && is_apart(c)))
		shift(c, -jump, "the machine's clock jumped");
	else if (jump > BACK_MOST) {
		starts_shift(&c->starts, jump);
		c->snapshot.now += jump; /* purchases before the next tick are of that time */
		c->skew.right_since = clock_now(c->clock);
	}
	note_time(c);
	compare(c);
}

bool clock_skew_is_wrong(const struct controller *c)
{
	millis machine_ahead;

	return c->skew.wrong_since && clock_mono(c->clock) - c->skew.wrong_since > WRONG_FOR &&
	       server_told(c, &machine_ahead);
}

const char *clock_skew_trouble(const struct controller *c, struct arena *a)
{
	const struct clock_skew *s = &c->skew;
	millis by = is_far(s->ahead) ? s->ahead : s->machine_ahead;
	char text[256];

	if (!is_far(by))
		return NULL;
	snprintf(text, sizeof text,
		 "%s is %lld s %s the API server's clock%s: let both machines follow one source of time",
		 is_far(s->ahead) ? "the time that is decided in" : "the clock of the controller's machine",
		 (long long)((by < 0 ? -by : by) / SECOND), by > 0 ? "ahead of" : "behind",
		 is_far(s->ahead) ? "" : ", whose time is used in its place");
	return arena_strdup(a, text, strlen(text));
}
