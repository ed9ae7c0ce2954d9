/* What is told of each node group. */
#include "controller/web/metric.h"

#include <stddef.h>

static size_t group_count(const struct metric_sink *s)
{
	return s->shown->fleet ? s->shown->fleet->group_count : 0;
}

static void sample(struct metric_sink *s, size_t group, struct metric_label more, int64_t value, int digits)
{
	metric_sample(s,
		      (struct metric_label[]){ { "group", s->shown->fleet->groups[group].name },
					       { "provider", s->shown->fleet->groups[group].provider },
					       more,
					       { 0 } },
		      value, digits);
}

/* The decision of the last pool that names the group: what a plan says of the whole group is complete there. */
static const struct group_decision *decision(const struct metric_sink *s, size_t group)
{
	const struct group_decision *found = NULL;

	for (size_t p = 0; s->shown->plan && p < s->shown->plan->pool_count; p++)
		for (size_t i = 0; i < s->shown->plan->pools[p].group_count; i++)
			if (s->shown->fleet->pools[p].groups[i] == group)
				found = &s->shown->plan->pools[p].groups[i];
	return found;
}

static void write_spec(struct metric_sink *s)
{
	for (size_t i = 0; i < group_count(s); i++)
		sample(s, i, (struct metric_label){ 0 },
		       *(const int64_t *)(const void *)((const char *)&s->shown->fleet->groups[i] + s->metric->offset),
		       s->metric->digits);
}

static void write_decided(struct metric_sink *s)
{
	for (size_t i = 0; i < group_count(s); i++) {
		const struct group_decision *d = decision(s, i);
		if (d)
			sample(s, i, (struct metric_label){ 0 },
			       *(const int64_t *)(const void *)((const char *)d + s->metric->offset),
			       s->metric->digits);
	}
}

static void write_blocked(struct metric_sink *s)
{
	for (size_t i = 0; s->shown->snapshot && i < group_count(s); i++) {
		const struct group_decision *d = decision(s, i);
		if (d)
			sample(s, i, (struct metric_label){ 0 }, d->blocked_until > s->shown->snapshot->now, 0);
	}
}

static void write_provider_size(struct metric_sink *s)
{
	for (size_t i = 0; s->shown->groups && i < group_count(s); i++)
		if (s->shown->groups[i].is_described)
			sample(s, i, (struct metric_label){ 0 },
			       *(const int64_t *)(const void *)((const char *)&s->shown->groups[i] + s->metric->offset),
			       0);
}

static void write_described(struct metric_sink *s)
{
	for (size_t i = 0; s->shown->groups && i < group_count(s); i++)
		if (s->shown->groups[i].is_described)
			sample(s, i, (struct metric_label){ 0 }, s->shown->groups[i].described_at, 3);
}

static void write_throttled(struct metric_sink *s)
{
	for (size_t i = 0; s->shown->groups && i < group_count(s); i++)
		sample(s, i, (struct metric_label){ 0 }, s->shown->groups[i].throttled_until, 3);
}

static void write_error(struct metric_sink *s)
{
	for (size_t i = 0; s->shown->groups && i < group_count(s); i++) {
		enum error_kind kind = s->shown->groups[i].error.kind;
		if (kind != ERROR_NONE)
			sample(s, i, (struct metric_label){ "kind", error_kind_name(kind) }, 1, 0);
	}
}

static void write_foreign(struct metric_sink *s)
{
	for (size_t i = 0; s->shown->groups && i < group_count(s); i++)
		sample(s, i, (struct metric_label){ 0 }, s->shown->groups[i].not_ours, 0);
}

#define SPEC(member) .write = write_spec, .labels = "group, provider", .offset = offsetof(struct group_spec, member)
#define DECIDED(member) \
	.write = write_decided, .labels = "group, provider", .offset = offsetof(struct group_decision, member)
#define TOLD(member) \
	.write = write_provider_size, .labels = "group, provider", .offset = offsetof(struct published_group, member)

/* clang-format off */
static const struct metric rows[] = {
	{ .name = "preheat_node_group_nodes", DECIDED(nodes), .help = "Nodes of the group, all pools, running or starting." },
	{ .name = "preheat_node_group_planned_nodes", DECIDED(nodes_desired), .help = "The same after the last decision." },
	{ .name = "preheat_node_group_desired_nodes", TOLD(desired), .help = "Machines asked to run, as the provider tells." },
	{ .name = "preheat_node_group_standby_nodes", TOLD(standby), .help = "Machines asked to stand by, as the provider tells." },
	{ .name = "preheat_node_group_min_nodes", SPEC(min_nodes), .help = "Never fewer are asked for." },
	{ .name = "preheat_node_group_max_nodes", SPEC(max_nodes), .help = "Never more are asked for." },
	{ .name = "preheat_node_group_node_dollars_per_hour", SPEC(price_per_hour), .digits = 6, .help = "What one node costs." },
	{ .name = "preheat_node_group_blocked", .labels = "group, provider", .write = write_blocked,
	  .help = "1 while nothing is started here after a refusal (stock-out, quota)." },
	{ .name = "preheat_node_group_blocked_until_timestamp_seconds", DECIDED(blocked_until), .digits = 3, .help = "When it is tried again; 0: free." },
	{ .name = "preheat_node_group_refusals", DECIDED(refusals), .help = "Refusals in a row." },
	{ .name = "preheat_node_group_error", .labels = "group, provider, kind", .write = write_error,
	  .help = "1 while the provider's last call for the group failed." },
	{ .name = "preheat_node_group_foreign_size_changes_total", .type = METRIC_COUNTER, TOLD(resized),
	  .help = "Times that somebody else changed the size." },
	{ .name = "preheat_node_group_growth_held_nodes_total", .type = METRIC_COUNTER, TOLD(growth_held),
	  .help = "Machines that were not bought although decided: a limit of the last resort held them. An alarm." },
	{ .name = "preheat_node_group_out_of_stock", TOLD(out_of_stock),
	  .help = "Zones and instance types of the group that a launch failed in, left alone until they are probed again." },
	{ .name = "preheat_node_group_throttled_until_timestamp_seconds", .labels = "group, provider", .write = write_throttled,
	  .help = "Until when the group's account is left alone after a throttled call; 0: it is not." },
	{ .name = "preheat_node_group_described_timestamp_seconds", .labels = "group, provider", .write = write_described,
	  .help = "When the provider told of the group last." },
	{ .name = "preheat_node_group_foreign_nodes", .labels = "group, provider", .write = write_foreign,
	  .help = "Nodes that carry another owner's mark and are left alone." },
};
/* clang-format on */

const struct metric_list group_metrics = METRIC_LIST("Node groups", rows);
