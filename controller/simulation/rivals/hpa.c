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

struct hpa_limits hpa_default_limits(int64_t most, millis stabilization)
{
	return (struct hpa_limits){
		.least = 1,
		.most = most,
		.up = { .pods = { 4, 15 * SECOND }, .percent = { 100, 15 * SECOND } },
		.down = { .stabilization = stabilization, .pods = { -1, 0 }, .percent = { 100, 15 * SECOND } }
	};
}

void hpa_begin(struct hpa *h, millis now, int64_t replicas, const struct hpa_limits *limits)
{
	if (h->begun)
		return;
	h->begun = true;
	h->replicas = replicas;
	/* As recordInitialRecommendation: a controller that starts does not move before a window has passed. */
	window_max(&h->highest, now, limits->down.stabilization, replicas);
	window_max(&h->lowest, now, limits->up.stabilization, -replicas);
}

int64_t hpa_proposal(const struct hpa *h, double total, double target, double tolerance)
{
	double ratio = h->replicas ? total / (target * (double)h->replicas) : total > 0 ? 2 : 1;

	if (ratio >= 1 - tolerance && ratio <= 1 + tolerance)
		return h->replicas;
	return whole_above(total / target);
}

/* Replicas at the start of the period that ends now: what was added and taken since is undone. */
static int64_t before_period(const struct hpa *h, millis now, millis period)
{
	int64_t replicas = h->replicas;

	for (size_t i = 0; i < h->event_count; i++)
		if (h->events[i].at > now - period)
			replicas -= h->events[i].change;
	return replicas;
}

static void note_change(struct hpa *h, millis now, int64_t change)
{
	if (h->event_count == HPA_EVENTS) {
		memmove(h->events, h->events + 1, (HPA_EVENTS - 1) * sizeof *h->events);
		h->event_count--;
	}
	h->events[h->event_count].at = now;
	h->events[h->event_count++].change = change;
}

static int64_t larger(int64_t a, int64_t b)
{
	return a > b ? a : b;
}

static int64_t smaller(int64_t a, int64_t b)
{
	return a < b ? a : b;
}

/* How far a rule lets the replicas move now; `sign` 1 is up, -1 down. As calculateScaleUpLimitWithScalingRules and
 * calculateScaleDownLimitWithBehaviors: shares are rounded up on the way up and cut on the way down. */
static int64_t reach(const struct hpa *h, millis now, const struct hpa_rule *rule, int sign)
{
	const struct hpa_policy *policies[] = { &rule->pods, &rule->percent };
	bool is_far = rule->select == HPA_SELECT_MAX, has_limit = false;
	int64_t limit = h->replicas;

	if (rule->select == HPA_SELECT_DISABLED)
		return h->replicas;
	for (size_t i = 0; i < 2; i++) {
		if (policies[i]->value < 0)
			continue;
		int64_t base = before_period(h, now, policies[i]->period);
		double share = (double)base * (1 + sign * (double)policies[i]->value / 100);
		int64_t to = i == 0 ? base + sign * policies[i]->value : sign > 0 ? whole_above(share) : (int64_t)share;

		limit = !has_limit ? to : is_far == (sign > 0) ? larger(limit, to) : smaller(limit, to);
		has_limit = true;
	}
	return sign > 0 ? larger(limit, h->replicas) : smaller(limit, h->replicas);
}

int64_t hpa_scale(struct hpa *h, millis now, int64_t proposal, const struct hpa_limits *limits)
{
	int64_t highest = window_max(&h->highest, now, limits->down.stabilization, proposal);
	int64_t lowest = -window_max(&h->lowest, now, limits->up.stabilization, -proposal);
	int64_t wanted = h->replicas;

	wanted = larger(wanted, lowest);
	wanted = smaller(wanted, highest);
	if (wanted > h->replicas)
		wanted = smaller(wanted, reach(h, now, &limits->up, 1));
	else if (wanted < h->replicas)
		wanted = larger(wanted, reach(h, now, &limits->down, -1));
	wanted = larger(smaller(wanted, limits->most), limits->least);
	if (wanted != h->replicas)
		note_change(h, now, wanted - h->replicas);
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
	struct hpa_limits limits = hpa_default_limits(v->most, (millis)s->values[WINDOW] * SECOND);

	hpa_begin(h, v->now, v->ready + v->starting, &limits);
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
