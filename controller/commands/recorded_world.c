#include "controller/commands/recorded_world.h"

#include "base/schedule.h"

static const millis WARM_UP = 2 * HOUR;

static bool on_tick(void *user, const struct tick_view *v, struct error *e)
{
	struct recorded_world *w = user;

	(void)e;
	(void)v;
	progress_show(&w->progress, ++w->done);
	return true;
}

static bool find_ticks(struct history_args *q, int64_t first, int64_t last, millis most, struct recorded_ticks *out,
		       struct error *e)
{
	millis end;

	if (!history_tick_end(q->history, last, &end, e) || !history_tick_at(q->history, end - most, &out->from, e))
		return false;
	out->from = out->from > first ? out->from : first;
	out->to = last;
	return true;
}

static void find_pools(struct history_args *q, struct recorded_world *w)
{
	struct fleet_spec *fleet = &w->manifest.fleet;
	struct pool_spec *pools = arena_array(&q->arena, struct pool_spec, fleet->pool_count);

	w->recorded = arena_array(&q->arena, size_t, fleet->pool_count);
	w->traces = arena_array(&q->arena, const struct trace *, fleet->pool_count);
	for (size_t i = 0; i < fleet->pool_count; i++) {
		w->recorded[i] = recording_pool(q->history, &fleet->pools[i]);
		pools[i] = fleet->pools[i];
		pools[i].mode = pools[i].mode == MODE_OBSERVE ? MODE_ACT : pools[i].mode;
	}
	fleet->pools = pools;
}

bool recorded_world_read(struct history_args *q, int64_t first, int64_t last, millis most, struct recorded_world *out,
			 struct error *e)
{
	*out = (struct recorded_world){ .observer = { on_tick, out } };
	if (!find_ticks(q, first, last, most, &out->ticks, e) ||
	    !history_args_manifest(q->history, last, &q->arena, &out->manifest, e) ||
	    !recording_read(q->history, out->ticks.from, last, &q->arena, &out->rec, e))
		return false;
	out->ticks.start = out->rec.start;
	find_pools(q, out);
	const struct recording_question ask = { q->history, out->ticks, &out->rec, &out->manifest.fleet,
						out->recorded };
	millis interval = out->rec.interval, length = (last - out->ticks.from + 1) * interval;
	out->simulation = (struct simulation){
		.world = { &out->manifest.fleet, &out->spec, out->traces, out->rec.start, interval, 1, schedule_at },
		.policy = &policy_preheat,
		.setting = "",
		.warm_up = length > 4 * WARM_UP ? WARM_UP : length / 4,
		.observers = &out->observer,
		.observer_count = 1,
	};
	return recording_world(&ask, out->traces, &q->arena, &out->spec, e);
}

void recorded_world_begin(struct recorded_world *w, int64_t runs)
{
	w->done = 0;
	w->progress = progress_start("modelling", "ticks", (w->ticks.to - w->ticks.from + 1) * runs);
}

void recorded_world_end(struct recorded_world *w)
{
	progress_end(&w->progress);
}

void recorded_world_release(struct recorded_world *w)
{
	recording_release(&w->rec);
}
