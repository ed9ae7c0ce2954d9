/*
 * The autoscaler that a team runs already, with the settings of its own
 * manifest: a HorizontalPodAutoscaler (autoscaling/v2), or a KEDA
 * ScaledObject, which is an HPA on external metrics and a way to zero
 * (keda.sh, "Scaling Deployments": active above activationThreshold, to zero
 * after cooldownPeriod). Several metrics: the largest proposal counts.
 * Unneeded nodes stay as long as the autoscaler of nodes lets them.
 */
#include "controller/simulation/rivals/hpa.h"
#include "controller/simulation/rivals/rival.h"

enum {
	RUNNING,
	WAITING,
	TOTAL,
	MEAN,
	ACTIVATION,
	TOLERANCE,
	LEAST,
	MOST,
	TO_ZERO,
	COOLDOWN,
	UP_WINDOW,
	UP_PODS,
	UP_PODS_PERIOD,
	UP_PERCENT,
	UP_PERCENT_PERIOD,
	UP_SELECT,
	DOWN_WINDOW,
	DOWN_PODS,
	DOWN_PODS_PERIOD,
	DOWN_PERCENT,
	DOWN_PERCENT_PERIOD,
	DOWN_SELECT,
	REMOVAL
};

#define TARGET_HELP "requests a replica; 0: no such metric"
#define PODS_HELP   "pods in a period; 1000000: any number"
#define SELECT_HELP "0 Max, 1 Min, 2 Disabled"

static const struct setting_row rows[] = {
	[RUNNING] = { "running", 0, 0, 1e6, TARGET_HELP },
	[WAITING] = { "waiting", 0, 0, 1e6, TARGET_HELP },
	[TOTAL] = { "total", 0, 0, 1e6, TARGET_HELP },
	[MEAN] = { "mean", 0, 0, 1, "1: the metric is a mean over replicas, divided by their number once more" },
	[ACTIVATION] = { "activation", 0, 0, 1e6, "requests above which a fleet of none gets its first replica" },
	[TOLERANCE] = { "tolerance", 0.1, 0, 0.9, "share of the target that is not acted on" },
	[LEAST] = { "min", 1, 0, 1e5, "replicas" },
	[MOST] = { "max", 1e5, 1, 1e5, "replicas" },
	[TO_ZERO] = { "zero", 0, 0, 1, "1: none without requests" },
	[COOLDOWN] = { "cooldown", 300, 0, 86400, "s without requests before the last replica goes" },
	[UP_WINDOW] = { "up_window", 0, 0, 3600, "s; scale-up stabilization" },
	[UP_PODS] = { "up_pods", 4, 0, 1e6, PODS_HELP },
	[UP_PODS_PERIOD] = { "up_pods_s", 15, 1, 1800, "s" },
	[UP_PERCENT] = { "up_percent", 100, 0, 1e6, "of the replicas in a period" },
	[UP_PERCENT_PERIOD] = { "up_percent_s", 15, 1, 1800, "s" },
	[UP_SELECT] = { "up_select", 0, 0, 2, SELECT_HELP },
	[DOWN_WINDOW] = { "down_window", 300, 0, 3600, "s; scale-down stabilization" },
	[DOWN_PODS] = { "down_pods", 0, 0, 1e6, PODS_HELP },
	[DOWN_PODS_PERIOD] = { "down_pods_s", 15, 1, 1800, "s" },
	[DOWN_PERCENT] = { "down_percent", 100, 0, 1e6, "of the replicas in a period" },
	[DOWN_PERCENT_PERIOD] = { "down_percent_s", 15, 1, 1800, "s" },
	[DOWN_SELECT] = { "down_select", 0, 0, 2, SELECT_HELP },
	[REMOVAL] = { "removal", 600, 0, 86400, "s; how long an unneeded node stays" },
};

struct configured {
	struct hpa hpa;
	struct window nodes;
	millis active_at;
};

static millis seconds(const struct settings *s, size_t row)
{
	return (millis)(s->values[row] * SECOND);
}

/* `first`: the row of the stabilization; the others of its direction follow. A value of 0 is a policy that is absent.
 */
static struct hpa_rule rule_of(const struct settings *s, size_t first)
{
	size_t pods = first + UP_PODS - UP_WINDOW, percent = first + UP_PERCENT - UP_WINDOW;
	int64_t pod_count = (int64_t)s->values[pods], share = (int64_t)s->values[percent];

	return (struct hpa_rule){
		.stabilization = seconds(s, first),
		.pods = { pod_count > 0 ? pod_count : -1, seconds(s, pods + 1) },
		.percent = { share > 0 ? share : -1, seconds(s, percent + 1) },
		.select = (enum hpa_select)s->values[first + UP_SELECT - UP_WINDOW],
	};
}

static int64_t proposal(const struct configured *c, const struct settings *s, const struct sight *v)
{
	const double seen[] = { [RUNNING] = (double)v->running,
				[WAITING] = (double)v->waiting,
				[TOTAL] = (double)(v->running + v->waiting) };
	int64_t most = 0;

	for (size_t i = RUNNING; i <= TOTAL; i++) {
		double value = s->values[MEAN] >= 1 && v->ready > 0 ? seen[i] / (double)v->ready : seen[i];
		int64_t asked = s->values[i] > 0 ? hpa_proposal(&c->hpa, value, s->values[i], s->values[TOLERANCE]) : 0;

		most = asked > most ? asked : most;
	}
	return most;
}

static bool is_active(const struct settings *s, const struct sight *v)
{
	int64_t seen = s->values[WAITING] > 0 ? v->waiting : 0;

	if (s->values[TOTAL] > 0)
		seen = v->running + v->waiting;
	else if (s->values[RUNNING] > 0)
		seen += v->running;
	return (double)seen > s->values[ACTIVATION];
}

static int64_t pods(struct configured *c, const struct settings *s, const struct sight *v)
{
	struct hpa_limits limits = { .least = (int64_t)s->values[LEAST],
				     .most = (int64_t)s->values[MOST],
				     .up = rule_of(s, UP_WINDOW),
				     .down = rule_of(s, DOWN_WINDOW) };
	bool active = is_active(s, v);

	if (limits.most > v->most)
		limits.most = v->most;
	if (limits.least < 1)
		limits.least = 1;
	if (!c->hpa.begun || active)
		c->active_at = v->now;
	hpa_begin(&c->hpa, v->now, v->ready + v->starting, &limits);
	if (s->values[TO_ZERO] >= 1 && !active && v->now - c->active_at >= seconds(s, COOLDOWN)) {
		c->hpa.replicas = 0;
		return 0;
	}
	if (!c->hpa.replicas)
		c->hpa.replicas = limits.least;
	return hpa_scale(&c->hpa, v->now, proposal(c, s, v), &limits);
}

static int64_t want(void *memory, const struct settings *s, const struct sight *v)
{
	struct configured *c = memory;

	return window_max(&c->nodes, v->now, seconds(s, REMOVAL), pods(c, s, v));
}

const struct family family_configured = {
	.name = "configured",
	.rows = rows,
	.row_count = sizeof rows / sizeof *rows,
	.memory_size = sizeof(struct configured),
	.want = want,
	.has_no_default = true,
};
