#include "controller/commands/status_report.h"

#include "base/table.h"
#include "base/terminal.h"
#include "controller/commands/command.h"
#include "controller/commands/incidents.h"
#include "controller/web/alternatives.h"
#include "controller/web/recommendations.h"
#include "state/attainment.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static const struct table_column late_columns[] = {
	{ .name = "pool" },
	{ .name = "may_be", .title = "ALLOWED", .is_right = true },
	{ .name = "today", .is_right = true },
	{ .name = "week", .title = "7 DAYS", .is_right = true },
	{ .name = "month", .title = "30 DAYS", .is_right = true },
	{ .name = "left", .title = "BUDGET LEFT", .is_right = true },
};
static const struct table_column cost_columns[] = {
	{ .name = "pool" },
	{ .name = "today", .title = "SPENT TODAY", .is_right = true },
	{ .name = "week", .title = "7 DAYS", .is_right = true },
	{ .name = "week_trend", .title = "TREND", .is_right = true },
	{ .name = "month", .title = "30 DAYS", .is_right = true },
	{ .name = "month_trend", .title = "TREND", .is_right = true },
};

enum { DAYS_SHOWN = 7, DAY_COLUMNS = 1 + DAYS_SHOWN };

struct pool_report {
	const struct pool_spec *spec;
	struct attainment_report is;
	bool is_priced;
};

enum { LATE_COLUMNS = sizeof late_columns / sizeof *late_columns };
enum { COST_COLUMNS = sizeof cost_columns / sizeof *cost_columns, INCIDENTS_SHOWN = 5 };

static void add_share(struct table *t, const struct attainment *a)
{
	CLEANUP(buf_release) struct buf text = { 0 };

	if (a->share_ppm == ABSENT) {
		table_absent(t);
		return;
	}
	buf_printf(&text, "%s%s", human_share((double)a->share_ppm / 1e6).text,
		   a->budget_left_ppm == ABSENT ? ""
		   : attainment_is_met(a)	? " met"
						: " missed");
	table_text(t, text.text);
	if (!attainment_is_met(a))
		table_style(t, STYLE_BAD);
}

static void add_late(struct table *t, const struct pool_report *p)
{
	const struct attainment *month = &p->is.window[ATTAINMENT_MONTH];
	CLEANUP(buf_release) struct buf left = { 0 };

	table_text(t, p->spec->name);
	if (month->budget_left == ABSENT)
		table_absent(t);
	else
		table_text(t, human_share((double)p->spec->objective_late_ppm / 1e6).text);
	for (size_t i = 0; i < ATTAINMENT_WINDOWS; i++)
		add_share(t, &p->is.window[i]);
	if (month->budget_left == ABSENT) {
		table_absent(t);
		return;
	}
	buf_printf(&left, "%s%s", human_count(llabs(month->budget_left)).text,
		   month->budget_left < 0 ? " over" : " requests");
	table_text(t, left.text);
}

/* GPU hours where there is no price: a price that nobody gave is no money. */
static void add_spent(struct table *t, const struct pool_report *p, int64_t micro, int64_t gpu_ms)
{
	CLEANUP(buf_release) struct buf hours = { 0 };

	if (micro == ABSENT) {
		table_absent(t);
	} else if (p->is_priced) {
		table_text(t, human_dollars((double)micro / 1e6).text);
	} else {
		buf_printf(&hours, "%s h", human_decimal((double)gpu_ms / HOUR, 0).text);
		table_text(t, hours.text);
	}
}

static void add_trend(struct table *t, int64_t now, int64_t before)
{
	char text[32];

	if (now == ABSENT || before == ABSENT || before <= 0) {
		table_absent(t);
		return;
	}
	snprintf(text, sizeof text, "%+.0f %%", 100 * ((double)now - (double)before) / (double)before);
	table_text(t, text);
}

static void add_cost(struct table *t, const struct pool_report *p)
{
	table_text(t, p->spec->name);
	for (size_t i = 0; i < ATTAINMENT_WINDOWS; i++) {
		add_spent(t, p, p->is.window[i].micro_dollars, p->is.window[i].gpu_ms);
		if (i != ATTAINMENT_TODAY)
			add_trend(t, p->is.window[i].micro_dollars, p->is.dollars_before[i]);
	}
}

static void print_pools(const struct pool_report *pools, size_t count)
{
	struct table *late = table_new(late_columns, LATE_COLUMNS), *cost = table_new(cost_columns, COST_COLUMNS);

	for (size_t i = 0; i < count; i++) {
		add_late(late, &pools[i]);
		add_cost(cost, &pools[i]);
	}
	table_print(late, table_format_of("table"), stdout);
	puts("");
	table_print(cost, table_format_of("table"), stdout);
	table_free(late);
	table_free(cost);
}

/* "Sun 19": the days are the same for all pools. */
static void name_days(const struct history_args *q, const struct attainment_day *days, char names[][16],
		      struct table_column *columns)
{
	for (int i = 0; i < DAYS_SHOWN; i++) {
		millis noon = days[i].from + DAY / 2;
		time_t seconds = (time_t)((noon + history_args_offset(q, noon)) / SECOND);
		struct tm tm;

		gmtime_r(&seconds, &tm);
		strftime(names[i], sizeof names[i], "%a %d", &tm);
		columns[1 + i] = (struct table_column){ .name = names[i], .title = names[i], .is_right = true };
	}
}

static void add_late_day(struct table *t, const struct attainment_day *d)
{
	if (d->share_ppm == ABSENT)
		table_absent(t);
	else
		table_share(t, (double)d->share_ppm / 1e6);
	if (d->is_over)
		table_style(t, STYLE_BAD);
}

static void print_days(const struct history_args *q, const struct pool_report *pools, size_t count)
{
	enum { FIRST = ATTAINMENT_DAYS - DAYS_SHOWN };
	struct table_column late_days[DAY_COLUMNS] = { { .name = "late", .title = "LATE ON" } },
			    cost_days[DAY_COLUMNS] = { { .name = "spent", .title = "SPENT ON" } };
	char names[DAYS_SHOWN][16];

	name_days(q, pools[0].is.days + FIRST, names, late_days);
	memcpy(cost_days + 1, late_days + 1, sizeof late_days - sizeof *late_days);
	struct table *late = table_new(late_days, DAY_COLUMNS), *cost = table_new(cost_days, DAY_COLUMNS);
	for (size_t i = 0; i < count; i++) {
		table_text(late, pools[i].spec->name);
		table_text(cost, pools[i].spec->name);
		for (int day = FIRST; day < ATTAINMENT_DAYS; day++) {
			add_late_day(late, &pools[i].is.days[day]);
			add_spent(cost, &pools[i], pools[i].is.days[day].micro_dollars, pools[i].is.days[day].gpu_ms);
		}
	}
	puts("");
	table_print(late, table_format_of("table"), stdout);
	puts("");
	table_print(cost, table_format_of("table"), stdout);
	table_free(late);
	table_free(cost);
}

/* A window that is longer than the record says so. */
static void print_record(const struct history_args *q)
{
	millis length = q->span.to - q->span.from;

	if (length < 30 * DAY)
		printf("\nThe record is %s long; what is older is in none of these.\n",
		       human_duration(length / MINUTE * MINUTE).text);
}

static void print_unpriced(const struct pool_report *pools, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (!pools[i].is_priced)
			printf("\n%s: no price is given, so GPU hours are told; give pricePerHour to its nodeGroups.\n",
			       pools[i].spec->name);
}

static bool read_pools(struct history_args *q, const char *namespace, const struct manifest *m,
		       struct pool_report *pools, size_t *count, struct error *e)
{
	struct history_stretch stretch;
	millis offset = history_args_offset(q, q->span.to);
	millis midnight = q->span.to - (q->span.to + offset) % DAY;

	*count = 0;
	if (!history_stretch_at(q->history, q->span.last_tick, &q->arena, &stretch, e))
		return false;
	for (size_t i = 0; i < stretch.pool_count; i++) {
		const struct pool_spec *spec = &m->fleet.pools[i];

		if ((namespace && strcmp(namespace, spec->namespace) != 0) ||
		    (q->pool_index != ANY && (size_t)q->pool_index != stretch.pools[i]))
			continue;
		pools[*count].spec = spec;
		pools[*count].is_priced = !m->fleet.pools[i].is_unpriced;
		const struct attainment_question ask = { stretch.pools[i], spec, midnight, q->span.to };
		if (!attainment_report(q->history, &ask, &pools[*count].is, e))
			return false;
		++*count;
	}
	return true;
}

static bool print_incidents(struct history_args *q, struct error *e)
{
	struct incident_question ask = { .pool = q->pool_index, .last = q->span.last_tick };
	struct incident_found *found;
	size_t count;

	if (!history_tick_at(q->history, q->span.to - 7 * DAY, &ask.first, e) ||
	    !incident_search(q->history, &ask, &q->arena, &found, &count, e))
		return false;
	size_t shown = count < INCIDENTS_SHOWN ? count : INCIDENTS_SHOWN;
	if (count)
		printf("\n%zu incident%s in 7 days%s\n", count, count == 1 ? "" : "s",
		       shown < count ? "; the last 5:" : ":");
	else
		puts("");
	incidents_print(q, found + (count - shown), shown, "table");
	return true;
}

static const struct table_column change_columns[] = {
	{ .name = "pool" },
	{ .name = "change" },
	{ .name = "saves", .title = "SAVES/DAY", .is_right = true },
	{ .name = "late", .is_right = true },
	{ .name = "late_with", .title = "WITH IT", .is_right = true },
	{ .name = "needs", .is_wide = true },
};

static void add_change(struct table *t, const struct recommendation *r)
{
	table_text(t, r->pool);
	table_text(t, r->change);
	table_spent(t, (double)(r->saves == ABSENT ? r->saves_gpu_hours : r->saves) / 1e6, r->saves == ABSENT);
	table_share(t, (double)r->late_ppm / 1e6);
	table_share(t, (double)r->late_with_ppm / 1e6);
	r->needs ? table_text(t, r->needs) : table_absent(t);
}

static void print_changes(const struct history_args *q, const struct daily_shown *shown)
{
	const struct recommendations *found = shown->answer;
	CLEANUP(buf_release) struct buf at = { 0 };
	struct table *t = table_new(change_columns, sizeof change_columns / sizeof *change_columns);

	history_args_print_time(q, shown->tried_at, false, &at);
	if (found->count)
		printf("\nTo change, by the model on %s recorded days, tried at %s:\n",
		       human_count((found->items[0].days_milli + 500) / 1000).text, at.text);
	else
		printf("\nTo change, by what was tried at %s: nothing pays.\n", at.text);
	for (size_t i = 0; i < found->count; i++)
		add_change(t, &found->items[i]);
	if (found->count)
		table_print(t, table_format_of("table"), stdout);
	for (size_t i = 0; i < found->count; i++)
		if (found->items[i].why)
			printf("%s saves, as %s.\n", found->items[i].change, found->items[i].why);
	for (size_t i = 0; i < found->count; i++)
		if (found->items[i].needs)
			printf("%s needs %s.\n", found->items[i].change, found->items[i].needs);
	table_free(t);
}

static const struct table_column fleet_columns[] = {
	{ .name = "fleet", .title = "SAME TRAFFIC, 30 DAYS" },
	{ .name = "dollars", .title = "COST", .is_right = true },
	{ .name = "saved", .is_right = true },
	{ .name = "of", .title = "OF IT", .is_right = true, .is_wide = true },
	{ .name = "late", .is_right = true },
	{ .name = "setting" },
};

/* What the operator reads for the API's words. */
static const struct {
	const char *fleet, *shown;
} fleet_names[] = { { "recorded", "as it was" },
		    { "autoscaler", "HPA, or your own" },
		    { "static", "static peak" },
		    { "hot-only", "without standby" },
		    { "preheat", "Preheat, if it acted" } };

static const char *shown_fleet(const char *fleet)
{
	for (size_t i = 0; i < sizeof fleet_names / sizeof *fleet_names; i++)
		if (!strcmp(fleet_names[i].fleet, fleet))
			return fleet_names[i].shown;
	return fleet;
}

static void add_fleet(struct table *t, const struct alternative_fleet *f)
{
	const struct alternative_sum *s = &f->month;
	double saved = (double)(s->micro_dollars - s->recorded) / 1e6;
	CLEANUP(buf_release) struct buf name = { 0 };

	buf_printf(&name, "%s: %s", f->pool, shown_fleet(f->fleet));
	table_text(t, name.text);
	s->micro_dollars > 0 ? table_dollars(t, (double)s->micro_dollars / 1e6) : table_absent(t);
	if (f->setting && s->micro_dollars > 0) {
		table_dollars(t, saved);
		table_share(t, saved * 1e6 / (double)s->micro_dollars);
	} else {
		table_absent(t);
		table_absent(t);
	}
	if (s->late == ABSENT || s->requests <= 0)
		table_absent(t);
	else
		table_share(t, (double)s->late / (double)s->requests);
	table_text(t, f->setting ? f->setting : f->model_fits ? "-" : "the model does not fit it");
}

static void print_fleets(const struct history_args *q, const struct daily_shown *shown, const char *namespace)
{
	const struct alternatives *found = shown->answer;
	const struct history_pool *pools = history_pools(q->history, &(size_t){ 0 });
	const struct history_pool *asked = q->pool_index == ANY ? NULL : &pools[q->pool_index];
	struct table *t = table_new(fleet_columns, sizeof fleet_columns / sizeof *fleet_columns);

	for (size_t i = 0; i < found->fleet_count; i++) {
		const struct alternative_fleet *f = &found->fleets[i];
		if ((!namespace || !strcmp(namespace, f->namespace)) &&
		    (!asked || (!strcmp(asked->name, f->pool) && !strcmp(asked->namespace, f->namespace))))
			add_fleet(t, f);
	}
	if (table_rows(t)) {
		puts("");
		table_print(t, table_format_of("table"), stdout);
	}
	table_free(t);
}

/* What the controller worked out in the background, where one writes this history. */
static bool read_kept(struct history_args *q, const struct daily_question *question, struct daily_shown *out)
{
	struct error e;

	if (!daily_read(history_path(q->history), question, &q->arena, out, &e))
		fprintf(stderr, "Note: %s\n", e.message);
	return out->answer != NULL;
}

static void print_hint(const struct history_args *q, const char *words, const char *verb)
{
	printf("%s: %s %s", words, command_program(), verb);
	if (strcmp(q->db, "history.db") != 0)
		printf(" --db %s", history_path(q->history));
	puts("");
}

static void print_alternatives(struct history_args *q, const char *namespace)
{
	struct daily_shown kept;

	if (read_kept(q, &alternatives_question, &kept))
		print_fleets(q, &kept, namespace);
	else
		print_hint(q, "\nWhat another autoscaler would have cost", "cost --alternatives");
}

static void print_advice(struct history_args *q)
{
	struct daily_shown kept;

	if (read_kept(q, &recommendations_question, &kept))
		print_changes(q, &kept);
	print_hint(q, kept.answer ? "To try again" : "What other settings would save", "advise");
}

bool status_report_print(struct history_args *q, const char *namespace, struct error *e)
{
	struct manifest m;
	size_t count;

	if (!history_args_open(q, e) || !history_args_manifest(q->history, q->span.last_tick, &q->arena, &m, e))
		return false;
	struct pool_report *pools = arena_array(&q->arena, struct pool_report, m.fleet.pool_count + 1);
	if (!read_pools(q, namespace, &m, pools, &count, e))
		return false;
	if (!count)
		return true;
	puts("");
	print_pools(pools, count);
	print_days(q, pools, count);
	print_unpriced(pools, count);
	print_record(q);
	print_alternatives(q, namespace);
	if (!print_incidents(q, e))
		return false;
	print_advice(q);
	return true;
}
