/* preheat report: a day or a week of GPUs for a team. */
#include "base/file.h"
#include "controller/commands/answer.h"
#include "controller/commands/command.h"
#include "controller/commands/report_collect.h"

#include <stdio.h>
#include <string.h>

struct asked {
	struct question question;
	struct report_question report;
	bool is_day, is_week;
	const char *output;
};

static bool print(const struct asked *a, const struct team_report *r, struct error *e)
{
	CLEANUP(answer_release) struct answer answer = { .rows = "pools" };
	CLEANUP(buf_release) struct buf text = { 0 };

	if (answer_is_for_programs(a->output)) {
		team_json(r, &answer.json);
		answer_print(&answer, a->output);
		return true;
	}
	if (strcmp(a->output, "html") != 0) {
		team_print(r, !strcmp(a->output, "wide"), stdout);
		return true;
	}
	team_page(r, &text);
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

	return choose_period(a, e) && question_open(&a->question, e) && report_collect(&a->report, &r, e) &&
	       print(a, &r, e);
}

static int run(int argc, char **argv)
{
	struct asked a = { .question = QUESTION_DEFAULTS, .output = "table" };
	const struct option_row rows[] = {
		QUESTION_OPTIONS(&a.question),
		{ "namespace", 'n', OPTION_TEXT, "NAMESPACE", "only this team's: its pools, quota and pods",
		  &a.report.namespace, NULL },
		{ "day", 0, OPTION_FLAG, NULL, "the last day of the history (default)", &a.is_day, NULL },
		{ "week", 0, OPTION_FLAG, NULL, "the last week", &a.is_week, NULL },
		COST_PERIOD_OPTIONS(&a.report.period),
		{ "output", 'o', OPTION_CHOICE, "FORMAT", "how it is printed; html: one page on standard output",
		  &a.output, ANSWER_FORMS "|html" },
	};
	struct error e;
	int rest, code;

	a.question.needs_no_records = true;
	a.report.question = &a.question;
	if (!command_options(&command_report, argc, argv, rows, sizeof rows / sizeof *rows, &rest, &code))
		return code;
	code = EXIT_DONE;
	if (rest < argc) {
		error_set(&e, ERROR_INVALID, "found '%.60s'; allowed: options only, a history is named by --db FILE",
			  argv[rest]);
		code = command_failed(&command_report, &e);
	} else if (!answer(&a, &e)) {
		code = command_failed(&command_report, &e);
	}
	question_close(&a.question);
	return code;
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
