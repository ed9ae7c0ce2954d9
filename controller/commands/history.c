/* preheat history: decisions as rows. */
#include "controller/commands/answer.h"
#include "controller/commands/command.h"
#include "controller/commands/history_follow.h"
#include "controller/commands/history_hours.h"
#include "controller/commands/history_launches.h"
#include "controller/commands/history_rows.h"
#include "controller/commands/question.h"

#include <stdio.h>
#include <string.h>

extern const struct command history_command_copy, history_command_export;

static const struct command *const verbs[] = { &history_command_copy, &history_command_export, NULL };

struct asked {
	struct question question;
	const char *from, *to, *group, *limit, *output;
	bool is_changed, is_hours, is_launches, follows;
	int64_t most;
	millis retain; /* 0: keep all */
};

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
	enum table_format format = table_format_of(a->output);
	struct history_filter filter;

	if (a->question.may_be_empty && a->question.span.last_tick < a->question.span.first_tick)
		filter = (struct history_filter){ .pool = a->question.pool_index, .limit = ANY };
	else if (!fill_filter(a, &filter, e))
		return false;
	if (a->follows)
		return history_follow(&a->question, &filter, a->output, e);
	struct table *t = history_rows(&a->question, &filter, table_is_for_programs(format), e);
	if (!t)
		return false;
	table_print(t, format, stdout);
	if (!table_rows(t))
		fprintf(stderr, "No decision matches; %s has ticks %lld to %lld.\n", history_path(a->question.history),
			(long long)a->question.span.first_tick, (long long)a->question.span.last_tick);
	table_free(t);
	return true;
}

static bool check_questions(const struct asked *a, struct error *e)
{
	bool filters = a->question.pool || a->from || a->to || a->group || a->limit || a->is_changed;

	if (a->is_launches && (a->question.pool || a->limit || a->is_changed || a->is_hours || a->retain))
		return error_set(
			e, ERROR_INVALID,
			"--launches prints calls to providers, which are about node groups; beside it: --from, "
			"--to, --group, --number");
	if (a->follows && (a->to || a->is_hours || a->is_launches || a->retain))
		return error_set(
			e, ERROR_INVALID,
			"--follow prints decisions as they come; give it without --to, --hours, --launches and "
			"--retain");
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
	a->question.may_be_empty = a->follows;
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
		{ "follow", 'f', OPTION_FLAG, NULL, "go on with what is written, until interrupted", &a.follows, NULL },
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
			  "found '%.60s'; allowed: copy, export, or options only; a history is named by --db FILE",
			  argv[rest]);
		code = command_failed(&command_history, &e);
	} else if (!answer(&a, &e)) {
		code = command_failed(&command_history, &e);
	}
	question_close(&a.question);
	return code;
}

static int run(int argc, char **argv)
{
	const struct command *below = argc > 1 ? command_find(&command_history, argv[1]) : NULL;

	return below ? below->run(argc - 1, argv + 1) : show(argc, argv);
}

const struct command command_history = {
	.name = "history",
	.usage = "history [--db FILE] [--pool POOL] [--from TIME] [--to TIME]",
	.summary = "Decisions, newest last, by pool, time, group, limit or change",
	.examples = "  preheat history --db out/history.db --changed -n 20\n"
		    "  preheat history --from -1h --pool chat -o wide\n"
		    "  preheat history --limit stock-out -o csv\n"
		    "  preheat history --follow --changed\n",
	.verbs = verbs,
	.run = run,
};
