/* preheat man: pages for man(1) and docs/cli.md, out of the tables of verbs and options. */
#include "base/arena.h"
#include "base/file.h"
#include "controller/commands/command.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* What stands in the overview beside the verbs: variables and exit codes, a line each. */
struct manual_line {
	const char *name, *text;
};

static const struct manual_line manual_variables[] = {
	{ "KUBECONFIG",
	  "how to reach the API server, unless --kubeconfig says so; in a pod its service account is used" },
	{ "NO_COLOR", "set and not empty: no colour, also on a terminal" },
	{ "TZ", "the zone of the times that are printed and read, without --utc" },
	{ "OTEL_EXPORTER_OTLP_ENDPOINT", "where run and record send traces (docs/operate.md)" },
	{ "POD_NAME", "the identity of this replica on the Lease, unless --identity says so" },
	{ NULL, NULL },
};

static const struct manual_line manual_exit_codes[] = {
	{ "0", "done" },
	{ "1", "differences or violations were found" },
	{ "2", "wrong use or input, or what was named is not there; the message says what is allowed" },
	{ "3", "the environment failed: no cluster, the network, a permission, a disk; or it was interrupted" },
	{ "141", "the reader of standard output closed it, as in | head" },
	{ NULL, NULL },
};

static bool is_each_told(const struct command *c, bool (*each)(void *, const struct command *, struct error *),
			 void *user, struct error *e)
{
	if (!each(user, c, e))
		return false;
	for (const struct command *const *v = c->verbs; v && *v; v++)
		if (!each(user, *v, e))
			return false;
	return true;
}

/* Calls `each` for every verb, and for those below one after it. */
static void manual_each(bool (*each)(void *user, const struct command *c, struct error *e), void *user, bool *ok,
			struct error *e)
{
	size_t count;
	const struct command_entry *entries = command_entries(&count);

	*ok = true;
	for (size_t i = 0; i < count && *ok; i++)
		if (entries[i].command)
			*ok = is_each_told(entries[i].command, each, user, e);
}

/* "preheat-provider-check"; NULL: "preheat". */
static void manual_page_name(const struct command *c, struct buf *out)
{
	buf_text(out, "preheat");
	if (c)
		buf_text(out, "-");
	for (const char *s = c ? c->name : ""; *s; s++)
		buf_append(out, *s == ' ' ? "-" : s, 1);
}

/* A hyphen that is typed must be one, and no line may look like a request. */
static void put(const char *text, size_t len, struct buf *out)
{
	for (size_t i = 0; i < len; i++) {
		bool begins = !i || text[i - 1] == '\n';

		if (begins && (text[i] == '.' || text[i] == '\''))
			buf_text(out, "\\&");
		if (text[i] == '-')
			buf_text(out, "\\-");
		else if (text[i] == '\\')
			buf_text(out, "\\e");
		else if (text[i] == '~')
			buf_text(out, "\\(ti");
		else if (text[i] == '^')
			buf_text(out, "\\(ha");
		else
			buf_append(out, text + i, 1);
	}
}

static void put_text(const char *text, struct buf *out)
{
	put(text, strlen(text), out);
}

/* "\fBname\fR" */
static void put_bold(const char *text, struct buf *out)
{
	buf_text(out, "\\fB");
	put_text(text, out);
	buf_text(out, "\\fR");
}

static void put_head(const struct command *c, const char *summary, struct buf *out)
{
	CLEANUP(buf_release) struct buf name = { 0 };

	manual_page_name(c, &name);
	buf_text(out, ".TH ");
	for (size_t i = 0; i < name.len; i++)
		buf_printf(out, "%s%c", name.text[i] == '-' ? "\\" : "", toupper((unsigned char)name.text[i]));
	buf_printf(out, " 1 \"%s\" \"%s\" \"Preheat\"\n.SH NAME\n", PREHEAT_DATE, command_version_text());
	put_text(name.text, out);
	buf_text(out, " \\- ");
	put_text(summary, out);
	buf_text(out, "\n.SH SYNOPSIS\n.nf\n");
}

/* Lines that begin with a blank stand as they are, an empty one ends a paragraph. */
static void put_paragraphs(const char *text, struct buf *out)
{
	bool is_verbatim = false;

	buf_text(out, ".PP\n");
	for (const char *line = text; *line;) {
		size_t len = strcspn(line, "\n");
		bool is_indented = len && *line == ' ';

		if (is_indented != is_verbatim)
			buf_text(out, is_indented ? ".PP\n.EX\n" : ".EE\n");
		if (!len && line[1])
			buf_text(out, ".PP\n");
		else if (len) {
			put(line, len, out);
			buf_text(out, "\n");
		}
		is_verbatim = is_indented;
		line += len + (line[len] == '\n');
	}
	buf_text(out, is_verbatim ? ".EE\n" : "");
}

static void put_option(const struct option_row *row, struct buf *out)
{
	CLEANUP(buf_release) struct buf help = { 0 };
	const char letter[] = { '-', row->letter, '\0' };

	buf_text(out, ".TP\n");
	if (row->letter) {
		put_bold(letter, out);
		buf_text(out, ", ");
	}
	buf_text(out, "\\fB\\-\\-");
	put_text(row->name, out);
	buf_text(out, "\\fR");
	if (row->argument) {
		buf_text(out, " \\fI");
		put_text(row->argument, out);
		buf_text(out, "\\fR");
	}
	buf_text(out, "\n");
	option_write_help(row, &help);
	put_text(help.text, out);
	buf_text(out, "\n");
}

static void put_options(void *user, const struct command *c, const struct option_row *rows, size_t count)
{
	static const struct option_row help = { "help", 'h', OPTION_FLAG, NULL, "show the help", NULL, NULL };
	struct buf *out = user;

	(void)c;
	buf_text(out, ".SH OPTIONS\n");
	for (size_t i = 0; i < count; i++)
		put_option(&rows[i], out);
	put_option(&help, out);
}

static void put_lines(const char *title, const struct manual_line *lines, struct buf *out)
{
	buf_printf(out, ".SH %s\n", title);
	for (; lines->name; lines++) {
		buf_text(out, ".TP\n");
		put_bold(lines->name, out);
		buf_text(out, "\n");
		put_text(lines->text, out);
		buf_text(out, "\n");
	}
}

static void put_see(const char *page, bool is_last, struct buf *out)
{
	buf_text(out, ".BR ");
	put_text(page, out);
	buf_printf(out, " (1)%s\n", is_last ? "" : ",");
}

static bool put_page_of(void *user, const struct command *c, struct error *e)
{
	CLEANUP(buf_release) struct buf name = { 0 };

	(void)e;
	manual_page_name(c, &name);
	put_see(name.text, false, user);
	return true;
}

/* What an overview says that no verb does. */
static bool put_verb(void *user, const struct command *c, struct error *e)
{
	struct buf *out = user;

	(void)e;
	buf_text(out, ".TP\n");
	put_bold(c->name, out);
	buf_text(out, "\n");
	put_text(c->summary, out);
	buf_text(out, "\n");
	return true;
}

static void write_overview(struct buf *out)
{
	struct error e;
	bool ok;

	put_head(NULL, "warm capacity for GPU inference: decide, simulate, explain", out);
	buf_text(out, "\\fBpreheat\\fR \\fIVERB\\fR [\\fIOPTION\\fR...]\n\\fBkubectl preheat\\fR \\fIVERB\\fR "
		      "[\\fIOPTION\\fR...]\n.fi\n.SH DESCRIPTION\n");
	put_text("Preheat decides how much warm GPU capacity inference needs, simulates that on recorded traffic, and "
		 "explains every decision. Each verb has a page of its own.\n",
		 out);
	buf_text(out, ".SH VERBS\n");
	manual_each(put_verb, out, &ok, &e);
	put_lines("ENVIRONMENT", manual_variables, out);
	buf_text(out, ".SH FILES\n.TP\n\\fIhistory.db\\fR\n");
	put_text("every decision with all that it depended on, an SQLite file; what \\-\\-db names\n", out);
	put_lines("EXIT STATUS", manual_exit_codes, out);
	buf_text(out, ".SH SEE ALSO\n");
	manual_each(put_page_of, out, &ok, &e);
	put_see("kubectl", true, out);
}

static void put_usage(const struct command *c, struct buf *out)
{
	for (const char *line = c->usage; *line;) {
		line += strspn(line, " ");
		size_t len = strcspn(line, "\n");

		if (strncmp(line, "preheat ", strlen("preheat ")) != 0)
			put_text("preheat ", out);
		put(line, len, out);
		buf_text(out, "\n");
		line += len + (line[len] == '\n');
	}
	buf_text(out, ".fi\n");
}

/* One page in roff; NULL: the overview. */
static void manual_write_page(const struct command *c, struct buf *out)
{
	CLEANUP(buf_release) struct buf notes = { 0 };

	if (!c) {
		write_overview(out);
		return;
	}
	put_head(c, c->summary, out);
	put_usage(c, out);
	buf_text(out, ".SH DESCRIPTION\n");
	put_text(c->summary, out);
	buf_text(out, ".\n");
	command_write_notes(c, &notes);
	if (notes.len)
		put_paragraphs(notes.text, out);
	for (const struct command *const *v = c->verbs; v && *v; v++)
		put_verb(out, *v, NULL);
	command_inspect(c, put_options, out);
	if (c->examples && *c->examples) {
		buf_text(out, ".SH EXAMPLES\n.EX\n");
		put_text(c->examples, out);
		buf_text(out, ".EE\n");
	}
	put_lines("EXIT STATUS", manual_exit_codes, out);
	buf_text(out, ".SH SEE ALSO\n");
	put_see("preheat", true, out);
}

/* --- docs/cli.md --- */

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

struct reference {
	struct buf *out;
	struct buf rows; /* of the options of all verbs, as put_row writes them */
};

enum { COMMON_VERBS = 4 }; /* an option that so many verbs have alike is printed once */

static void put_option_row(const struct option_row *option, struct buf *row)
{
	CLEANUP(buf_release) struct buf name = { 0 }, help = { 0 };

	option_write_name(option, &name);
	option_write_help(option, &help);
	put_row(name.text + strspn(name.text, " "), help.text, row);
}

static void collect_options(void *user, const struct command *c, const struct option_row *rows, size_t count)
{
	struct reference *r = user;

	(void)c;
	for (size_t i = 0; i < count; i++)
		put_option_row(&rows[i], &r->rows);
}

static bool collect_verb(void *user, const struct command *c, struct error *e)
{
	(void)e;
	command_inspect(c, collect_options, user);
	return true;
}

static bool is_common(const struct reference *r, const char *row)
{
	int times = 0;

	for (const char *at = strstr(r->rows.text, row); at; at = strstr(at + 1, row))
		times++;
	return times >= COMMON_VERBS;
}

static void put_common_options(void *user, const struct command *c, const struct option_row *rows, size_t count)
{
	struct reference *r = user;

	(void)c;
	for (size_t i = 0; i < count; i++) {
		CLEANUP(buf_release) struct buf row = { 0 };
		put_option_row(&rows[i], &row);
		if (is_common(r, row.text) && !strstr(r->out->text, row.text))
			buf_text(r->out, row.text);
	}
}

static bool put_common_of(void *user, const struct command *c, struct error *e)
{
	(void)e;
	command_inspect(c, put_common_options, user);
	return true;
}

static void put_option_table(void *user, const struct command *c, const struct option_row *rows, size_t count)
{
	CLEANUP(buf_release) struct buf own = { 0 }, common = { 0 };
	struct reference *r = user;

	(void)c;
	for (size_t i = 0; i < count; i++) {
		CLEANUP(buf_release) struct buf row = { 0 };
		put_option_row(&rows[i], &row);
		if (is_common(r, row.text))
			buf_printf(&common, "%s`--%s`", common.len ? ", " : "", rows[i].name);
		else
			buf_text(&own, row.text);
	}
	if (own.len)
		buf_printf(r->out, "\n| option | what it does |\n|---|---|\n%s", own.text);
	if (common.len)
		buf_printf(r->out, "\n%s: %s.\n", own.len ? "Also" : "Options", common.text);
}

static bool put_section(void *user, const struct command *c, struct error *e)
{
	CLEANUP(buf_release) struct buf notes = { 0 };
	struct reference *r = user;

	(void)e;
	buf_printf(r->out, "\n## preheat %s\n\n%s.\n\n```\npreheat %s\n```\n", c->name, c->summary, c->usage);
	command_inspect(c, put_option_table, r);
	command_write_notes(c, &notes);
	if (notes.len)
		buf_printf(r->out, "\n```\n%s```\n", notes.text);
	if (c->examples && *c->examples)
		buf_printf(r->out, "\nExamples:\n\n```\n%s```\n", c->examples);
	return true;
}

static void put_line_table(const char *title, const struct manual_line *lines, struct buf *out)
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
	"`preheat help VERB`, `preheat VERB --help` and `man preheat-VERB` say the same as this page; `-h` reminds of "
	"the\n"
	"options that are used most.\n"
	"\n"
	"- **Output.** `-o table|wide|json|csv|yaml`. `table` is for people; `wide` has more columns; `csv`, `json` "
	"and\n"
	"  `yaml` are for programs: every column, raw numbers with the unit in the name, absent values empty or null,\n"
	"  keys that stay. Where a verb answers with a tree (explain, report, check), `csv` has its main rows.\n"
	"- **Times** are printed in the zone of this machine (`TZ`), with `--utc` in UTC; for programs always in RFC "
	"3339\n"
	"  and UTC. They are given as `2024-05-10T08:00:00Z`, `'2024-05-10 08:00'` as printed, `3:12`, `'yesterday "
	"3:12'`,\n  or `-2h` before the end.\n"
	"- **Colour** appears on terminals only, never as the only sign, and not with `NO_COLOR`. There is no pager.\n"
	"- **Standard output** holds the answer, standard error everything else.\n"
	"- **Completion**: `preheat completion bash|zsh|fish`; verbs, options, choices, files, and names of pools, "
	"node\n"
	"  groups and namespaces out of the history that `--db` names. `kubectl preheat` also completes.\n"
	"- **Manual pages**: `man preheat`; without the package: `preheat man history | man -l -`.\n";

/* All of it in Markdown. */
static void manual_write_reference(struct buf *out)
{
	struct reference r = { .out = out };
	struct error e;
	bool ok;

	buf_text(out, introduction);
	put_line_table("Exit codes:", manual_exit_codes, out);
	put_line_table("Environment:", manual_variables, out);
	manual_each(collect_verb, &r, &ok, &e);
	buf_text(out, "\nOptions that several verbs have alike:\n\n| option | what it does |\n|---|---|\n");
	manual_each(put_common_of, &r, &ok, &e);
	manual_each(put_section, &r, &ok, &e);
	buf_release(&r.rows);
}

/* --- the verb --- */

static bool write_file(const char *folder, const char *name, const struct buf *text, struct error *e)
{
	CLEANUP(buf_release) struct buf path = { 0 };

	buf_printf(&path, "%s/%s.1", folder, name);
	return file_write(path.text, text->text, text->len, e);
}

static bool write_page(void *user, const struct command *c, struct error *e)
{
	CLEANUP(buf_release) struct buf name = { 0 }, page = { 0 };

	manual_page_name(c, &name);
	manual_write_page(c, &page);
	return write_file(user, name.text, &page, e);
}

/* Other names of the program have the overview for their page. */
static bool write_aliases(const char *folder, struct error *e)
{
	static const char *const names[] = { "kubectl-preheat", "kubectl_complete-preheat" };
	CLEANUP(buf_release) struct buf path = { 0 };

	for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
		buf_clear(&path);
		buf_printf(&path, "%s/%s.1", folder, names[i]);
		unlink(path.text);
		if (symlink("preheat.1", path.text) < 0)
			return error_set(e, file_error_kind(errno), "%s: %s", path.text, strerror(errno));
	}
	return true;
}

static bool write_all(char *folder, struct error *e)
{
	bool ok;

	if (mkdir(folder, 0777) < 0 && errno != EEXIST)
		return error_set(e, file_error_kind(errno), "--out %s: cannot make this folder: %s", folder,
				 strerror(errno));
	if (!write_page(folder, NULL, e) || !write_aliases(folder, e))
		return false;
	manual_each(write_page, folder, &ok, e);
	return ok;
}

/* Of the verb that the words name: "history export". */
static int print_page(char **words, int count)
{
	CLEANUP(buf_release) struct buf page = { 0 };
	const struct command *c = NULL;

	for (int i = 0; i < count; i++) {
		const struct command *below = command_find(c, words[i]);
		if (!below)
			return command_unknown(c, words[i]);
		c = below;
	}
	manual_write_page(c, &page);
	fwrite(page.text, 1, page.len, stdout);
	return EXIT_DONE;
}

static int run(int argc, char **argv)
{
	char *out = NULL;
	bool prints_reference = false;
	const struct option_row rows[] = {
		{ "out", 0, OPTION_TEXT, "DIR", "write the pages of all verbs as files into this folder", &out, NULL },
		{ "print-reference", 0, OPTION_FLAG, NULL, "print all of it as Markdown (docs/cli.md)",
		  &prints_reference, NULL },
	};
	struct error e;
	int rest, code;

	if (!command_options(&command_man, argc, argv, rows, sizeof rows / sizeof *rows, &rest, &code))
		return code;
	if (prints_reference)
		return command_print(manual_write_reference);
	if (out && rest < argc) {
		error_set(&e, ERROR_INVALID, "found '%.60s' beside --out; allowed: --out DIR alone, which is all verbs",
			  argv[rest]);
		return command_failed(&command_man, &e);
	}
	if (!out)
		return print_page(argv + rest, argc - rest);
	return write_all(out, &e) ? EXIT_DONE : command_failed(&command_man, &e);
}

const struct command command_man = {
	.name = "man",
	.usage = "man [VERB...] [--out DIR]",
	.summary = "Print the manual page of a verb, in the form that man reads",
	.examples = "  preheat man history | man -l -\n"
		    "  preheat man --out /usr/local/share/man/man1\n",
	.arguments = "VERB",
	.run = run,
};

/* docs/cli.md. */
