/* preheat advise: what should be changed, each change tried on the recorded traffic. */
#include "base/table.h"
#include "controller/commands/command.h"
#include "controller/commands/history_args.h"
#include "controller/commands/print.h"
#include "controller/commands/recorded_world.h"
#include "controller/restore/incident_search.h"
#include "controller/restore/restore.h"
#include "controller/simulation/advice.h"

#include <stdio.h>
#include <string.h>

enum { TOLD = 3, INCIDENTS = 5 };

struct asked {
	struct history_args args;
	const char *from, *to, *output;
	bool is_all;
	int64_t first_tick, last_tick;
	struct recorded_world world;
	struct advice_record *records;	  /* one per pool of the manifest */
	struct incident_found *incidents; /* the newest few of each pool */
	size_t incident_count;
	size_t *pools; /* of the manifest, one per pool of the history; RECORDING_NONE: it has gone */
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

/* --- the recent incidents --- */

/* Late requests in the incidents of each pool, in the models: TRIAL_SEEDS runs as it is, and as many with each change.
 */
struct incident_count {
	const struct asked *asked;
	int64_t run;  /* -1: before the first */
	double *late; /* [change, the first as it is][pool of the manifest] */
};

static bool is_in(const struct incident *i, millis at)
{
	return at > i->from && at <= i->to + INCIDENT_CALM;
}

static bool count_tick(void *user, const struct tick_view *v, struct error *e)
{
	struct incident_count *c = user;
	const struct asked *q = c->asked;
	const size_t pools = v->snapshot->fleet->pool_count;

	(void)e;
	c->run += v->snapshot->tick == 0;
	for (size_t i = 0; i < q->incident_count; i++) {
		const struct incident_found *f = &q->incidents[i];
		const size_t pool = q->pools[f->pool];
		if (pool < pools && is_in(&f->what, v->snapshot->now))
			c->late[(size_t)(c->run / TRIAL_SEEDS) * pools + pool] += (double)v->results[pool].late;
	}
	return true;
}

/* The newest few of each pool; found in the order of time. */
static bool find_incidents(struct asked *q, struct error *e)
{
	const struct incident_question ask = { .pool = ANY, .first = q->first_tick, .last = q->last_tick };
	size_t pools, *taken, count;
	struct incident_found *found;

	if (!incident_search(q->args.history, &ask, &q->args.arena, &found, &count, e))
		return false;
	history_pools(q->args.history, &pools);
	taken = arena_array(&q->args.arena, size_t, pools);
	q->incidents = arena_array(&q->args.arena, struct incident_found, count);
	for (size_t i = count; i-- > 0;)
		if (taken[found[i].pool]++ < INCIDENTS)
			q->incidents[q->incident_count++] = found[i];
	return true;
}

/* Those that the modelled time has. */
static int64_t incidents_of(const struct asked *q, size_t pool)
{
	int64_t count = 0;

	for (size_t i = 0; i < q->incident_count; i++)
		count += q->pools[q->incidents[i].pool] == pool && q->incidents[i].what.from >= q->world.rec.start;
	return count;
}

/* --- tried --- */

struct tried {
	struct advice *all;
	size_t count;
};

static bool is_asked(const struct asked *q, const struct advice *a)
{
	return q->args.pool_index == ANY || (size_t)q->args.pool_index == q->world.recorded[a->pool];
}

static bool is_one_of(const struct tried *only, const struct advice *a)
{
	for (size_t i = 0; i < only->count; i++)
		if (only->all[i].pool == a->pool && !strcmp(only->all[i].setting, a->setting))
			return true;
	return false;
}

/* Leaves those of the pool that was asked for, and of those `only` what is in it. */
static size_t keep_asked(const struct asked *q, const struct tried *only, struct advice *all, struct trial *trials,
			 size_t count)
{
	size_t kept = 0;

	for (size_t i = 0; i < count; i++)
		if (is_asked(q, &all[i]) && (!only || is_one_of(only, &all[i]))) {
			all[kept] = all[i];
			trials[kept++] = trials[i];
		}
	return kept;
}

static bool run_trials(struct asked *q, const struct trial *trials, struct tried *t, struct error *e)
{
	struct arena *a = &q->args.arena;
	const size_t pools = q->world.manifest.fleet.pool_count;
	struct trial_result *results = arena_array(a, struct trial_result, t->count);
	struct incident_count counted = { q, -1, arena_array(a, double, (t->count + 1) * pools) };
	const struct observer observers[] = { q->world.observer, { count_tick, &counted } };

	q->world.simulation.observers = observers;
	q->world.simulation.observer_count = 2;
	recorded_world_begin(&q->world, (int64_t)(t->count + 1) * TRIAL_SEEDS);
	bool ok = trial_run(&q->world.simulation, trials, t->count, results, e);
	recorded_world_end(&q->world);
	for (size_t i = 0; ok && i < t->count; i++) {
		struct advice *is = &t->all[i];
		is->result = results[i];
		is->incidents =
			(struct incidents_tried){ incidents_of(q, is->pool),
						  (int64_t)(counted.late[is->pool] / TRIAL_SEEDS),
						  (int64_t)(counted.late[(i + 1) * pools + is->pool] / TRIAL_SEEDS) };
	}
	return ok;
}

/* `only`: changes that were tried before; NULL: all. */
static bool try_changes(struct asked *q, const struct tried *only, struct tried *out, struct error *e)
{
	struct arena *a = &q->args.arena;
	size_t most = q->world.manifest.fleet.pool_count * ADVICE_MOST;
	struct trial *trials = arena_array(a, struct trial, most);

	out->all = arena_array(a, struct advice, most);
	out->count = advice_candidates(&q->world.simulation.world, q->records, a, out->all, trials);
	out->count = keep_asked(q, only, out->all, trials, out->count);
	return run_trials(q, trials, out, e);
}

enum span { WEEK, MONTH };

/* A week shows what a weekday hides. Of many pools it would take too long, and too much memory: a day of a pool is 3.5
 * MB in seconds, and this runs beside the controller. */
static millis modelled_most(const struct asked *q, enum span span)
{
	static const int64_t pool_days[] = { 21, 60 }, most[] = { 7, 30 }, LEAST = 2;
	size_t pools;

	history_pools(q->args.history, &pools);
	int64_t days = pool_days[span] / (int64_t)(pools > 0 ? pools : 1);
	return (days < LEAST ? LEAST : days > most[span] ? most[span] : days) * DAY;
}

/* The ticks of the last `most` of what was asked about. */
static bool read_world(struct asked *q, millis most, struct error *e)
{
	return recorded_world_read(&q->args, q->first_tick, q->last_tick, most, &q->world, e);
}

/* What pays on the last week is tried on the month, which has rarer things in it, and must pay there. */
static bool confirm(struct asked *q, struct tried *kept, struct error *e)
{
	struct tried again;

	kept->count = kept->count < TOLD ? kept->count : TOLD;
	recorded_world_release(&q->world);
	if (!read_world(q, modelled_most(q, MONTH), e) || !try_changes(q, kept, &again, e))
		return false;
	*kept = (struct tried){ again.all, advice_keep(again.all, again.count) };
	return true;
}

/* --- printed --- */

static const struct table_column columns[] = {
	{ .name = "namespace", .is_wide = true },
	{ .name = "pool" },
	{ .name = "change" },
	{ .name = "saves_dollars_a_day", .title = "SAVES/DAY", .is_right = true },
	{ .name = "dollars_a_day", .title = "OF", .is_right = true, .is_wide = true },
	{ .name = "late_ppm", .title = "LATE", .is_right = true },
	{ .name = "late_with_ppm", .title = "WITH IT", .is_right = true },
	{ .name = "allowed_ppm", .title = "ALLOWED", .is_right = true, .is_wide = true },
	{ .name = "incidents", .is_right = true, .is_wide = true },
	{ .name = "incidents_late", .title = "LATE IN THEM", .is_right = true, .is_wide = true },
	{ .name = "incidents_late_with", .title = "WITH IT", .is_right = true, .is_wide = true },
	{ .name = "tried_days", .title = "DAYS", .is_right = true, .is_wide = true },
	{ .name = "is_chance", .title = "CHANCE", .is_wide = true },
	{ .name = "needs", .is_wide = true },
	{ .name = "why", .is_wide = true },
	{ .name = "saves_gpu_hours_a_day", .title = "SAVES GPU H/DAY", .is_right = true, .is_wide = true },
};

/* Saving by allowing more needs a word. */
static bool needs_why(const struct advice *a)
{
	return a->why && a->result.saved > 0;
}

static void add_row(const struct asked *q, const struct advice *a, struct table *t)
{
	const struct trial_result *r = &a->result;
	const struct pool_spec *pool = &q->world.manifest.fleet.pools[a->pool];

	table_text(t, pool->namespace);
	table_text(t, pool->name);
	table_text(t, a->setting);
	table_spent(t, r->saved, pool->is_unpriced);
	table_spent(t, r->dollars, pool->is_unpriced);
	table_share(t, r->late_share);
	table_share(t, r->late_with);
	table_share(t, a->allowed_with);
	table_count(t, a->incidents.count);
	table_count(t, a->incidents.late);
	table_count(t, a->incidents.late_with);
	table_decimal(t, (double)((q->world.ticks.to - q->world.ticks.from + 1) * q->world.rec.interval) / DAY, 1);
	table_value(t, r->is_chance ? "yes" : "no", r->is_chance ? "true" : "false");
	a->needs ? table_text(t, a->needs) : table_absent(t);
	needs_why(a) ? table_text(t, a->why) : table_absent(t);
	pool->is_unpriced ? table_decimal(t, r->saved, 1) : table_absent(t);
}

static void print(const struct asked *q, const struct tried *told, size_t tried)
{
	const struct advice *all = told->all;
	const size_t count = told->count;
	enum table_format format = table_format_of(q->output);
	struct table *t = table_new(columns, sizeof columns / sizeof *columns);

	for (size_t i = 0; i < count && (q->is_all || i < TOLD); i++)
		add_row(q, &all[i], t);
	if (count || table_is_for_programs(format))
		table_print(t, format, stdout);
	else
		printf("Nothing to change: of %zu changes tried on the recorded traffic none pays.\n", tried);
	if (count && !table_is_for_programs(format)) {
		puts("");
		for (size_t i = 0; i < count && (q->is_all || i < TOLD); i++)
			if (needs_why(&all[i]))
				printf("%s saves, as %s.\n", all[i].setting, all[i].why);
		for (size_t i = 0; i < count && (q->is_all || i < TOLD); i++)
			if (all[i].needs)
				printf("%s needs %s.\n", all[i].setting, all[i].needs);
		printf("%zu changes tried on the recorded traffic%s.\n", tried,
		       q->is_all ? "" : "; these pay most (--all shows every one)");
	}
	table_free(t);
}

/* Whether there is more to try on than the week. */
static bool has_more(const struct asked *q)
{
	return q->world.ticks.from > q->first_tick && modelled_most(q, MONTH) > modelled_most(q, WEEK);
}

static bool find(struct asked *q, struct tried *all, size_t *tried, struct error *e)
{
	if (!read_world(q, modelled_most(q, WEEK), e))
		return false;
	make_records(q);
	if (!read_ticks(q, e) || !find_incidents(q, e) || !try_changes(q, NULL, all, e))
		return false;
	*tried = all->count;
	if (q->is_all)
		return true;
	all->count = advice_keep(all->all, all->count);
	return !all->count || !has_more(q) || confirm(q, all, e);
}

static bool find_and_print(struct asked *q, struct error *e)
{
	struct history_args *args = &q->args;
	struct tried all;
	size_t tried;

	if (!q->from && !q->to)
		q->from = "-30d";
	if (!history_args_open(args, e) || !history_args_ticks(args, q->from, q->to, &q->first_tick, &q->last_tick, e))
		return false;
	if (q->first_tick > q->last_tick)
		return error_set(e, ERROR_INVALID, "no tick lies between --from and --to");
	bool ok = find(q, &all, &tried, e);
	if (ok)
		print(q, &all, tried);
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
	.notes =
		"Tried are what the record gives a reason for: another floor, more or no standby, a limit that bound\n"
		"(max, budget), another group first where it is cheaper or the first one fails, the next looser\n"
		"objective. Each runs five times with the recorded traffic of the last week (of fewer days with more "
		"than\n"
		"three pools) through the model that simulate uses, beside the settings of now. A change pays when it\n"
		"saves 2 % or more, not by chance, and keeps the objective; or when it makes a missed objective met.\n"
		"The three that pay most must pay on the last month too (20 days of three pools). -o wide says what "
		"each would have made of "
		"the\n"
		"pool's last five incidents, and why a higher limit can save.\n"
		"Check one against the whole record with preheat replay --with.\n",
	.run = run,
};
