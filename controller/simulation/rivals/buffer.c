/*
 * Replicas in use plus a fixed buffer: Kubernetes CapacityBuffer
 * (autoscaling.x-k8s.io, spec.replicas or spec.percentage) and pause-pod
 * over-provisioning. A node without use goes after the removal time
 * (Cluster Autoscaler, scale-down-unneeded-time, 10 minutes).
 */
#include "controller/simulation/rivals/rival.h"
#include "controller/simulation/rivals/kpa.h"

enum { REPLICAS, SHARE, REMOVAL };

static const struct setting_row rows[] = {
	[REPLICAS] = { "replicas", 1, 0, 100000, "beyond present use" },
	[SHARE] = { "share", 0, 0, 5, "of present use, beyond it" },
	[REMOVAL] = { "removal", 600, 0, 7200, "s; how long an unneeded node stays" },
};

static int64_t want(void *memory, const struct settings *s, const struct sight *v)
{
	double load = 0;

	for (size_t i = 0; i < v->scrape_count; i++)
		load += (double)(v->scrapes[i].running + v->scrapes[i].waiting);
	double use = load / (double)v->scrape_count / v->slots;
	int64_t wanted = whole_above(use * (1 + s->values[SHARE])) + (int64_t)s->values[REPLICAS];
	return window_max(memory, v->now, (millis)s->values[REMOVAL] * SECOND, wanted > 1 ? wanted : 1);
}

static void sweep(struct sweep *s, const struct rival_scale *scale)
{
	static const int replicas[] = { 1, 0, 2, 3, 4, 6, 8, 12 }, removals[] = { 600, 0, 1800, 3600 };
	static const double shares[] = { 0.05, 0.1, 0.15, 0.2, 0.3, 0.5 };

	(void)scale;
	for (size_t k = 0; k < sizeof replicas / sizeof *replicas; k++)
		for (size_t r = 0; r < sizeof removals / sizeof *removals; r++)
			sweep_add(s, replicas[k] <= 6 && removals[r] <= 600, "replicas=%d,share=0,removal=%d",
				  replicas[k], removals[r]);
	for (size_t k = 0; k < sizeof shares / sizeof *shares; k++)
		for (size_t r = 0; r < sizeof removals / sizeof *removals; r++)
			sweep_add(s, shares[k] <= 0.2 && removals[r] <= 600, "replicas=0,share=%g,removal=%d",
				  shares[k], removals[r]);
}

const struct family family_buffer = {
	.name = "buffer",
	.rows = rows,
	.row_count = sizeof rows / sizeof *rows,
	.memory_size = sizeof(struct window),
	.want = want,
	.sweep = sweep,
};
