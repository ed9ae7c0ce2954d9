/* How fresh the signals of each pool are, what its servers tell, what queues outside of it, what its GPUs tell. */
#include "controller/web/metric.h"

#include <stddef.h>

struct pool_labels {
	struct metric_label items[METRIC_LABELS + 1];
};

static struct pool_labels labels_of(const struct metric_sink *s, size_t pool)
{
	const struct pool_spec *spec = &s->shown->fleet->pools[pool];

	return (struct pool_labels){ { { "namespace", spec->namespace }, { "pool", spec->name } } };
}

static size_t pool_count(const struct metric_sink *s)
{
	return s->shown->plan && s->shown->fleet && s->shown->pools ? s->shown->plan->pool_count : 0;
}

static void write_member(struct metric_sink *s)
{
	for (size_t i = 0; i < pool_count(s); i++) {
		const char *pool = (const char *)&s->shown->pools[i];
		int64_t value = *(const int64_t *)(const void *)(pool + s->metric->offset);
		if (value != ABSENT)
			metric_sample(s, labels_of(s, i).items, value, s->metric->digits);
	}
}

static void write_device(struct metric_sink *s)
{
	for (size_t i = 0; i < pool_count(s); i++) {
		const struct published_devices *d = &s->shown->pools[i].devices;
		int64_t value = *(const int64_t *)(const void *)((const char *)d + s->metric->offset);
		if (d->count && value != ABSENT)
			metric_sample(s, labels_of(s, i).items, value, s->metric->digits);
	}
}

static void write_mebibytes(struct metric_sink *s)
{
	for (size_t i = 0; i < pool_count(s); i++) {
		const struct published_devices *d = &s->shown->pools[i].devices;
		int64_t value = *(const int64_t *)(const void *)((const char *)d + s->metric->offset);
		if (d->count)
			metric_sample(s, labels_of(s, i).items, value << 20, 0);
	}
}

static void write_percentile(struct metric_sink *s, size_t pool, const char *percent, const struct published_bounds *b)
{
	struct pool_labels l = labels_of(s, pool);

	if (!b->is_told)
		return;
	l.items[2] = (struct metric_label){ "percentile", percent };
	l.items[3] = (struct metric_label){ "bound", "lower" };
	metric_sample(s, l.items, b->lower_us, 6);
	l.items[3].value = "upper";
	if (b->upper_us != INT64_MAX)
		metric_sample(s, l.items, b->upper_us, 6);
}

/* Two bounds beside each other: of the half, and of all but a hundredth. */
static void write_percentiles(struct metric_sink *s)
{
	for (size_t i = 0; i < pool_count(s); i++) {
		const char *serving = (const char *)&s->shown->pools[i].serving + s->metric->offset;
		const struct published_bounds *b = (const void *)serving;
		write_percentile(s, i, "50", &b[0]);
		write_percentile(s, i, "99", &b[1]);
	}
}

#define PERCENTILES_OF(member_)                                                     \
	.labels = "namespace, pool, percentile, bound", .write = write_percentiles, \
	.offset = offsetof(struct published_serving, member_)
#define MEMBER_OF(member_) \
	.labels = "namespace, pool", .write = write_member, .offset = offsetof(struct published_pool, member_)
#define DEVICE_OF(member_, write_) \
	.labels = "namespace, pool", .write = (write_), .offset = offsetof(struct published_devices, member_)

/* clang-format off */
static const struct metric rows[] = {
	{ .name = "preheat_pool_signals_age_seconds", MEMBER_OF(signals_age), .digits = 3,
	  .help = "Since the last reading in which a replica was fresh." },
	{ .name = "preheat_pool_queue_wait_seconds", PERCENTILES_OF(wait),
	  .help = "Between these two edges of the servers' histograms lies the percentile of the queue wait, last five minutes; no upper one: beyond the last edge." },
	{ .name = "preheat_pool_first_token_seconds", PERCENTILES_OF(first_token),
	  .help = "The same of the time to the first token." },
	{ .name = "preheat_pool_prefix_cache_hit_ratio", MEMBER_OF(serving.prefix_permille), .digits = 3,
	  .help = "Share of prompt tokens that the prefix cache had, last five minutes." },
	{ .name = "preheat_pool_told_load_seconds", MEMBER_OF(serving.load_ms), .digits = 3,
	  .help = "How long loading the weights took, as the servers tell, mean over the replicas." },
	{ .name = "preheat_pool_told_startup_seconds", MEMBER_OF(serving.startup_ms), .digits = 3,
	  .help = "From a server's start until it could serve, as the servers tell, mean over the replicas. To be compared with the measured stage load." },
	{ .name = "preheat_pool_queue_requests", MEMBER_OF(queued),
	  .help = "Requests in the queue outside of the pods (signals.queue); not told while that is not known." },
	{ .name = "preheat_pool_devices", DEVICE_OF(count, write_device),
	  .help = "GPUs, or slices, of the pool's nodes that DCGM exporters tell of." },
	{ .name = "preheat_pool_devices_held", DEVICE_OF(held, write_device), .help = "Of these held by a pod." },
	{ .name = "preheat_pool_devices_failing", DEVICE_OF(failing, write_device),
	  .help = "Of these with an XID error as their last." },
	{ .name = "preheat_pool_device_use_ratio", DEVICE_OF(use_permille, write_device), .digits = 3,
	  .help = "Mean use of the GPUs that pods hold. For idleness, not for load." },
	{ .name = "preheat_pool_device_memory_used_bytes", DEVICE_OF(memory_used_mib, write_mebibytes),
	  .help = "GPU memory in use." },
	{ .name = "preheat_pool_device_memory_free_bytes", DEVICE_OF(memory_free_mib, write_mebibytes),
	  .help = "GPU memory that is free." },
	{ .name = "preheat_pool_device_memory_stranded_ratio", DEVICE_OF(stranded_permille, write_device), .digits = 3,
	  .help = "Fragmentation: of the free GPU memory, the share in which no further replica fits." },
	{ .name = "preheat_pool_device_power_watts", DEVICE_OF(power_mw, write_device), .digits = 3,
	  .help = "What the GPUs draw." },
};
/* clang-format on */

const struct metric_list signal_metrics = METRIC_LIST("Signals and GPUs", rows);
