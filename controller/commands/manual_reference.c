/* docs/cli.md. */
#include "controller/commands/manual.h"

#include <string.h>

/* A cell of a table: no bar may end it. */
static void put_cell(const char *text, struct buf *out)
{
	for (; *text; text++) {
		if (*text == '|')
			buf_text(out, "\\");
		buf_append(out, text, 1);
	}
}

static void put_row(const char *name, const char *help, struct buf *out)
{
	buf_text(out, "| `");
	put_cell(name, out);
	buf_text(out, "` | ");
	put_cell(help, out);
	buf_text(out, " |\n");
}

static void put_options(void *user, const struct command *c, const struct option_row *rows, size_t count)
{
	struct buf *out = user;

	(void)c;
	if (count)
		buf_text(out, "\n| option | what it does |\n|---|---|\n");
	for (size_t i = 0; i < count; i++) {
		CLEANUP(buf_release) struct buf name = { 0 }, help = { 0 };

		option_write_name(&rows[i], &name);
		option_write_help(&rows[i], &help);
		put_row(name.text + strspn(name.text, " "), help.text, out);
	}
}

static bool put_verb(void *user, const struct command *c, struct error *e)
{
	CLEANUP(buf_release) struct buf notes = { 0 };
	struct buf *out = user;

	(void)e;
	buf_printf(out, "\n## preheat %s\n\n%s.\n\n```\npreheat %s\n```\n", c->name, c->summary, c->usage);
	command_inspect(c, put_options, out);
	command_write_notes(c, &notes);
	if (notes.len)
		buf_printf(out, "\n```\n%s```\n", notes.text);
	if (c->examples && *c->examples)
		buf_printf(out, "\nExamples:\n\n```\n%s```\n", c->examples);
	return true;
}

static void put_lines(const char *title, const struct manual_line *lines, struct buf *out)
{
	buf_printf(out, "\n%s\n\n| | |\n|---|---|\n", title);
	for (; lines->name; lines++)
		put_row(lines->name, lines->text, out);
}

static const char introduction[] =
	"<!-- Written by `preheat man --print-reference`; change the tables, not this file. -->\n"
	"# Command line\n"
	"\n"
	"`preheat VERB [OPTION...]`, or `kubectl preheat VERB [OPTION...]` where `kubectl-preheat` is on the path.\n"
	"`preheat help VERB`, `preheat VERB --help` and `man preheat-VERB` say the same as this page.\n"
	"\n"
	"- **Output.** `-o table|wide|json|csv|yaml`. `table` is for people; `wide` has more columns; `csv`, `json` "
	"and\n"
	"  `yaml` are for programs: every column, raw numbers with the unit in the name, absent values empty or null,\n"
	"  keys that stay. Where a verb answers with a tree (explain, report, check), `csv` has its main rows.\n"
	"- **Times** are printed in the zone of this machine (`TZ`), with `--utc` in UTC; for programs always in RFC "
	"3339\n"
	"  and UTC. They are given as `2024-05-10T08:00:00Z`, `'2024-05-10 08:00:00'` as printed, or `-2h` before the "
	"end.\n"
	"- **Colour** appears on terminals only, never as the only sign, and not with `NO_COLOR`. There is no pager.\n"
	"- **Standard output** holds the answer, standard error everything else.\n"
	"- **Completion**: `preheat completion bash|zsh|fish`; verbs, options, choices, files, and names of pools, "
	"node\n"
	"  groups and namespaces out of the history that `--db` names. `kubectl preheat` completes, too.\n"
	"- **Manual pages**: `man preheat`; without the package: `preheat man history | man -l -`.\n";

void manual_write_reference(struct buf *out)
{
	struct error e;
	bool ok;

	buf_text(out, introduction);
	put_lines("Exit codes:", manual_exit_codes, out);
	put_lines("Environment:", manual_variables, out);
	manual_each(put_verb, out, &ok, &e);
}
