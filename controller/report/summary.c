#include "controller/report/summary.h"
#include "base/terminal.h"
#include "base/table.h"
#include "controller/report/collect.h"

#include <string.h>

enum { CHARTED_POOLS = 4, CAPACITY_ROWS = 8, LATE_ROWS = 3 };

static const struct table_column columns[] = {
	{ .name = "pool" },
	{ .name = "part" },
	{ .name = "objective" },
	{ .name = "late", .is_right = true },
	{ .name = "met" },
	{ .name = "requests", .is_right = true },
	{ .name = "wait_p50", .title = "WAIT P50", .is_right = true },
	{ .name = "wait_p99", .title = "WAIT P99", .is_right = true },
	{ .name = "gpu_hours", .title = "GPU HOURS", .is_right = true },
	{ .name = "dollars", .is_right = true },
	{ .name = "starts", .is_right = true },
	{ .name = "removals", .is_right = true, .is_wide = true },
	{ .name = "gave_up", .title = "GAVE UP", .is_right = true, .is_wide = true },
	{ .name = "lost", .is_right = true, .is_wide = true },
	{ .name = "refused", .is_right = true, .is_wide = true },
	{ .name = "standby_gpu_hours", .title = "STANDBY GPU HOURS", .is_right = true, .is_wide = true },
};

static void put_objective(struct table *t, const struct pool_spec *spec)
{
	char text[96];

	if (spec->violation_cost > 0)
		snprintf(text, sizeof text, "$%.4g a late one", (double)spec->violation_cost / 1e6);
	else
		snprintf(text, sizeof text, "%.6g %% in %s", 100 - (double)spec->objective_late_ppm / 1e4,
			 human_duration(spec->objective_wait).text);
	table_text(t, text);
}

static void put_verdict(struct table *t, const struct pool_spec *spec, const struct score *s)
{
	bool is_met = score_late_share(s) * 1e6 <= (double)spec->objective_late_ppm;

	if (spec->violation_cost > 0 || !s->requests) {
		table_absent(t);
		return;
	}
	table_text(t, is_met ? "yes" : "NO");
	table_style(t, is_met ? STYLE_GOOD : STYLE_BAD);
}

static void put_wait(struct table *t, const struct score *s, millis wait)
{
	if (s->started)
		table_text(t, human_duration(wait).text);
	else
		table_absent(t);
}

static void put_score(struct table *t, const struct pool_spec *spec, const char *part, const struct score *s)
{
	table_text(t, spec->name);
	table_text(t, part);
	put_objective(t, spec);
	table_text(t, human_share(score_late_share(s)).text);
	put_verdict(t, spec, s);
	table_count(t, s->requests);
	put_wait(t, s, s->wait_p50);
	put_wait(t, s, s->wait_p99);
	table_decimal(t, score_gpu_hours(s), 1);
	table_text(t, human_dollars(score_dollars(s)).text);
	table_count(t, s->starts);
	table_count(t, s->removals);
	table_count(t, s->gave_up);
	table_count(t, s->lost);
	table_count(t, s->refused);
	table_decimal(t, (double)s->standby_gpu_ms / HOUR, 1);
}

/* The longest waits may be of those that are in no quantile yet. */
static void print_waiting(const struct report *r, FILE *out)
{
	for (size_t i = 0; i < r->run.fleet->pool_count; i++) {
		int64_t waiting = r->pools[i].score.whole.waiting;

		if (waiting)
			fprintf(out, "%s: %s requests still waited at the end; WAIT is of those that started\n",
				r->run.fleet->pools[i].name, human_count(waiting).text);
	}
}

static void print_table(const struct report *r, bool is_wide, FILE *out)
{
	struct table *t = table_new(columns, sizeof columns / sizeof *columns);

	for (size_t i = 0; i < r->run.fleet->pool_count; i++) {
		const struct pool_spec *spec = &r->run.fleet->pools[i];

		if (r->run.warm_up > 0)
			put_score(t, spec, "scored", &r->pools[i].score.scored);
		put_score(t, spec, "whole", &r->pools[i].score.whole);
	}
	table_print(t, is_wide ? TABLE_WIDE : TABLE_PLAIN, out);
	if (r->run.warm_up > 0)
		fprintf(out, "scored: without the first %s\n", human_duration(r->run.warm_up).text);
	table_free(t);
	print_waiting(r, out);
}

static millis length_of(const struct report *r)
{
	return r->ticks * r->run.interval;
}

static void print_capacity(const struct report *r, size_t pool, const struct terminal *t, FILE *out)
{
	CLEANUP(arena_release) struct arena a = { 0 };
	double *demand = arena_array(&a, double, r->point_count), *hot = arena_array(&a, double, r->point_count);
	char title[96];

	for (size_t i = 0; i < r->point_count; i++) {
		const struct point *p = &r->pools[pool].points[i];

		demand[i] = (double)p->demand_milli / 1000 / (double)p->ticks;
		hot[i] = (double)p->ready / (double)p->ticks;
	}
	snprintf(title, sizeof title, "%.80s", r->run.fleet->pools[pool].name);
	chart_print(&(struct chart){ .title = title,
				     .unit = "replicas",
				     .area = { "demand", demand, CHART_MEAN },
				     .line = { "hot capacity", hot, CHART_MEAN },
				     .points = r->point_count,
				     .length = length_of(r),
				     .height = CAPACITY_ROWS },
		    t, out);
}

static void print_late(const struct report *r, size_t pool, const struct terminal *t, FILE *out)
{
	CLEANUP(arena_release) struct arena a = { 0 };
	double *late = arena_array(&a, double, r->point_count);
	char title[120], unit[64];
	int64_t sum = 0;

	for (size_t i = 0; i < r->point_count; i++) {
		late[i] = (double)r->pools[pool].points[i].late;
		sum += r->pools[pool].points[i].late;
	}
	if (!sum)
		return;
	snprintf(title, sizeof title, "%.80s late", r->run.fleet->pools[pool].name);
	snprintf(unit, sizeof unit, "most requests in %s", human_duration(r->ticks_a_point * r->run.interval).text);
	chart_print(&(struct chart){ .title = title,
				     .unit = unit,
				     .area = { "late", late, CHART_MAX },
				     .points = r->point_count,
				     .length = length_of(r),
				     .height = LATE_ROWS },
		    t, out);
}

void summary_print_next(const struct report *r, const char *folder, FILE *out)
{
	if (!folder) {
		fprintf(out, "Nothing was written; --out DIR keeps the decisions and a report with charts.\n");
		return;
	}
	fprintf(out, "Next:\n");
	if (strcmp(r->run.policy, "preheat") == 0)
		fprintf(out,
			"  preheat explain --db %s/history.db --largest   why the largest decision was made\n"
			"  preheat replay --db %s/history.db              decide all of it again\n",
			folder, folder);
	fprintf(out, "  %s/report.html   charts, in a browser\n", folder);
}

void summary_print(const struct report *r, bool is_wide, FILE *out)
{
	struct terminal t = terminal_of(out);
	size_t pools = r->run.fleet->pool_count;

	for (size_t i = 0; i < pools && i < CHARTED_POOLS; i++) {
		print_capacity(r, i, &t, out);
		print_late(r, i, &t, out);
		putc('\n', out);
	}
	if (pools > CHARTED_POOLS)
		fprintf(out, "Charts of %zu more pools are in the report.\n\n", pools - CHARTED_POOLS);
	if (r->is_stopped)
		fprintf(out, "Stopped early: %s of %s ticks.\n", human_count(r->ticks).text,
			human_count(r->ticks_planned).text);
	print_table(r, is_wide, out);
	putc('\n', out);
}
