#include "controller/loop/throttle.h"

static const millis FIRST = 2 * SECOND, LONGEST = 2 * MINUTE;

struct throttle throttle_make(struct random random)
{
	return (struct throttle){ .retry = retry_make(FIRST, LONGEST, random) };
}

void throttle_note(struct throttle *t, millis now, millis told)
{
	millis least = FIRST / 2, until;

	t->count++;
	if (t->until > now && !told)
		return; /* several that were on their way are one refusal */
	until = now + least + retry_next(&t->retry, told);
	if (until > t->until)
		t->until = until;
}

void throttle_passed(struct throttle *t, millis began)
{
	if (began >= t->until)
		retry_reset(&t->retry);
}

millis throttle_wait(const struct throttle *t, millis now)
{
	return t->until > now ? t->until - now : 0;
}
