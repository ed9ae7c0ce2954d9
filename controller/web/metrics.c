#include "controller/web/metrics.h"

#include "base/quantity.h"
#include "controller/web/metric.h"
#include "controller/web/pool_figures.h"

#include <dirent.h>
#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

static const char *const type_names[] = { "gauge", "counter", "histogram" };
static const struct metric_list *const lists[] = { &pool_metrics, &signal_metrics,  &cost_metrics, &group_metrics,
						   &loop_metrics, &process_metrics, NULL };

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

static void write_head(struct metric_sink *s)
{
	if (s->has_head)
		return;
	s->has_head = true;
	buf_printf(s->out, "# HELP %s ", s->metric->name);
	escape(s->metric->help, false, s->out);
	buf_printf(s->out, "\n# TYPE %s %s\n", s->metric->name, type_names[s->metric->type]);
}

static void write_value(int64_t value, int digits, struct buf *out)
{
	if (value < 0 && value > INT64_MIN) {
		buf_text(out, "-");
		value = -value;
	}
	fixed_format(value, digits, out);
}

static void write_labels(const struct metric_label *labels, struct buf *out)
{
	bool is_open = false;

	for (; labels && labels->name; labels++) {
		if (!labels->value)
			continue;
		buf_printf(out, "%s%s=\"", is_open ? "," : "{", labels->name);
		escape(labels->value, true, out);
		buf_text(out, "\"");
		is_open = true;
	}
	if (is_open)
		buf_text(out, "}");
}

static void write_sample(struct metric_sink *s, const char *suffix, const struct metric_label *labels, int64_t value,
			 int digits)
{
	write_head(s);
	buf_printf(s->out, "%s%s", s->metric->name, suffix);
	write_labels(labels, s->out);
	buf_text(s->out, " ");
	write_value(value, digits, s->out);
	buf_text(s->out, "\n");
}

void metric_sample(struct metric_sink *s, const struct metric_label *labels, int64_t value, int digits)
{
	write_sample(s, "", labels, value, digits);
}

void metric_seconds(struct metric_sink *s, const struct metric_label *labels, millis value)
{
	metric_sample(s, labels, value, 3);
}

void metric_choice(struct metric_sink *s, const struct metric_label *labels, const struct metric_choices *c,
		   int64_t now)
{
	struct metric_label all[METRIC_LABELS + 2] = { { 0 } };
	size_t n = 0;

	for (; labels && labels[n].name && n < METRIC_LABELS; n++)
		all[n] = labels[n];
	for (int64_t i = 0; i < c->count; i++) {
		all[n] = (struct metric_label){ c->label, c->name(i) };
		metric_sample(s, all, i == now, 0);
	}
}

void metric_counts(struct metric_sink *s, const struct published_counts *counts, const char *const names[3])
{
	for (size_t i = 0; i < counts->count; i++) {
		struct metric_label labels[4] = { { 0 } };
		for (size_t k = 0; k < 3 && names[k]; k++)
			labels[k] = (struct metric_label){ names[k], counts->items[i].labels[k] };
		metric_sample(s, labels, counts->items[i].count, 0);
	}
}

void metric_times(struct metric_sink *s, const struct published_times *t)
{
	static const int64_t bounds[PUBLISHED_BUCKETS - 1] = PUBLISHED_BOUNDS;
	int64_t below = 0;

	for (size_t i = 0; i < PUBLISHED_BUCKETS; i++) {
		CLEANUP(buf_release) struct buf bound = { 0 };
		if (i < PUBLISHED_BUCKETS - 1)
			fixed_format(bounds[i], 3, &bound);
		else
			buf_text(&bound, "+Inf");
		below += t->bucket[i];
		write_sample(s, "_bucket", (struct metric_label[]){ { "le", bound.text }, { 0 } }, below, 0);
	}
	write_sample(s, "_sum", NULL, t->sum_us, 6);
	write_sample(s, "_count", NULL, t->count, 0);
}

void metrics_write(const struct published *p, struct buf *out)
{
	for (size_t i = 0; lists[i]; i++)
		for (size_t k = 0; k < lists[i]->count; k++) {
			struct metric_sink sink = { .metric = &lists[i]->metrics[k], .shown = p, .out = out };
			sink.metric->write(&sink);
		}
}

static const char head[] = "# Metrics\n"
			   "\n"
			   "Written by `preheat run --print-metrics` from the tables that make the page "
			   "(controller/web/metrics_*.c): change\n"
			   "those, not this file. `/metrics` is Prometheus text; what is not known has no sample, and "
			   "never stands as 0. Pools and\n"
			   "node groups are told by the replica of the controller that leads.\n";

void metrics_write_reference(struct buf *out)
{
	buf_text(out, head);
	for (size_t i = 0; lists[i]; i++) {
		buf_printf(out, "\n## %s\n\n| metric | type | labels | meaning |\n|---|---|---|---|\n",
			   lists[i]->title);
		for (size_t k = 0; k < lists[i]->count; k++) {
			const struct metric *m = &lists[i]->metrics[k];
			buf_printf(out, "| `%s` | %s | %s | %s |\n", m->name, type_names[m->type], m->labels, m->help);
		}
	}
}

/* What GPUs did and cost, since the process started. */

static size_t pool_count(const struct metric_sink *s)
{
	return s->shown->fleet && s->shown->pools ? s->shown->fleet->pool_count : 0;
}

static void sample(struct metric_sink *s, size_t pool, struct metric_label more, int64_t value, int digits)
{
	const struct pool_spec *spec = &s->shown->fleet->pools[pool];

	metric_sample(s,
		      (struct metric_label[]){ { "namespace", spec->namespace }, { "pool", spec->name }, more, { 0 } },
		      value, digits);
}

static void write_states(struct metric_sink *s, bool is_money)
{
	for (size_t i = 0; i < pool_count(s); i++) {
		const struct cost_sums *c = s->shown->pools[i].cost;
		for (int state = 0; c && state < GPU_STATE_COUNT; state++)
			sample(s, i, (struct metric_label){ "state", gpu_state_name((enum gpu_state)state) },
			       is_money ? c->dollars[state] : c->gpu_ms[state], is_money ? 6 : 3);
	}
}

static void write_dollars(struct metric_sink *s)
{
	write_states(s, true);
}

static void write_gpu_seconds(struct metric_sink *s)
{
	write_states(s, false);
}

static void write_tokens(struct metric_sink *s)
{
	for (size_t i = 0; i < pool_count(s); i++) {
		const struct cost_sums *c = s->shown->pools[i].cost;
		if (!c)
			continue;
		sample(s, i, (struct metric_label){ "kind", "prompt" }, c->prompt_tokens, 0);
		sample(s, i, (struct metric_label){ "kind", "output" }, c->output_tokens, 0);
	}
}

static void write_late(struct metric_sink *s)
{
	for (size_t i = 0; i < pool_count(s); i++) {
		const struct cost_sums *c = s->shown->pools[i].cost;
		for (int cause = 0; c && cause < LATE_CAUSE_COUNT; cause++)
			sample(s, i, (struct metric_label){ "cause", late_cause_name((enum late_cause)cause) },
			       c->late_by[cause], 0);
	}
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

static void cost_write_labels(struct metric_sink *s, size_t pool, const struct published_label_cost *l, bool is_money)
{
	const struct pool_spec *spec = &s->shown->fleet->pools[pool];

	metric_sample(s,
		      (struct metric_label[]){ { "namespace", spec->namespace },
					       { "pool", spec->name },
					       { "cost_center", value_of(&l->labels, LABEL_COST_CENTER) },
					       { "product", value_of(&l->labels, LABEL_PRODUCT) },
					       { "environment", value_of(&l->labels, LABEL_ENVIRONMENT) },
					       { "workload_type", value_of(&l->labels, LABEL_WORKLOAD_TYPE) },
					       { 0 } },
		      is_money ? l->dollars : l->gpu_ms, is_money ? 6 : 3);
}

static void write_all_labels(struct metric_sink *s, bool is_money)
{
	for (size_t i = 0; i < pool_count(s); i++)
		for (size_t k = 0; k < s->shown->pools[i].label_cost_count; k++)
			cost_write_labels(s, i, &s->shown->pools[i].label_costs[k], is_money);
}

static void write_label_dollars(struct metric_sink *s)
{
	write_all_labels(s, true);
}

static void write_label_gpu_seconds(struct metric_sink *s)
{
	write_all_labels(s, false);
}

/* clang-format off */
static const struct metric rows[] = {
	{ .name = "preheat_cost_dollars_total", .type = METRIC_COUNTER, .labels = "namespace, pool, state", .write = write_dollars,
	  .help = "Dollars by what the GPUs did: idle, lent, starting, serving, standby. Sums to the pool's bill." },
	{ .name = "preheat_gpu_seconds_total", .type = METRIC_COUNTER, .labels = "namespace, pool, state", .write = write_gpu_seconds,
	  .help = "GPU seconds by what the GPUs did. All but standby are billed in full." },
	{ .name = "preheat_tokens_total", .type = METRIC_COUNTER, .labels = "namespace, pool, kind", .write = write_tokens,
	  .help = "Tokens of finished requests, as the model servers tell." },
	{ .name = "preheat_late_requests_total", .type = METRIC_COUNTER, .labels = "namespace, pool, cause", .write = write_late,
	  .help = "Late requests by what held the pool when they were late." },
	{ .name = "preheat_cost_label_dollars_total", .type = METRIC_COUNTER,
	  .labels = "namespace, pool, cost_center, product, environment, workload_type", .write = write_label_dollars,
	  .help = "The bill by the cost labels of the pods that hold the GPUs; no-pod where none does, others beyond 100 combinations." },
	{ .name = "preheat_cost_label_gpu_seconds_total", .type = METRIC_COUNTER,
	  .labels = "namespace, pool, cost_center, product, environment, workload_type", .write = write_label_gpu_seconds,
	  .help = "Billed GPU seconds by the same labels." },
};
/* clang-format on */

const struct metric_list cost_metrics = METRIC_LIST("Cost", rows);

/* What is told of each node group. */

static size_t group_count(const struct metric_sink *s)
{
	return s->shown->fleet ? s->shown->fleet->group_count : 0;
}

static void group_sample(struct metric_sink *s, size_t group, struct metric_label more, int64_t value, int digits)
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
		group_sample(
			s, i, (struct metric_label){ 0 },
			*(const int64_t *)(const void *)((const char *)&s->shown->fleet->groups[i] + s->metric->offset),
			s->metric->digits);
}

static void write_decided(struct metric_sink *s)
{
	for (size_t i = 0; i < group_count(s); i++) {
		const struct group_decision *d = decision(s, i);
		if (d)
			group_sample(s, i, (struct metric_label){ 0 },
				     *(const int64_t *)(const void *)((const char *)d + s->metric->offset),
				     s->metric->digits);
	}
}

static void write_blocked(struct metric_sink *s)
{
	for (size_t i = 0; s->shown->snapshot && i < group_count(s); i++) {
		const struct group_decision *d = decision(s, i);
		if (d)
			group_sample(s, i, (struct metric_label){ 0 }, d->blocked_until > s->shown->snapshot->now, 0);
	}
}

static void write_provider_size(struct metric_sink *s)
{
	for (size_t i = 0; s->shown->groups && i < group_count(s); i++)
		if (s->shown->groups[i].is_described)
			group_sample(s, i, (struct metric_label){ 0 },
				     *(const int64_t *)(const void *)((const char *)&s->shown->groups[i] +
								      s->metric->offset),
				     0);
}

static void write_described(struct metric_sink *s)
{
	for (size_t i = 0; s->shown->groups && i < group_count(s); i++)
		if (s->shown->groups[i].is_described)
			group_sample(s, i, (struct metric_label){ 0 }, s->shown->groups[i].described_at, 3);
}

static void write_throttled(struct metric_sink *s)
{
	for (size_t i = 0; s->shown->groups && i < group_count(s); i++)
		group_sample(s, i, (struct metric_label){ 0 }, s->shown->groups[i].throttled_until, 3);
}

static void write_error(struct metric_sink *s)
{
	for (size_t i = 0; s->shown->groups && i < group_count(s); i++) {
		enum error_kind kind = s->shown->groups[i].error.kind;
		if (kind != ERROR_NONE)
			group_sample(s, i, (struct metric_label){ "kind", error_kind_name(kind) }, 1, 0);
	}
}

static void write_foreign(struct metric_sink *s)
{
	for (size_t i = 0; s->shown->groups && i < group_count(s); i++)
		group_sample(s, i, (struct metric_label){ 0 }, s->shown->groups[i].not_ours, 0);
}

#define SPEC(member) .write = write_spec, .labels = "group, provider", .offset = offsetof(struct group_spec, member)
#define DECIDED(member) \
	.write = write_decided, .labels = "group, provider", .offset = offsetof(struct group_decision, member)
#define TOLD(member) \
	.write = write_provider_size, .labels = "group, provider", .offset = offsetof(struct published_group, member)

/* clang-format off */
static const struct metric group_rows[] = {
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

const struct metric_list group_metrics = METRIC_LIST("Node groups", group_rows);

/* What is told of the controller itself. */

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
static const struct metric loop_rows[] = {
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

const struct metric_list loop_metrics = METRIC_LIST("Controller", loop_rows);

/* What is told of each pool. */

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

static size_t pool_pool_count(const struct metric_sink *s)
{
	return s->shown->plan && s->shown->fleet ? s->shown->plan->pool_count : 0;
}

static const struct pool_decision *pool_decision(const struct metric_sink *s, size_t pool)
{
	return &s->shown->plan->pools[pool].decision;
}

static void write_field(struct metric_sink *s)
{
	for (size_t i = 0; i < pool_pool_count(s); i++) {
		int64_t value = *(const int64_t *)(const void *)((const char *)pool_decision(s, i) + s->metric->offset);
		if (value != ABSENT)
			metric_sample(s, plain_labels(s, i).items, value, s->metric->digits);
	}
}

static void write_requests(struct metric_sink *s)
{
	for (size_t i = 0; s->shown->pools && i < pool_pool_count(s); i++) {
		const char *pool = (const char *)&s->shown->pools[i];
		metric_sample(s, plain_labels(s, i).items, *(const int64_t *)(const void *)(pool + s->metric->offset),
			      0);
	}
}

static void write_info(struct metric_sink *s)
{
	for (size_t i = 0; i < pool_pool_count(s); i++) {
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
	for (size_t i = 0; i < pool_pool_count(s); i++)
		metric_sample(s, plain_labels(s, i).items, figure_headroom_milli(pool_decision(s, i)), 3);
}

static void write_wait(struct metric_sink *s)
{
	for (size_t i = 0; i < pool_pool_count(s); i++) {
		millis wait = figure_wait(pool_decision(s, i));
		if (wait != ABSENT)
			metric_seconds(s, plain_labels(s, i).items, wait);
	}
}

static void write_objective_wait(struct metric_sink *s)
{
	for (size_t i = 0; i < pool_pool_count(s); i++)
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

	for (size_t i = 0; i < pool_pool_count(s); i++)
		metric_choice(s, plain_labels(s, i).items, &limits, pool_decision(s, i)->held_by);
}

static void write_signals(struct metric_sink *s)
{
	static const struct metric_choices states = { "state", signals_text, SIGNAL_STATE_COUNT };

	for (size_t i = 0; i < pool_pool_count(s); i++)
		metric_choice(s, plain_labels(s, i).items, &states, pool_decision(s, i)->signals);
}

static void write_self_test(struct metric_sink *s)
{
	static const struct metric_choices results = { "result", self_test_text, SELF_TEST_COUNT };

	for (size_t i = 0; i < pool_pool_count(s); i++)
		metric_choice(s, plain_labels(s, i).items, &results, pool_decision(s, i)->self_test);
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
	for (size_t i = 0; i < pool_pool_count(s); i++) {
		const struct pool_decision *d = pool_decision(s, i);
		write_lead(s, i, "cold", (struct quantiles){ d->lead_cold_p50, d->lead_cold_p95 });
		write_lead(s, i, "fast", (struct quantiles){ d->lead_fast_p50, d->lead_fast_p95 });
	}
}

static void write_stages(struct metric_sink *s)
{
	for (size_t i = 0; s->shown->pools && i < pool_pool_count(s); i++)
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
	for (size_t i = 0; s->shown->pools && i < pool_pool_count(s); i++)
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
	for (size_t i = 0; s->shown->pools && i < pool_pool_count(s); i++) {
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
	for (size_t i = 0; s->shown->pools && i < pool_pool_count(s); i++)
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
	for (size_t i = 0; s->shown->pools && i < pool_pool_count(s); i++) {
		const struct published_pool *pool = &s->shown->pools[i];
		metric_sample(s,
			      labels_of(s, i, (struct metric_label){ "kind", pool->target_kind },
					(struct metric_label){ "name", pool->target_name })
				      .items,
			      pool_decision(s, i)->decided, 0);
	}
}

#define REQUESTS(member)                                                              \
	.type = METRIC_COUNTER, .write = write_requests, .labels = "namespace, pool", \
	.offset = offsetof(struct published_pool, member)
#define FIELD_OF(member) \
	.write = write_field, .labels = "namespace, pool", .offset = offsetof(struct pool_decision, member)

/* clang-format off */
static const struct metric pool_rows[] = {
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

const struct metric_list pool_metrics = METRIC_LIST("Pools", pool_rows);

/* The process itself, under the names that every Prometheus client uses. */

static int64_t seconds_us(struct timeval t)
{
	return (int64_t)t.tv_sec * 1000000 + t.tv_usec;
}

static void write_cpu(struct metric_sink *s)
{
	struct rusage use;

	if (!getrusage(RUSAGE_SELF, &use))
		metric_sample(s, NULL, seconds_us(use.ru_utime) + seconds_us(use.ru_stime), 6);
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
		metric_sample(s, NULL, pages * sysconf(_SC_PAGESIZE), 0);
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
	metric_sample(s, NULL, count - 3, 0); /* ".", ".." and the folder itself */
}

static void write_most(struct metric_sink *s)
{
	struct rlimit limit;

	if (!getrlimit(RLIMIT_NOFILE, &limit) && limit.rlim_cur != RLIM_INFINITY)
		metric_sample(s, NULL, (int64_t)limit.rlim_cur, 0);
}

static void write_start(struct metric_sink *s)
{
	if (s->shown->started_at)
		metric_seconds(s, NULL, s->shown->started_at);
}

/* clang-format off */
static const struct metric process_rows[] = {
	{ .name = "process_cpu_seconds_total", .type = METRIC_COUNTER, .labels = "", .write = write_cpu, .help = "Processor time used." },
	{ .name = "process_resident_memory_bytes", .labels = "", .write = write_pages, .offset = 1, .help = "Resident memory." },
	{ .name = "process_virtual_memory_bytes", .labels = "", .write = write_pages, .offset = 0, .help = "Virtual memory." },
	{ .name = "process_open_fds", .labels = "", .write = write_open, .help = "Open file descriptors." },
	{ .name = "process_max_fds", .labels = "", .write = write_most, .help = "Most file descriptors that may be open." },
	{ .name = "process_start_time_seconds", .labels = "", .write = write_start, .help = "When the process started." },
};
/* clang-format on */

const struct metric_list process_metrics = METRIC_LIST("Process", process_rows);

/* How fresh the signals of each pool are, what its servers tell, what queues outside of it, what its GPUs tell. */

static struct pool_labels signals_labels_of(const struct metric_sink *s, size_t pool)
{
	const struct pool_spec *spec = &s->shown->fleet->pools[pool];

	return (struct pool_labels){ { { "namespace", spec->namespace }, { "pool", spec->name } } };
}

static size_t signals_pool_count(const struct metric_sink *s)
{
	return s->shown->plan && s->shown->fleet && s->shown->pools ? s->shown->plan->pool_count : 0;
}

static void write_member(struct metric_sink *s)
{
	for (size_t i = 0; i < signals_pool_count(s); i++) {
		const char *pool = (const char *)&s->shown->pools[i];
		int64_t value = *(const int64_t *)(const void *)(pool + s->metric->offset);
		if (value != ABSENT)
			metric_sample(s, signals_labels_of(s, i).items, value, s->metric->digits);
	}
}

static void write_device(struct metric_sink *s)
{
	for (size_t i = 0; i < signals_pool_count(s); i++) {
		const struct published_devices *d = &s->shown->pools[i].devices;
		int64_t value = *(const int64_t *)(const void *)((const char *)d + s->metric->offset);
		if (d->count && value != ABSENT)
			metric_sample(s, signals_labels_of(s, i).items, value, s->metric->digits);
	}
}

static void write_mebibytes(struct metric_sink *s)
{
	for (size_t i = 0; i < signals_pool_count(s); i++) {
		const struct published_devices *d = &s->shown->pools[i].devices;
		int64_t value = *(const int64_t *)(const void *)((const char *)d + s->metric->offset);
		if (d->count)
			metric_sample(s, signals_labels_of(s, i).items, value << 20, 0);
	}
}

static void write_percentile(struct metric_sink *s, size_t pool, const char *percent, const struct published_bounds *b)
{
	struct pool_labels l = signals_labels_of(s, pool);

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
	for (size_t i = 0; i < signals_pool_count(s); i++) {
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
static const struct metric signals_rows[] = {
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

const struct metric_list signal_metrics = METRIC_LIST("Signals and GPUs", signals_rows);
