/* What the tables of export_tables.h hold. */
#include "controller/commands/export_sink.h"

#include "controller/manifest/manifest.h"
#include "providers/provider.h"
#include "state/cost.h"
#include "state/launch.h"

#include <string.h>

static void put_record(struct export_sink *s, const struct record_info *info, const void *record)
{
	const int64_t *values = record;

	for (size_t i = 0; i < info->count; i++) {
		const char *unit = info->fields[i].unit;

		if (!strncmp(unit, "enum:", 5))
			export_text(s, values[i] == ABSENT ? NULL : field_enum_name(unit + 5, values[i]));
		else if (!strcmp(unit, "time"))
			export_time(s, values[i]);
		else
			export_integer(s, values[i]);
	}
}

static void put_tick(struct export_sink *s, const struct history_pool *pool, const struct tick_record *r)
{
	export_time(s, r->now);
	export_integer(s, r->tick);
	export_text(s, pool->namespace);
	export_text(s, pool->name);
}

/* --- decisions --- */

struct decisions {
	struct question *question;
	enum export_table table;
	struct export_sink *sink;
	struct history_stretch stretch;
	struct manifest manifest; /* in force in the stretch */
	bool is_loaded;
	struct arena arena;
};

/* A group's number in a plan is its place in the manifest in force. */
static bool load_stretch(struct decisions *d, int64_t tick, struct error *e)
{
	CLEANUP(findings_release) struct findings findings = { 0 };
	struct history *h = d->question->history;
	const char *text;

	arena_release(&d->arena);
	if (!history_stretch_at(h, tick, &d->arena, &d->stretch, e) || !history_manifest(h, tick, &d->arena, &text, e))
		return false;
	if (!manifest_load_text("manifest", text, &d->arena, &d->manifest, &findings, e))
		return error_wrap(e, "%s: its manifest", history_path(h));
	d->is_loaded = d->manifest.fleet.pool_count == d->stretch.pool_count;
	return d->is_loaded ||
	       error_set(e, ERROR_INVALID, "%s: damaged: its manifest is not that of its decisions", history_path(h));
}

static bool put_groups(struct decisions *d, size_t place, const struct tick_record *r, struct error *e)
{
	const struct fleet_spec *fleet = &d->manifest.fleet;
	const struct pool_spec *spec = &fleet->pools[place];
	size_t count;

	if (r->plan.group_count != spec->group_count)
		return error_set(e, ERROR_INVALID, "%s: damaged: its manifest is not that of its decisions",
				 history_path(d->question->history));
	for (size_t g = 0; g < r->plan.group_count; g++) {
		put_tick(d->sink, &history_pools(d->question->history, &count)[r->pool], r);
		export_text(d->sink, fleet->groups[spec->groups[g]].name);
		put_record(d->sink, &group_decision_info, &r->plan.groups[g]);
	}
	return true;
}

static bool put_decision(struct decisions *d, size_t place, const struct tick_record *r, struct error *e)
{
	size_t count;

	if (d->table == EXPORT_GROUPS)
		return put_groups(d, place, r, e);
	put_tick(d->sink, &history_pools(d->question->history, &count)[r->pool], r);
	export_integer(d->sink, r->interval);
	put_record(d->sink, &pool_decision_info, &r->plan.decision);
	return true;
}

static bool put_all(struct decisions *d, int64_t tick, struct error *e)
{
	if ((tick > d->stretch.until || !d->is_loaded) && !load_stretch(d, tick, e))
		return false;
	for (size_t i = 0; i < d->stretch.pool_count; i++) {
		struct tick_record r;

		if (!history_read(d->question->history, tick, d->stretch.pools[i], &r, e) || !put_decision(d, i, &r, e))
			return false;
	}
	return true;
}

/* First and last tick of [from, to); last < first: none. */
static bool find_ticks(const struct question *q, const struct export_span *span, int64_t *first, int64_t *last,
		       struct error *e)
{
	if (!history_tick_at(q->history, span->from - 1, first, e) ||
	    !history_tick_at(q->history, span->to - 1, last, e))
		return false;
	*first += span->from - 1 >= q->span.from;
	*last -= span->to - 1 < q->span.from;
	return true;
}

static bool export_decisions(struct question *q, enum export_table table, const struct export_span *span,
			     struct export_sink *sink, struct error *e)
{
	struct decisions d = { .question = q, .table = table, .sink = sink };
	int64_t first, last;
	bool ok = find_ticks(q, span, &first, &last, e);

	for (int64_t tick = ok ? first : 1; ok && tick <= last; tick++)
		ok = put_all(&d, tick, e);
	arena_release(&d.arena);
	return ok;
}

/* --- costs --- */

static void put_costs(struct export_sink *s, const struct history_pool *pools, const struct cost_hour *h)
{
	const struct cost_sums *sums = &h->sums;
	const int64_t counts[] = { sums->watched_ms, sums->arrived,	  sums->started,       sums->late,
				   sums->completed,  sums->prompt_tokens, sums->output_tokens, sums->blind_gpu_ms };

	export_time(s, h->hour * HOUR);
	export_text(s, pools[h->pool].namespace);
	export_text(s, pools[h->pool].name);
	export_text(s, pool_class_name(h->class));
	for (size_t i = 0; i < sizeof counts / sizeof *counts; i++)
		export_integer(s, counts[i]);
	for (int i = 0; i < GPU_STATE_COUNT; i++)
		export_integer(s, sums->gpu_ms[i]);
	for (int i = 0; i < GPU_STATE_COUNT; i++)
		export_integer(s, sums->dollars[i]);
	for (int i = 0; i < LATE_CAUSE_COUNT; i++)
		export_integer(s, sums->late_by[i]);
}

static bool export_costs(struct question *q, const struct export_span *span, struct export_sink *sink, struct error *e)
{
	CLEANUP(arena_release) struct arena a = { 0 };
	const struct hour_range range = { span->from / HOUR, (span->to + HOUR - 1) / HOUR - 1 };
	struct cost_hour *hours;
	size_t count, pool_count;

	if (!history_cost_hours(q->history, range, &a, &hours, &count, e))
		return false;
	for (size_t i = 0; i < count; i++)
		put_costs(sink, history_pools(q->history, &pool_count), &hours[i]);
	return true;
}

/* --- launches --- */

static void put_launch(struct export_sink *s, const struct launch *l)
{
	CLEANUP(buf_release) struct buf machines = { 0 };

	for (size_t i = 0; i < l->machine_count; i++)
		buf_printf(&machines, i ? " %s" : "%s", l->machines[i]);
	export_time(s, l->asked_at);
	export_time(s, l->outcome ? l->ended_at : 0);
	export_integer(s, l->tick < 0 ? ABSENT : l->tick);
	export_text(s, l->group);
	export_text(s, l->verb >= 0 && l->verb < PROVIDER_VERB_COUNT ? provider_verb_name((enum provider_verb)l->verb)
								     : NULL);
	export_integer(s, l->machine_count ? ABSENT : l->target);
	export_text(s, machines.text);
	export_text(s, l->outcome);
	export_integer(s, l->term);
	export_text(s, l->token);
	export_text(s, l->operation);
}

static bool export_launches(struct question *q, const struct export_span *span, struct export_sink *sink,
			    struct error *e)
{
	CLEANUP(arena_release) struct arena a = { 0 };
	const struct launch_filter filter = { span->from, span->to - 1, NULL, INT64_MAX };
	struct launch *launches;
	size_t count;

	if (!launch_find(q->history, &filter, &a, &launches, &count, e))
		return false;
	for (size_t i = 0; i < count; i++)
		put_launch(sink, &launches[i]);
	return true;
}

bool export_rows(struct question *q, enum export_table table, const struct export_span *span, struct export_sink *sink,
		 struct error *e)
{
	switch (table) {
	case EXPORT_DECISIONS:
	case EXPORT_GROUPS:
		return export_decisions(q, table, span, sink, e);
	case EXPORT_COSTS:
		return export_costs(q, span, sink, e);
	case EXPORT_LAUNCHES:
		return export_launches(q, span, sink, e);
	case EXPORT_TABLES:
		break;
	}
	return true;
}
