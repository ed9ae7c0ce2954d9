/* preheat incidents: when more requests were late than the objective allows, for how long, and why. */
#include "controller/commands/incidents.h"

#include "base/table.h"
#include "base/terminal.h"
#include "controller/commands/command.h"
#include "controller/commands/cost.h"
#include "controller/commands/print.h"
#include "controller/explain/explain.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

struct asked {
	struct history_args args;
	const char *from, *to, *output;
	struct incident_found *found;
	size_t count;
};

static const struct table_column columns[] = {
	{ .name = "pool" },
	{ .name = "from" },
	{ .name = "to", .is_wide = true },
	{ .name = "lasted_s", .title = "LASTED", .is_right = true },
	{ .name = "late", .is_right = true },
	{ .name = "requests", .is_right = true, .is_wide = true },
	{ .name = "late_ppm", .title = "SHARE", .is_right = true, .is_wide = true },
	{ .name = "longest_wait_s", .title = "WAIT", .is_right = true },
	{ .name = "cause" },
	{ .name = "limit", .is_wide = true },
	{ .name = "group", .is_wide = true },
	{ .name = "start_kind", .title = "START", .is_wide = true },
	{ .name = "start_s", .title = "STARTING", .is_right = true, .is_wide = true },
	{ .name = "refused_by", .title = "REFUSED", .is_wide = true },
	{ .name = "refused_group", .title = "BY GROUP", .is_wide = true },
	{ .name = "given_up", .title = "GIVEN UP", .is_right = true, .is_wide = true },
	{ .name = "ready", .is_right = true, .is_wide = true },
	{ .name = "on_its_way", .title = "ON ITS WAY", .is_right = true, .is_wide = true },
	{ .name = "worst_at", .title = "WORST", .is_wide = true },
	{ .name = "worst_tick", .title = "TICK", .is_right = true, .is_wide = true },
};

static void add_time(struct table *t, const struct history_args *q, millis at, bool for_programs)
{
	CLEANUP(buf_release) struct buf text = { 0 };

	if (for_programs)
		history_args_print_time(q, at, true, &text);
	else
		cost_print_minute(q, at, &text);
	table_text(t, text.text);
}

static void add_cause(struct table *t, const struct incident *i, bool for_programs)
{
	CLEANUP(buf_release) struct buf shown = { 0 };

	explain_incident(i, &shown);
	table_text(t, for_programs ? late_cause_name(incident_cause(i)) : shown.text);
}

static void add_limit(struct table *t, enum limit limit)
{
	limit == LIMIT_NONE ? table_absent(t) : table_text(t, limit_name(limit));
}

static void add_row(const struct history_args *q, const struct incident_found *f, struct table *t, bool for_programs)
{
	const struct incident *i = &f->what;
	const struct incident_tick *worst = incident_worst(i);
	const char *kind = i->group[0] ? field_enum_name("start_kind", i->start_kind) : NULL;
	double share = i->started ? (double)i->late / (double)i->started : 1;
	enum limit limit = incident_limit(i);
	char raw[32];

	table_text(t, history_pools(q->history, &(size_t){ 0 })[f->pool].name);
	add_time(t, q, i->from, for_programs);
	add_time(t, q, i->to, for_programs);
	table_duration(t, i->to - i->from);
	table_count(t, i->late);
	table_count(t, i->started);
	table_share(t, share);
	table_duration(t, i->longest_wait);
	add_cause(t, i, for_programs);
	add_limit(t, limit);
	i->group[0] ? table_text(t, i->group) : table_absent(t);
	kind ? table_text(t, kind) : table_absent(t);
	i->group[0] ? table_duration(t, i->start_age) : table_absent(t);
	add_limit(t, i->refused_by);
	i->refused_group[0] ? table_text(t, i->refused_group) : table_absent(t);
	table_count(t, i->given_up);
	table_count(t, worst->ready);
	table_count(t, worst->on_its_way);
	add_time(t, q, worst->at, for_programs);
	snprintf(raw, sizeof raw, "%" PRId64, worst->tick); /* to be typed: without commas */
	table_value(t, raw, raw);
}

/* What to ask next. */
static void print_next(const struct history_args *q, const struct incident_found *last)
{
	CLEANUP(buf_release) struct buf at = { 0 };
	size_t pools;
	const char *pool = history_pools(q->history, &pools)[last->pool].name;

	history_args_print_time(q, incident_worst(&last->what)->at, false, &at);
	printf("\nThe worst of the last one: %s explain%s%s --at '%s'%s", command_program(),
	       pools > 1 ? " --pool " : "", pools > 1 ? pool : "", at.text, q->is_utc ? " --utc" : "");
	if (strcmp(q->db, "history.db") != 0)
		printf(" --db %s", history_path(q->history));
	puts("");
}

void incidents_print(const struct history_args *q, const struct incident_found *found, size_t count, const char *output)
{
	enum table_format format = table_format_of(output);
	struct table *t = table_new(columns, sizeof columns / sizeof *columns);

	for (size_t i = 0; i < count; i++)
		add_row(q, &found[i], t, table_is_for_programs(format));
	if (count || table_is_for_programs(format))
		table_print(t, format, stdout);
	else
		puts("No incidents: wherever requests were late, fewer were than the objective allows.");
	if (count && !table_is_for_programs(format))
		print_next(q, &found[count - 1]);
	table_free(t);
}

struct reading {
	struct progress progress;
	int64_t first;
};

static void show_progress(void *user, int64_t tick)
{
	struct reading *r = user;

	progress_show(&r->progress, tick - r->first + 1);
}

static bool find_and_print(struct asked *a, struct error *e)
{
	struct history_args *q = &a->args;
	struct reading reading;
	struct incident_question ask = { .progress = show_progress, .user = &reading };

	if (!history_args_open(q, e) || !history_args_ticks(q, a->from, a->to, &ask.first, &ask.last, e))
		return false;
	if (ask.first > ask.last)
		return error_set(e, ERROR_INVALID, "no tick lies between --from and --to");
	ask.pool = q->pool_index;
	reading = (struct reading){ progress_start("reading", "ticks", ask.last - ask.first + 1), ask.first };
	bool ok = incident_search(q->history, &ask, &q->arena, &a->found, &a->count, e);
	progress_end(&reading.progress);
	if (ok)
		incidents_print(q, a->found, a->count, a->output);
	return ok;
}

static int run(int argc, char **argv)
{
	struct asked a = { .args = HISTORY_ARGS_DEFAULTS, .output = "table" };
	const struct option_row rows[] = {
		HISTORY_ARGS_OPTIONS(&a.args),
		{ "from", 0, OPTION_TEXT, "TIME", "not before this time; -2h counts from the end", &a.from, NULL },
		{ "to", 0, OPTION_TEXT, "TIME", "not after this time", &a.to, NULL },
		PRINT_OPTION(&a.output),
	};
	struct error e;
	int rest, code;

	if (!command_options(&command_incidents, argc, argv, rows, sizeof rows / sizeof *rows, &rest, &code))
		return code;
	bool ok = history_args_are_options(argv[rest], &e) && find_and_print(&a, &e);
	return history_args_finish(&a.args, &command_incidents, ok, &e);
}

const struct command command_incidents = {
	.name = "incidents",
	.usage = "incidents [--db FILE] [--pool POOL] [--from TIME] [--to TIME]",
	.summary = "When more requests were late than the objective allows, for how long, and why",
	.examples = "  preheat incidents --from -7d\n"
		    "  preheat incidents --pool chat --from 'yesterday 0:00' -o wide\n",
	.notes = "Late requests less than five minutes apart are one incident. WAIT is how long the longest queue "
		 "would\n"
		 "have taken at the replicas that were hot then; a cold start names the longest one in progress, its\n"
		 "group, and a stock-out before it. -o wide adds the tick with the most late requests, for\n"
		 "preheat explain --at or --tick, and GIVEN UP: replicas whose start passed its deadline. csv, json "
		 "and\n"
		 "yaml have every column, times in UTC and the cause as one word.\n",
	.run = run,
};
