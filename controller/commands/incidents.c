/* preheat incidents: when more requests were late than the objective allows, for how long, and why. */
#include "base/alloc.h"
#include "base/table.h"
#include "base/terminal.h"
#include "controller/commands/command.h"
#include "controller/commands/history_args.h"
#include "controller/commands/print.h"
#include "controller/policy/cost.h"
#include "controller/policy/queue_wait.h"
#include "controller/restore/restore.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

/* Late requests no further apart are one incident. */
static const millis CALM = 5 * MINUTE;

struct incident {
	size_t pool; /* of history_pools() */
	millis from, to;
	int64_t late, started, allowed_ppm;
	int64_t late_by[LATE_CAUSE_COUNT], late_at_limit[LIMIT_COUNT];
	millis longest_wait;		/* that a queue would have had at the hot replicas of its time */
	int64_t worst_tick, worst;	/* with the most late requests, and how many */
	char group[64];			/* of the start that was longest on its way then; "" */
	int64_t ready_then, on_its_way; /* replicas, at the worst tick */
};

struct incidents {
	struct history_args args;
	const char *from, *to, *output;
	struct incident *items; /* those that ended, in the order of their ends */
	size_t count, room;
	struct incident *open; /* one per pool of the history; late 0: none */
	int64_t *busy_ppm;     /* likewise: see cost_add_tick() */
	size_t pools;
};

static bool is_missed(const struct incident *i)
{
	return (double)i->late * 1e6 > (double)i->allowed_ppm * (double)i->started;
}

static void end_incident(struct incidents *all, struct incident *i)
{
	if (i->late && is_missed(i)) {
		if (all->count == all->room) {
			all->room = all->room ? 2 * all->room : 64;
			all->items = xrealloc(all->items, all->room, sizeof *all->items);
		}
		all->items[all->count++] = *i;
	}
	*i = (struct incident){ 0 };
}

static void note_worst(struct incident *i, const struct snapshot *s, size_t pool, const struct pool_plan *plan)
{
	const struct pool_snapshot *in = &s->pools[pool];
	const struct pool_spec *spec = &s->fleet->pools[pool];

	i->worst_tick = s->tick;
	i->ready_then = plan->decision.ready;
	i->on_its_way = plan->decision.on_the_way;
	i->group[0] = '\0';
	if (in->start_count && in->starts[0].group >= 0 && (size_t)in->starts[0].group < spec->group_count)
		snprintf(i->group, sizeof i->group, "%s", s->fleet->groups[spec->groups[in->starts[0].group]].name);
}

static void take_tick(struct incidents *all, const struct cursor_tick *t, size_t pool)
{
	const struct snapshot *s = &t->snapshot;
	const struct pool_plan *plan = t->plans[pool];
	struct incident *i = &all->open[t->pools[pool]];
	struct cost_sums sums = { 0 };

	cost_add_tick(&sums, &(struct cost_tick){ s, pool, plan, s->interval, NULL }, &all->busy_ppm[t->pools[pool]]);
	if (i->late && s->now - i->to > CALM)
		end_incident(all, i);
	if (!sums.late)
		return;
	if (!i->late)
		*i = (struct incident){ .pool = t->pools[pool], .from = s->now - s->interval };
	i->to = s->now;
	i->allowed_ppm = s->fleet->pools[pool].objective_late_ppm;
	i->late += sums.late;
	i->started += sums.started;
	for (size_t c = 0; c < LATE_CAUSE_COUNT; c++)
		i->late_by[c] += sums.late_by[c];
	if (plan->decision.held_by >= 0 && plan->decision.held_by < LIMIT_COUNT)
		i->late_at_limit[plan->decision.held_by] += sums.late;
	millis wait = queue_wait(&plan->decision);
	if (wait > i->longest_wait)
		i->longest_wait = wait;
	if (sums.late > i->worst) {
		i->worst = sums.late;
		note_worst(i, s, pool, plan);
	}
}

static bool walk(struct incidents *all, int64_t first, int64_t last, struct error *e)
{
	struct tick_cursor *w = tick_cursor_open(all->args.history, first, e);
	struct cursor_tick t = { .snapshot.tick = first - 1 };
	struct progress progress = progress_start("reading", "ticks", last - first + 1);
	bool ok = w != NULL;

	while (ok && t.snapshot.tick < last) {
		ok = tick_cursor_next(w, &t, e);
		for (size_t i = 0; ok && i < t.snapshot.fleet->pool_count; i++)
			if (t.damage[i].kind == ERROR_NONE &&
			    (all->args.pool_index == ANY || (size_t)all->args.pool_index == t.pools[i]))
				take_tick(all, &t, i);
		progress_show(&progress, t.snapshot.tick - first + 1);
	}
	progress_end(&progress);
	tick_cursor_close(w);
	for (size_t i = 0; ok && i < all->pools; i++)
		end_incident(all, &all->open[i]);
	return ok;
}

static int by_begin(const void *a, const void *b)
{
	const struct incident *x = a, *y = b;

	return (x->from > y->from) - (x->from < y->from);
}

static size_t largest(const int64_t *counts, size_t n)
{
	size_t most = 0;

	for (size_t i = 1; i < n; i++)
		if (counts[i] > counts[most])
			most = i;
	return most;
}

static const struct table_column columns[] = {
	{ .name = "pool" },
	{ .name = "from" },
	{ .name = "lasted_s", .title = "LASTED", .is_right = true },
	{ .name = "late", .is_right = true },
	{ .name = "requests", .is_right = true, .is_wide = true },
	{ .name = "late_ppm", .title = "SHARE", .is_right = true },
	{ .name = "longest_wait_s", .title = "WAIT", .is_right = true },
	{ .name = "cause" },
	{ .name = "limit", .is_wide = true },
	{ .name = "group", .is_wide = true },
	{ .name = "ready", .is_right = true, .is_wide = true },
	{ .name = "on_its_way", .title = "ON ITS WAY", .is_right = true, .is_wide = true },
	{ .name = "worst_tick", .title = "TICK", .is_right = true },
};

static void add_duration(struct table *t, millis d)
{
	char raw[32];

	snprintf(raw, sizeof raw, "%.3f", (double)d / 1000);
	table_value(t, human_duration(d).text, raw);
}

static void add_row(const struct incidents *all, const struct incident *i, struct table *t, bool for_programs)
{
	CLEANUP(buf_release) struct buf at = { 0 };
	double share = i->started ? (double)i->late / (double)i->started : 1;
	size_t limit = largest(i->late_at_limit, LIMIT_COUNT);
	char raw[32];

	history_args_print_time(&all->args, i->from, for_programs, &at);
	table_text(t, history_pools(all->args.history, &(size_t){ 0 })[i->pool].name);
	table_text(t, at.text);
	add_duration(t, i->to - i->from);
	table_count(t, i->late);
	table_count(t, i->started);
	snprintf(raw, sizeof raw, "%.0f", share * 1e6);
	table_value(t, human_share(share).text, raw);
	add_duration(t, i->longest_wait);
	table_text(t, late_cause_name((enum late_cause)largest(i->late_by, LATE_CAUSE_COUNT)));
	limit == LIMIT_NONE ? table_absent(t) : table_text(t, limit_name((enum limit)limit));
	i->group[0] ? table_text(t, i->group) : table_absent(t);
	table_count(t, i->ready_then);
	table_count(t, i->on_its_way);
	snprintf(raw, sizeof raw, "%" PRId64, i->worst_tick); /* to be typed: without commas */
	table_value(t, raw, raw);
}

static void print(const struct incidents *all)
{
	enum table_format format = table_format_of(all->output);
	struct table *t = table_new(columns, sizeof columns / sizeof *columns);

	for (size_t i = 0; i < all->count; i++)
		add_row(all, &all->items[i], t, table_is_for_programs(format));
	if (all->count || table_is_for_programs(format))
		table_print(t, format, stdout);
	else
		puts("No incidents: wherever requests were late, fewer were than the objective allows.");
	if (all->count && !table_is_for_programs(format))
		printf("\n%s explain --tick %" PRId64 " says what was decided at the worst of the last one.\n",
		       command_program(), all->items[all->count - 1].worst_tick);
	table_free(t);
}

static bool find_and_print(struct incidents *all, struct error *e)
{
	int64_t first, last;

	if (!history_args_open(&all->args, e) || !history_args_ticks(&all->args, all->from, all->to, &first, &last, e))
		return false;
	if (first > last)
		return error_set(e, ERROR_INVALID, "no tick lies between --from and --to");
	history_pools(all->args.history, &all->pools);
	all->open = xcalloc(all->pools + 1, sizeof *all->open);
	all->busy_ppm = xcalloc(all->pools + 1, sizeof *all->busy_ppm);
	for (size_t i = 0; i < all->pools; i++)
		all->busy_ppm[i] = ABSENT;
	if (!walk(all, first, last, e))
		return false;
	if (all->count)
		qsort(all->items, all->count, sizeof *all->items, by_begin);
	print(all);
	return true;
}

static int run(int argc, char **argv)
{
	struct incidents all = { .args = HISTORY_ARGS_DEFAULTS, .output = "table" };
	const struct option_row rows[] = {
		HISTORY_ARGS_OPTIONS(&all.args),
		{ "from", 0, OPTION_TEXT, "TIME", "not before this time; -2h counts from the end", &all.from, NULL },
		{ "to", 0, OPTION_TEXT, "TIME", "not after this time", &all.to, NULL },
		PRINT_OPTION(&all.output),
	};
	struct error e;
	int rest, code;

	if (!command_options(&command_incidents, argc, argv, rows, sizeof rows / sizeof *rows, &rest, &code))
		return code;
	bool ok = history_args_are_options(argv[rest], &e) && find_and_print(&all, &e);
	free(all.items);
	free(all.open);
	free(all.busy_ppm);
	return history_args_finish(&all.args, &command_incidents, ok, &e);
}

const struct command command_incidents = {
	.name = "incidents",
	.usage = "incidents [--db FILE] [--pool POOL] [--from TIME] [--to TIME]",
	.summary = "When more requests were late than the objective allows, for how long, and why",
	.examples = "  preheat incidents --from -7d\n"
		    "  preheat incidents --pool chat --from 'yesterday 0:00' -o wide\n",
	.notes =
		"Late requests less than five minutes apart are one incident. WAIT is how long the longest queue would "
		"have taken\n"
		"at the replicas that were hot then. TICK is the decision with the most late requests: preheat explain "
		"--tick.\n",
	.run = run,
};
