/* What GPUs did and cost, since the process started. */
#include "controller/web/metric.h"

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

static void write_labels(struct metric_sink *s, size_t pool, const struct published_label_cost *l, bool is_money)
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
			write_labels(s, i, &s->shown->pools[i].label_costs[k], is_money);
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
