/* preheat report: a day or a week of GPUs for a team. */
#include "base/file.h"
#include "controller/commands/print.h"
#include "controller/commands/command.h"
#include "controller/commands/cost.h"
#include "controller/report/team_report.h"

#include <stdio.h>
#include <string.h>

/* What a report tells, out of a history. */

struct report_query {
	struct history_args *args; /* open */
	struct cost_period period;
	const char *namespace; /* NULL: all */
};

enum { NOTES_MOST = COST_NOTES + 4, HOLDINGS_TOLD = 200 };

struct collected {
	struct report_query *query;
	struct arena *arena;
	struct costs costs;
	struct quota_hour *quota_hours;
	size_t quota_hour_count;
	struct holding *holdings;
	size_t holding_count;
	const char *notes[NOTES_MOST];
	struct team_report report;
};

static void note(struct collected *c, const char *text)
{
	if (c->report.note_count < NOTES_MOST)
		c->notes[c->report.note_count++] = arena_strdup(c->arena, text, strlen(text));
}

static bool is_of(const struct collected *c, const char *namespace)
{
	return !c->query->namespace || !strcmp(c->query->namespace, namespace);
}

/* --- namespaces --- */

/* Once each, in the order of the pools. */
static void know(struct buf *known, const char **seen, size_t *count, const char *namespace)
{
	for (size_t i = 0; i < *count; i++)
		if (!strcmp(seen[i], namespace))
			return;
	seen[(*count)++] = namespace;
	buf_printf(known, "%s%s", known->len ? ", " : "", namespace);
}

static bool check_namespace(const struct collected *c, struct error *e)
{
	const struct history_args *q = c->query->args;
	CLEANUP(buf_release) struct buf known = { .cap = 400 };
	size_t count, n = 0;
	const struct history_pool *pools = history_pools(q->history, &count);
	const char **seen = arena_array(c->arena, const char *, count + c->quota_hour_count + c->holding_count + 1);

	for (size_t i = 0; i < count; i++)
		know(&known, seen, &n, pools[i].namespace);
	for (size_t i = 0; i < c->quota_hour_count; i++)
		know(&known, seen, &n, c->quota_hours[i].namespace);
	for (size_t i = 0; i < c->holding_count; i++)
		know(&known, seen, &n, c->holdings[i].namespace);
	for (size_t i = 0; i < n; i++)
		if (is_of(c, seen[i]))
			return true;
	return error_set(e, ERROR_NOT_FOUND, "--namespace: nothing of '%.63s' in %s; there is: %s", c->query->namespace,
			 history_path(q->history), known.text ? known.text : "none");
}

/* --- pools --- */

static void collect_pools(struct collected *c)
{
	size_t count, n = 0;
	const struct history_pool *names = history_pools(c->query->args->history, &count);
	struct team_pool *pools = arena_array(c->arena, struct team_pool, count * CLASS_COUNT + 1);

	for (size_t pool = 0; pool < count; pool++)
		for (int class = 0; class < CLASS_COUNT; class ++) {
			struct team_pool found = {
				names[pool].name, names[pool].namespace, (enum pool_class) class, { 0 }
			};
			for (size_t i = 0; i < c->costs.count; i++)
				if (c->costs.hours[i].pool == pool && (int)c->costs.hours[i].class == class)
					cost_add(&found.sums, &c->costs.hours[i].sums);
			if (!found.sums.watched_ms || !is_of(c, found.namespace))
				continue;
			pools[n++] = found;
			millis most = c->report.total.watched_ms;
			cost_add(&c->report.total, &found.sums);
			/* Pools are watched at the same time. */
			c->report.total.watched_ms = most > found.sums.watched_ms ? most : found.sums.watched_ms;
		}
	c->report.pools = pools;
	c->report.pool_count = n;
}

static const char *time_text(const struct collected *c, millis at, bool for_programs)
{
	CLEANUP(buf_release) struct buf text = { 0 };

	if (for_programs)
		history_args_print_time(c->query->args, at, true, &text);
	else
		cost_print_minute(c->query->args, at, &text);
	return arena_strdup(c->arena, text.text, text.len);
}

/* So long that there are a few hundred at most. */
static millis slice_length(millis period)
{
	if (period <= 14 * DAY)
		return HOUR;
	return period <= 400 * DAY ? DAY : 30 * DAY;
}

static void collect_slices(struct collected *c)
{
	const struct cost_period *p = &c->query->period;
	millis length = slice_length(p->to - p->from);
	size_t count, n = (size_t)((p->to - p->from + length - 1) / length);
	const struct history_pool *names = history_pools(c->query->args->history, &count);
	struct team_slice *slices = arena_array(c->arena, struct team_slice, n + 1);

	for (size_t i = 0; i < n; i++)
		slices[i].label = time_text(c, p->from + (millis)i * length, false);
	for (size_t i = 0; i < c->costs.count; i++) {
		const struct cost_hour *h = &c->costs.hours[i];
		size_t at = (size_t)((h->hour * HOUR - p->from) / length);
		for (int k = 0; at < n && k < GPU_STATE_COUNT && is_of(c, names[h->pool].namespace); k++)
			slices[at].gpu_ms[k] += h->sums.gpu_ms[k];
	}
	c->report.slices = slices;
	c->report.slice_count = n;
	c->report.slice_name = length == HOUR ? "hour" : length == DAY ? "day" : "30 days";
}

/* --- quotas and pods --- */

static bool is_same(const struct quota_hour *a, const struct quota_hour *b)
{
	return !strcmp(a->namespace, b->namespace) && !strcmp(a->name, b->name) && !strcmp(a->resource, b->resource);
}

static void collect_quotas(struct collected *c)
{
	struct quota_hour *quotas = arena_array(c->arena, struct quota_hour, c->quota_hour_count + 1);
	size_t n = 0;

	for (size_t i = 0; i < c->quota_hour_count; i++) {
		const struct quota_hour *q = &c->quota_hours[i];
		size_t k = 0;

		if (!is_of(c, q->namespace))
			continue;
		while (k < n && !is_same(&quotas[k], q))
			k++;
		if (k == n)
			quotas[n++] = (struct quota_hour){ .namespace = q->namespace,
							   .name = q->name,
							   .resource = q->resource };
		quotas[k].hard = q->hard;
		quotas[k].used_most = q->used_most > quotas[k].used_most ? q->used_most : quotas[k].used_most;
		quotas[k].watched_ms += q->watched_ms;
		quotas[k].hard_gpu_ms += q->hard_gpu_ms;
		quotas[k].used_gpu_ms += q->used_gpu_ms;
	}
	c->report.quotas = quotas;
	c->report.quota_count = n;
}

static void collect_holdings(struct collected *c)
{
	const char **since = arena_array(c->arena, const char *, HOLDINGS_TOLD);
	struct holding *told = arena_array(c->arena, struct holding, HOLDINGS_TOLD);
	size_t n = 0, left_out = 0;

	for (size_t i = 0; i < c->holding_count; i++) {
		if (!is_of(c, c->holdings[i].namespace))
			continue;
		if (n == HOLDINGS_TOLD) {
			left_out++;
			continue;
		}
		told[n] = c->holdings[i];
		since[n++] = time_text(c, c->holdings[i].since, false);
	}
	c->report.holdings = told;
	c->report.holding_since = since;
	c->report.holding_count = n;
	if (!left_out)
		return;
	CLEANUP(buf_release) struct buf text = { 0 };
	buf_printf(&text, "%zu more pods held GPUs for nothing; those that held most are told.", left_out);
	note(c, text.text);
}

/* --- all --- */

static void note_what_is_missing(struct collected *c)
{
	CLEANUP(buf_release) struct buf text = { 0 };
	const struct cost_period *p = &c->query->period;
	millis watched = c->report.total.watched_ms;

	if (c->costs.is_simulated)
		note(c, "A simulation has no namespaces' quotas and no pods that hold GPUs; both are told of live "
			"histories.");
	else if (!c->report.quota_count)
		note(c, "No GPU quota was seen.");
	if (c->report.pool_count && watched < (p->to - p->from) - (p->to - p->from) / 50) {
		buf_printf(&text, "Recorded are %.1f of the %.1f hours.", (double)watched / HOUR,
			   (double)(p->to - p->from) / HOUR);
		note(c, text.text);
	}
	const char *notes[COST_NOTES];
	size_t count = costs_notes(c->query->args, &c->costs, notes);
	for (size_t i = 0; i < count; i++)
		note(c, notes[i]);
}

static bool read_all(struct collected *c, struct error *e)
{
	struct history_args *q = c->query->args;
	struct cost_period *p = &c->query->period;

	if (!costs_read(q, p, &c->costs, e))
		return false;
	const struct usage_filter all = { p->from, p->to, NULL };
	return history_quota_hours(q->history, &all, &q->arena, &c->quota_hours, &c->quota_hour_count, e) &&
	       history_holdings(q->history, &all, &q->arena, &c->holdings, &c->holding_count, e) &&
	       check_namespace(c, e);
}

/* In the arena of the arguments. ERROR_NOT_FOUND for a namespace that the history does not know; names those it does.
 */
static bool report_collect(struct report_query *query, struct team_report *out, struct error *e)
{
	struct history_args *q = query->args;
	struct collected *c = arena_new(&q->arena, struct collected);

	c->query = query;
	c->arena = &q->arena;
	if (!read_all(c, e))
		return false;
	c->report.program = command_version_text();
	c->report.source = history_path(q->history);
	c->report.namespace = query->namespace;
	c->report.period = c->costs.period;
	c->report.from = time_text(c, query->period.from, true);
	c->report.to = time_text(c, query->period.to, true);
	collect_pools(c);
	collect_slices(c);
	collect_quotas(c);
	collect_holdings(c);
	note_what_is_missing(c);
	c->report.notes = c->notes;
	*out = c->report;
	return true;
}

struct asked {
	struct history_args args;
	struct report_query report;
	bool is_day, is_week;
	const char *output;
};

static bool print(const struct asked *a, const struct team_report *r, struct error *e)
{
	CLEANUP(print_tree_release) struct printed_tree answer = { .rows = "pools" };
	CLEANUP(buf_release) struct buf text = { 0 };

	if (print_is_for_programs(a->output)) {
		team_report_json(r, &answer.json);
		print_tree(&answer, a->output);
		return true;
	}
	if (strcmp(a->output, "html") != 0) {
		team_report_print(r, !strcmp(a->output, "wide"), stdout);
		return true;
	}
	team_report_page(r, &text);
	if (!buf_ok(&text))
		return error_set(e, ERROR_INTERNAL, "the report grew too large; ask for less with --last");
	struct output *o = output_open("-", e);
	if (!o)
		return false;
	output_bytes(o, text.text, text.len);
	return output_commit(o, e);
}

static bool choose_period(struct asked *a, struct error *e)
{
	struct cost_period *p = &a->report.period;
	bool has_other = p->from_text || p->to_text || p->last;

	if ((a->is_day && a->is_week) || ((a->is_day || a->is_week) && has_other))
		return error_set(e, ERROR_INVALID,
				 "--day, --week, --last and --from with --to name a period each; give one of them");
	if (!has_other)
		p->last = a->is_week ? 7 * DAY : DAY;
	return true;
}

static bool answer(struct asked *a, struct error *e)
{
	struct team_report r;

	return choose_period(a, e) && history_args_open(&a->args, e) && report_collect(&a->report, &r, e) &&
	       print(a, &r, e);
}

static int run(int argc, char **argv)
{
	struct asked a = { .args = HISTORY_ARGS_DEFAULTS, .output = "table" };
	const struct option_row rows[] = {
		HISTORY_ARGS_OPTIONS(&a.args),
		{ "namespace", 'n', OPTION_TEXT, "NAMESPACE", "only this namespace: pools, quota and pods",
		  &a.report.namespace, NULL },
		{ "day", 0, OPTION_FLAG, NULL, "the last day of the history (default)", &a.is_day, NULL },
		{ "week", 0, OPTION_FLAG, NULL, "the last week", &a.is_week, NULL },
		COST_PERIOD_OPTIONS(&a.report.period),
		{ "output", 'o', OPTION_CHOICE, "FORMAT", "how it is printed; html: one page on standard output",
		  &a.output, PRINT_FORMS "|html" },
	};
	struct error e;
	int rest, code;

	a.args.needs_no_records = true;
	a.report.args = &a.args;
	if (!command_options(&command_report, argc, argv, rows, sizeof rows / sizeof *rows, &rest, &code))
		return code;
	bool ok = history_args_are_options(argv[rest], &e) && answer(&a, &e);
	return history_args_finish(&a.args, &command_report, ok, &e);
}

const struct command command_report = {
	.name = "report",
	.usage = "report [--db FILE] [--namespace NAME] [--day | --week | --from TIME --to TIME]",
	.summary = "A team's GPUs over a day or a week: used, idle, lent, quota, late requests",
	.examples = "  preheat report --db out/history.db\n"
		    "  preheat report --week --namespace llm\n"
		    "  preheat report --week -o html > report.html\n",
	.run = run,
};
