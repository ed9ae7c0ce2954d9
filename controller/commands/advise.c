/* preheat advise: what should be changed, each change tried on the recorded traffic. */
#include "base/table.h"
#include "controller/commands/command.h"
#include "controller/commands/history_args.h"
#include "controller/commands/print.h"
#include "controller/commands/recorded_world.h"
#include "controller/restore/restore.h"
#include "controller/simulation/advice.h"

#include <stdio.h>
#include <string.h>

enum { TOLD = 3 };

struct asked {
	struct history_args args;
	const char *from, *to, *output;
	bool is_all;
	int64_t first_tick, last_tick;
	struct recorded_world world;
	struct advice_record *records; /* one per pool of the manifest */
	size_t *pools;		       /* of the manifest, one per pool of the history; RECORDING_NONE: it has gone */
};

/* --- what the record says --- */

static void make_records(struct asked *q)
{
	const struct fleet_spec *fleet = &q->world.manifest.fleet;
	struct arena *a = &q->args.arena;
	size_t recorded;

	history_pools(q->args.history, &recorded);
	q->pools = arena_array(a, size_t, recorded);
	q->records = arena_array(a, struct advice_record, fleet->pool_count);
	for (size_t i = 0; i < recorded; i++)
		q->pools[i] = RECORDING_NONE;
	for (size_t i = 0; i < fleet->pool_count; i++) {
		q->records[i].served = arena_array(a, int64_t, fleet->pools[i].group_count);
		q->records[i].lost = arena_array(a, int64_t, fleet->pools[i].group_count);
		if (q->world.recorded[i] != RECORDING_NONE)
			q->pools[q->world.recorded[i]] = i;
	}
}

/* Groups are found by name: the manifest may have changed meanwhile. */
static void take_event(struct asked *q, size_t pool, const char *group, const struct event_input *ev)
{
	const struct fleet_spec *fleet = &q->world.manifest.fleet;
	const struct pool_spec *p = &fleet->pools[pool];

	for (size_t i = 0; i < p->group_count; i++) {
		if (strcmp(fleet->groups[p->groups[i]].name, group) != 0)
			continue;
		q->records[pool].served[i] += ev->what == EVENT_SERVING ? ev->count : 0;
		q->records[pool].lost[i] += ev->what == EVENT_STUCK || ev->what == EVENT_REFUSED ? ev->count : 0;
	}
}

static void take_tick(void *user, const struct cursor_tick *t)
{
	struct asked *q = user;
	const struct fleet_spec *fleet = t->snapshot.fleet;

	for (size_t i = 0; i < fleet->pool_count; i++) {
		const struct pool_snapshot *s = &t->snapshot.pools[i];
		const struct pool_spec *was = &fleet->pools[i];
		size_t pool = q->pools[t->pools[i]];
		if (pool == RECORDING_NONE)
			continue;
		if (t->damage[i].kind == ERROR_NONE && t->plans[i]->decision.held_by >= 0)
			q->records[pool].held_by |= 1u << t->plans[i]->decision.held_by;
		for (size_t k = 0; k < s->event_count; k++)
			if (s->events[k].group >= 0 && (size_t)s->events[k].group < was->group_count)
				take_event(q, pool, fleet->groups[was->groups[s->events[k].group]].name, &s->events[k]);
	}
}

static bool read_ticks(struct asked *q, struct error *e)
{
	return history_args_walk(&q->args, &(struct tick_walk){ q->first_tick, q->last_tick, take_tick, q }, e);
}

/* --- tried --- */

static bool is_asked(const struct asked *q, const struct advice *a)
{
	return q->args.pool_index == ANY || (size_t)q->args.pool_index == q->world.recorded[a->pool];
}

/* Leaves those of the pool that was asked for. */
static size_t keep_asked(const struct asked *q, struct advice *all, struct trial *trials, size_t count)
{
	size_t kept = 0;

	for (size_t i = 0; i < count; i++)
		if (is_asked(q, &all[i])) {
			all[kept] = all[i];
			trials[kept++] = trials[i];
		}
	return kept;
}

static bool try_all(struct asked *q, struct advice **out, size_t *count, struct error *e)
{
	struct arena *a = &q->args.arena;
	size_t most = q->world.manifest.fleet.pool_count * ADVICE_MOST;
	struct advice *all = arena_array(a, struct advice, most);
	struct trial *trials = arena_array(a, struct trial, most);
	struct trial_result *results = arena_array(a, struct trial_result, most);

	*count = advice_candidates(&q->world.simulation.world, q->records, a, all, trials);
	*count = keep_asked(q, all, trials, *count);
	recorded_world_begin(&q->world, (int64_t)(*count + 1) * TRIAL_SEEDS);
	bool ok = trial_run(&q->world.simulation, trials, *count, results, e);
	recorded_world_end(&q->world);
	for (size_t i = 0; ok && i < *count; i++)
		all[i].result = results[i];
	*out = all;
	return ok;
}

/* --- printed --- */

static const struct table_column columns[] = {
	{ .name = "namespace", .is_wide = true },
	{ .name = "pool" },
	{ .name = "change" },
	{ .name = "saves_dollars_a_day", .title = "SAVES A DAY", .is_right = true },
	{ .name = "dollars_a_day", .title = "OF", .is_right = true },
	{ .name = "late_ppm", .title = "LATE", .is_right = true },
	{ .name = "late_with_ppm", .title = "WITH IT", .is_right = true },
	{ .name = "allowed_ppm", .title = "ALLOWED", .is_right = true },
	{ .name = "is_chance", .title = "CHANCE", .is_wide = true },
	{ .name = "needs" },
};

static void add_row(const struct asked *q, const struct advice *a, struct table *t)
{
	const struct trial_result *r = &a->result;

	table_text(t, q->world.manifest.fleet.pools[a->pool].namespace);
	table_text(t, q->world.manifest.fleet.pools[a->pool].name);
	table_text(t, a->setting);
	table_dollars(t, r->saved);
	table_dollars(t, r->dollars);
	table_share(t, r->late_share);
	table_share(t, r->late_with);
	table_share(t, a->allowed_with);
	table_value(t, r->is_chance ? "yes" : "no", r->is_chance ? "true" : "false");
	a->needs ? table_text(t, a->needs) : table_absent(t);
}

static void print(const struct asked *q, const struct advice *all, size_t count, size_t tried)
{
	enum table_format format = table_format_of(q->output);
	struct table *t = table_new(columns, sizeof columns / sizeof *columns);

	for (size_t i = 0; i < count && (q->is_all || i < TOLD); i++)
		add_row(q, &all[i], t);
	if (count || table_is_for_programs(format))
		table_print(t, format, stdout);
	else
		printf("Nothing to change: of %zu changes tried on the recorded traffic none pays.\n", tried);
	if (count && !table_is_for_programs(format))
		printf("\n%zu changes tried on the recorded traffic%s.\n", tried,
		       q->is_all ? "" : "; these pay most (--all shows every one)");
	table_free(t);
}

/* A week shows what a weekday hides; many pools would take too long, and too much memory. */
static millis modelled_most(const struct asked *q)
{
	enum { POOL_DAYS = 21, LEAST = 2, MOST = 7 };
	size_t pools;

	history_pools(q->args.history, &pools);
	int64_t days = POOL_DAYS / (int64_t)(pools > 0 ? pools : 1);
	return (days < LEAST ? LEAST : days > MOST ? MOST : days) * DAY;
}

static bool find_and_print(struct asked *q, struct error *e)
{
	struct history_args *args = &q->args;
	struct advice *all;
	size_t tried, kept;

	if (!history_args_open(args, e) || !history_args_ticks(args, q->from, q->to, &q->first_tick, &q->last_tick, e))
		return false;
	if (q->first_tick > q->last_tick)
		return error_set(e, ERROR_INVALID, "no tick lies between --from and --to");
	bool is_read = recorded_world_read(args, q->first_tick, q->last_tick, modelled_most(q), &q->world, e);
	if (is_read)
		make_records(q);
	bool ok = is_read && read_ticks(q, e) && try_all(q, &all, &tried, e);
	if (ok) {
		kept = q->is_all ? tried : advice_keep(all, tried);
		print(q, all, kept, tried);
	}
	recorded_world_release(&q->world);
	return ok;
}

static int run(int argc, char **argv)
{
	struct asked q = { .args = HISTORY_ARGS_DEFAULTS, .output = "table" };
	const struct option_row rows[] = {
		HISTORY_ARGS_OPTIONS(&q.args),
		{ "from", 0, OPTION_TEXT, "TIME", "not before this time; -7d counts from the end", &q.from, NULL },
		{ "to", 0, OPTION_TEXT, "TIME", "not after this time", &q.to, NULL },
		{ "all", 0, OPTION_FLAG, NULL, "every change that was tried, not only those that pay most", &q.is_all,
		  NULL },
		PRINT_OPTION(&q.output),
	};
	struct error e;
	int rest, code;

	if (!command_options(&command_advise, argc, argv, rows, sizeof rows / sizeof *rows, &rest, &code))
		return code;
	bool ok = history_args_are_options(argv[rest], &e) && find_and_print(&q, &e);
	return history_args_finish(&q.args, &command_advise, ok, &e);
}

const struct command command_advise = {
	.name = "advise",
	.usage = "advise [--db FILE] [--pool POOL] [--from TIME] [--to TIME] [--all]",
	.summary = "What to change: settings that would save, each tried on the recorded traffic",
	.examples = "  preheat advise --db out/history.db\n"
		    "  preheat advise --pool chat --from -7d --all\n",
	.notes = "Tried are what the record gives a reason for: another floor, more or no standby, a limit that bound\n"
		 "(max, budget), another group first where it is cheaper or the first one fails, the next looser\n"
		 "objective. Each runs five times with the recorded traffic (at most the last week; two days from "
		 "eleven\n"
		 "pools on) through the model that simulate uses, beside the settings of now. A change pays when it\n"
		 "saves 2 % or more, not by chance, and keeps the objective; or when it makes a missed objective met.\n"
		 "Check one against the whole record with preheat replay --with.\n",
	.run = run,
};
