#include "base/clock.h"

#include <assert.h>
#include <time.h>

static millis machine(clockid_t id)
{
	struct timespec t;

	clock_gettime(id, &t);
	return (millis)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

struct clock clock_open(void)
{
	return (struct clock){ .speed = 1, .follows_machine = true, .real_start = machine(CLOCK_BOOTTIME) };
}

struct clock clock_open_fast(millis now, int64_t speed)
{
	assert(speed >= 1 && speed <= CLOCK_FASTEST);
	return (struct clock){ .speed = speed,
			       .now = now ? now : machine(CLOCK_REALTIME),
			       .real_start = machine(CLOCK_BOOTTIME) };
}

struct clock clock_open_by_hand(millis now)
{
	return (struct clock){ .speed = 1, .is_by_hand = true, .now = now };
}

void clock_turn(struct clock *c, millis by)
{
	assert(c->is_by_hand && by >= 0);
	c->now += by;
	c->mono += by;
}

millis clock_mono(const struct clock *c)
{
	if (c->is_by_hand)
		return c->mono;
	return (machine(CLOCK_BOOTTIME) - c->real_start) * c->speed;
}

millis clock_now(const struct clock *c)
{
	if (c->follows_machine)
		return machine(CLOCK_REALTIME) + c->ahead;
	return (c->is_by_hand ? c->now : c->now + clock_mono(c)) + c->ahead;
}

millis clock_real(const struct clock *c, millis duration)
{
	return duration <= 0 ? 0 : (duration - 1) / c->speed + 1;
}

millis clock_of_wall(const struct clock *c, millis wall)
{
	if (c->follows_machine || c->is_by_hand)
		return wall + c->told_ahead;
	return clock_now(c) - (machine(CLOCK_REALTIME) - wall) * c->speed;
}
