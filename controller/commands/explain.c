/* preheat explain: one decision in sentences. */
#include "controller/commands/print.h"
#include "controller/commands/command.h"
#include "controller/commands/history_args.h"
#include "controller/explain/explain.h"
#include "controller/manifest/manifest.h"
#include "state/share_record.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>

struct asked {
	struct history_args args;
	const char *at, *output;
	int64_t tick; /* < 0: not given */
	bool is_largest, is_full;
};

enum { INDENT = 11, NARROWEST = 30 };

enum { BRIEF_PARTS = 5 };

/* Without --full: with the line of the decision's name and the one of --full ten lines at most. Lines that a part
 * leaves are those of the next. */
static const struct brief_part {
	const char *title;
	int sentences, lines;
} brief_parts[BRIEF_PARTS] = { { "Decided", 4, 3 }, { "Seen", 6, 2 }, { "Why", 1, 2 }, { "It costs", 1, 1 } },
  brief_held[BRIEF_PARTS] = { { "Decided", 4, 3 },
			      { "Seen", 6, 2 },
			      { "Why", 1, 1 },
			      { "Held by", 2, 1 },
			      { "It costs", 1, 1 } },
  brief_shared[BRIEF_PARTS] = {
	  { "Decided", 4, 2 }, { "Seen", 6, 2 }, { "Engines", 2, 2 }, { "Held by", 2, 1 }, { "It costs", 1, 1 }
  };
static const struct brief_part all_of_it = { NULL, INT_MAX, INT_MAX };

/* NULL: left out. */
static const struct brief_part *brief_of(const struct explained *x, const char *title)
{
	const struct brief_part *parts = x->move_count || x->waits_for		   ? brief_shared
					 : x->plan->decision.held_by != LIMIT_NONE ? brief_held
										   : brief_parts;

	for (size_t i = 0; i < BRIEF_PARTS && parts[i].title; i++)
		if (!strcmp(parts[i].title, title))
			return &parts[i];
	return NULL;
}

/* Where the first of them end. */
static const char *end_of(const char *text, int sentences)
{
	const char *end = strstr(text, ". ");

	while (end && --sentences > 0)
		end = strstr(end + 1, ". ");
	return end ? end + 1 : text + strlen(text);
}

/* Words on lines no longer than the terminal, "..." where there are too many; the first line starts after the title.
 * Returns how many lines. */
static int print_wrapped(const char *text, const char *end, int width, int most)
{
	int column = INDENT, lines = 1;

	while (text < end) {
		size_t word = strcspn(text, " "), room = lines == most ? sizeof " ..." - 1 : 0;

		if (column > INDENT && column + 1 + (int)(word + room) > width && lines == most) {
			fputs(" ...", stdout);
			break;
		}
		if (column > INDENT && column + 1 + (int)word > width) {
			lines++;
			printf("\n%*s", INDENT, "");
			column = INDENT;
		} else if (column > INDENT) {
			putchar(' ');
			column++;
		}
		fwrite(text, 1, word, stdout);
		column += (int)word;
		text += word + strspn(text + word, " ");
	}
	putchar('\n');
	return lines;
}

/* What each objective would have cost; nothing before the shadows can tell. */
static void print_prices(const struct explained *x)
{
	static const struct table_column columns[] = {
		{ .name = "late_at_most", .title = "LATE AT MOST", .is_right = true },
		{ .name = "dollars_an_hour", .title = "AN HOUR", .is_right = true },
		{ .name = "dollars_a_day", .title = "A DAY", .is_right = true },
		{ .name = "gpus", .is_right = true },
		{ .name = "late_ppm", .title = "LATE", .is_right = true },
		{ .name = "is", .title = "" },
	};
	const struct pool_spec *pool = &x->fleet->pools[x->pool];
	struct table *t = table_new(columns, sizeof columns / sizeof *columns);
	bool has_any = false;

	for (size_t i = 0; i < x->plan->price_count; i++) {
		const struct objective_price *p = &x->plan->prices[i];
		const bool is_kept = p->rule != ABSENT, has_dollars = is_kept && !pool->is_unpriced;
		const double an_hour = (double)p->dollars_per_hour / 1e6;

		has_any |= is_kept;
		table_share(t, (double)p->late_ppm / 1e6);
		has_dollars ? table_dollars(t, an_hour) : table_absent(t);
		has_dollars ? table_dollars(t, an_hour * 24) : table_absent(t);
		is_kept ? table_decimal(t, (double)p->gpu_milli / 1000, 1) : table_absent(t);
		is_kept ? table_share(t, (double)p->share_ppm / 1e6) : table_absent(t);
		table_text(t, !pool->violation_cost && p->late_ppm == pool->objective_late_ppm ? "yours"
			      : is_kept							       ? ""
											       : "none could");
	}
	if (has_any) {
		puts("\nWhat each objective would have cost, by the shadows on this record:");
		table_print(t, TABLE_PLAIN, stdout);
	}
	table_free(t);
}

static void print_text(const struct explained *x, const char *policy, bool is_full, struct arena *a)
{
	CLEANUP(buf_release) struct buf time = { 0 };
	struct terminal t = terminal_of(stdout);
	struct explanation e = explain_decision(x, a);
	int width = t.width > INDENT + NARROWEST ? t.width : INDENT + NARROWEST;
	millis offset = x->utc_offset < 0 ? -x->utc_offset : x->utc_offset;
	bool is_ours = !strcmp(policy, "preheat");
	int left = 0;

	explain_time(x->now, x->utc_offset, &time);
	printf("%s%s, %s (UTC%c%02d:%02d), tick %lld%s%s%s\n%s", terminal_style(&t, STYLE_STRONG),
	       x->fleet->pools[x->pool].name, time.text, x->utc_offset < 0 ? '-' : '+', (int)(offset / HOUR),
	       (int)(offset / MINUTE % 60), (long long)x->tick, is_ours ? "" : ", decided by ", is_ours ? "" : policy,
	       terminal_style(&t, STYLE_PLAIN), is_full ? "\n" : "");
	for (size_t i = 0; i < e.count; i++) {
		const struct brief_part *part = is_full ? &all_of_it : brief_of(x, e.parts[i].title);
		const char *said = e.parts[i].text;

		if (!part)
			continue;
		printf("%s%-*s%s", terminal_style(&t, STYLE_STRONG), INDENT, e.parts[i].title,
		       terminal_style(&t, STYLE_PLAIN));
		int most = is_full ? INT_MAX : part->lines + left;
		left = most - print_wrapped(said, end_of(said, part->sentences), width, most);
	}
	if (is_full && !explain_has_deadlines(x))
		print_prices(x);
	else if (!is_full)
		printf("%-*sexpectations, the rule, the price of each objective: --full\n", INDENT, "More");
}

static void add_value(struct table *t, const struct field_info *f, int64_t value, millis utc_offset)
{
	CLEANUP(buf_release) struct buf shown = { 0 }, raw = { 0 };
	bool is_time = !strcmp(f->unit, "time");

	if (value == ABSENT || (is_time && !value)) {
		table_absent(t);
		return;
	}
	explain_value(f, value, utc_offset, &shown);
	if (is_time)
		explain_time_rfc3339(value, &raw);
	else if (strncmp(f->unit, "enum:", 5) != 0)
		buf_printf(&raw, "%lld", (long long)value);
	table_value(t, shown.text, raw.text ? raw.text : shown.text);
}

struct fields {
	const struct explained *explained;
	struct table *table;
};

static void add_fields(const struct fields *x, const char *of, const struct record_info *info, const void *record)
{
	const struct pool_spec *pool = &x->explained->fleet->pools[x->explained->pool];
	const int64_t *values = record;

	for (size_t i = 0; i < info->count; i++) {
		const struct field_info *f = &info->fields[i];

		table_text(x->table, of);
		table_text(x->table, f->name);
		add_value(x->table, f, explain_known(pool, f, values[i]), x->explained->utc_offset);
		table_text(x->table, f->unit);
		table_text(x->table, f->help);
	}
}

/* Every field of the decision by name, as rows. */
static void print_fields(const struct explained *x, enum table_format format)
{
	static const struct table_column columns[] = {
		{ .name = "of" }, { .name = "field" }, { .name = "value" }, { .name = "unit" }, { .name = "meaning" },
	};
	const struct pool_spec *pool = &x->fleet->pools[x->pool];
	struct fields f = { x, table_new(columns, sizeof columns / sizeof *columns) };

	add_fields(&f, pool->name, &pool_decision_info, &x->plan->decision);
	for (size_t i = 0; i < x->plan->group_count && i < pool->group_count; i++)
		add_fields(&f, x->fleet->groups[pool->groups[i]].name, &group_decision_info, &x->plan->groups[i]);
	for (size_t i = 0; i < x->plan->price_count; i++)
		add_fields(&f, objective_price_info.name, &objective_price_info, &x->plan->prices[i]);
	table_print(f.table, format, stdout);
	table_free(f.table);
}

/* Where the pool stands in the manifest of the tick. */
static bool find_place(struct history_args *q, const struct history_hit *hit, size_t *place, struct error *e)
{
	struct history_stretch s;
	size_t count;

	if (!history_stretch_at(q->history, hit->tick, &q->arena, &s, e))
		return false;
	for (*place = 0; *place < s.pool_count; ++*place)
		if (s.pools[*place] == hit->pool)
			return true;
	return error_set(e, ERROR_NOT_FOUND, "%s: pool %s was not in the manifest at tick %lld",
			 history_path(q->history), history_pools(q->history, &count)[hit->pool].name,
			 (long long)hit->tick);
}

static bool print_one(struct asked *a, const struct history_hit *hit, bool is_first, struct error *e)
{
	struct history_args *q = &a->args;
	struct manifest m;
	struct tick_record r;
	const char *policy;

	size_t place;

	if (!history_read(q->history, hit->tick, hit->pool, &r, e) || !find_place(q, hit, &place, e) ||
	    !history_args_manifest(q->history, hit->tick, &q->arena, &m, e) ||
	    !history_fact(q->history, "policy", &q->arena, &policy, e))
		return false;
	if (place >= m.fleet.pool_count || r.plan.group_count != m.fleet.pools[place].group_count)
		return error_set(e, ERROR_INVALID, "%s: damaged: its manifest is not that of its decisions",
				 history_path(q->history));
	bool is_local = !print_is_for_programs(a->output);
	struct engine_moves_told moves;
	if (!engine_move_around(q->history, &(struct pool_then){ &m.fleet, place, r.now }, &q->arena, &moves, e))
		return false;
	struct explained x = { .fleet = &m.fleet,
			       .pool = place,
			       .tick = hit->tick,
			       .now = r.now,
			       .plan = &r.plan,
			       .utc_offset = is_local ? history_args_offset(q, r.now) : 0,
			       .moves = moves.items,
			       .move_count = moves.count,
			       .share_rule = moves.choice.why,
			       .share_rule_since = moves.choice.since,
			       .waits_for = moves.waits_for };
	if (!strcmp(a->output, "csv")) {
		print_fields(&x, TABLE_CSV);
	} else if (print_is_for_programs(a->output)) {
		CLEANUP(print_tree_release) struct printed_tree answer = { 0 };

		explain_json(&x, &r.snapshot, &answer.json);
		fputs(is_first || strcmp(a->output, "yaml") != 0 ? "" : "---\n", stdout);
		print_tree(&answer, a->output);
	} else {
		fputs(is_first ? "" : "\n", stdout);
		print_text(&x, policy, a->is_full || !strcmp(a->output, "wide"), &q->arena);
		if (!strcmp(a->output, "wide")) {
			putchar('\n');
			print_fields(&x, TABLE_WIDE);
		}
	}
	return true;
}

/* Before the first tick that is there: nothing yet, or nothing any more. */
static bool too_early(struct history_args *q, struct error *e)
{
	struct history_hour *hours;
	size_t count;

	if (!history_hours(q->history, ANY, &q->arena, &hours, &count, e))
		return false;
	if (!count)
		return error_set(e, ERROR_NOT_FOUND, "%s: nothing was decided yet at that time; the first tick is %lld",
				 history_path(q->history), (long long)q->span.first_tick);
	return error_set(e, ERROR_NOT_FOUND,
			 "%s: that decision was dropped (history --retain); the first tick kept is %lld, and 'history "
			 "--hours' has sums per hour of those before",
			 history_path(q->history), (long long)q->span.first_tick);
}

/* The last decision is in force after it; what came since, or will, this record does not know. */
static void tell_of_end(const struct history_args *q, const char *asked)
{
	CLEANUP(buf_release) struct buf end = { 0 };

	history_args_print_time(q, q->span.to, false, &end);
	fprintf(stderr, "Note: --at %s is after the end of this record; its last decision is of %s%s.\n", asked,
		end.text, q->is_utc ? " UTC" : "");
}

static bool given_tick(struct asked *a, int64_t *tick, struct error *e)
{
	struct history_args *q = &a->args;
	millis at;

	*tick = a->tick;
	if (!a->at)
		return a->tick >= q->span.first_tick || too_early(q, e);
	if (!history_args_time(q, "at", a->at, &at, e))
		return false;
	if (at < q->span.from)
		return too_early(q, e);
	if (at / SECOND > q->span.to / SECOND)
		tell_of_end(q, a->at);
	if (at % SECOND == 0) /* times are printed without their milliseconds, and may be given as printed */
		at += SECOND - 1;
	return history_tick_at(q->history, at, tick, e);
}

/* The newest or largest that asked for something; where none ever did, the newest. */
static bool find_one(struct asked *a, struct history_hit **hits, size_t *count, struct error *e)
{
	struct history_args *q = &a->args;
	struct history_filter f = { .pool = q->pool_index,
				    .from = q->span.first_tick,
				    .to = q->span.last_tick,
				    .limit = ANY,
				    .changed_only = true,
				    .largest_first = a->is_largest,
				    .most = 1 };

	if (!history_find(q->history, &f, &q->arena, hits, count, e))
		return false;
	if (*count)
		return true;
	f.changed_only = f.largest_first = false;
	return history_find(q->history, &f, &q->arena, hits, count, e);
}

/* A moment is explained for every pool, unless one is named. */
static bool explain_moment(struct asked *a, struct error *e)
{
	struct history_args *q = &a->args;
	struct history_hit hit = { 0 };
	struct history_stretch s;

	if (!given_tick(a, &hit.tick, e) || !history_stretch_at(q->history, hit.tick, &q->arena, &s, e))
		return false;
	if (q->pool_index != ANY) {
		hit.pool = (size_t)q->pool_index;
		return print_one(a, &hit, true, e);
	}
	for (size_t i = 0; i < s.pool_count; i++) {
		hit.pool = s.pools[i];
		if (!print_one(a, &hit, !i, e))
			return false;
	}
	return true;
}

static bool explain(struct asked *a, struct error *e)
{
	struct history_hit *hits;
	size_t count;

	if ((a->at != NULL) + (a->tick >= 0) + a->is_largest > 1)
		return error_set(e, ERROR_INVALID,
				 "--at, --tick and --largest each choose a decision; give one of them");
	if (!history_args_open(&a->args, e))
		return false;
	if (a->at || a->tick >= 0)
		return explain_moment(a, e);
	return find_one(a, &hits, &count, e) && print_one(a, &hits[0], true, e);
}

static int run(int argc, char **argv)
{
	struct asked a = { .args = HISTORY_ARGS_DEFAULTS, .output = "table", .tick = -1 };
	const struct option_row rows[] = {
		HISTORY_ARGS_OPTIONS(&a.args),
		{ "at", 0, OPTION_TEXT, "TIME", "the decision in force at this time; -2h counts from the end", &a.at,
		  NULL },
		{ "tick", 0, OPTION_COUNT, "N", "the decision of this tick (default: the last that changed capacity)",
		  &a.tick, NULL },
		{ "largest", 0, OPTION_FLAG, NULL, "the decision with the largest change; of equal ones the growth",
		  &a.is_largest, NULL },
		{ "full", 0, OPTION_FLAG, NULL, "all of it, with the rule and the price of each objective", &a.is_full,
		  NULL },
		PRINT_OPTION(&a.output),
	};
	struct error e;
	int rest, code;

	if (!command_options(&command_explain, argc, argv, rows, sizeof rows / sizeof *rows, &rest, &code))
		return code;
	bool ok = history_args_are_options(argv[rest], &e) && explain(&a, &e);
	return history_args_finish(&a.args, &command_explain, ok, &e);
}

const struct command command_explain = {
	.name = "explain",
	.usage = "explain [--db FILE] [--pool POOL] [--at TIME | --tick N | --largest] [--full]",
	.summary = "Explain one decision in sentences (default: the last that changed capacity)",
	.examples = "  preheat explain --db out/history.db --largest\n"
		    "  preheat explain --at 3:12 --pool chat              also 'yesterday 3:12', '2024-05-10 14:32'\n"
		    "  preheat explain --tick 4312 -o json\n",
	.notes = "-o table prints sentences, ten lines of them without --full; -o wide also every field of the "
		 "decision; "
		 "csv has\nthe fields as rows, json and yaml have what was seen beside them, with units.\n",
	.run = run,
};
