/* preheat history: decisions as rows. */
#include "controller/commands/answer.h"
#include "controller/commands/command.h"
#include "controller/commands/history_hours.h"
#include "controller/commands/history_launches.h"
#include "controller/commands/question.h"
#include "controller/explain/explain.h"

#include <stdio.h>
#include <string.h>

extern const struct command history_command_copy;

struct asked {
	struct question question;
	const char *from, *to, *group, *limit, *output;
	bool is_changed, is_hours, is_launches;
	int64_t most;
	millis retain; /* 0: keep all */
};

/* A column shows one field of a decision; those without a field are filled by name. */
static const struct column {
	struct table_column table;
	const char *field;
} columns[] = {
	{ { .name = "time" }, NULL },
	{ { .name = "tick", .is_right = true, .is_wide = true }, NULL },
	{ { .name = "pool" }, NULL },
	{ { .name = "demand_milli", .title = "DEMAND", .is_right = true }, "demand_milli" },
	{ { .name = "running_milli", .title = "RUNNING", .is_right = true, .is_wide = true }, "running_milli" },
	{ { .name = "waiting_now", .title = "WAITING", .is_right = true }, "waiting_now" },
	{ { .name = "ready", .title = "HOT", .is_right = true }, "ready" },
	{ { .name = "on_the_way", .title = "ON THE WAY", .is_right = true }, "on_the_way" },
	{ { .name = "standby", .title = "STANDBY", .is_right = true, .is_wide = true }, "standby" },
	{ { .name = "lent", .title = "LENT", .is_right = true, .is_wide = true }, "lent" },
	{ { .name = "wished", .title = "WISHED", .is_right = true }, "wished" },
	{ { .name = "decided", .title = "DECIDED", .is_right = true }, "decided" },
	{ { .name = "held_by", .title = "HELD BY" }, "held_by" },
	{ { .name = "rule", .title = "RULE", .is_right = true, .is_wide = true }, "rule" },
	{ { .name = "dollars_per_hour_micro", .title = "COST/H", .is_right = true }, "dollars_per_hour" },
	{ { .name = "started", .title = "STARTED", .is_right = true, .is_wide = true }, "started" },
	{ { .name = "late", .title = "LATE", .is_right = true }, "late" },
	{ { .name = "self_test", .title = "SELF-TEST", .is_wide = true }, "self_test" },
};

enum { COLUMN_COUNT = sizeof columns / sizeof *columns };

static const struct field_info *field_of(const char *name, size_t *index)
{
	for (*index = 0; *index < pool_decision_info.count; ++*index)
		if (!strcmp(pool_decision_info.fields[*index].name, name))
			return &pool_decision_info.fields[*index];
	return NULL;
}

static void add_field(struct table *t, const char *name, const struct pool_decision *d)
{
	CLEANUP(buf_release) struct buf shown = { 0 }, raw = { 0 };
	size_t index;
	const struct field_info *f = field_of(name, &index);
	int64_t value = ((const int64_t *)d)[index];

	if (value == ABSENT) {
		table_absent(t);
		return;
	}
	explain_value(f, value, 0, &shown);
	if (!strncmp(f->unit, "enum:", 5)) {
		table_text(t, shown.text);
		return;
	}
	buf_printf(&raw, "%lld", (long long)value);
	table_value(t, shown.text, raw.text);
}

static void add_row(struct table *t, const struct asked *a, const struct tick_record *r)
{
	CLEANUP(buf_release) struct buf time = { 0 };
	size_t count;
	const struct history_pool *pools = history_pools(a->question.history, &count);
	enum table_format format = table_format_of(a->output);

	question_print_time(&a->question, r->now, table_is_for_programs(format), &time);
	table_text(t, time.text);
	table_count(t, r->tick);
	table_text(t, pools[r->pool].name);
	for (size_t i = 0; i < COLUMN_COUNT; i++)
		if (columns[i].field)
			add_field(t, columns[i].field, &r->plan.decision);
	if (r->plan.decision.held_by != LIMIT_NONE)
		table_style(t, STYLE_WARN);
}

static bool find_limit(const char *name, int64_t *limit, struct error *e)
{
	CLEANUP(buf_release) struct buf known = { .cap = 256 };

	for (int i = 0; i < LIMIT_COUNT; i++) {
		if (!strcmp(name, limit_name((enum limit)i))) {
			*limit = i;
			return true;
		}
		buf_printf(&known, "%s%s", i ? ", " : "", limit_name((enum limit)i));
	}
	return error_set(e, ERROR_INVALID, "--limit: found '%.40s'; allowed: %s", name, known.text);
}

static bool check_group(const struct asked *a, struct error *e)
{
	CLEANUP(buf_release) struct buf known = { .cap = 256 };
	size_t count;
	const struct history_pool *pools = history_pools(a->question.history, &count);

	for (size_t p = 0; p < count; p++)
		for (size_t g = 0; g < pools[p].group_count; g++) {
			if (!strcmp(pools[p].groups[g], a->group))
				return true;
			buf_printf(&known, "%s%s", known.len ? ", " : "", pools[p].groups[g]);
		}
	return error_set(e, ERROR_NOT_FOUND, "--group: no node group '%.60s' in %s; there is: %s", a->group,
			 history_path(a->question.history), known.text ? known.text : "none");
}

static bool fill_filter(const struct asked *a, struct history_filter *f, struct error *e)
{
	const struct question *q = &a->question;

	*f = (struct history_filter){
		.pool = q->pool_index, .group = a->group, .limit = ANY, .changed_only = a->is_changed, .most = a->most
	};
	if (a->limit && !find_limit(a->limit, &f->limit, e))
		return false;
	if (a->group && !check_group(a, e))
		return false;
	return question_ticks(q, a->from, a->to, &f->from, &f->to, e);
}

static bool print_history(struct asked *a, struct error *e)
{
	struct table_column shown[COLUMN_COUNT];
	struct history_filter filter;
	struct history_hit *hits;
	size_t count;

	if (!fill_filter(a, &filter, e) ||
	    !history_find(a->question.history, &filter, &a->question.arena, &hits, &count, e))
		return false;
	for (size_t i = 0; i < COLUMN_COUNT; i++)
		shown[i] = columns[i].table;
	struct table *t = table_new(shown, COLUMN_COUNT);
	bool ok = true;
	for (size_t i = count; i-- > 0 && ok;) { /* the newest last */
		struct tick_record r;

		ok = history_read(a->question.history, hits[i].tick, hits[i].pool, &r, e);
		if (ok)
			add_row(t, a, &r);
	}
	if (ok)
		table_print(t, table_format_of(a->output), stdout);
	if (ok && !count)
		fprintf(stderr, "No decision matches; %s has ticks %lld to %lld.\n", history_path(a->question.history),
			(long long)a->question.span.first_tick, (long long)a->question.span.last_tick);
	table_free(t);
	return ok;
}

static bool check_questions(const struct asked *a, struct error *e)
{
	bool filters = a->question.pool || a->from || a->to || a->group || a->limit || a->is_changed;

	if (a->is_launches && (a->question.pool || a->limit || a->is_changed || a->is_hours || a->retain))
		return error_set(
			e, ERROR_INVALID,
			"--launches prints calls to providers, which are about node groups; beside it: --from, "
			"--to, --group, --number");
	if (a->retain && (filters || a->is_hours))
		return error_set(e, ERROR_INVALID,
				 "--retain drops ticks of all pools and prints no decisions; give it alone, with --db");
	return true;
}

static bool print_launches(struct asked *a, struct error *e)
{
	struct launch_filter f = { INT64_MIN, INT64_MAX, a->group, a->most };
	struct question *q = &a->question;

	if ((a->group && !check_group(a, e)) || (a->from && !question_time(q, "from", a->from, &f.from, e)) ||
	    (a->to && !question_time(q, "to", a->to, &f.to, e)))
		return false;
	return history_launches_print(q, &f, a->output, e);
}

static bool answer(struct asked *a, struct error *e)
{
	if (!check_questions(a, e))
		return false;
	if (!question_open(&a->question, e))
		return false;
	if (a->retain)
		return history_hours_retain(&a->question, a->retain, e);
	if (a->is_launches)
		return print_launches(a, e);
	return a->is_hours ? history_hours_print(&a->question, a->output, e) : print_history(a, e);
}

static int show(int argc, char **argv)
{
	struct asked a = { .question = QUESTION_DEFAULTS, .output = "table", .most = 50 };
	const struct option_row rows[] = {
		QUESTION_OPTIONS(&a.question),
		{ "from", 0, OPTION_TEXT, "TIME", "decisions from this time on; -2h counts from the end", &a.from,
		  NULL },
		{ "to", 0, OPTION_TEXT, "TIME", "decisions up to this time", &a.to, NULL },
		{ "group", 'g', OPTION_TEXT, "GROUP", "only where this node group was asked for something or held",
		  &a.group, NULL },
		{ "limit", 'l', OPTION_TEXT, "LIMIT", "only what this limit held: budget, max, stock-out, ...",
		  &a.limit, NULL },
		{ "changed", 'c', OPTION_FLAG, NULL, "only decisions that asked for something", &a.is_changed, NULL },
		{ "number", 'n', OPTION_POSITIVE, "N", "at most this many, the newest (default: 50)", &a.most, NULL },
		{ "hours", 0, OPTION_FLAG, NULL, "instead: sums per hour of ticks that were dropped", &a.is_hours,
		  NULL },
		{ "launches", 0, OPTION_FLAG, NULL,
		  "instead: what was asked of providers, and what came of it; with --from, --to, --group, -n",
		  &a.is_launches, NULL },
		{ "retain", 0, OPTION_PERIOD, "AGE",
		  "instead: drop ticks that ended longer ago than this before the end; their sums per hour stay",
		  &a.retain, NULL },
		ANSWER_OPTION(&a.output),
	};
	struct error e;
	int rest, code;

	if (!command_options(&command_history, argc, argv, rows, sizeof rows / sizeof *rows, &rest, &code))
		return code;
	code = EXIT_DONE;
	if (rest < argc) {
		error_set(&e, ERROR_INVALID,
			  "found '%.60s'; allowed: copy, or options only; a history is named by --db FILE", argv[rest]);
		code = command_failed(&command_history, &e);
	} else if (!answer(&a, &e)) {
		code = command_failed(&command_history, &e);
	}
	question_close(&a.question);
	return code;
}

static int run(int argc, char **argv)
{
	if (argc > 1 && !strcmp(argv[1], "copy"))
		return history_command_copy.run(argc - 1, argv + 1);
	return show(argc, argv);
}

const struct command command_history = {
	.name = "history",
	.usage = "history [--db FILE] [--pool POOL] [--from TIME] [--to TIME]",
	.summary = "Decisions, newest last, by pool, time, group, limit or change",
	.examples = "  preheat history --db out/history.db --changed -n 20\n"
		    "  preheat history --from -1h --pool chat -o wide\n"
		    "  preheat history --limit stock-out -o csv\n"
		    "  preheat history copy --to 'postgresql://db.internal/fleet#prod' --follow      (history copy "
		    "--help)\n",
	.run = run,
};
