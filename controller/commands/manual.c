/* Pages for man(1), in the macros of man(7). */
#include "controller/commands/manual.h"

#include <ctype.h>
#include <string.h>

const struct manual_line manual_variables[] = {
	{ "KUBECONFIG",
	  "how to reach the API server, unless --kubeconfig says so; in a pod its service account is used" },
	{ "NO_COLOR", "set and not empty: no colour, also on a terminal" },
	{ "TZ", "the zone of the times that are printed and read, without --utc" },
	{ "OTEL_EXPORTER_OTLP_ENDPOINT", "where run and record send traces (docs/operate.md)" },
	{ "POD_NAME", "the identity of this replica on the Lease, unless --identity says so" },
	{ NULL, NULL },
};

const struct manual_line manual_exit_codes[] = {
	{ "0", "done" },
	{ "1", "differences or violations were found" },
	{ "2", "wrong use or input; the message says what is allowed" },
	{ "3", "the environment failed: a file, the network, a permission; or it was interrupted" },
	{ "141", "who read standard output left, as in | head" },
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

void manual_each(bool (*each)(void *user, const struct command *c, struct error *e), void *user, bool *ok,
		 struct error *e)
{
	size_t count;
	const struct command_entry *entries = command_entries(&count);

	*ok = true;
	for (size_t i = 0; i < count && *ok; i++)
		if (entries[i].command)
			*ok = is_each_told(entries[i].command, each, user, e);
}

void manual_page_name(const struct command *c, struct buf *out)
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

void manual_write_page(const struct command *c, struct buf *out)
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
