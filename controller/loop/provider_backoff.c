#include "controller/loop/provider_backoff.h"

#include <string.h>

static bool is_text(const char *kept, const char *text)
{
	return !strncmp(kept, text, OFFERING_TEXT_MOST);
}

static struct offering *find(struct offerings *o, const char *zone, const char *instance_type)
{
	for (size_t i = 0; i < o->count; i++)
		if (is_text(o->items[i].zone, zone) && is_text(o->items[i].instance_type, instance_type))
			return &o->items[i];
	if (o->count == OFFERINGS_MOST)
		return NULL;
	struct offering *added = &o->items[o->count++];
	*added = (struct offering){ 0 };
	memcpy(added->zone, zone, strnlen(zone, OFFERING_TEXT_MOST));
	memcpy(added->instance_type, instance_type, strnlen(instance_type, OFFERING_TEXT_MOST));
	return added;
}

void offerings_came(struct offerings *o, const char *zone, const char *instance_type)
{
	struct offering *found = *zone || *instance_type ? find(o, zone, instance_type) : NULL;

	if (found)
		found->blocked_until = 0;
	o->misses = 0;
}

static bool covers(const char *told, const char *kept)
{
	return !*told || !*kept || is_text(kept, told);
}

void offerings_failed(struct offerings *o, const char *zone, const char *instance_type, millis now, millis lasts)
{
	if (*zone || *instance_type)
		find(o, zone, instance_type);
	for (size_t i = 0; i < o->count; i++) {
		struct offering *part = &o->items[i];
		if (covers(zone, part->zone) && covers(instance_type, part->instance_type) &&
		    part->blocked_until < now + lasts)
			part->blocked_until = now + lasts;
	}
	o->misses++;
}

millis offerings_wait(const struct offerings *o, millis now)
{
	millis first = 0;

	for (size_t i = 0; i < o->count; i++) {
		millis wait = o->items[i].blocked_until - now;
		if (wait <= 0 && o->misses < MISSES_MOST)
			return 0;
		if (wait > 0 && (!first || wait < first))
			first = wait;
	}
	return first;
}

size_t offerings_blocked(const struct offerings *o, millis now)
{
	size_t count = 0;

	for (size_t i = 0; i < o->count; i++)
		count += o->items[i].blocked_until > now;
	return count;
}

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
