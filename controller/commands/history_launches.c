#include "controller/commands/history_launches.h"

#include "base/quantity.h"
#include "base/table.h"
#include "providers/provider.h"

#include <stdio.h>

static const struct table_column columns[] = {
	{ .name = "time" },
	{ .name = "tick", .is_right = true },
	{ .name = "group" },
	{ .name = "verb" },
	{ .name = "target", .is_right = true },
	{ .name = "machines" },
	{ .name = "outcome" },
	{ .name = "took_ms", .title = "TOOK", .is_right = true },
	{ .name = "term", .is_right = true, .is_wide = true },
	{ .name = "token", .is_wide = true },
	{ .name = "operation", .is_wide = true },
};

const char *history_launches_verb(int64_t verb)
{
	return verb >= 0 && verb < PROVIDER_VERB_COUNT ? provider_verb_name((enum provider_verb)verb) : "?";
}

/* Only sizes are targets; what is removed or stopped is named. */
static void add_target(struct table *t, const struct launch *l)
{
	CLEANUP(buf_release) struct buf ids = { 0 };

	if (l->machine_count)
		table_absent(t);
	else
		table_count(t, l->target);
	buf_text(&ids, "");
	for (size_t i = 0; i < l->machine_count; i++)
		buf_printf(&ids, i ? " %s" : "%s", l->machines[i]);
	table_text(t, ids.text);
}

static void add_outcome(struct table *t, const struct launch *l)
{
	CLEANUP(buf_release) struct buf took = { 0 }, raw = { 0 };

	table_text(t, l->outcome ? l->outcome : "open");
	if (!l->outcome) {
		table_absent(t);
		return;
	}
	duration_format(l->ended_at - l->asked_at, &took);
	buf_printf(&raw, "%lld", (long long)(l->ended_at - l->asked_at));
	table_value(t, took.text, raw.text);
}

static void add_row(struct table *t, const struct question *q, const struct launch *l, bool for_programs)
{
	CLEANUP(buf_release) struct buf time = { 0 };

	question_print_time(q, l->asked_at, for_programs, &time);
	table_text(t, time.text);
	table_count(t, l->tick);
	table_text(t, l->group);
	table_text(t, history_launches_verb(l->verb));
	add_target(t, l);
	add_outcome(t, l);
	table_count(t, l->term);
	table_text(t, l->token);
	table_text(t, l->operation);
	if (!l->outcome)
		table_style(t, STYLE_WARN);
}

bool history_launches_print(struct question *q, const struct launch_filter *f, const char *output, struct error *e)
{
	enum table_format format = table_format_of(output);
	struct launch *launches;
	size_t count;

	if (!launch_find(q->history, f, &q->arena, &launches, &count, e))
		return false;
	struct table *t = table_new(columns, sizeof columns / sizeof *columns);
	for (size_t i = 0; i < count; i++)
		add_row(t, q, &launches[i], table_is_for_programs(format));
	table_print(t, format, stdout);
	table_free(t);
	if (!count)
		fprintf(stderr, "Nothing was asked of a provider in that time; a simulation has none.\n");
	return true;
}
