#include "controller/web/pool_figures.h"

#include "base/terminal.h"
#include "base/quantity.h"
#include "controller/policy/queue_wait.h"

#include <stdlib.h>

static const struct {
	const char *name, *condition;
} problems[PROBLEM_COUNT] = {
	[PROBLEM_LOAD_SLOW] = { "load-slow", "ModelLoadSlow" },
	[PROBLEM_GPU_MEMORY] = { "gpu-memory", "GPUMemoryUnfit" },
	[PROBLEM_FOREIGN_PODS] = { "foreign-pods", "ForeignPods" },
	[PROBLEM_NO_GROUP] = { "no-group", "NoMatchingNodeGroup" },
	[PROBLEM_FRAGMENTED] = { "fragmented", "Fragmented" },
	[PROBLEM_BATCH_HOLDS] = { "batch-holds", "BatchHoldsGPUs" },
	[PROBLEM_ABILITY] = { "ability", "AbilityMissing" },
	[PROBLEM_GROWTH] = { "growth", "GrowthHeld" },
	[PROBLEM_CONTENTION] = { "contention", "NodeGroupContended" },
	[PROBLEM_BUSY] = { "group-busy", "NodeGroupBusy" },
	[PROBLEM_CORDONED] = { "nodes-cordoned", "NodesCordoned" },
	[PROBLEM_AILING] = { "group-unhealthy", "NodeGroupUnhealthy" },
	[PROBLEM_UNSEEN] = { "unseen", "LaunchUnseen" },
	[PROBLEM_CONTESTED] = { "replicas-contested", "ReplicasContested" },
	[PROBLEM_RESERVATION] = { "reservation-ends", "ReservationEnds" },
	[PROBLEM_CLOCK] = { "clock", "ClockWrong" },
	[PROBLEM_DRAIN_BLOCKED] = { "drain-blocked", "DrainBlocked" },
	[PROBLEM_PREFETCH] = { "prefetch", "PrefetchFailed" },
	[PROBLEM_ENGINE_WAITS] = { "engine-waits", "EngineWaits" },
	[PROBLEM_LOAD_DIFFERS] = { "load-differs", "LoadTimeDiffers" },
};

int64_t figure_headroom_milli(const struct pool_decision *d)
{
	return d->ready * 1000 - (d->demand_milli == ABSENT ? 0 : d->demand_milli);
}

millis figure_wait(const struct pool_decision *d)
{
	return queue_wait(d);
}

void figure_wait_text(const struct pool_decision *d, struct buf *out)
{
	millis wait = figure_wait(d);

	buf_text(out, wait == ABSENT ? "none hot" : wait ? human_duration(wait).text : "0s");
}

const char *problem_name(enum pool_problem problem)
{
	return problems[problem].name;
}

const char *problem_condition(enum pool_problem problem)
{
	return problems[problem].condition;
}

void figure_replicas(int64_t milli, struct buf *out)
{
	int64_t tenths = (llabs(milli) + 50) / 100;

	if (milli < 0 && tenths)
		buf_text(out, "-");
	fixed_format(tenths, 1, out);
}

void figure_lead_time(const struct pool_decision *d, struct buf *out)
{
	if (d->lead_cold_p95 > 0)
		buf_printf(out, "%s/%s", human_duration(d->lead_cold_p50).text, human_duration(d->lead_cold_p95).text);
}
