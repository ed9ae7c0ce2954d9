/* preheat lead-time: how long starts took, by node group and stage, and what a shorter one would be worth. */
#include "base/table.h"
#include "base/terminal.h"
#include "controller/commands/command.h"
#include "controller/commands/history_args.h"
#include "controller/commands/print.h"
#include "controller/commands/recorded_world.h"
#include "controller/policy/fields.h"
#include "controller/restore/restore.h"
#include "controller/simulation/lead_worth.h"
#include "base/list.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { CHANGES_TOLD = 3 };

struct sample {
	millis took;
	int64_t count;
};

/* How long one stage took, or all of a start (LEAD_WHOLE), in one node group or all of a pool's (NULL). */
struct durations {
	size_t pool; /* of history_pools() */
	const char *group;
	enum start_kind kind;
	bool is_first; /* wakes of machines bought for standby that had never run */
	int stage;
	LIST(struct sample) samples;
	int64_t count;
	millis p50, p95, slowest;
	const struct lead_worth *worth; /* NULL: not modelled */
};

struct lead_times {
	struct history_args args;
	const char *from, *to, *output;
	int64_t first_tick, last_tick;
	LIST(struct durations) rows;
	const bool *is_unpriced; /* by index of history_pools() */
};

/* --- what was recorded --- */

static struct durations *row_of(struct lead_times *l, size_t pool, const char *group, const struct event_input *ev)
{
	int stage = ev->what == EVENT_STAGE ? (int)ev->stage : LEAD_WHOLE;

	for (size_t i = 0; i < l->rows.count; i++) {
		struct durations *d = &l->rows.items[i];
		if (d->pool == pool && d->kind == (enum start_kind)ev->kind && d->is_first == (ev->first != 0) &&
		    d->stage == stage && (group ? d->group && !strcmp(d->group, group) : !d->group))
			return d;
	}
	struct durations d = { .pool = pool, .kind = (enum start_kind)ev->kind, .is_first = ev->first, .stage = stage };
	d.group = group ? arena_strdup(&l->args.arena, group, strlen(group)) : NULL;
	LIST_ADD(&l->args.arena, &l->rows, d);
	return &l->rows.items[l->rows.count - 1];
}

static void add_sample(struct lead_times *l, struct durations *to, const struct event_input *ev)
{
	struct sample s = { ev->value, ev->count > 0 ? ev->count : 1 };

	LIST_ADD(&l->args.arena, &to->samples, s);
	to->count += s.count;
}

static void take_event(struct lead_times *l, size_t pool, const char *group, const struct event_input *ev)
{
	add_sample(l, row_of(l, pool, NULL, ev), ev);
	if (group)
		add_sample(l, row_of(l, pool, group, ev), ev);
}

static void take_pool(struct lead_times *l, size_t pool, const struct fleet_spec *fleet, const struct pool_spec *spec,
		      const struct pool_snapshot *s)
{
	for (size_t i = 0; i < s->event_count; i++) {
		const struct event_input *ev = &s->events[i];
		bool is_stage = ev->what == EVENT_STAGE && ev->stage >= 0 && ev->stage < STAGE_COUNT;
		if ((!is_stage && ev->what != EVENT_SERVING) || ev->value <= 0 || ev->kind < 0 ||
		    ev->kind >= START_KIND_COUNT)
			continue;
		bool has_group = ev->group >= 0 && (size_t)ev->group < spec->group_count;
		take_event(l, pool, has_group ? fleet->groups[spec->groups[ev->group]].name : NULL, ev);
	}
}

static void take_tick(void *user, const struct cursor_tick *t)
{
	struct lead_times *l = user;
	const int64_t asked = l->args.pool_index;
	const struct fleet_spec *fleet = t->snapshot.fleet;

	for (size_t i = 0; i < fleet->pool_count; i++)
		if (asked == ANY || (size_t)asked == t->pools[i])
			take_pool(l, t->pools[i], fleet, &fleet->pools[i], &t->snapshot.pools[i]);
}

static bool read_ticks(struct lead_times *l, struct error *e)
{
	return history_args_walk(&l->args, &(struct tick_walk){ l->first_tick, l->last_tick, take_tick, l }, e);
}

static int by_duration(const void *a, const void *b)
{
	millis x = ((const struct sample *)a)->took, y = ((const struct sample *)b)->took;

	return (x > y) - (x < y);
}

/* The nearest ranks, and the mean of the slowest twentieth. */
static void measure(struct durations *d)
{
	int64_t seen = 0, slow = (d->count + 19) / 20, left = slow;
	double slowest = 0;

	qsort(d->samples.items, d->samples.count, sizeof *d->samples.items, by_duration);
	for (size_t i = 0; i < d->samples.count; i++) {
		seen += d->samples.items[i].count;
		if (!d->p50 && seen * 2 >= d->count)
			d->p50 = d->samples.items[i].took;
		if (!d->p95 && seen * 20 >= d->count * 19)
			d->p95 = d->samples.items[i].took;
	}
	for (size_t i = d->samples.count; i-- > 0 && left > 0;) {
		int64_t n = d->samples.items[i].count < left ? d->samples.items[i].count : left;
		slowest += (double)d->samples.items[i].took * (double)n;
		left -= n;
	}
	d->slowest = (millis)(slowest / (double)slow + .5);
}

static int by_place(const void *a, const void *b)
{
	const struct durations *x = a, *y = b;

	if (x->pool != y->pool)
		return x->pool < y->pool ? -1 : 1;
	if (!x->group != !y->group)
		return x->group ? 1 : -1;
	int order = x->group ? strcmp(x->group, y->group) : 0;
	if (order)
		return order;
	if (x->kind != y->kind)
		return x->kind < y->kind ? -1 : 1;
	if (x->is_first != y->is_first)
		return x->is_first ? 1 : -1;
	return (x->stage == LEAD_WHOLE ? -1 : x->stage) - (y->stage == LEAD_WHOLE ? -1 : y->stage);
}

/* A pool whose starts were all in one group needs no second row for all of them. */
static bool is_said_twice(const struct lead_times *l, const struct durations *d)
{
	for (size_t i = 0; !d->group && i < l->rows.count; i++) {
		const struct durations *of = &l->rows.items[i];
		if (of->group && of->pool == d->pool && of->kind == d->kind && of->is_first == d->is_first &&
		    of->stage == d->stage && of->count == d->count)
			return true;
	}
	return false;
}

/* --- what a shorter one is worth --- */

/* The parts of cold starts and wakes that were measured, of each pool that still is in the manifest. */
static size_t parts_of(const struct lead_times *l, const size_t *recorded, size_t pools, struct durations **rows,
		       struct lead_part *parts)
{
	size_t count = 0;

	for (size_t i = 0; i < l->rows.count; i++) {
		struct durations *d = &l->rows.items[i];
		bool is_modelled =
			d->kind == START_COLD || (d->kind == START_WAKE && !d->is_first && d->stage == LEAD_WHOLE);
		for (size_t p = 0; p < pools && is_modelled && !d->group; p++)
			if (recorded[p] == d->pool) {
				rows[count] = d;
				parts[count++] = (struct lead_part){ p, d->kind, d->stage };
			}
	}
	return count;
}

/* Rows of single groups show what is worth for the pool when they are all of it. */
static void share_worth(struct lead_times *l)
{
	for (size_t i = 0; i < l->rows.count; i++)
		for (size_t k = 0; l->rows.items[i].worth && k < l->rows.count; k++) {
			const struct durations *all = &l->rows.items[i];
			struct durations *d = &l->rows.items[k];
			if (d->pool == all->pool && d->kind == all->kind && d->is_first == all->is_first &&
			    d->stage == all->stage && d->count == all->count)
				d->worth = all->worth;
		}
}

static bool model(struct lead_times *l, struct recorded_world *w, struct error *e)
{
	struct arena *a = &l->args.arena;
	struct durations **rows = arena_array(a, struct durations *, l->rows.count);
	struct lead_part *parts = arena_array(a, struct lead_part, l->rows.count);
	size_t count = parts_of(l, w->recorded, w->manifest.fleet.pool_count, rows, parts);
	struct lead_worth *worth = arena_array(a, struct lead_worth, count);

	recorded_world_begin(w, (int64_t)(count + 1) * TRIAL_SEEDS);
	bool ok = count == 0 || lead_worth(&w->simulation, parts, count, worth, e);
	recorded_world_end(w);
	for (size_t i = 0; ok && i < count; i++)
		rows[i]->worth = worth[i].shorter > 0 ? &worth[i] : NULL;
	share_worth(l);
	return ok;
}

/* --- printed --- */

static const struct table_column columns[] = {
	{ .name = "pool" },
	{ .name = "group" },
	{ .name = "start" },
	{ .name = "stage" },
	{ .name = "count", .is_right = true },
	{ .name = "p50_s", .title = "P50", .is_right = true },
	{ .name = "p95_s", .title = "P95", .is_right = true },
	{ .name = "slowest_s", .title = "SLOWEST 5 %", .is_right = true, .is_wide = true },
	{ .name = "half_saves_dollars_a_day", .title = "HALF SAVES/DAY", .is_right = true },
	{ .name = "second_dollars_a_day", .title = "A SECOND", .is_right = true, .is_wide = true },
	{ .name = "late_ppm", .title = "LATE", .is_right = true, .is_wide = true },
	{ .name = "half_late_ppm", .title = "WITH HALF", .is_right = true, .is_wide = true },
	{ .name = "half_saves_gpu_hours_a_day", .title = "HALF SAVES GPU H/DAY", .is_right = true, .is_wide = true },
};

/* Of both, programs get the number. */
static void add_saving(struct table *t, double dollars, bool is_chance, bool is_unpriced)
{
	char raw[32];

	if (!is_chance) {
		table_spent(t, dollars, is_unpriced);
		return;
	}
	snprintf(raw, sizeof raw, "%.4f", dollars);
	is_unpriced ? table_shown(t, "within chance") : table_value(t, "within chance", raw);
}

static void add_worth(struct table *t, const struct lead_worth *w, bool is_unpriced)
{
	if (!w) {
		for (int i = 0; i < 5; i++)
			table_absent(t);
		return;
	}
	add_saving(t, w->half.saved, w->half.is_chance, is_unpriced);
	add_saving(t, w->half.saved / ((double)w->shorter / 1000), w->half.is_chance, is_unpriced);
	table_share(t, w->half.late_share);
	table_share(t, w->half.late_with);
	is_unpriced ? table_decimal(t, w->half.saved, 1) : table_absent(t);
}

static const char *part_name(const struct durations *d)
{
	return d->stage == LEAD_WHOLE ? "all" : stage_name((enum stage)d->stage);
}

static const char *kind_name(const struct durations *d)
{
	return d->is_first ? "first wake" : field_enum_name("start_kind", d->kind);
}

static void add_row(const struct lead_times *l, const struct durations *d, struct table *t)
{
	table_text(t, history_pools(l->args.history, &(size_t){ 0 })[d->pool].name);
	table_text(t, d->group ? d->group : "all");
	table_text(t, kind_name(d));
	table_text(t, part_name(d));
	table_count(t, d->count);
	table_duration(t, d->p50);
	table_duration(t, d->p95);
	table_duration(t, d->slowest);
	add_worth(t, d->worth, l->is_unpriced[d->pool]);
}

/* What is known to shorten a part; none is assumed to be there. */
static const char *what_shortens(const struct durations *d)
{
	static const char *const stages[STAGE_COUNT] = {
		[STAGE_PROVISION] = "stopped machines (standby), or a group whose machines start faster",
		[STAGE_REGISTER] = "a node image that needs no downloads to join",
		[STAGE_DEVICE] = "driver and device plugin in the node image",
		[STAGE_IMAGE] = "the serving image on the node before (prefetch, image streaming, a disk that has it)",
		[STAGE_LOAD] = "weights and compile caches on a disk of the node, or a weight streamer",
	};

	if (d->kind == START_WAKE || d->stage < 0 || d->stage >= STAGE_COUNT)
		return "hibernation in place of a stop, or weights that stay on the machine's disk";
	return stages[d->stage];
}

static int by_saving(const void *a, const void *b)
{
	double x = ((const struct durations *)a)->worth->half.saved,
	       y = ((const struct durations *)b)->worth->half.saved;

	return (x < y) - (x > y);
}

/* The changes that save most: single stages and wakes; "all" of a cold start is their sum. */
static void print_changes(struct lead_times *l)
{
	struct durations *best = arena_array(&l->args.arena, struct durations, l->rows.count);
	size_t count = 0;

	for (size_t i = 0; i < l->rows.count; i++) {
		struct durations *d = &l->rows.items[i];
		if (!d->group && d->worth && !d->worth->half.is_chance && d->worth->half.saved > 0 &&
		    (d->kind == START_WAKE || d->stage != LEAD_WHOLE))
			best[count++] = *d;
	}
	if (count > 1)
		qsort(best, count, sizeof *best, by_saving);
	if (count)
		puts("\nWorth most, by the model (the recorded traffic again, with that part at half its time):");
	for (size_t i = 0; i < count && i < CHANGES_TOLD; i++) {
		const struct lead_worth *w = best[i].worth;
		bool is_unpriced = l->is_unpriced[best[i].pool];
		printf("  %s, %s: %s less saves %s of %s %sa day, at %s late requests instead of %s\n"
		       "    look at %s\n",
		       history_pools(l->args.history, &(size_t){ 0 })[best[i].pool].name,
		       best[i].kind == START_WAKE ? "wake" : part_name(&best[i]), human_duration(w->shorter).text,
		       is_unpriced ? human_decimal(w->half.saved, 1).text : human_dollars(w->half.saved).text,
		       is_unpriced ? human_decimal(w->half.dollars, 1).text : human_dollars(w->half.dollars).text,
		       is_unpriced ? "GPU hours " : "", human_share(w->half.late_with).text,
		       human_share(w->half.late_share).text, what_shortens(&best[i]));
	}
}

static void print(struct lead_times *l)
{
	enum table_format format = table_format_of(l->output);
	struct table *t = table_new(columns, sizeof columns / sizeof *columns);

	for (size_t i = 0; i < l->rows.count; i++)
		if (!is_said_twice(l, &l->rows.items[i]))
			add_row(l, &l->rows.items[i], t);
	if (l->rows.count || table_is_for_programs(format))
		table_print(t, format, stdout);
	else
		puts("No start was recorded.");
	if (!table_is_for_programs(format))
		print_changes(l);
	table_free(t);
}

static bool find_and_print(struct lead_times *l, struct error *e)
{
	struct history_args *q = &l->args;
	struct recorded_world w;

	if (!history_args_open(q, e) || !history_args_ticks(q, l->from, l->to, &l->first_tick, &l->last_tick, e))
		return false;
	if (l->first_tick > l->last_tick)
		return error_set(e, ERROR_INVALID, "no tick lies between --from and --to");
	if (!read_ticks(l, e))
		return false;
	l->is_unpriced = history_args_unpriced(q);
	for (size_t i = 0; i < l->rows.count; i++)
		measure(&l->rows.items[i]);
	if (l->rows.count > 1)
		qsort(l->rows.items, l->rows.count, sizeof *l->rows.items, by_place);
	bool ok = recorded_world_read(q, l->first_tick, l->last_tick, 2 * DAY, &w, e) && model(l, &w, e);
	recorded_world_release(&w);
	if (ok)
		print(l);
	return ok;
}

static int run(int argc, char **argv)
{
	struct lead_times l = { .args = HISTORY_ARGS_DEFAULTS, .output = "table" };
	const struct option_row rows[] = {
		HISTORY_ARGS_OPTIONS(&l.args),
		{ "from", 0, OPTION_TEXT, "TIME", "not before this time; -7d counts from the end", &l.from, NULL },
		{ "to", 0, OPTION_TEXT, "TIME", "not after this time", &l.to, NULL },
		PRINT_OPTION(&l.output),
	};
	struct error e;
	int rest, code;

	if (!command_options(&command_lead_time, argc, argv, rows, sizeof rows / sizeof *rows, &rest, &code))
		return code;
	bool ok = history_args_are_options(argv[rest], &e) && find_and_print(&l, &e);
	return history_args_finish(&l.args, &command_lead_time, ok, &e);
}

const struct command command_lead_time = {
	.name = "lead-time",
	.usage = "lead-time [--db FILE] [--pool POOL] [--from TIME] [--to TIME]",
	.summary = "How long starts took, by node group and stage, and what shorter ones would save",
	.examples = "  preheat lead-time --from -7d\n"
		    "  preheat lead-time --pool chat -o wide\n",
	.notes = "HALF SAVES A DAY sends the recorded traffic (at most the last two days) once more through the model\n"
		 "simulate uses, with that part of the lead time at half, five seeds each; \"within chance\" when\n"
		 "the seeds differ by as much. -o wide adds what one second less saves a day, and the share of late\n"
		 "requests now and with the half. SLOWEST 5 % is the mean of the slowest twentieth. A pool that only\n"
		 "observes is modelled as if it acted. csv, json and yaml have every column, durations in seconds and\n"
		 "dollars also where they are within chance.\n",
	.run = run,
};
