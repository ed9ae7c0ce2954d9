/* What is told of each pool. */
#include "controller/web/metric.h"

#include "controller/web/pool_figures.h"

#include <stddef.h>
#include <string.h>

struct pool_labels {
	struct metric_label items[METRIC_LABELS + 1];
};

static struct pool_labels labels_of(const struct metric_sink *s, size_t pool, struct metric_label first,
				    struct metric_label second)
{
	const struct pool_spec *spec = &s->shown->fleet->pools[pool];

	return (struct pool_labels){ { { "namespace", spec->namespace }, { "pool", spec->name }, first, second } };
}

static struct pool_labels plain_labels(const struct metric_sink *s, size_t pool)
{
	return labels_of(s, pool, (struct metric_label){ 0 }, (struct metric_label){ 0 });
}

static size_t pool_count(const struct metric_sink *s)
{
	return s->shown->plan && s->shown->fleet ? s->shown->plan->pool_count : 0;
}

static const struct pool_decision *decision(const struct metric_sink *s, size_t pool)
{
	return &s->shown->plan->pools[pool].decision;
}

static void write_field(struct metric_sink *s)
{
	for (size_t i = 0; i < pool_count(s); i++) {
		int64_t value = *(const int64_t *)(const void *)((const char *)decision(s, i) + s->metric->offset);
		if (value != ABSENT)
			metric_sample(s, plain_labels(s, i).items, value, s->metric->digits);
	}
}

static void write_requests(struct metric_sink *s)
{
	for (size_t i = 0; s->shown->pools && i < pool_count(s); i++) {
		const char *pool = (const char *)&s->shown->pools[i];
		metric_sample(s, plain_labels(s, i).items, *(const int64_t *)(const void *)(pool + s->metric->offset),
			      0);
	}
}

static void write_info(struct metric_sink *s)
{
	for (size_t i = 0; i < pool_count(s); i++) {
		const struct pool_spec *spec = &s->shown->fleet->pools[i];
		metric_sample(s,
			      labels_of(s, i, (struct metric_label){ "class", pool_class_name(spec->class) },
					(struct metric_label){ "mode", pool_mode_name(spec->mode) })
				      .items,
			      1, 0);
	}
}

static void write_headroom(struct metric_sink *s)
{
	for (size_t i = 0; i < pool_count(s); i++)
		metric_sample(s, plain_labels(s, i).items, figure_headroom_milli(decision(s, i)), 3);
}

static void write_wait(struct metric_sink *s)
{
	for (size_t i = 0; i < pool_count(s); i++) {
		millis wait = figure_wait(decision(s, i));
		if (wait != ABSENT)
			metric_seconds(s, plain_labels(s, i).items, wait);
	}
}

static void write_objective_wait(struct metric_sink *s)
{
	for (size_t i = 0; i < pool_count(s); i++)
		metric_seconds(s, plain_labels(s, i).items, s->shown->fleet->pools[i].objective_wait);
}

static const char *limit_text(int64_t i)
{
	return limit_name((enum limit)i);
}

static const char *signals_text(int64_t i)
{
	return signal_state_name((enum signal_state)i);
}

static const char *self_test_text(int64_t i)
{
	return self_test_name((enum self_test)i);
}

static void write_held_by(struct metric_sink *s)
{
	static const struct metric_choices limits = { "limit", limit_text, LIMIT_COUNT };

	for (size_t i = 0; i < pool_count(s); i++)
		metric_choice(s, plain_labels(s, i).items, &limits, decision(s, i)->held_by);
}

static void write_signals(struct metric_sink *s)
{
	static const struct metric_choices states = { "state", signals_text, SIGNAL_STATE_COUNT };

	for (size_t i = 0; i < pool_count(s); i++)
		metric_choice(s, plain_labels(s, i).items, &states, decision(s, i)->signals);
}

static void write_self_test(struct metric_sink *s)
{
	static const struct metric_choices results = { "result", self_test_text, SELF_TEST_COUNT };

	for (size_t i = 0; i < pool_count(s); i++)
		metric_choice(s, plain_labels(s, i).items, &results, decision(s, i)->self_test);
}

static void write_lead(struct metric_sink *s, size_t pool, const char *tier, struct quantiles lead)
{
	if (!lead.p95)
		return;
	metric_seconds(
		s,
		labels_of(s, pool, (struct metric_label){ "tier", tier }, (struct metric_label){ "percentile", "50" })
			.items,
		lead.p50);
	metric_seconds(
		s,
		labels_of(s, pool, (struct metric_label){ "tier", tier }, (struct metric_label){ "percentile", "95" })
			.items,
		lead.p95);
}

static void write_lead_times(struct metric_sink *s)
{
	for (size_t i = 0; i < pool_count(s); i++) {
		const struct pool_decision *d = decision(s, i);
		write_lead(s, i, "cold", (struct quantiles){ d->lead_cold_p50, d->lead_cold_p95 });
		write_lead(s, i, "fast", (struct quantiles){ d->lead_fast_p50, d->lead_fast_p95 });
	}
}

static void write_stages(struct metric_sink *s)
{
	for (size_t i = 0; s->shown->pools && i < pool_count(s); i++)
		for (int k = 0; k < STAGE_COUNT; k++) {
			const struct published_stage *stage = &s->shown->pools[i].stage[k];
			struct metric_label name = { "stage", stage_name((enum stage)k) };
			if (!stage->samples)
				continue;
			metric_seconds(s, labels_of(s, i, name, (struct metric_label){ "percentile", "50" }).items,
				       stage->p50);
			metric_seconds(s, labels_of(s, i, name, (struct metric_label){ "percentile", "95" }).items,
				       stage->p95);
		}
}

static void write_stuck(struct metric_sink *s)
{
	for (size_t i = 0; s->shown->pools && i < pool_count(s); i++)
		for (int k = 0; k < STAGE_COUNT; k++)
			metric_sample(s,
				      labels_of(s, i, (struct metric_label){ "stage", stage_name((enum stage)k) },
						(struct metric_label){ 0 })
					      .items,
				      s->shown->pools[i].stuck[k], 0);
}

/* Pods of several shapes may wait for the same reason: one sample. */
static bool was_told(const struct published_counts *c, size_t k)
{
	for (size_t i = 0; i < k; i++)
		if (!strcmp(c->items[i].labels[0], c->items[k].labels[0]))
			return true;
	return false;
}

static int64_t sum_like(const struct published_counts *c, size_t k)
{
	int64_t sum = 0;

	for (size_t i = k; i < c->count; i++)
		if (!strcmp(c->items[i].labels[0], c->items[k].labels[0]))
			sum += c->items[i].count;
	return sum;
}

static void write_unschedulable(struct metric_sink *s)
{
	for (size_t i = 0; s->shown->pools && i < pool_count(s); i++) {
		const struct published_counts *c = &s->shown->pools[i].unschedulable;
		for (size_t k = 0; k < c->count; k++) {
			struct metric_label reason = { "reason", c->items[k].labels[0] };
			if (!was_told(c, k))
				metric_sample(s, labels_of(s, i, reason, (struct metric_label){ 0 }).items,
					      sum_like(c, k), 0);
		}
	}
}

static void write_problems(struct metric_sink *s)
{
	for (size_t i = 0; s->shown->pools && i < pool_count(s); i++)
		for (int k = 0; k < PROBLEM_COUNT; k++)
			metric_sample(s,
				      labels_of(s, i,
						(struct metric_label){ "problem", problem_name((enum pool_problem)k) },
						(struct metric_label){ 0 })
					      .items,
				      s->shown->pools[i].problem[k] != NULL, 0);
}

static void write_desired(struct metric_sink *s)
{
	for (size_t i = 0; s->shown->pools && i < pool_count(s); i++) {
		const struct published_pool *pool = &s->shown->pools[i];
		metric_sample(s,
			      labels_of(s, i, (struct metric_label){ "kind", pool->target_kind },
					(struct metric_label){ "name", pool->target_name })
				      .items,
			      decision(s, i)->decided, 0);
	}
}

#define REQUESTS(member)                                                              \
	.type = METRIC_COUNTER, .write = write_requests, .labels = "namespace, pool", \
	.offset = offsetof(struct published_pool, member)
#define FIELD_OF(member) \
	.write = write_field, .labels = "namespace, pool", .offset = offsetof(struct pool_decision, member)

/* clang-format off */
static const struct metric rows[] = {
	{ .name = "preheat_pool_info", .labels = "namespace, pool, class, mode", .write = write_info,
	  .help = "Always 1; its labels say what the pool is." },
	{ .name = "preheat_desired_replicas", .labels = "namespace, pool, kind, name", .write = write_desired,
	  .help = "Replicas that the workload should have now, for an HPA or KEDA to follow; kind and name are those of scaleTargetRef." },
	{ .name = "preheat_pool_hot_replicas", FIELD_OF(ready), .help = "Replicas that may start requests." },
	{ .name = "preheat_pool_starting_replicas", FIELD_OF(on_the_way), .help = "Replicas asked for and not ready yet." },
	{ .name = "preheat_pool_overdue_replicas", FIELD_OF(overdue), .help = "Of the starting ones: so late that they are not counted on." },
	{ .name = "preheat_pool_draining_replicas", FIELD_OF(draining), .help = "Replicas that only finish what runs." },
	{ .name = "preheat_pool_standby_replicas", FIELD_OF(standby), .help = "Stopped machines, in replicas." },
	{ .name = "preheat_pool_lent_replicas", FIELD_OF(lent), .help = "Nodes lent to other pools, in replicas." },
	{ .name = "preheat_pool_demand_replicas", FIELD_OF(demand_milli), .digits = 3,
	  .help = "Replicas that the arriving requests keep busy, freed of our own shortage." },
	{ .name = "preheat_pool_headroom_replicas", .labels = "namespace, pool", .write = write_headroom,
	  .help = "Hot replicas beyond demand; negative when demand is larger." },
	{ .name = "preheat_pool_arrived_requests_total", REQUESTS(arrived), .help = "Requests that arrived, as far as the signals tell." },
	{ .name = "preheat_pool_started_requests_total", REQUESTS(started), .help = "Requests that started." },
	{ .name = "preheat_pool_late_requests_total", REQUESTS(late), .help = "Of the started ones: waited longer than the objective." },
	{ .name = "preheat_pool_running_requests", FIELD_OF(running_milli), .digits = 3, .help = "Requests running, mean over the last tick." },
	{ .name = "preheat_pool_waiting_requests", FIELD_OF(waiting_now), .help = "Requests waiting at the last reading." },
	{ .name = "preheat_pool_wait_seconds", .labels = "namespace, pool", .write = write_wait,
	  .help = "How long the hot replicas need for what waits now; absent while something waits and nothing is hot." },
	{ .name = "preheat_pool_slots_per_replica", FIELD_OF(slots_milli), .digits = 3, .help = "Requests that a replica runs at once, as used for sizing." },
	{ .name = "preheat_pool_floor_replicas", FIELD_OF(floor), .help = "Least hot replicas by manifest, schedule and queue." },
	{ .name = "preheat_pool_wished_replicas", FIELD_OF(wished), .help = "Hot replicas that the rule in force asks for, starting ones included." },
	{ .name = "preheat_pool_decided_replicas", FIELD_OF(decided), .help = "The same after all limits." },
	{ .name = "preheat_pool_held_by", .labels = "namespace, pool, limit", .write = write_held_by,
	  .help = "1 for the one limit that holds the decision (none: decided as wished), else 0." },
	{ .name = "preheat_pool_signals_state", .labels = "namespace, pool, state", .write = write_signals,
	  .help = "1 for how far the signals are trusted, else 0." },
	{ .name = "preheat_pool_objective_wait_seconds", .labels = "namespace, pool", .write = write_objective_wait,
	  .help = "A request that waits longer is late." },
	{ .name = "preheat_pool_objective_late_ratio", FIELD_OF(objective_ppm), .digits = 6, .help = "Share of late requests that the objective allows." },
	{ .name = "preheat_pool_late_ratio", FIELD_OF(own_share_ppm), .digits = 6, .help = "Share of late requests in recent weeks, three days' half-life." },
	{ .name = "preheat_pool_day_late_ratio", FIELD_OF(real_share_ppm), .digits = 6, .help = "Share of late requests, last day." },
	{ .name = "preheat_pool_day_expected_late_ratio", FIELD_OF(shadow_share_ppm), .digits = 6,
	  .help = "Share that the shadow fleet of the rule in force expected, last day." },
	{ .name = "preheat_pool_self_test", .labels = "namespace, pool, result", .write = write_self_test,
	  .help = "1 for what comes of comparing the shadow in force with reality, else 0. later and dearer deserve an alert." },
	{ .name = "preheat_pool_lead_time_seconds", .labels = "namespace, pool, tier, percentile", .write = write_lead_times,
	  .help = "From asking to serving, as believed now." },
	{ .name = "preheat_pool_lead_time_samples", FIELD_OF(lead_samples), .help = "Measured starts behind the lead times." },
	{ .name = "preheat_pool_stage_seconds", .labels = "namespace, pool, stage, percentile", .write = write_stages,
	  .help = "Measured time of a stage between asking and serving." },
	{ .name = "preheat_pool_dollars_per_hour", FIELD_OF(dollars_per_hour), .digits = 6, .help = "What the pool costs after the last decision." },
	{ .name = "preheat_pool_budget_dollars_per_hour", FIELD_OF(budget_per_hour), .digits = 6, .help = "The budget that applies; 0: none." },
	{ .name = "preheat_pool_rule", FIELD_OF(rule), .help = "Number of the rule in force." },
	{ .name = "preheat_pool_rule_margin_ratio", FIELD_OF(margin_permille), .digits = 3, .help = "Its margin over demand." },
	{ .name = "preheat_pool_rule_hold_seconds", FIELD_OF(hold_ms), .digits = 3, .help = "How long it remembers a peak." },
	{ .name = "preheat_pool_rule_standby_ratio", FIELD_OF(stock_permille), .digits = 3, .help = "Standby that it keeps, as a share of hot." },
	{ .name = "preheat_pool_stuck_starts_total", .type = METRIC_COUNTER, .labels = "namespace, pool, stage", .write = write_stuck,
	  .help = "Starts given up because a stage passed its deadline." },
	{ .name = "preheat_pool_unschedulable_pods", .labels = "namespace, pool, reason", .write = write_unschedulable,
	  .help = "Pods that no node group could ever satisfy." },
	{ .name = "preheat_pool_problem", .labels = "namespace, pool, problem", .write = write_problems,
	  .help = "1 while the pool has this problem (the conditions of its WarmPool tell more), else 0." },
};
/* clang-format on */

const struct metric_list pool_metrics = METRIC_LIST("Pools", rows);
