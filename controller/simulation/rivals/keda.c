/*
 * KEDA on the length of the queue, as the vLLM production stack ships it
 * (docs, "Autoscaling with KEDA": vllm:num_requests_waiting, threshold 5): a
 * trigger of type AverageValue behind an HPA with its default behaviour, and
 * scaling between zero and one by KEDA itself (keda.sh, ScaledObject:
 * cooldownPeriod 300 s, minReplicaCount 0). A second trigger on running
 * requests is the floor that people add. Nodes under it go when they were
 * not needed for 10 minutes (Cluster Autoscaler, scale-down-unneeded-time).
 */
#include "controller/simulation/rivals/hpa.h"
#include "controller/simulation/rivals/rival.h"

enum { THRESHOLD, FLOOR, REMOVAL, WINDOW, COOLDOWN };

static const struct setting_row rows[] = {
	[THRESHOLD] = { "threshold", 5, 0.1, 100000, "waiting requests a replica" },
	[FLOOR] = { "floor", 0, 0, 2, "running requests a replica, as share of its slots; 0 looks at the queue only" },
	[REMOVAL] = { "removal", 600, 0, 7200, "s; how long an unneeded node stays" },
	[WINDOW] = { "window", 300, 0, 3600, "s; scale-down stabilization" },
	[COOLDOWN] = { "cooldown", 300, 0, 7200, "s without any trigger before the last replica goes" },
};

struct keda {
	struct hpa hpa;
	struct window nodes;
	millis active_at;
};

static int64_t pods(struct keda *k, const struct settings *s, const struct sight *v)
{
	bool active = v->waiting > 0 || (s->values[FLOOR] > 0 && v->running > 0);
	struct hpa_limits limits = hpa_default_limits(v->most, (millis)s->values[WINDOW] * SECOND);

	if (!k->hpa.begun || active)
		k->active_at = v->now;
	hpa_begin(&k->hpa, v->now, v->ready + v->starting, &limits);
	if (v->now - k->active_at >= (millis)s->values[COOLDOWN] * SECOND && !active) {
		k->hpa.replicas = 0;
		return 0;
	}
	if (!k->hpa.replicas)
		k->hpa.replicas = 1;
	int64_t queue = hpa_proposal(&k->hpa, (double)v->waiting, s->values[THRESHOLD], 0.1), floor = 0;
	if (s->values[FLOOR] > 0)
		floor = hpa_proposal(&k->hpa, (double)v->running, s->values[FLOOR] * v->slots, 0.1);
	return hpa_scale(&k->hpa, v->now, queue > floor ? queue : floor, &limits);
}

static int64_t want(void *memory, const struct settings *s, const struct sight *v)
{
	struct keda *k = memory;

	return window_max(&k->nodes, v->now, (millis)s->values[REMOVAL] * SECOND, pods(k, s, v));
}

static void sweep(struct sweep *s, const struct rival_scale *scale)
{
	static const double thresholds[] = { 5, 1, 20, 50, 100, 200 }, floors[] = { 0, 0.6, 0.7, 0.8, 0.9, 1 };
	static const int removals[] = { 600, 1800 };

	(void)scale;
	for (size_t f = 0; f < sizeof floors / sizeof *floors; f++)
		for (size_t t = 0; t < sizeof thresholds / sizeof *thresholds; t++)
			for (size_t r = 0; r < sizeof removals / sizeof *removals; r++)
				sweep_add(s, false, "threshold=%g,floor=%g,removal=%d", thresholds[t], floors[f],
					  removals[r]);
}

const struct family family_keda = {
	.name = "keda",
	.rows = rows,
	.row_count = sizeof rows / sizeof *rows,
	.memory_size = sizeof(struct keda),
	.want = want,
	.sweep = sweep,
};
