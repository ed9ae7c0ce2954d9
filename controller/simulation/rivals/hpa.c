/*
 * kubernetes/kubernetes pkg/controller/podautoscaler: replica_calculator.go
 * (GetExternalPerPodMetricReplicas) and horizontal.go (stabilization and
 * rate limits of "behavior"). Defaults of the API reference: tolerance 10 %,
 * scale up by 100 % or 4 pods in 15 s, whichever is more, at once; scale
 * down by any number, stabilized over 300 s.
 */
#include "controller/simulation/rivals/hpa.h"

#include "controller/simulation/rivals/rival.h"

#include <string.h>

static const millis UP_PERIOD = 15 * SECOND;
static const int64_t UP_PODS = 4;

void hpa_begin(struct hpa *h, millis now, int64_t replicas, millis stabilization)
{
	if (h->begun)
		return;
	h->begun = true;
	h->replicas = replicas;
	/* As recordInitialRecommendation: a controller that starts does not shrink before a window has passed. */
	window_max(&h->proposals, now, stabilization, replicas);
}

int64_t hpa_proposal(const struct hpa *h, double total, double target, double tolerance)
{
	double ratio = h->replicas ? total / (target * (double)h->replicas) : total > 0 ? 2 : 1;

	if (ratio >= 1 - tolerance && ratio <= 1 + tolerance)
		return h->replicas;
	return whole_above(total / target);
}

static int64_t added_in_period(struct hpa *h, millis now)
{
	int64_t added = 0;
	size_t kept = 0;

	for (size_t i = 0; i < h->event_count; i++) {
		if (h->events[i].at <= now - UP_PERIOD)
			continue;
		added += h->events[i].change;
		h->events[kept++] = h->events[i];
	}
	h->event_count = kept;
	return added;
}

static void note_growth(struct hpa *h, millis now, int64_t change)
{
	if (h->event_count == HPA_EVENTS) {
		memmove(h->events, h->events + 1, (HPA_EVENTS - 1) * sizeof *h->events);
		h->event_count--;
	}
	h->events[h->event_count].at = now;
	h->events[h->event_count++].change = change;
}

static int64_t clamp(int64_t value, int64_t least, int64_t most)
{
	if (value > most)
		value = most;
	return value < least ? least : value;
}

int64_t hpa_scale(struct hpa *h, millis now, int64_t proposal, const struct hpa_limits *limits)
{
	int64_t highest = window_max(&h->proposals, now, limits->stabilization, proposal);
	int64_t wanted = h->replicas;

	if (wanted < proposal)
		wanted = proposal;
	if (wanted > highest)
		wanted = highest;
	if (wanted > h->replicas) {
		int64_t base = h->replicas - added_in_period(h, now);
		int64_t limit = base * 2 > base + UP_PODS ? base * 2 : base + UP_PODS;

		if (wanted > limit)
			wanted = limit > h->replicas ? limit : h->replicas;
	}
	wanted = clamp(wanted, limits->least, limits->most);
	if (wanted > h->replicas)
		note_growth(h, now, wanted - h->replicas);
	h->replicas = wanted;
	return wanted;
}

enum { TARGET, WINDOW, TOLERANCE };

static const struct setting_row rows[] = {
	[TARGET] = { "target", 0.8, 0.05, 2, "running and waiting requests a replica, as share of its slots" },
	[WINDOW] = { "window", 300, 0, 3600, "s; scale-down stabilization" },
	[TOLERANCE] = { "tolerance", 0.1, 0, 0.9, "share of the target that is not acted on" },
};

static int64_t want(void *memory, const struct settings *s, const struct sight *v)
{
	struct hpa *h = memory;
	struct hpa_limits limits = { .least = 1, .most = v->most, .stabilization = (millis)s->values[WINDOW] * SECOND };

	hpa_begin(h, v->now, v->ready + v->starting, limits.stabilization);
	int64_t proposal =
		hpa_proposal(h, (double)(v->running + v->waiting), s->values[TARGET] * v->slots, s->values[TOLERANCE]);
	return hpa_scale(h, v->now, proposal, &limits);
}

static void sweep(struct sweep *s, const struct rival_scale *scale)
{
	static const double targets[] = { 0.8, 0.3, 0.4, 0.5, 0.6, 0.7, 0.75, 0.85, 0.9, 0.95, 1, 1.05 };
	static const int windows[] = { 300, 0, 120, 600, 900, 1800 };

	(void)scale;
	for (size_t t = 0; t < sizeof targets / sizeof *targets; t++)
		for (size_t w = 0; w < sizeof windows / sizeof *windows; w++)
			sweep_add(s, targets[t] >= 0.7 && windows[w] < 1800, "target=%g,window=%d", targets[t],
				  windows[w]);
}

const struct family family_hpa = {
	.name = "hpa",
	.rows = rows,
	.row_count = sizeof rows / sizeof *rows,
	.memory_size = sizeof(struct hpa),
	.want = want,
	.sweep = sweep,
};
