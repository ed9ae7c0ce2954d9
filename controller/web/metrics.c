#include "controller/web/metrics.h"

#include "base/quantity.h"
#include "controller/web/pool_figures.h"

#include <assert.h>
#include <dirent.h>
#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

enum metric_type { METRIC_GAUGE, METRIC_COUNTER, METRIC_HISTOGRAM };
static const char *const type_names[] = { "gauge", "counter", "histogram" };

/* What there is a sample of, and the struct that members are of. */
enum metric_of {
	OF_CONTROLLER,	   /* once: struct published */
	OF_SPEC,	   /* each pool of the last plan: its struct pool_spec */
	OF_DECISION,	   /* the same: its struct pool_decision */
	OF_POOL,	   /* each pool: its struct published_pool */
	OF_DEVICES,	   /* each pool whose GPUs tell something: its struct published_devices */
	OF_COST,	   /* each pool whose cost is known: its struct cost_sums */
	OF_GROUP_SPEC,	   /* each node group: its struct group_spec */
	OF_GROUP_DECISION, /* each that a plan names: its struct group_decision */
	OF_GROUP,	   /* each: its struct published_group */
	OF_DESCRIBED,	   /* each that its provider has told of: the same */
	OF_WATCH,	   /* each watch: its struct published_watch */
};

struct metric_label {
	const char *name, *value; /* value NULL: left out */
};
#define LABELS(...)                   \
	(const struct metric_label[]) \
	{                             \
		__VA_ARGS__,          \
		{                     \
			NULL, NULL    \
		}                     \
	}

enum { METRIC_LABELS = 6 };

/* Where the samples of one metric go. */
struct metric_sink {
	const struct metric *metric;
	const struct published *shown;
	struct buf *out;
	bool has_head; /* HELP and TYPE are written with the first sample */

	size_t item;	  /* which pool, group or watch */
	const void *base; /* its struct */
	struct metric_label labels[2];
};

struct metric {
	const char *name;
	enum metric_type type;
	enum metric_of of;
	const char *labels; /* for the reference: "namespace, pool" */
	const char *help;
	/* Of one item; NULL: the int64_t at `offset`, if it is not absent. */
	void (*write)(struct metric_sink *s);
	size_t offset;
	int digits;	     /* by what power of ten a value is smaller than the unit */
	const char *choices; /* name of the enum that the member is of */
};

/* --- samples --- */

/* Bytes of the UTF-8 character at `text`, 0 where there is none. One bad byte, and Prometheus refuses the whole page.
 */
static size_t character(const char *text)
{
	const unsigned char *c = (const unsigned char *)text;
	size_t len = c[0] < 0x80 ? 1 : c[0] < 0xc2 ? 0 : c[0] < 0xe0 ? 2 : c[0] < 0xf0 ? 3 : c[0] < 0xf5 ? 4 : 0;
	bool is_overlong = (c[0] == 0xe0 && c[1] < 0xa0) || (c[0] == 0xf0 && c[1] < 0x90);
	bool is_none = (c[0] == 0xed && c[1] >= 0xa0) || (c[0] == 0xf4 && c[1] >= 0x90);

	for (size_t i = 1; i < len; i++)
		if ((c[i] & 0xc0) != 0x80)
			return 0;
	return is_overlong || is_none ? 0 : len;
}

static void escape(const char *text, bool is_label, struct buf *out)
{
	while (*text) {
		size_t len = character(text);
		if (*text == '\n')
			buf_text(out, "\\n");
		else if (*text == '\\' || (is_label && *text == '"'))
			buf_printf(out, "\\%c", *text);
		else
			buf_append(out, len ? text : "?", len ? len : 1);
		text += len ? len : 1;
	}
}

static void write_value(int64_t value, int digits, struct buf *out)
{
	if (value < 0 && value > INT64_MIN) {
		buf_text(out, "-");
		value = -value;
	}
	fixed_format(value, digits, out);
}

static bool write_labels(const struct metric_label *labels, size_t most, bool is_open, struct buf *out)
{
	for (; most && labels && labels->name; labels++, most--) {
		if (!labels->value)
			continue;
		buf_printf(out, "%s%s=\"", is_open ? "," : "{", labels->name);
		escape(labels->value, true, out);
		buf_text(out, "\"");
		is_open = true;
	}
	return is_open;
}

/* `more`: labels beside those of the item; ends with a NULL name, and may be NULL. */
static void write_sample(struct metric_sink *s, const char *suffix, const struct metric_label *more, int64_t value,
			 int digits)
{
	if (!s->has_head) {
		buf_printf(s->out, "# HELP %s ", s->metric->name);
		escape(s->metric->help, false, s->out);
		buf_printf(s->out, "\n# TYPE %s %s\n", s->metric->name, type_names[s->metric->type]);
	}
	s->has_head = true;
	buf_printf(s->out, "%s%s", s->metric->name, suffix);
	if (write_labels(more, METRIC_LABELS, write_labels(s->labels, 2, false, s->out), s->out))
		buf_text(s->out, "}");
	buf_text(s->out, " ");
	write_value(value, digits, s->out);
	buf_text(s->out, "\n");
}

static void sample(struct metric_sink *s, const struct metric_label *more, int64_t value)
{
	write_sample(s, "", more, value, s->metric->digits);
}

static const struct pool_spec *pool_of(const struct metric_sink *s)
{
	return &s->shown->fleet->pools[s->item];
}

static int64_t member(const struct metric_sink *s)
{
	return *(const int64_t *)(const void *)((const char *)s->base + s->metric->offset);
}

/* A sample for each choice, under the last of the labels: 1 for the one that holds, else 0. */
static void write_choices(struct metric_sink *s)
{
	const char *name;

	for (int64_t i = 0; (name = field_enum_name(s->metric->choices, i)); i++)
		sample(s, LABELS({ strrchr(s->metric->labels, ' ') + 1, name }), i == member(s));
}

/* --- the controller itself --- */

static void write_build(struct metric_sink *s)
{
	if (s->shown->version)
		sample(s, LABELS({ "version", s->shown->version }), 1);
}

static void write_leader(struct metric_sink *s)
{
	sample(s, NULL, s->shown->role != ROLE_FOLLOWER);
}

static void write_dry_run(struct metric_sink *s)
{
	sample(s, NULL, s->shown->is_dry_run);
}

static void write_last_tick(struct metric_sink *s)
{
	if (s->shown->snapshot)
		sample(s, NULL, s->shown->snapshot->now);
}

static void write_times(struct metric_sink *s)
{
	static const int64_t bounds[PUBLISHED_BUCKETS - 1] = PUBLISHED_BOUNDS;
	const struct published_times *t = (const void *)((const char *)s->shown + s->metric->offset);
	int64_t below = 0;

	for (size_t i = 0; i < PUBLISHED_BUCKETS; i++) {
		CLEANUP(buf_release) struct buf bound = { 0 };
		if (i < PUBLISHED_BUCKETS - 1)
			fixed_format(bounds[i], 3, &bound);
		else
			buf_text(&bound, "+Inf");
		below += t->bucket[i];
		write_sample(s, "_bucket", LABELS({ "le", bound.text }), below, 0);
	}
	write_sample(s, "_sum", NULL, t->sum_us, 6);
	write_sample(s, "_count", NULL, t->count, 0);
}

static void write_history_failed(struct metric_sink *s)
{
	sample(s, NULL, s->shown->history_error.kind != ERROR_NONE);
}

static void write_history_disk_full(struct metric_sink *s)
{
	sample(s, NULL, s->shown->is_history_disk_full);
}

/* The labels of the counters have the names of the row's. */
static void write_counts(struct metric_sink *s)
{
	const struct published_counts *counts = (const void *)((const char *)s->shown + s->metric->offset);
	char names[64], *at, *last = NULL;

	for (size_t i = 0; i < counts->count; i++) {
		struct metric_label labels[4] = { { 0 } };
		size_t n = 0;

		snprintf(names, sizeof names, "%s", s->metric->labels);
		for (at = strtok_r(names, ", ", &last); at && n < 3; at = strtok_r(NULL, ", ", &last), n++)
			labels[n] = (struct metric_label){ at, counts->items[i].labels[n] };
		sample(s, labels, counts->items[i].count);
	}
}

static void write_refused(struct metric_sink *s)
{
	for (size_t i = 0; i < s->shown->refused_pools.count; i++) {
		const struct published_count *c = &s->shown->refused_pools.items[i];
		sample(s, LABELS({ "namespace", c->labels[0] }, { "pool", c->labels[1] }), 1);
	}
}

static void write_synced(struct metric_sink *s)
{
	sample(s, NULL, ((const struct published_watch *)s->base)->is_synced);
}

#define WATCH(member_) .of = OF_WATCH, .labels = "resource", .offset = offsetof(struct published_watch, member_)

/* clang-format off */
static const struct metric loop_metrics[] = {
	{ .name = "preheat_build_info", .labels = "version", .write = write_build, .help = "Always 1." },
	{ .name = "preheat_leader", .labels = "", .write = write_leader, .help = "1 for the replica of the controller that acts." },
	{ .name = "preheat_dry_run", .labels = "", .write = write_dry_run, .help = "1 when nothing is changed anywhere." },
	{ .name = "preheat_lease_transitions", .labels = "", .offset = offsetof(struct published, lease_transitions), .help = "How often the leader changed, by the Lease." },
	{ .name = "preheat_ticks_total", .type = METRIC_COUNTER, .labels = "", .offset = offsetof(struct published, ticks), .help = "Decisions made." },
	{ .name = "preheat_ticks_late_total", .type = METRIC_COUNTER, .labels = "", .offset = offsetof(struct published, ticks_late), .help = "Ticks that began more than an interval late." },
	{ .name = "preheat_tick_interval_seconds", .labels = "", .offset = offsetof(struct published, tick_interval), .digits = 3, .help = "How often it decides." },
	{ .name = "preheat_last_tick_timestamp_seconds", .labels = "", .write = write_last_tick, .digits = 3, .help = "When it decided last." },
	{ .name = "preheat_tick_duration_seconds", .type = METRIC_HISTOGRAM, .labels = "le", .write = write_times, .offset = offsetof(struct published, tick_time), .help = "From the begin of a tick to its end." },
	{ .name = "preheat_decide_duration_seconds", .type = METRIC_HISTOGRAM, .labels = "le", .write = write_times, .offset = offsetof(struct published, decide_time), .help = "The decision alone." },
	{ .name = "preheat_history_failed", .labels = "", .write = write_history_failed, .help = "1 while the history cannot be written: then nothing is requested." },
	{ .name = "preheat_history_disk_full", .labels = "", .write = write_history_disk_full, .help = "1 while the history finds no room on its disk, or hardly any: the leader's oldest ticks go, a follower's copy stands still." },
	{ .name = "preheat_history_size_bytes", .labels = "", .offset = offsetof(struct published, history_bytes), .help = "Size of the history's file." },
	{ .name = "preheat_history_lag_ticks", .labels = "", .offset = offsetof(struct published, history_lag_ticks), .help = "Ticks that a follower's copy is behind." },
	{ .name = "preheat_clock_ahead_seconds", .labels = "", .offset = offsetof(struct published, clock_ahead), .digits = 3, .help = "How far the machine's clock is ahead of the API server's; more than a minute either way, and the server's time is used." },
	{ .name = "preheat_refused_pools", .labels = "namespace, pool", .write = write_refused, .help = "1 per WarmPool that cannot be used; its condition Ready says why." },
	{ .name = "preheat_watch_synced", .of = OF_WATCH, .labels = "resource", .write = write_synced, .help = "1 while what is known of the resource is complete." },
	{ .name = "preheat_watch_objects", WATCH(objects), .help = "Objects of the resource." },
	{ .name = "preheat_watch_relists_total", .type = METRIC_COUNTER, WATCH(relists), .help = "Lists read again." },
	{ .name = "preheat_watch_errors_total", .type = METRIC_COUNTER, WATCH(errors), .help = "Watches and lists that failed." },
	{ .name = "preheat_watch_last_event_timestamp_seconds", WATCH(last_event_at), .digits = 3, .help = "When the server last sent an event." },
	{ .name = "preheat_provider_calls_total", .type = METRIC_COUNTER, .labels = "provider, verb, error", .write = write_counts, .offset = offsetof(struct published, provider_calls), .help = "Calls to clouds; error none: it went well." },
	{ .name = "preheat_api_calls_total", .type = METRIC_COUNTER, .labels = "what", .write = write_counts, .offset = offsetof(struct published, api_calls), .help = "Calls to the API server: all; of these failed (except look-ups of missing objects), repeated, throttled, and blocked because nothing may be written." },
	{ .name = "preheat_evictions_total", .type = METRIC_COUNTER, .labels = "result", .write = write_counts, .offset = offsetof(struct published, evictions), .help = "Evictions requested." },
	{ .name = "preheat_node_actions_total", .type = METRIC_COUNTER, .labels = "action", .write = write_counts, .offset = offsetof(struct published, nodes), .help = "What was done to nodes." },
	{ .name = "preheat_events_total", .type = METRIC_COUNTER, .labels = "result", .write = write_counts, .offset = offsetof(struct published, events), .help = "Events sent to the API server." },
	{ .name = "preheat_stray_pods", .labels = "reason", .write = write_counts, .offset = offsetof(struct published, strays), .help = "Pods that ask for GPUs, wait, and belong to no WarmPool, by what keeps them waiting: nothing is bought for them." },
};
/* clang-format on */

/* --- pools --- */

static void write_info(struct metric_sink *s)
{
	const struct pool_spec *spec = s->base;

	sample(s, LABELS({ "class", pool_class_name(spec->class) }, { "mode", pool_mode_name(spec->mode) }), 1);
}

static void write_desired(struct metric_sink *s)
{
	const struct published_pool *pool = s->shown->pools ? &s->shown->pools[s->item] : NULL;

	if (pool)
		sample(s, LABELS({ "kind", pool->target_kind }, { "name", pool->target_name }),
		       ((const struct pool_decision *)s->base)->decided);
}

static void write_headroom(struct metric_sink *s)
{
	sample(s, NULL, figure_headroom_milli(s->base));
}

static void write_wait(struct metric_sink *s)
{
	millis wait = figure_wait(s->base);

	if (wait != ABSENT)
		sample(s, NULL, wait);
}

static void write_quantiles(struct metric_sink *s, const char *label, const char *value, millis p50, millis p95)
{
	sample(s, LABELS({ label, value }, { "percentile", "50" }), p50);
	sample(s, LABELS({ label, value }, { "percentile", "95" }), p95);
}

static void write_lead_times(struct metric_sink *s)
{
	const struct pool_decision *d = s->base;

	if (d->lead_cold_p95)
		write_quantiles(s, "tier", "cold", d->lead_cold_p50, d->lead_cold_p95);
	if (d->lead_fast_p95)
		write_quantiles(s, "tier", "fast", d->lead_fast_p50, d->lead_fast_p95);
}

static void write_stages(struct metric_sink *s)
{
	const struct published_pool *pool = s->base;

	for (int k = 0; k < STAGE_COUNT; k++)
		if (pool->stage[k].samples)
			write_quantiles(s, "stage", stage_name((enum stage)k), pool->stage[k].p50, pool->stage[k].p95);
}

static void write_stuck(struct metric_sink *s)
{
	for (int k = 0; k < STAGE_COUNT; k++)
		sample(s, LABELS({ "stage", stage_name((enum stage)k) }),
		       ((const struct published_pool *)s->base)->stuck[k]);
}

/* Pods of several shapes may wait for the same reason: one sample. */
static void write_unschedulable(struct metric_sink *s)
{
	const struct published_counts *c = &((const struct published_pool *)s->base)->unschedulable;

	for (size_t k = 0; k < c->count; k++) {
		const char *reason = c->items[k].labels[0];
		int64_t sum = 0;
		bool is_written = false;

		for (size_t i = 0; i < c->count; i++)
			if (!strcmp(c->items[i].labels[0], reason)) {
				is_written |= i < k;
				sum += c->items[i].count;
			}
		if (!is_written)
			sample(s, LABELS({ "reason", reason }), sum);
	}
}

static void write_problems(struct metric_sink *s)
{
	for (int k = 0; k < PROBLEM_COUNT; k++)
		sample(s, LABELS({ "problem", problem_name((enum pool_problem)k) }),
		       ((const struct published_pool *)s->base)->problem[k] != NULL);
}

/* A pool without prices has GPU hours, and no dollars. */
static void write_hourly(struct metric_sink *s)
{
	if (!pool_of(s)->is_unpriced)
		sample(s, NULL, member(s));
}

#define DECISION(member_) \
	.of = OF_DECISION, .labels = "namespace, pool", .offset = offsetof(struct pool_decision, member_)
#define POOL(member_) .of = OF_POOL, .labels = "namespace, pool", .offset = offsetof(struct published_pool, member_)
#define CHOICE(member_, enum_) \
	.of = OF_DECISION, .write = write_choices, .offset = offsetof(struct pool_decision, member_), .choices = (enum_)

/* clang-format off */
static const struct metric pool_metrics[] = {
	{ .name = "preheat_pool_info", .of = OF_SPEC, .labels = "namespace, pool, class, mode", .write = write_info,
	  .help = "Always 1; its labels say what the pool is." },
	{ .name = "preheat_desired_replicas", .of = OF_DECISION, .labels = "namespace, pool, kind, name", .write = write_desired,
	  .help = "Replicas that the workload should have now, for an HPA or KEDA to follow; kind and name are those of scaleTargetRef." },
	{ .name = "preheat_pool_hot_replicas", DECISION(ready), .help = "Replicas that may start requests." },
	{ .name = "preheat_pool_starting_replicas", DECISION(on_the_way), .help = "Replicas requested and not ready yet." },
	{ .name = "preheat_pool_overdue_replicas", DECISION(overdue), .help = "Of the starting ones: so late that they are not counted on." },
	{ .name = "preheat_pool_asleep_replicas", DECISION(asleep), .help = "Replicas whose engine sleeps or falls asleep: they hold their GPUs and serve nothing." },
	{ .name = "preheat_pool_falling_asleep_replicas", DECISION(falling_asleep), .help = "Of the sleeping ones: still falling asleep." },
	{ .name = "preheat_pool_asleep_discarded_replicas", DECISION(asleep_discarded), .help = "Of the sleeping ones: on level 2, their weights must be loaded again." },
	{ .name = "preheat_pool_waking_replicas", DECISION(waking), .help = "Of the starting ones: engines that wake." },
	{ .name = "preheat_pool_draining_replicas", DECISION(draining), .help = "Replicas that only finish what runs." },
	{ .name = "preheat_pool_standby_replicas", DECISION(standby), .help = "Stopped machines, in replicas." },
	{ .name = "preheat_pool_lent_replicas", DECISION(lent), .help = "Nodes lent to other pools, in replicas." },
	{ .name = "preheat_pool_demand_replicas", DECISION(demand_milli), .digits = 3,
	  .help = "Replicas that the arriving requests keep busy, freed of our own shortage." },
	{ .name = "preheat_pool_headroom_replicas", .of = OF_DECISION, .digits = 3, .labels = "namespace, pool", .write = write_headroom,
	  .help = "Hot replicas beyond demand; negative when demand is larger." },
	{ .name = "preheat_pool_arrived_requests_total", .type = METRIC_COUNTER, POOL(arrived), .help = "Requests that arrived, as far as the signals tell." },
	{ .name = "preheat_pool_started_requests_total", .type = METRIC_COUNTER, POOL(started), .help = "Requests that started." },
	{ .name = "preheat_pool_late_requests_total", .type = METRIC_COUNTER, POOL(late), .help = "Of the started ones: waited longer than the objective." },
	{ .name = "preheat_pool_running_requests", DECISION(running_milli), .digits = 3, .help = "Requests running, mean over the last tick." },
	{ .name = "preheat_pool_waiting_requests", DECISION(waiting_now), .help = "Requests waiting at the last reading." },
	{ .name = "preheat_pool_wait_seconds", .of = OF_DECISION, .digits = 3, .labels = "namespace, pool", .write = write_wait,
	  .help = "How long the hot replicas need for what waits now; absent while something waits and nothing is hot." },
	{ .name = "preheat_pool_slots_per_replica", DECISION(slots_milli), .digits = 3, .help = "Requests that a replica runs at once, as used for sizing." },
	{ .name = "preheat_pool_floor_replicas", DECISION(floor), .help = "Least hot replicas by manifest, schedule and queue." },
	{ .name = "preheat_pool_wished_replicas", DECISION(wished), .help = "Hot replicas that the active rule recommends, starting ones included." },
	{ .name = "preheat_pool_decided_replicas", DECISION(decided), .help = "The same after all limits." },
	{ .name = "preheat_pool_held_by", CHOICE(held_by, "limit"), .labels = "namespace, pool, limit",
	  .help = "1 for the limit of the decision (none: decided as recommended), else 0." },
	{ .name = "preheat_pool_signals_state", CHOICE(signals, "signal_state"), .labels = "namespace, pool, state",
	  .help = "1 for how far the signals are trusted, else 0." },
	{ .name = "preheat_pool_signals_confidence_ratio", DECISION(confidence_ppm), .digits = 6,
	  .help = "Share of the last tick's readings that came and whose levels, counters and time agree; below 1 nothing is scaled down." },
	{ .name = "preheat_pool_signals_disputed", DECISION(disputed), .help = "Readings of the last tick that contradict themselves: nothing is scaled down by them." },
	{ .name = "preheat_pool_objective_wait_seconds", .of = OF_SPEC, .digits = 3, .labels = "namespace, pool", .offset = offsetof(struct pool_spec, objective_wait),
	  .help = "A request that waits longer is late." },
	{ .name = "preheat_pool_objective_late_ratio", DECISION(objective_ppm), .digits = 6, .help = "Share of late requests that the objective allows." },
	{ .name = "preheat_pool_late_ratio", DECISION(own_share_ppm), .digits = 6, .help = "Share of late requests, averaged with a half-life of three days." },
	{ .name = "preheat_pool_day_late_ratio", DECISION(real_share_ppm), .digits = 6, .help = "Share of late requests, averaged with a half-life of one day." },
	{ .name = "preheat_pool_day_expected_late_ratio", DECISION(shadow_share_ppm), .digits = 6,
	  .help = "Share that the shadow fleet of the rule in force expected, averaged likewise." },
	{ .name = "preheat_pool_self_test", CHOICE(self_test, "self_test"), .labels = "namespace, pool, result",
	  .help = "1 for what comes of comparing the shadow in force with reality, else 0. later and dearer deserve an alert." },
	{ .name = "preheat_pool_objective_state", CHOICE(objective_state, "objective_state"), .labels = "namespace, pool, state",
	  .help = "1 for how the real late share stands against the objective, else 0. missed deserves an alert." },
	{ .name = "preheat_pool_lead_time_seconds", .of = OF_DECISION, .digits = 3, .labels = "namespace, pool, tier, percentile", .write = write_lead_times,
	  .help = "From asking to serving, as believed now." },
	{ .name = "preheat_pool_lead_time_samples", DECISION(lead_samples), .help = "Measured starts behind the lead times." },
	{ .name = "preheat_pool_stage_seconds", .of = OF_POOL, .digits = 3, .labels = "namespace, pool, stage, percentile", .write = write_stages,
	  .help = "Measured time of a stage between asking and serving." },
	{ .name = "preheat_pool_dollars_per_hour", DECISION(dollars_per_hour), .write = write_hourly, .digits = 6, .help = "What the pool costs after the last decision; of a pool with prices." },
	{ .name = "preheat_pool_budget_dollars_per_hour", DECISION(budget_per_hour), .write = write_hourly, .digits = 6, .help = "The budget that applies, of a pool with prices; 0: none." },
	{ .name = "preheat_pool_rule", DECISION(rule), .help = "Number of the rule in force." },
	{ .name = "preheat_pool_rule_margin_ratio", DECISION(margin_permille), .digits = 3, .help = "Its margin over demand." },
	{ .name = "preheat_pool_rule_hold_seconds", DECISION(hold_ms), .digits = 3, .help = "How long it remembers a peak." },
	{ .name = "preheat_pool_rule_standby_ratio", DECISION(stock_permille), .digits = 3, .help = "Standby that it keeps, as a share of hot." },
	{ .name = "preheat_pool_stuck_starts_total", .type = METRIC_COUNTER, .of = OF_POOL, .labels = "namespace, pool, stage", .write = write_stuck,
	  .help = "Starts given up because a stage passed its deadline." },
	{ .name = "preheat_pool_unschedulable_pods", .of = OF_POOL, .labels = "namespace, pool, reason", .write = write_unschedulable,
	  .help = "Pods that no machine would help, whose gang is not whole, or that their scheduler does not place although they fit a node." },
	{ .name = "preheat_pool_problem", .of = OF_POOL, .labels = "namespace, pool, problem", .write = write_problems,
	  .help = "1 while the pool has this problem (details: conditions of its WarmPool), else 0." },
};
/* clang-format on */

/* --- signals: how fresh they are, what servers, queues and GPUs tell --- */

static void write_mebibytes(struct metric_sink *s)
{
	sample(s, NULL, member(s) << 20);
}

/* Two bounds beside each other: of the half, and of all but a hundredth. */
static void write_percentiles(struct metric_sink *s)
{
	static const char *const percents[] = { "50", "99" };
	const struct published_bounds *b = (const void *)((const char *)s->base + s->metric->offset);

	for (size_t i = 0; i < 2; i++) {
		if (!b[i].is_told)
			continue;
		sample(s, LABELS({ "percentile", percents[i] }, { "bound", "lower" }), b[i].lower_us);
		if (b[i].upper_us != INT64_MAX)
			sample(s, LABELS({ "percentile", percents[i] }, { "bound", "upper" }), b[i].upper_us);
	}
}

#define PERCENTILES(member_)                                                                       \
	.of = OF_POOL, .labels = "namespace, pool, percentile, bound", .write = write_percentiles, \
	.offset = offsetof(struct published_pool, serving.member_), .digits = 6
#define DEVICE(member_) \
	.of = OF_DEVICES, .labels = "namespace, pool", .offset = offsetof(struct published_devices, member_)

/* clang-format off */
static const struct metric signal_metrics[] = {
	{ .name = "preheat_pool_signals_age_seconds", POOL(signals_age), .digits = 3,
	  .help = "Since the last reading in which a replica was fresh." },
	{ .name = "preheat_pool_queue_wait_seconds", PERCENTILES(wait),
	  .help = "Between these two edges of the servers' histograms lies the percentile of the queue wait, last five minutes; no upper one: beyond the last edge." },
	{ .name = "preheat_pool_first_token_seconds", PERCENTILES(first_token),
	  .help = "The same of the time to the first token." },
	{ .name = "preheat_pool_prefix_cache_hit_ratio", POOL(serving.prefix_permille), .digits = 3,
	  .help = "Share of prompt tokens that the prefix cache had, last five minutes." },
	{ .name = "preheat_pool_told_load_seconds", POOL(serving.load_ms), .digits = 3,
	  .help = "How long loading the weights took, as the servers report, mean over the replicas." },
	{ .name = "preheat_pool_told_startup_seconds", POOL(serving.startup_ms), .digits = 3,
	  .help = "From a server's start until it could serve, as the servers report, mean over the replicas. Compare with the measured stage load." },
	{ .name = "preheat_pool_queue_requests", POOL(queued),
	  .help = "Requests in the queue outside the pods (signals.queue); absent while unknown." },
	{ .name = "preheat_pool_devices", DEVICE(count),
	  .help = "GPUs, or slices, of the pool's nodes that DCGM exporters report." },
	{ .name = "preheat_pool_devices_held", DEVICE(held), .help = "Of these held by a pod." },
	{ .name = "preheat_pool_devices_failing", DEVICE(failing),
	  .help = "Of these with an XID error as their last." },
	{ .name = "preheat_pool_device_use_ratio", DEVICE(use_permille), .digits = 3,
	  .help = "Mean use of the GPUs that pods hold. For idleness, not for load." },
	{ .name = "preheat_pool_device_memory_used_bytes", DEVICE(memory_used_mib), .write = write_mebibytes,
	  .help = "GPU memory in use." },
	{ .name = "preheat_pool_device_memory_free_bytes", DEVICE(memory_free_mib), .write = write_mebibytes,
	  .help = "GPU memory that is free." },
	{ .name = "preheat_pool_device_memory_stranded_ratio", DEVICE(stranded_permille), .digits = 3,
	  .help = "Fragmentation: of the free GPU memory, the share in which no further replica fits." },
	{ .name = "preheat_pool_device_power_watts", DEVICE(power_mw), .digits = 3,
	  .help = "What the GPUs draw." },
};
/* clang-format on */

/* --- what GPUs did and cost, since the process started --- */

static void write_states(struct metric_sink *s)
{
	const int64_t *sums = (const void *)((const char *)s->base + s->metric->offset);

	for (int i = 0; i < GPU_STATE_COUNT; i++)
		sample(s, LABELS({ "state", gpu_state_name((enum gpu_state)i) }), sums[i]);
}

static void write_state_dollars(struct metric_sink *s)
{
	if (!pool_of(s)->is_unpriced)
		write_states(s);
}

static void write_tokens(struct metric_sink *s)
{
	const struct cost_sums *c = s->base;

	sample(s, LABELS({ "kind", "prompt" }), c->prompt_tokens);
	sample(s, LABELS({ "kind", "output" }), c->output_tokens);
}

static void write_late(struct metric_sink *s)
{
	for (int i = 0; i < LATE_CAUSE_COUNT; i++)
		sample(s, LABELS({ "cause", late_cause_name((enum late_cause)i) }),
		       ((const struct cost_sums *)s->base)->late_by[i]);
}

static const char *value_of(const struct cost_labels *l, enum cost_label label)
{
	switch (l->holder) {
	case COST_NO_POD:
		return "no-pod";
	case COST_OTHERS:
		return "others";
	case COST_BY_PODS:
	case COST_HOLDER_COUNT:
		break;
	}
	return l->value[label][0] ? l->value[label] : "unlabelled";
}

static void write_label_costs(struct metric_sink *s)
{
	const struct published_pool *pool = s->base;

	for (size_t k = 0; k < pool->label_cost_count; k++) {
		const struct published_label_cost *l = &pool->label_costs[k];

		sample(s,
		       LABELS({ "cost_center", value_of(&l->labels, LABEL_COST_CENTER) },
			      { "product", value_of(&l->labels, LABEL_PRODUCT) },
			      { "environment", value_of(&l->labels, LABEL_ENVIRONMENT) },
			      { "workload_type", value_of(&l->labels, LABEL_WORKLOAD_TYPE) }),
		       *(const int64_t *)(const void *)((const char *)l + s->metric->offset));
	}
}

static void write_label_dollars(struct metric_sink *s)
{
	if (!pool_of(s)->is_unpriced)
		write_label_costs(s);
}

/* clang-format off */
static const struct metric cost_metrics[] = {
	{ .name = "preheat_cost_dollars_total", .type = METRIC_COUNTER, .of = OF_COST, .digits = 6, .labels = "namespace, pool, state", .write = write_state_dollars, .offset = offsetof(struct cost_sums, dollars),
	  .help = "Dollars by what the GPUs did: idle, lent, starting, serving, standby. Sums to the pool's bill; of pools with prices." },
	{ .name = "preheat_gpu_seconds_total", .type = METRIC_COUNTER, .of = OF_COST, .digits = 3, .labels = "namespace, pool, state", .write = write_states, .offset = offsetof(struct cost_sums, gpu_ms),
	  .help = "GPU seconds by what the GPUs did. All but standby are billed in full." },
	{ .name = "preheat_tokens_total", .type = METRIC_COUNTER, .of = OF_COST, .labels = "namespace, pool, kind", .write = write_tokens,
	  .help = "Tokens of finished requests, as the model servers tell." },
	{ .name = "preheat_late_requests_total", .type = METRIC_COUNTER, .of = OF_COST, .labels = "namespace, pool, cause", .write = write_late,
	  .help = "Late requests by what held the pool when they were late." },
	{ .name = "preheat_cost_label_dollars_total", .type = METRIC_COUNTER,
	  .labels = "namespace, pool, cost_center, product, environment, workload_type", .of = OF_POOL, .digits = 6, .write = write_label_dollars, .offset = offsetof(struct published_label_cost, dollars),
	  .help = "The bill by the cost labels of the pods that hold the GPUs; no-pod where none does, others beyond 100 combinations." },
	{ .name = "preheat_cost_label_gpu_seconds_total", .type = METRIC_COUNTER,
	  .labels = "namespace, pool, cost_center, product, environment, workload_type", .of = OF_POOL, .digits = 3, .write = write_label_costs, .offset = offsetof(struct published_label_cost, gpu_ms),
	  .help = "Billed GPU seconds by the same labels." },
};
/* clang-format on */

/* --- node groups --- */

static void write_blocked(struct metric_sink *s)
{
	if (s->shown->snapshot)
		sample(s, NULL, ((const struct group_decision *)s->base)->blocked_until > s->shown->snapshot->now);
}

static void write_error(struct metric_sink *s)
{
	enum error_kind kind = ((const struct published_group *)s->base)->error.kind;

	if (kind != ERROR_NONE)
		sample(s, LABELS({ "kind", error_kind_name(kind) }), 1);
}

static void write_price(struct metric_sink *s)
{
	const struct fleet_spec *fleet = s->shown->fleet;
	const struct group_users *users = &fleet->users[s->item];
	bool is_priced = false;

	for (size_t i = 0; i < users->count; i++)
		is_priced |= !fleet->pools[users->items[i].pool].is_unpriced;
	if (is_priced)
		sample(s, NULL, member(s));
}

#define SPEC(member_) .of = OF_GROUP_SPEC, .labels = "group, provider", .offset = offsetof(struct group_spec, member_)
#define DECIDED(member_) \
	.of = OF_GROUP_DECISION, .labels = "group, provider", .offset = offsetof(struct group_decision, member_)
#define GROUP(member_) .of = OF_GROUP, .labels = "group, provider", .offset = offsetof(struct published_group, member_)
#define DESCRIBED(member_) \
	.of = OF_DESCRIBED, .labels = "group, provider", .offset = offsetof(struct published_group, member_)

/* clang-format off */
static const struct metric group_metrics[] = {
	{ .name = "preheat_node_group_nodes", DECIDED(nodes), .help = "Nodes of the group, all pools, running or starting." },
	{ .name = "preheat_node_group_planned_nodes", DECIDED(nodes_desired), .help = "The same after the last decision." },
	{ .name = "preheat_node_group_desired_nodes", DESCRIBED(desired), .help = "Machines requested to run, as the provider reports." },
	{ .name = "preheat_node_group_standby_nodes", DESCRIBED(standby), .help = "Machines requested for standby, as the provider reports." },
	{ .name = "preheat_node_group_min_nodes", SPEC(min_nodes), .help = "Lowest size that is requested." },
	{ .name = "preheat_node_group_max_nodes", SPEC(max_nodes), .help = "Highest size that is requested." },
	{ .name = "preheat_node_group_node_dollars_per_hour", SPEC(price_per_hour), .write = write_price, .digits = 6, .help = "What one node costs, where the manifest gives its price." },
	{ .name = "preheat_node_group_blocked", .of = OF_GROUP_DECISION, .labels = "group, provider", .write = write_blocked,
	  .help = "1 while nothing is started here after a refusal (stock-out, quota)." },
	{ .name = "preheat_node_group_blocked_until_timestamp_seconds", DECIDED(blocked_until), .digits = 3, .help = "When it is tried again; 0: free." },
	{ .name = "preheat_node_group_refusals", DECIDED(refusals), .help = "Refusals in a row." },
	{ .name = "preheat_node_group_error", .of = OF_GROUP, .labels = "group, provider, kind", .write = write_error,
	  .help = "1 while the provider's last call for the group failed." },
	{ .name = "preheat_node_group_foreign_size_changes_total", .type = METRIC_COUNTER, DESCRIBED(resized),
	  .help = "Times that the size was changed outside Preheat." },
	{ .name = "preheat_node_group_contended_nodes", DESCRIBED(contended),
	  .help = "Machines that another writer and Preheat buy and end in turn; above 0 nothing is changed there until it is quiet." },
	{ .name = "preheat_node_group_unseen_nodes_total", .type = METRIC_COUNTER, DESCRIBED(unseen_nodes),
	  .help = "Machines that the cloud accepted to launch and that never showed." },
	{ .name = "preheat_node_group_growth_held_nodes_total", .type = METRIC_COUNTER, DESCRIBED(growth_held),
	  .help = "Machines that were not bought although decided: a limit of the last resort held them. An alarm." },
	{ .name = "preheat_node_group_out_of_stock", DESCRIBED(out_of_stock),
	  .help = "Zones and instance types of the group that a launch failed in, left alone until they are probed again." },
	{ .name = "preheat_node_group_throttled_until_timestamp_seconds", GROUP(throttled_until), .digits = 3,
	  .help = "Until when the group's account is left alone after a throttled call; 0: it is not." },
	{ .name = "preheat_node_group_described_timestamp_seconds", DESCRIBED(described_at), .digits = 3,
	  .help = "When the provider last described the group." },
	{ .name = "preheat_node_group_foreign_nodes", GROUP(not_ours),
	  .help = "Nodes that carry another owner's mark and are left alone." },
};
/* clang-format on */

/* --- the process, under the names that every Prometheus client uses --- */

static void write_cpu(struct metric_sink *s)
{
	struct rusage use;

	if (getrusage(RUSAGE_SELF, &use))
		return;
	sample(s, NULL,
	       (int64_t)(use.ru_utime.tv_sec + use.ru_stime.tv_sec) * 1000000 + use.ru_utime.tv_usec +
		       use.ru_stime.tv_usec);
}

/* The number at a position (from 0) of /proc/self/statm, in pages; false when it cannot be read. */
static bool read_pages(int position, int64_t *pages)
{
	char text[256];
	FILE *f = fopen("/proc/self/statm", "re");
	const char *at = f ? fgets(text, sizeof text, f) : NULL;

	if (f)
		fclose(f);
	for (; at && position > 0; position--) {
		at = strchr(at, ' ');
		at = at ? at + 1 : NULL;
	}
	return at && fixed_parse(at, strspn(at, "0123456789"), 0, pages);
}

static void write_pages(struct metric_sink *s)
{
	int64_t pages;

	if (read_pages((int)s->metric->offset, &pages))
		sample(s, NULL, pages * sysconf(_SC_PAGESIZE));
}

static void write_open(struct metric_sink *s)
{
	DIR *folder = opendir("/proc/self/fd");
	int64_t count = 0;

	if (!folder)
		return;
	while (readdir(folder))
		count++;
	closedir(folder);
	sample(s, NULL, count - 3); /* ".", ".." and the folder itself */
}

static void write_most(struct metric_sink *s)
{
	struct rlimit limit;

	if (!getrlimit(RLIMIT_NOFILE, &limit) && limit.rlim_cur != RLIM_INFINITY)
		sample(s, NULL, (int64_t)limit.rlim_cur);
}

static void write_start(struct metric_sink *s)
{
	if (s->shown->started_at)
		sample(s, NULL, s->shown->started_at);
}

/* clang-format off */
static const struct metric process_metrics[] = {
	{ .name = "process_cpu_seconds_total", .type = METRIC_COUNTER, .labels = "", .write = write_cpu, .digits = 6, .help = "Processor time used." },
	{ .name = "process_resident_memory_bytes", .labels = "", .write = write_pages, .offset = 1, .help = "Resident memory." },
	{ .name = "process_virtual_memory_bytes", .labels = "", .write = write_pages, .offset = 0, .help = "Virtual memory." },
	{ .name = "process_open_fds", .labels = "", .write = write_open, .help = "Open file descriptors." },
	{ .name = "process_max_fds", .labels = "", .write = write_most, .help = "Most file descriptors that may be open." },
	{ .name = "process_start_time_seconds", .labels = "", .write = write_start, .digits = 3, .help = "When the process started." },
};
/* clang-format on */

/* --- the page and its reference --- */

#define LIST(title_, rows)                                    \
	{                                                     \
		(title_), rows, sizeof(rows) / sizeof *(rows) \
	}
static const struct {
	const char *title; /* of the section in the reference */
	const struct metric *metrics;
	size_t count;
} lists[] = {
	LIST("Pools", pool_metrics),	    LIST("Signals and GPUs", signal_metrics), LIST("Cost", cost_metrics),
	LIST("Node groups", group_metrics), LIST("Controller", loop_metrics),	      LIST("Process", process_metrics),
};
enum { LISTS = sizeof lists / sizeof *lists };

static size_t count_of(const struct published *p, enum metric_of of)
{
	switch (of) {
	case OF_CONTROLLER:
		return 1;
	case OF_SPEC:
	case OF_DECISION:
		return p->plan && p->fleet ? p->plan->pool_count : 0;
	case OF_POOL:
	case OF_DEVICES:
	case OF_COST:
		return p->fleet && p->pools ? p->fleet->pool_count : 0;
	case OF_GROUP_SPEC:
	case OF_GROUP_DECISION:
		return p->fleet ? p->fleet->group_count : 0;
	case OF_GROUP:
	case OF_DESCRIBED:
		return p->fleet && p->groups ? p->fleet->group_count : 0;
	case OF_WATCH:
		break;
	}
	return p->watch_count;
}

/* Of the last pool that names the group: what a plan says of the whole group is complete there. */
static const struct group_decision *decision_of(const struct published *p, size_t group)
{
	const struct group_users *users = &p->fleet->users[group];

	if (!p->plan || !users->count)
		return NULL;
	const struct group_user *last = &users->items[users->count - 1];
	return &p->plan->pools[last->pool].groups[last->position];
}

/* NULL: there is no sample of it. */
static const void *base_of(const struct published *p, enum metric_of of, size_t i)
{
	switch (of) {
	case OF_CONTROLLER:
		return p;
	case OF_SPEC:
		return &p->fleet->pools[i];
	case OF_DECISION:
		return &p->plan->pools[i].decision;
	case OF_POOL:
		return &p->pools[i];
	case OF_DEVICES:
		return p->pools[i].devices.count ? &p->pools[i].devices : NULL;
	case OF_COST:
		return p->pools[i].cost;
	case OF_GROUP_SPEC:
		return &p->fleet->groups[i];
	case OF_GROUP_DECISION:
		return decision_of(p, i);
	case OF_GROUP:
		return &p->groups[i];
	case OF_DESCRIBED:
		return p->groups[i].is_described ? &p->groups[i] : NULL;
	case OF_WATCH:
		break;
	}
	return &p->watches[i];
}

static void set_labels(struct metric_sink *s)
{
	const struct fleet_spec *fleet = s->shown->fleet;
	enum metric_of of = s->metric->of;

	if (of == OF_WATCH) {
		s->labels[0] = (struct metric_label){ "resource", s->shown->watches[s->item].resource };
	} else if (fleet && of >= OF_GROUP_SPEC) {
		s->labels[0] = (struct metric_label){ "group", fleet->groups[s->item].name };
		s->labels[1] = (struct metric_label){ "provider", fleet->groups[s->item].provider };
	} else if (fleet && of != OF_CONTROLLER) {
		assert(fleet->pools);
		s->labels[0] = (struct metric_label){ "namespace", fleet->pools[s->item].namespace };
		s->labels[1] = (struct metric_label){ "pool", fleet->pools[s->item].name };
	}
}

static void write_metric(const struct metric *m, const struct published *p, struct buf *out)
{
	struct metric_sink s = { .metric = m, .shown = p, .out = out };
	size_t count = count_of(p, m->of);

	for (; s.item < count; s.item++) {
		s.base = base_of(p, m->of, s.item);
		if (!s.base)
			continue;
		set_labels(&s);
		if (m->write)
			m->write(&s);
		else if (member(&s) != ABSENT)
			sample(&s, NULL, member(&s));
	}
}

void metrics_write(const struct published *p, struct buf *out)
{
	for (size_t i = 0; i < LISTS; i++)
		for (size_t k = 0; k < lists[i].count; k++)
			write_metric(&lists[i].metrics[k], p, out);
}

static const char head[] = "# Metrics\n"
			   "\n"
			   "Written by `preheat run --print-metrics` from the tables that make the page "
			   "(controller/web/metrics_*.c): change\n"
			   "those, not this file. `/metrics` is Prometheus text; what is not known has no sample, and "
			   "never stands as 0. Pools and\n"
			   "node groups are exported by the leading replica.\n";

void metrics_write_reference(struct buf *out)
{
	buf_text(out, head);
	for (size_t i = 0; i < LISTS; i++) {
		buf_printf(out, "\n## %s\n\n| metric | type | labels | meaning |\n|---|---|---|---|\n", lists[i].title);
		for (size_t k = 0; k < lists[i].count; k++) {
			const struct metric *m = &lists[i].metrics[k];
			buf_printf(out, "| `%s` | %s | %s | %s |\n", m->name, type_names[m->type], m->labels, m->help);
		}
	}
}
