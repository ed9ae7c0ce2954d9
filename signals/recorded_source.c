#include "signals/recorded_source.h"

#include "base/alloc.h"

#include <stdlib.h>
#include <string.h>

struct recorded_source {
	struct source base; /* first */
	struct recorded_source_settings settings;
	struct loop *loop;
	const struct clock *clock;
	millis opened; /* clock_mono */
	size_t next;
	struct timer timer;
	struct source_report report;
};

static struct recorded_source *of(const struct source *base)
{
	return (struct recorded_source *)base;
}

/* When a reading is due, on clock_mono(). */
static millis due(const struct recorded_source *s, size_t index)
{
	millis after = s->settings.readings[index].at - s->settings.begun;

	return s->opened + (after > 0 ? after : 0);
}

static void tell(struct recorded_source *s)
{
	struct pool_reading r = s->settings.readings[s->next++];

	r.at = clock_now(s->clock);
	source_count_round(&s->report, &r, clock_mono(s->clock));
	s->report.trouble = (struct error){ 0 };
	if (!r.fresh && r.expected > 0)
		error_set(&s->report.trouble, ERROR_UNAVAILABLE, "nothing could be read then, says the recording");
	s->settings.source.on_reading(s->settings.source.user, &r);
}

static void on_timer(struct timer *t)
{
	struct recorded_source *s = t->user;

	while (s->next < s->settings.reading_count && due(s, s->next) <= clock_mono(s->clock))
		tell(s);
	if (s->next < s->settings.reading_count) {
		timer_start(s->loop, &s->timer, clock_real(s->clock, due(s, s->next) - clock_mono(s->clock)), on_timer);
		return;
	}
	error_set(&s->report.trouble, ERROR_UNAVAILABLE, "the recording is over");
	if (s->settings.over)
		s->settings.over(s->settings.over_user);
	s->settings.over = NULL;
}

static void close_source(struct source *base)
{
	timer_stop(&of(base)->timer);
	free(of(base));
}

/* Who serves now has nothing to do with who did then. */
static void set_targets(struct source *base, const struct source_target *targets, size_t count)
{
	(void)base;
	(void)targets;
	(void)count;
}

static bool in_flight(const struct source *base, const char *key, int64_t *count, millis *age)
{
	(void)base;
	(void)key;
	(void)count;
	(void)age;
	return false;
}

static enum engine_sleep sleep_of(const struct source *base, const char *key)
{
	(void)base;
	(void)key;
	return SLEEP_NONE;
}

static struct source_report report(const struct source *base)
{
	return of(base)->report;
}

static const struct source_ops ops = { close_source, set_targets, in_flight, sleep_of, report };

struct source *recorded_source_open(struct loop *loop, const struct clock *clock,
				    const struct recorded_source_settings *settings)
{
	struct recorded_source *s = xcalloc(1, sizeof *s);

	s->base.ops = &ops;
	s->settings = *settings;
	s->loop = loop;
	s->clock = clock;
	s->opened = clock_mono(clock);
	while (s->next < settings->reading_count && settings->readings[s->next].at < settings->begun)
		s->next++;
	s->timer.user = s;
	timer_start(loop, &s->timer, 0, on_timer);
	return &s->base;
}
