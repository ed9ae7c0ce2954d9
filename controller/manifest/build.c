#include "base/json.h"
#include "controller/manifest/draft.h"

#include <string.h>

enum { PPM = 1000000 };

static struct quantiles quantiles_of(const struct quantiles_text *q)
{
	return (struct quantiles){ q->p50, q->p95 };
}

static const char *settings_of(const struct draft *d, const struct group_text *g)
{
	const struct schema_row *block = provider_row((enum provider_choice)g->provider);
	CLEANUP(buf_release) struct buf json = { 0 };
	CLEANUP(buf_release) struct buf value = { 0 };

	buf_text(&json, "{");
	for (size_t i = 0; i < block->table->count; i++) {
		buf_clear(&value);
		schema_format(&block->table->rows[i], (const char *)g + block->offset, &value);
		if (!value.len)
			continue;
		json_write_comma(&json);
		json_write_text(block->table->rows[i].key, &json);
		buf_text(&json, ":");
		json_write_text(value.text, &json);
	}
	buf_text(&json, "}");
	return arena_strdup(d->arena, json.text, json.len);
}

static struct group_spec build_group(const struct draft *d, const struct group_text *g)
{
	const struct quantiles wake = { 90 * SECOND, 150 * SECOND };

	return (struct group_spec){
		.name = g->name,
		.provider = provider_name((enum provider_choice)g->provider),
		.settings = settings_of(d, g),
		.zone = g->zone,
		.instance_type = g->instance_type,
		.capacity_type = (enum capacity_type)g->capacity_type,
		.gpus_per_node = g->gpus_per_node,
		.price_per_hour = g->price_per_hour,
		.min_nodes = g->min,
		.max_nodes = g->max,
		.standby_max_nodes = g->standby.max,
		.standby_price_ppm = g->standby.price_share_ppm,
		.standby_lead_time = g->standby.lead_time.node ? quantiles_of(&g->standby.lead_time) : wake,
	};
}

static size_t add_windows(const struct window_text *w, struct schedule_window *out)
{
	struct cron cron;
	const char *zone = w->time_zone;

	if (!w->cron || !cron_parse(w->cron, &cron)) {
		/* 24:00 is the next day's 00:00, which `to` says by not being after `from`. */
		*out = (struct schedule_window){ (unsigned)w->days, (int)w->from, (int)(w->to % (DAY / MINUTE)), zone,
						 w->min };
		return 1;
	}
	for (size_t i = 0; i < cron.count; i++) {
		int64_t to = (cron.minutes[i] + w->duration / MINUTE) % (DAY / MINUTE);
		out[i] = (struct schedule_window){ (unsigned)cron.days, cron.minutes[i], (int)to, zone, w->min };
	}
	return cron.count;
}

static void build_schedule(const struct draft *d, const struct headroom_text *h, struct pool_spec *p)
{
	const struct window_text *windows = h->schedule.items;
	struct schedule_window *out =
		arena_array(d->arena, struct schedule_window, h->schedule.count * CRON_OPENINGS_MAX);

	for (size_t i = 0; i < h->schedule.count; i++)
		p->schedule_count += add_windows(&windows[i], out + p->schedule_count);
	p->schedule = out;
}

static void build_objective(const struct spec_text *s, struct pool_spec *p)
{
	p->objective_wait = s->objective.queue_wait;
	p->objective_late_ppm = PPM - s->objective.attainment_ppm;
	p->violation_cost = s->violation_cost ? s->violation_cost : s->objective.violation_cost;
}

/* Two of slots, rate and latency give the third. */
static void build_workload(const struct workload_text *w, struct pool_spec *p)
{
	p->gpus_per_replica = w->gpus_per_replica;
	p->max_sequences = w->max_sequences;
	p->prefill_tokens_per_second = w->prefill_tokens_per_second;
	p->tokens_per_second = w->tokens_per_second;
	p->inter_token_latency_us = w->inter_token_latency_us;
	if (!is_given(w->node, "interTokenLatency") && w->tokens_per_second)
		p->inter_token_latency_us = w->max_sequences * PPM / w->tokens_per_second;
	if (!p->inter_token_latency_us)
		p->inter_token_latency_us = 1;
	if (!p->tokens_per_second)
		p->tokens_per_second = w->max_sequences * PPM / p->inter_token_latency_us;
	if (!p->tokens_per_second)
		p->tokens_per_second = 1;
}

static void build_lead_time(const struct lead_time_text *l, struct pool_spec *p)
{
	bool has_stage = false;

	for (int i = 0; i < STAGE_COUNT; i++) {
		p->stage[i] = quantiles_of(&l->stage[i]);
		has_stage = has_stage || l->stage[i].node;
	}
	if (l->total.node)
		p->lead_time = quantiles_of(&l->total);
	else if (!has_stage)
		p->lead_time = (struct quantiles){ 380 * SECOND, 650 * SECOND };
}

static void build_groups(const struct draft *d, const struct spec_text *s, struct pool_spec *p)
{
	size_t *groups = arena_array(d->arena, size_t, s->groups.count);

	for (size_t i = 0; i < s->groups.count; i++)
		groups[i] = draft_group_index(d, draft_groups(s)[i].name);
	p->groups = groups;
	p->group_count = s->groups.count;
}

static struct pool_spec build_pool(const struct draft *d, const struct warm_pool *w)
{
	const struct spec_text *s = &w->spec;
	struct pool_spec p = {
		.name = w->metadata.name,
		.namespace = w->metadata.namespace,
		.class = (enum pool_class)s->class,
		.mode = (enum pool_mode)s->mode,
		.headroom_min = s->headroom.min,
		.headroom_max = s->headroom.max,
		.scale_down_after = s->scale_down.after,
		.lend_to = (unsigned)s->lend.to,
		.yield_within = s->lend.yield_within,
		.shrink_priority = s->shrink_priority,
		.budget_per_hour = s->budget.dollars_per_hour,
		.budget_name = s->budget.name,
	};

	build_objective(s, &p);
	build_workload(&s->workload, &p);
	build_lead_time(&s->lead_time, &p);
	build_groups(d, s, &p);
	build_schedule(d, &s->headroom, &p);
	return p;
}

struct fleet_spec build_fleet(const struct draft *d)
{
	struct group_spec *groups = arena_array(d->arena, struct group_spec, d->group_count);
	struct pool_spec *pools = arena_array(d->arena, struct pool_spec, d->pool_count);

	for (size_t i = 0; i < d->group_count; i++)
		groups[i] = build_group(d, &d->groups[i].merged);
	for (size_t i = 0; i < d->pool_count; i++)
		pools[i] = build_pool(d, &d->pools[i]);
	return (struct fleet_spec){ groups, d->group_count, pools, d->pool_count };
}

const struct group_text *build_group_texts(const struct draft *d)
{
	struct group_text *groups = arena_array(d->arena, struct group_text, d->group_count);

	for (size_t i = 0; i < d->group_count; i++)
		groups[i] = d->groups[i].merged;
	return groups;
}
