/* What is told of the controller itself. */
#include "controller/web/metric.h"

#include <stddef.h>

static void write_build(struct metric_sink *s)
{
	if (s->shown->version)
		metric_sample(s, (struct metric_label[]){ { "version", s->shown->version }, { 0 } }, 1, 0);
}

static void write_count(struct metric_sink *s)
{
	metric_sample(s, NULL, *(const int64_t *)(const void *)((const char *)s->shown + s->metric->offset),
		      s->metric->digits);
}

static void write_leader(struct metric_sink *s)
{
	metric_sample(s, NULL, s->shown->role != ROLE_FOLLOWER, 0);
}

static void write_dry_run(struct metric_sink *s)
{
	metric_sample(s, NULL, s->shown->is_dry_run, 0);
}

static void write_last_tick(struct metric_sink *s)
{
	if (s->shown->snapshot)
		metric_seconds(s, NULL, s->shown->snapshot->now);
}

static void write_times(struct metric_sink *s)
{
	metric_times(s, (const struct published_times *)(const void *)((const char *)s->shown + s->metric->offset));
}

static void write_history_failed(struct metric_sink *s)
{
	metric_sample(s, NULL, s->shown->history_error.kind != ERROR_NONE, 0);
}

static void write_counters(struct metric_sink *s)
{
	static const struct {
		size_t offset;
		const char *names[3];
	} labels[] = {
		{ offsetof(struct published, provider_calls), { "provider", "verb", "error" } },
		{ offsetof(struct published, api_calls), { "what" } },
		{ offsetof(struct published, evictions), { "result" } },
		{ offsetof(struct published, nodes), { "action" } },
		{ offsetof(struct published, events), { "result" } },
	};

	for (size_t i = 0; i < sizeof labels / sizeof *labels; i++)
		if (labels[i].offset == s->metric->offset)
			metric_counts(s,
				      (const struct published_counts *)(const void *)((const char *)s->shown +
										      s->metric->offset),
				      labels[i].names);
}

static void write_refused(struct metric_sink *s)
{
	for (size_t i = 0; i < s->shown->refused_pools.count; i++) {
		const struct published_count *c = &s->shown->refused_pools.items[i];
		metric_sample(s,
			      (struct metric_label[]){ { "namespace", c->labels[0] }, { "pool", c->labels[1] }, { 0 } },
			      1, 0);
	}
}

static void write_watch(struct metric_sink *s)
{
	for (size_t i = 0; i < s->shown->watch_count; i++) {
		const char *watch = (const char *)&s->shown->watches[i];
		metric_sample(s, (struct metric_label[]){ { "resource", s->shown->watches[i].resource }, { 0 } },
			      *(const int64_t *)(const void *)(watch + s->metric->offset), s->metric->digits);
	}
}

static void write_synced(struct metric_sink *s)
{
	for (size_t i = 0; i < s->shown->watch_count; i++)
		metric_sample(s, (struct metric_label[]){ { "resource", s->shown->watches[i].resource }, { 0 } },
			      s->shown->watches[i].is_synced, 0);
}

#define OF(member)    .offset = offsetof(struct published, member)
#define WATCH(member) .write = write_watch, .labels = "resource", .offset = offsetof(struct published_watch, member)

/* clang-format off */
static const struct metric rows[] = {
	{ .name = "preheat_build_info", .labels = "version", .write = write_build, .help = "Always 1." },
	{ .name = "preheat_leader", .labels = "", .write = write_leader, .help = "1 for the replica of the controller that acts." },
	{ .name = "preheat_dry_run", .labels = "", .write = write_dry_run, .help = "1 when nothing is changed anywhere." },
	{ .name = "preheat_lease_transitions", .labels = "", .write = write_count, OF(lease_transitions), .help = "How often the leader changed, as the Lease tells." },
	{ .name = "preheat_ticks_total", .type = METRIC_COUNTER, .labels = "", .write = write_count, OF(ticks), .help = "Decisions made." },
	{ .name = "preheat_ticks_late_total", .type = METRIC_COUNTER, .labels = "", .write = write_count, OF(ticks_late), .help = "Ticks that began more than an interval late." },
	{ .name = "preheat_tick_interval_seconds", .labels = "", .write = write_count, OF(tick_interval), .digits = 3, .help = "How often it decides." },
	{ .name = "preheat_last_tick_timestamp_seconds", .labels = "", .write = write_last_tick, .help = "When it decided last." },
	{ .name = "preheat_tick_duration_seconds", .type = METRIC_HISTOGRAM, .labels = "le", .write = write_times, OF(tick_time), .help = "From the begin of a tick to its end." },
	{ .name = "preheat_decide_duration_seconds", .type = METRIC_HISTOGRAM, .labels = "le", .write = write_times, OF(decide_time), .help = "The decision alone." },
	{ .name = "preheat_history_failed", .labels = "", .write = write_history_failed, .help = "1 while the history cannot be written: then nothing is asked for." },
	{ .name = "preheat_history_size_bytes", .labels = "", .write = write_count, OF(history_bytes), .help = "Size of the history's file." },
	{ .name = "preheat_history_lag_ticks", .labels = "", .write = write_count, OF(history_lag_ticks), .help = "Ticks that a follower's copy is behind." },
	{ .name = "preheat_refused_pools", .labels = "namespace, pool", .write = write_refused, .help = "1 per WarmPool that cannot be used; its condition Ready says why." },
	{ .name = "preheat_watch_synced", .labels = "resource", .write = write_synced, .help = "1 while what is known of the resource is complete." },
	{ .name = "preheat_watch_objects", WATCH(objects), .help = "Objects of the resource." },
	{ .name = "preheat_watch_relists_total", .type = METRIC_COUNTER, WATCH(relists), .help = "Lists read anew." },
	{ .name = "preheat_watch_errors_total", .type = METRIC_COUNTER, WATCH(errors), .help = "Watches and lists that failed." },
	{ .name = "preheat_watch_last_event_timestamp_seconds", WATCH(last_event_at), .digits = 3, .help = "When the server told something last." },
	{ .name = "preheat_provider_calls_total", .type = METRIC_COUNTER, .labels = "provider, verb, error", .write = write_counters, OF(provider_calls), .help = "Calls to clouds; error none: it went well." },
	{ .name = "preheat_api_calls_total", .type = METRIC_COUNTER, .labels = "what", .write = write_counters, OF(api_calls), .help = "Calls to the API server: all; and of these failed (to look for what is not there is none), repeated, throttled, and barred because nothing may be written now." },
	{ .name = "preheat_evictions_total", .type = METRIC_COUNTER, .labels = "result", .write = write_counters, OF(evictions), .help = "Pods asked to go." },
	{ .name = "preheat_node_actions_total", .type = METRIC_COUNTER, .labels = "action", .write = write_counters, OF(nodes), .help = "What was done to nodes." },
	{ .name = "preheat_events_total", .type = METRIC_COUNTER, .labels = "result", .write = write_counters, OF(events), .help = "Events told to the API server." },
};
/* clang-format on */

const struct metric_list loop_metrics = METRIC_LIST("Controller", rows);
