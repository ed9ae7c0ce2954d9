/*
 * knative/serving pkg/autoscaler/scaling/autoscaler.go (Scale) with the
 * defaults of config-autoscaler: stable window 60 s, panic window 10 % of it,
 * panic at 200 %, target 70 % of the concurrency, up by 1000 times and down
 * to half at most, scale-down delay 0. Concurrency counts what waits, too
 * (the activator holds the queue).
 */
#include "controller/simulation/rivals/kpa.h"

#include "controller/simulation/rivals/rival.h"

static double window_mean(struct window *w, millis now, millis length, int64_t value);

static double within(double value, double least, double most)
{
	if (value < least)
		value = least;
	return value > most ? most : value;
}

static void update_panic(struct kpa *k, const struct kpa_settings *s, millis now, bool over)
{
	if (over) {
		k->panic_at = now;
	} else if (k->panic_at && k->panic_at + s->stable < now) {
		k->panic_at = 0;
		k->panic_pods = 0;
	}
}

static int64_t delayed(struct kpa *k, const struct kpa_settings *s, millis now, int64_t pods)
{
	return s->delay ? window_max(&k->delay, now, s->delay, pods) : pods;
}

int64_t kpa_scale(struct kpa *k, const struct kpa_settings *s, millis now, int64_t concurrency, int64_t ready)
{
	double pods = ready > 1 ? (double)ready : 1;
	int64_t stable = whole_above(window_mean(&k->stable, now, s->stable, concurrency) / s->target_value);
	int64_t panic = whole_above(window_mean(&k->panic, now, s->panic, concurrency) / s->target_value);
	double most = (double)whole_above(s->up_rate * pods), least = (double)(int64_t)(pods / s->down_rate);
	int64_t wanted = (int64_t)within((double)stable, least, most);
	int64_t in_panic = (int64_t)within((double)panic, least, most);

	/* A new one starts in panic mode, so that missing history does not shrink the fleet. */
	if (!k->begun && ready > 1) {
		k->panic_at = now;
		k->panic_pods = ready;
	}
	k->begun = true;
	update_panic(k, s, now, (double)panic / pods >= s->threshold);
	if (k->panic_at) {
		if (wanted < in_panic)
			wanted = in_panic;
		if (k->panic_pods < wanted)
			k->panic_pods = wanted;
		wanted = k->panic_pods;
	}
	return delayed(k, s, now, wanted);
}

enum { TARGET, WINDOW, DELAY, PANIC_WINDOW, PANIC_THRESHOLD, UP_RATE, DOWN_RATE };

static const struct setting_row rows[] = {
	[TARGET] = { "target", 0.7, 0.05, 2, "running and waiting requests a replica, as share of its slots" },
	[WINDOW] = { "window", 60, 6, 3600, "s; stable window" },
	[DELAY] = { "delay", 0, 0, 3600, "s; scale-down delay" },
	[PANIC_WINDOW] = { "panic-window", 0.1, 0.01, 1, "share of the stable window" },
	[PANIC_THRESHOLD] = { "panic-threshold", 2, 1.1, 10, "times the ready replicas" },
	[UP_RATE] = { "up-rate", 1000, 1.1, 100000, "times the ready replicas, at most" },
	[DOWN_RATE] = { "down-rate", 2, 1.1, 100000, "the ready replicas divided by this, at least" },
};

static int64_t want(void *memory, const struct settings *s, const struct sight *v)
{
	struct kpa *k = memory;
	const double *set = s->values;
	struct kpa_settings settings = {
		.target_value = set[TARGET] * v->slots,
		.stable = (millis)set[WINDOW] * SECOND,
		.panic = (millis)(set[WINDOW] * set[PANIC_WINDOW] * SECOND),
		.delay = (millis)set[DELAY] * SECOND,
		.threshold = set[PANIC_THRESHOLD],
		.up_rate = set[UP_RATE],
		.down_rate = set[DOWN_RATE],
	};
	int64_t wanted = 0;

	for (size_t i = 0; i < v->scrape_count; i++) {
		const struct scrape_input *reading = &v->scrapes[i];

		wanted = kpa_scale(k, &settings, reading->at, reading->running + reading->waiting, reading->ready);
	}
	return wanted;
}

static void sweep(struct sweep *s, const struct rival_scale *scale)
{
	static const double targets[] = { 0.7, 0.5, 0.6, 0.65, 0.75, 0.8, 0.85, 0.9, 0.95, 1, 1.05 };
	static const int windows[] = { 60, 300 }, delays[] = { 0, 600, 1800 };

	(void)scale;
	for (size_t t = 0; t < sizeof targets / sizeof *targets; t++)
		for (size_t w = 0; w < sizeof windows / sizeof *windows; w++)
			for (size_t d = 0; d < sizeof delays / sizeof *delays; d++)
				sweep_add(s, targets[t] >= 0.75 && delays[d] < 1800, "target=%g,window=%d,delay=%d",
					  targets[t], windows[w], delays[d]);
}

const struct family family_kpa = {
	.name = "kpa",
	.rows = rows,
	.row_count = sizeof rows / sizeof *rows,
	.memory_size = sizeof(struct kpa),
	.want = want,
	.sweep = sweep,
};

static void forget_first(struct window *w)
{
	w->sum -= w->notes[w->first].value;
	w->first = (w->first + 1) % WINDOW_SIZE;
	w->count--;
}

static void append(struct window *w, millis now, int64_t value)
{
	if (w->count == WINDOW_SIZE)
		forget_first(w);
	size_t at = (w->first + w->count) % WINDOW_SIZE;
	w->notes[at].at = now;
	w->notes[at].value = value;
	w->sum += value;
	w->count++;
}

int64_t window_max(struct window *w, millis now, millis length, int64_t value)
{
	/* A note that a younger one equals or passes can never be the largest again. */
	while (w->count && w->notes[(w->first + w->count - 1) % WINDOW_SIZE].value <= value) {
		w->count--;
		w->sum -= w->notes[(w->first + w->count) % WINDOW_SIZE].value;
	}
	append(w, now, value);
	while (w->count > 1 && w->notes[w->first].at <= now - length)
		forget_first(w);
	return w->notes[w->first].value;
}

/* Notes a value; the mean of those younger than `length`, the new one in any case. */
static double window_mean(struct window *w, millis now, millis length, int64_t value)
{
	append(w, now, value);
	while (w->count > 1 && w->notes[w->first].at <= now - length)
		forget_first(w);
	return (double)w->sum / (double)w->count;
}
