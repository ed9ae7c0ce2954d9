#include "base/options.h"
#include "base/arena.h"
#include "base/buf.h"
#include "base/millis.h"
#include "base/text.h"
#include "base/quantity.h"
#include "base/terminal.h"

#include <getopt.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Values returned by getopt_long: the index of the row above any letter. */
enum { ROW_BASE = 256 };

#define LONGEST_DURATION (100 * (365 * DAY))

/* Lists live until the process ends, like the argv they point into. */
static struct arena lists;

static bool parse_count(const char *text, int64_t *value)
{
	int64_t v;

	if (*text == '-' || !whole_parse(text, strlen(text), &v))
		return false;
	*value = v;
	return true;
}

static bool parse_number(const char *text, double *value)
{
	char *end;

	if (!*text || text[strspn(text, "0123456789.")])
		return false;
	double v = strtod(text, &end);
	if (*end || !(v > 0) || v > 1e15)
		return false;
	*value = v;
	return true;
}

static bool parse_duration(const char *text, millis *value)
{
	millis d = 0;

	if (strcmp(text, "0") != 0 && !duration_parse(text, strlen(text), &d))
		return false;
	if (d > LONGEST_DURATION)
		return false;
	*value = d;
	return true;
}

bool options_time(const char *text, millis now, millis *value)
{
	millis ago;

	if (strcmp(text, "now") == 0) {
		*value = now;
		return true;
	}
	if (*text != '-')
		return time_parse_exact(text, value);
	if (!parse_duration(text + 1, &ago))
		return false;
	*value = now - ago;
	return true;
}

static bool parse_choice(const char *text, const char *choices, const char **value)
{
	size_t len = strlen(text);

	for (const char *c = choices; *c;) {
		size_t width = strcspn(c, "|");

		if (width == len && strncmp(c, text, len) == 0) {
			*value = text;
			return true;
		}
		c += width + (c[width] == '|');
	}
	return false;
}

static bool list_add(struct option_list *list, const char *text)
{
	list->items = arena_grow(&lists, list->items, list->count, &list->room, sizeof *list->items);
	list->items[list->count++] = text;
	return true;
}

/* In words: "a duration such as 250ms, 15s or 1h30m". */
static const char *allowed_for(const struct option_row *row)
{
	static const char *const texts[] = {
		[OPTION_FLAG] = "no value",
		[OPTION_TEXT] = "a text that is not empty",
		[OPTION_LIST] = "a text that is not empty",
		[OPTION_COUNT] = "a whole number from 0 to 9223372036854775807",
		[OPTION_POSITIVE] = "a whole number from 1 to 9223372036854775807",
		[OPTION_NUMBER] = "a decimal number above 0, such as 1.5",
		[OPTION_DURATION] = "a duration such as 250ms, 15s, 1h30m or 7d, at most 36500d",
		[OPTION_PERIOD] = "a duration above 0 such as 15s, 1h30m or 7d, at most 36500d",
		[OPTION_TIME] = "an absolute time such as 2024-05-10T08:00:00Z",
	};

	return row->type == OPTION_CHOICE ? row->choices : texts[row->type];
}

static bool store(const struct option_row *row, const char *text)
{
	int64_t count;
	millis period;

	switch (row->type) {
	case OPTION_FLAG:
		*(bool *)row->target = true;
		return true;
	case OPTION_TEXT:
		*(const char **)row->target = text;
		return *text;
	case OPTION_LIST:
		return *text && list_add(row->target, text);
	case OPTION_COUNT:
		return parse_count(text, row->target);
	case OPTION_POSITIVE:
		return parse_count(text, &count) && count > 0 && (*(int64_t *)row->target = count);
	case OPTION_NUMBER:
		return parse_number(text, row->target);
	case OPTION_DURATION:
		return parse_duration(text, row->target);
	case OPTION_PERIOD:
		return parse_duration(text, &period) && period > 0 && (*(millis *)row->target = period);
	case OPTION_TIME:
		return time_parse_exact(text, row->target);
	case OPTION_CHOICE:
		return parse_choice(text, row->choices, row->target);
	}
	return false;
}

static const struct option_row *row_of(const struct option_row *rows, size_t count, int value)
{
	if (value >= ROW_BASE && (size_t)(value - ROW_BASE) < count)
		return &rows[value - ROW_BASE];
	for (size_t i = 0; i < count; i++) {
		if (rows[i].letter && rows[i].letter == value)
			return &rows[i];
	}
	return NULL;
}

enum { OPTIONS_MAX = 64 };

/* The option that a mistyped one is closest to; NULL when none is near. */
static const char *nearest_option(const struct option_row *rows, size_t count, const char *word)
{
	const char *names[OPTIONS_MAX];
	char name[64];

	if (strncmp(word, "--", 2) != 0 || count > OPTIONS_MAX)
		return NULL;
	snprintf(name, sizeof name, "%.*s", (int)strcspn(word + 2, "="), word + 2);
	for (size_t i = 0; i < count; i++)
		names[i] = rows[i].name;
	return nearest_name(name, names, count);
}

static bool refuse_unknown(const char *word, const char *near, struct error *e)
{
	if (strncmp(word, "--", 2) != 0 && optopt)
		return error_set(e, ERROR_INVALID, "unknown option '-%c'", optopt);
	return error_set(e, ERROR_INVALID, "unknown option '%.100s'%s%s%s", word, near ? "; did you mean '--" : "",
			 near ? near : "", near ? "'?" : "");
}

/* getopt has just refused something: say what. */
static bool refuse(const struct option_row *row, int reason, struct error *e)
{
	if (reason == ':')
		return error_set(e, ERROR_INVALID, "--%s: %s is missing; allowed: %s", row->name,
				 row->argument ? row->argument : "a value", allowed_for(row));
	return error_set(e, ERROR_INVALID, "--%s takes no value", row->name);
}

static void fill_tables(const struct option_row *rows, size_t count, struct option *longs, char *letters)
{
	*letters++ = ':';
	for (size_t i = 0; i < count; i++) {
		bool has_value = rows[i].type != OPTION_FLAG;

		longs[i] = (struct option){ .name = rows[i].name,
					    .has_arg = has_value ? required_argument : no_argument,
					    .val = ROW_BASE + (int)i };
		if (!rows[i].letter)
			continue;
		*letters++ = rows[i].letter;
		if (has_value)
			*letters++ = ':';
	}
}

static size_t row_named(const struct option_table *t, const char *name)
{
	size_t i = 0;

	while (i < t->count && strcmp(t->rows[i].name, name) != 0)
		i++;
	return i;
}

/* `--by --excess`: the value was forgotten, and the next option taken for it. */
static bool is_option(const struct option_table *t, const char *text)
{
	return text && !strncmp(text, "--", 2) && row_named(t, text + 2) < t->count;
}

static bool refuse_value(const struct option_table *t, const struct option_row *row, struct error *e)
{
	double number;

	if (is_option(t, optarg))
		return error_set(e, ERROR_INVALID, "--%s: %s is missing in front of %.60s; allowed: %s", row->name,
				 row->argument, optarg, allowed_for(row));
	bool lacks_unit = (row->type == OPTION_DURATION || row->type == OPTION_PERIOD) && parse_number(optarg, &number);
	const char *digits = lacks_unit ? optarg : "";
	return error_set(e, ERROR_INVALID, "--%s: found '%.100s'; allowed: %s%s%.20s%s%.20s%s", row->name, optarg,
			 allowed_for(row), lacks_unit ? "; do: add the unit, as in " : "", digits,
			 lacks_unit ? "s or " : "", digits, lacks_unit ? "h" : "");
}

static bool obeys(const struct option_table *t, const bool *given, struct error *e)
{
	for (const struct option_rule *r = t->rules; r && r->option; r++) {
		size_t option = row_named(t, r->option), other = row_named(t, r->other);

		if (option == t->count || other == t->count || !given[option])
			continue;
		const char *argument = t->rows[other].argument;
		if (r->how == OPTION_NEEDS && !given[other])
			return error_set(e, ERROR_INVALID,
					 "--%s: found without --%s, where it has no effect; do: add --%s%s%s, or leave "
					 "--%s out",
					 r->option, r->other, r->other, argument ? " " : "", argument ? argument : "",
					 r->option);
		if (r->how == OPTION_EXCLUDES && given[other])
			return error_set(e, ERROR_INVALID,
					 "--%s: found beside --%s, where it has no effect; do: leave one of them out",
					 r->option, r->other);
	}
	return true;
}

bool options_parse(int argc, char **argv, const struct option_table *t, int *rest, struct error *e)
{
	CLEANUP(arena_release) struct arena a = { 0 };
	const struct option_row *rows = t->rows;
	size_t count = t->count;
	struct option *longs = arena_array(&a, struct option, count + 1);
	char *letters = arena_array(&a, char, 2 * count + 2);
	bool *given = arena_array(&a, bool, count + 1);
	int value;

	fill_tables(rows, count, longs, letters);
	opterr = 0;
	optind = 0; /* glibc: start over */
	while ((value = getopt_long(argc, argv, letters, longs, NULL)) != -1) {
		bool is_refused = value == '?' || value == ':';
		const struct option_row *row = row_of(rows, count, is_refused ? optopt : value);

		if (is_refused && row)
			return refuse(row, value, e);
		if (is_refused)
			return refuse_unknown(argv[optind - 1], nearest_option(rows, count, argv[optind - 1]), e);
		if (is_option(t, optarg) || !store(row, optarg))
			return refuse_value(t, row, e);
		given[row - rows] = true;
	}
	*rest = optind;
	return obeys(t, given, e);
}

void option_write_name(const struct option_row *row, struct buf *out)
{
	if (row->letter)
		buf_printf(out, "-%c, ", row->letter);
	else
		buf_text(out, "    ");
	buf_printf(out, "--%s%s%s", row->name, row->argument ? " " : "", row->argument ? row->argument : "");
}

static void write_default(const struct option_row *row, struct buf *out)
{
	CLEANUP(buf_release) struct buf text = { 0 };

	switch (row->type) {
	case OPTION_FLAG:
	case OPTION_LIST:
	case OPTION_TIME:
		break;
	case OPTION_TEXT:
	case OPTION_CHOICE:
		if (*(const char **)row->target)
			buf_text(&text, *(const char **)row->target);
		break;
	case OPTION_COUNT:
	case OPTION_POSITIVE:
		if (*(int64_t *)row->target)
			buf_printf(&text, "%lld", (long long)*(int64_t *)row->target);
		break;
	case OPTION_NUMBER:
		if (*(double *)row->target > 0)
			buf_printf(&text, "%g", *(double *)row->target);
		break;
	case OPTION_DURATION:
	case OPTION_PERIOD:
		if (*(millis *)row->target)
			duration_format(*(millis *)row->target, &text);
		break;
	}
	if (text.text)
		buf_printf(out, " (default: %s)", text.text);
}

void option_write_help(const struct option_row *row, struct buf *out)
{
	buf_text(out, row->help);
	if (!strstr(row->help, "default"))
		write_default(row, out);
	if (row->choices)
		buf_printf(out, ": %s", row->choices);
}

/* The first line stands beside the name already. */
static void print_wrapped(const char *text, int indent, int width)
{
	int column = indent;

	while (*text) {
		size_t word = strcspn(text, " ");

		if (column > indent && column + 1 + (int)word > width) {
			printf("\n%*s", indent, "");
			column = indent;
		} else if (column > indent) {
			putchar(' ');
			column++;
		}
		fwrite(text, 1, word, stdout);
		column += (int)word;
		text += word + strspn(text + word, " ");
	}
	putchar('\n');
}

enum { NARROW_TEXT = 30, NAME_INDENT = 2, NAME_GAP = 2 };

void options_print(const struct option_row *rows, size_t count)
{
	CLEANUP(buf_release) struct buf name = { 0 }, help = { 0 };
	struct terminal t = terminal_of(stdout);
	int widest = 0;

	for (size_t i = 0; i < count; i++) {
		buf_clear(&name);
		option_write_name(&rows[i], &name);
		widest = (int)name.len > widest ? (int)name.len : widest;
	}
	int indent = NAME_INDENT + widest + NAME_GAP;
	bool is_beside = !t.is_terminal || indent + NARROW_TEXT <= t.width;
	indent = is_beside ? indent : 2 * NAME_INDENT + (int)strlen("-x, ");
	for (size_t i = 0; i < count; i++) {
		buf_clear(&name);
		buf_clear(&help);
		option_write_name(&rows[i], &name);
		option_write_help(&rows[i], &help);
		if (is_beside)
			printf("%*s%-*s", NAME_INDENT, "", indent - NAME_INDENT, name.text);
		else
			printf("%*s%s\n%*s", NAME_INDENT, "", name.text, indent, "");
		print_wrapped(help.text, indent, t.is_terminal ? t.width : INT_MAX);
	}
}
