/* preheat cost: what pools, classes and owners of work cost. */
#include "controller/commands/cost.h"

#include "base/terminal.h"
#include "base/quantity.h"
#include "base/table.h"
#include "controller/commands/print.h"
#include "controller/commands/command.h"
#include "controller/commands/cost_alternatives.h"
#include "controller/commands/cost_excess.h"
#include "controller/restore/restore.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The bill by the cost labels of pods. */

struct cost_label_query {
	struct history_args *args; /* open */
	struct cost_period *period;
	const char *output;
	int64_t label; /* enum cost_label, or ANY: by all of them together */
};

static int run(int argc, char **argv);

static int64_t hour_of_end(millis at)
{
	return (at - 1) / HOUR;
}

/* --- histories of before costs were kept: from the decisions --- */

struct folding {
	struct history_args *args;
	int64_t first_hour, last_hour;
	struct buf *found;	/* of struct cost_hour */
	int64_t busy_ppm[4096]; /* by index of history_pools() */
};

static void add_hour(struct buf *found, const struct cost_hour *hour)
{
	struct cost_hour *items = (void *)found->text;

	for (size_t i = found->len / sizeof *items; i-- > 0 && items[i].hour == hour->hour;)
		if (items[i].pool == hour->pool && items[i].class == hour->class) {
			cost_add(&items[i].sums, &hour->sums);
			return;
		}
	buf_append(found, hour, sizeof *hour);
}

static void fold_tick(struct folding *f, const struct cursor_tick *t)
{
	const struct fleet_spec *fleet = t->snapshot.fleet;

	for (size_t i = 0; i < fleet->pool_count; i++) {
		struct cost_hour hour = { hour_of_end(t->snapshot.now), t->pools[i], fleet->pools[i].class, { 0 } };
		const struct cost_tick tick = { &t->snapshot, i, t->plans[i], t->snapshot.interval, NULL };
		int64_t *busy = &f->busy_ppm[hour.pool % (sizeof f->busy_ppm / sizeof *f->busy_ppm)];

		if (t->damage[i].kind != ERROR_NONE)
			continue;
		cost_add_tick(&hour.sums, &tick, busy);
		add_hour(f->found, &hour);
	}
}

static bool fold_walk(struct folding *f, struct tick_cursor *w, int64_t last, struct error *e)
{
	struct cursor_tick t;

	do {
		if (!tick_cursor_next(w, &t, e))
			return false;
		int64_t hour = hour_of_end(t.snapshot.now);
		if (hour > f->last_hour)
			return true;
		if (hour >= f->first_hour)
			fold_tick(f, &t);
	} while (t.snapshot.tick < last);
	return true;
}

static bool fold(struct history_args *q, int64_t first_hour, int64_t last_hour, struct buf *found, struct error *e)
{
	struct folding f = { .args = q, .first_hour = first_hour, .last_hour = last_hour, .found = found };
	int64_t first;

	for (size_t i = 0; i < sizeof f.busy_ppm / sizeof *f.busy_ppm; i++)
		f.busy_ppm[i] = ABSENT;
	if (!history_tick_at(q->history, first_hour * HOUR, &first, e))
		return false;
	struct tick_cursor *w = tick_cursor_open(q->history, first, e);
	bool ok = w && fold_walk(&f, w, q->span.last_tick, e);
	tick_cursor_close(w);
	return ok;
}

/* --- the period --- */

static millis whole_hours(millis at)
{
	return (at + HOUR - 1) / HOUR * HOUR;
}

void cost_print_minute(const struct history_args *q, millis at, struct buf *out)
{
	size_t start = out->len;

	history_args_print_time(q, at, false, out);
	if (out->len - start > strlen(":00")) { /* whole hours need no seconds */
		out->len -= strlen(":00");
		out->text[out->len] = '\0';
	}
}

static void cost_period_text(const struct history_args *q, const struct cost_period *p, struct buf *out)
{
	cost_print_minute(q, p->from, out);
	buf_text(out, " to ");
	cost_print_minute(q, p->to, out);
}

static bool check_period(const struct history_args *q, struct cost_period *p, const struct costs *c, struct error *e)
{
	CLEANUP(buf_release) struct buf there = { 0 };
	const struct cost_period all = { .from = c->from, .to = whole_hours(c->to) };

	cost_period_text(q, &all, &there);
	if (p->from >= p->to || p->from >= all.to || p->to <= all.from)
		return error_set(e, ERROR_NOT_FOUND, "%s: nothing in this period; the history is of %s",
				 history_path(q->history), there.text);
	p->from = p->from > all.from ? p->from : all.from;
	p->to = p->to < all.to ? p->to : all.to;
	return true;
}

static bool read_period(const struct history_args *q, struct cost_period *p, const struct costs *c, struct error *e)
{
	millis from = c->from, to = c->to;

	if (p->last && (p->from_text || p->to_text))
		return error_set(e, ERROR_INVALID, "--last is a period of its own; give it without --from and --to");
	if (p->last)
		from = whole_hours(to) - p->last;
	if ((p->from_text && !history_args_time(q, "from", p->from_text, &from, e)) ||
	    (p->to_text && !history_args_time(q, "to", p->to_text, &to, e)))
		return false;
	if (from > to && p->from_text && p->to_text)
		return error_set(e, ERROR_INVALID, "--from %s is later than --to %s; swap them", p->from_text,
				 p->to_text);
	p->from = from / HOUR * HOUR;
	/* +5h counts from the end of the first tick. */
	p->to = whole_hours(p->to_text ? to - MINUTE : to);
	return check_period(q, p, c, e);
}

/* --- all --- */

static bool find_extent(struct history_args *q, struct costs *c, struct error *e)
{
	struct cost_hour *hours;
	size_t count;

	if (!history_cost_hours(q->history, (struct hour_range){ INT64_MIN, INT64_MAX }, &q->arena, &hours, &count, e))
		return false;
	c->from = hour_of_end(q->span.from) * HOUR;
	c->to = q->span.to;
	c->estimated_until = (hour_of_end(q->span.to) + 1) * HOUR;
	if (!count)
		return true;
	millis first = hours[0].hour * HOUR;
	c->estimated_until = first > c->from ? first : 0;
	c->from = first < c->from ? first : c->from;
	return true;
}

static bool find_dropped(struct history_args *q, const struct cost_period *p, struct costs *c, struct error *e)
{
	struct history_hour *hours;
	size_t count;

	if (!history_hours(q->history, q->pool_index, &q->arena, &hours, &count, e))
		return false;
	if (count && hours[0].hour * HOUR < c->from && p->from == c->from)
		c->dropped_until = c->from;
	return true;
}

static void keep_pool(const struct history_args *q, struct costs *c)
{
	size_t kept = 0;

	for (size_t i = 0; i < c->count; i++)
		if (q->pool_index == ANY || (size_t)q->pool_index == c->hours[i].pool)
			c->hours[kept++] = c->hours[i];
	c->count = kept;
}

static bool read_hours(struct history_args *q, const struct cost_period *p, struct costs *c, struct error *e)
{
	CLEANUP(buf_release) struct buf found = { 0 };
	int64_t first = p->from / HOUR, last = p->to / HOUR - 1, folded = c->estimated_until / HOUR - 1;
	struct cost_hour *hours;
	size_t count;

	if (p->from >= c->estimated_until)
		c->estimated_until = 0;
	if (!history_has_records(q->history)) {
		c->missing_until = c->estimated_until;
		c->estimated_until = 0;
	}
	if (c->estimated_until && !fold(q, first, last < folded ? last : folded, &found, e))
		return false;
	if (!history_cost_hours(q->history, (struct hour_range){ first, last }, &q->arena, &hours, &count, e))
		return false;
	buf_append(&found, hours, count * sizeof *hours);
	c->count = found.len / sizeof *hours;
	c->hours = arena_array(&q->arena, struct cost_hour, c->count + 1);
	if (found.len)
		memcpy(c->hours, found.text, found.len);
	keep_pool(q, c);
	if (c->missing_until && !count)
		return error_set(
			e, ERROR_CONFLICT,
			"%s: kept no costs in this period, and its decisions are of another version of preheat, "
			"which this one cannot read; ask the program that wrote it",
			history_path(q->history));
	return true;
}

static void find_unpriced(struct history_args *q, struct costs *c)
{
	const bool *is_unpriced = history_args_unpriced(q);

	for (size_t i = 0; i < c->count; i++)
		if (is_unpriced[c->hours[i].pool])
			memset(c->hours[i].sums.dollars, 0, sizeof c->hours[i].sums.dollars);
	c->is_unpriced = is_unpriced;
}

/* --- words --- */

bool costs_read(struct history_args *q, struct cost_period *p, struct costs *out, struct error *e)
{
	struct costs c = { 0 };
	CLEANUP(buf_release) struct buf period = { 0 };
	const char *run;

	if (!find_extent(q, &c, e) || !read_period(q, p, &c, e) || !read_hours(q, p, &c, e) ||
	    !find_dropped(q, p, &c, e))
		return false;
	if (!history_fact(q->history, "run", &q->arena, &run, e))
		return false;
	find_unpriced(q, &c);
	c.is_simulated = strncmp(run, "simulate", strlen("simulate")) == 0;
	cost_period_text(q, p, &period);
	c.period = arena_strdup(&q->arena, period.text, period.len);
	*out = c;
	return true;
}

static bool is_free(const struct costs *c, size_t pool)
{
	struct cost_sums sum = { 0 };

	for (size_t i = 0; i < c->count; i++)
		if (c->hours[i].pool == pool)
			cost_add(&sum, &c->hours[i].sums);
	return cost_billed_gpu_ms(&sum) > 0 && !cost_micro_dollars(&sum);
}

static void note(struct history_args *q, const char **notes, size_t *count, const char *fmt, ...) PRINTF(4, 5);
static void note(struct history_args *q, const char **notes, size_t *count, const char *fmt, ...)
{
	CLEANUP(buf_release) struct buf text = { 0 };
	va_list ap;

	va_start(ap, fmt);
	buf_vprintf(&text, fmt, ap);
	va_end(ap);
	if (*count < COST_NOTES)
		notes[(*count)++] = arena_strdup(&q->arena, text.text, text.len);
}

static const char *minute(struct history_args *q, millis at)
{
	CLEANUP(buf_release) struct buf text = { 0 };

	cost_print_minute(q, at, &text);
	return arena_strdup(&q->arena, text.text, text.len);
}

size_t costs_notes(struct history_args *q, const struct costs *c, const char *notes[COST_NOTES])
{
	size_t pool_count, count = 0;
	const struct history_pool *pools = history_pools(q->history, &pool_count);

	for (size_t i = 0; i < pool_count; i++)
		if (is_free(c, i))
			note(q, notes, &count,
			     "Pool %s: its node groups have no price (or pricePerHour 0), so it has GPU hours and no "
			     "dollars; give pricePerHour to its nodeGroups in the manifest.",
			     pools[i].name);
	if (c->estimated_until)
		note(q, notes, &count,
		     "Until %s this history kept no costs; they are worked out from its decisions (levels at the end "
		     "of "
		     "each tick). Labels, quotas and who held GPUs are missing there.",
		     minute(q, c->estimated_until));
	if (c->missing_until)
		note(q, notes, &count,
		     "Until %s this history kept no costs, and its decisions are of another version of preheat, which "
		     "this one cannot read; that time is missing.",
		     minute(q, c->missing_until));
	if (c->dropped_until)
		note(q, notes, &count,
		     "Ticks before %s were dropped before costs were kept; preheat history --hours has what is left of "
		     "them.",
		     minute(q, c->dropped_until));
	return count;
}

/* The same on standard error. */
static void costs_print_notes(struct history_args *q, const struct costs *c)
{
	const char *notes[COST_NOTES];
	size_t count = costs_notes(q, c, notes);

	for (size_t i = 0; i < count; i++)
		fprintf(stderr, "Note: %s\n", notes[i]);
}

/* Cells: dollars from micro-dollars; hours from milliseconds (of GPUs, or of time). */
static void cost_add_dollars(struct table *t, int64_t micro)
{
	CLEANUP(buf_release) struct buf raw = { 0 };

	fixed_format(micro, 6, &raw);
	table_value(t, human_dollars((double)micro / 1e6).text, raw.text);
}

/* GPU hours that cost nothing have no price. */
static void add_money(struct table *t, int64_t micro, bool is_priced)
{
	if (is_priced)
		cost_add_dollars(t, micro);
	else
		table_absent(t);
}

static void cost_add_hours(struct table *t, millis sum)
{
	CLEANUP(buf_release) struct buf raw = { 0 };

	fixed_format((int64_t)((__int128)sum * 1000000 / HOUR), 6, &raw);
	table_value(t, human_decimal((double)sum / HOUR, 1).text, raw.text);
}

/* "label" or "label=product". */
static bool cost_label_parse(const char *by, int64_t *label, struct error *e)
{
	static const char prefix[] = "label=";

	*label = ANY;
	if (!strcmp(by, "label"))
		return true;
	for (int i = 0; !strncmp(by, prefix, strlen(prefix)) && i < COST_LABEL_COUNT; i++)
		if (!strcmp(by + strlen(prefix), cost_label_name((enum cost_label)i))) {
			*label = i;
			return true;
		}
	return error_set(e, ERROR_INVALID,
			 "--by: found '%.60s'; allowed: pool, class, label, label=cost-center, label=product, "
			 "label=environment, label=workload-type (which labels of pods these are, costLabels in the "
			 "manifest says)",
			 by);
}

/* "(unlabelled)", "(no pod)", "(others)" where there is no value. */
static const char *cost_label_value(const struct cost_labels *l, enum cost_label label)
{
	switch (l->holder) {
	case COST_NO_POD:
		return "(no pod)";
	case COST_OTHERS:
		return "(others)";
	case COST_BY_PODS:
	case COST_HOLDER_COUNT:
		break;
	}
	return l->value[label][0] ? l->value[label] : "(unlabelled)";
}

static int compare(const struct cost_labels *a, const struct cost_labels *b, int64_t label)
{
	int order = (a->holder > b->holder) - (a->holder < b->holder);

	for (int i = 0; i < COST_LABEL_COUNT && !order; i++)
		if (label == ANY || label == i)
			order = strcmp(a->value[i], b->value[i]);
	return order;
}

/* One row per value: the first of its kind takes what the others have. */
static size_t merge(const struct cost_label_query *q, const struct costs *c, struct cost_label_hour *hours,
		    size_t count)
{
	size_t kept = 0;

	for (size_t i = 0; i < count; i++) {
		size_t k = 0;

		if (q->args->pool_index != ANY && (size_t)q->args->pool_index != hours[i].pool)
			continue;
		if (c->is_unpriced && c->is_unpriced[hours[i].pool])
			hours[i].dollars = 0;
		while (k < kept && compare(&hours[k].labels, &hours[i].labels, q->label) != 0)
			k++;
		if (k == kept) {
			hours[kept++] = hours[i];
			continue;
		}
		hours[k].gpu_ms += hours[i].gpu_ms;
		hours[k].dollars += hours[i].dollars;
	}
	return kept;
}

/* The dearest first; equal ones by name. */
static int by_dollars(const void *a, const void *b)
{
	const struct cost_label_hour *x = a, *y = b;
	int order = (x->dollars < y->dollars) - (x->dollars > y->dollars);

	return order ? order : compare(&x->labels, &y->labels, ANY);
}

static void print_rows(const struct cost_label_query *q, const struct cost_label_hour *rows, size_t count)
{
	static const struct table_column label_columns[] = {
		{ .name = "cost_center", .title = "COST CENTER" },
		{ .name = "product" },
		{ .name = "environment" },
		{ .name = "workload_type", .title = "WORKLOAD TYPE" },
		{ .name = "dollars", .is_right = true },
		{ .name = "gpu_hours", .title = "GPU HOURS", .is_right = true },
		{ .name = "share", .is_right = true },
	};
	struct table_column shown[sizeof label_columns / sizeof *label_columns];
	size_t n = 0;
	int64_t all = 0;

	for (size_t i = 0; i < sizeof label_columns / sizeof *label_columns; i++)
		if (q->label == ANY || i >= COST_LABEL_COUNT || q->label == (int64_t)i)
			shown[n++] = label_columns[i];
	for (size_t i = 0; i < count; i++)
		all += rows[i].dollars;
	struct table *t = table_new(shown, n);
	for (size_t i = 0; i < count; i++) {
		for (int k = 0; k < COST_LABEL_COUNT; k++)
			if (q->label == ANY || q->label == k)
				table_text(t, cost_label_value(&rows[i].labels, (enum cost_label)k));
		add_money(t, rows[i].dollars, rows[i].dollars > 0 || !rows[i].gpu_ms);
		cost_add_hours(t, rows[i].gpu_ms);
		CLEANUP(buf_release) struct buf raw = { 0 };
		double share = all ? (double)rows[i].dollars / (double)all : 0;
		buf_printf(&raw, "%.6f", share);
		all ? table_value(t, human_share(share).text, raw.text) : table_absent(t);
	}
	table_print(t, table_format_of(q->output), stdout);
	table_free(t);
}

static bool cost_labels_print(const struct cost_label_query *q, struct error *e)
{
	enum table_format format = table_format_of(q->output);
	struct cost_label_hour *hours;
	struct costs c;
	size_t count;

	if (!costs_read(q->args, q->period, &c, e) ||
	    !history_cost_label_hours(q->args->history,
				      (struct hour_range){ q->period->from / HOUR, q->period->to / HOUR - 1 },
				      &q->args->arena, &hours, &count, e))
		return false;
	if (!count)
		return error_set(e, ERROR_INVALID, "%s: %s; --by pool and --by class tell the rest",
				 history_path(q->args->history),
				 c.is_simulated ? "a simulation has no pods, and so no cost labels"
						: "costs by label were not kept in this period");
	count = merge(q, &c, hours, count);
	qsort(hours, count, sizeof *hours, by_dollars);
	print_rows(q, hours, count);
	if (!table_is_for_programs(format))
		printf("\n%s\n", c.period);
	costs_print_notes(q->args, &c);
	return true;
}

struct asked {
	struct history_args args;
	struct cost_period period;
	const char *by, *output;
	bool is_excess, has_alternatives;
};

/* Rows are pools or classes; what follows the first columns is alike. */
static const struct table_column columns[] = {
	{ .name = "pool" },
	{ .name = "namespace", .is_wide = true },
	{ .name = "class" },
	{ .name = "dollars", .is_right = true },
	{ .name = "dollars_per_hour", .title = "$/HOUR", .is_right = true, .is_wide = true },
	{ .name = "gpu_hours", .title = "GPU H", .is_right = true },
	{ .name = "serving_gpu_hours", .title = "SERVING", .is_right = true },
	{ .name = "idle_gpu_hours", .title = "IDLE", .is_right = true },
	{ .name = "lent_gpu_hours", .title = "LENT", .is_right = true, .is_wide = true },
	{ .name = "starting_gpu_hours", .title = "STARTING", .is_right = true, .is_wide = true },
	{ .name = "standby_gpu_hours", .title = "STANDBY", .is_right = true },
	{ .name = "requests", .is_right = true },
	{ .name = "late", .is_right = true },
	{ .name = "dollars_per_request", .title = "$/REQUEST", .is_right = true, .is_wide = true },
	{ .name = "dollars_per_1000_tokens", .title = "$/1K TOKENS", .is_right = true, .is_wide = true },
	{ .name = "serving_dollars", .title = "SERVING $", .is_right = true, .is_wide = true },
	{ .name = "idle_dollars", .title = "IDLE $", .is_right = true, .is_wide = true },
	{ .name = "lent_dollars", .title = "LENT $", .is_right = true, .is_wide = true },
	{ .name = "starting_dollars", .title = "STARTING $", .is_right = true, .is_wide = true },
	{ .name = "standby_dollars", .title = "STANDBY $", .is_right = true, .is_wide = true },
	{ .name = "prompt_tokens", .title = "PROMPT TOKENS", .is_right = true, .is_wide = true },
	{ .name = "output_tokens", .title = "OUTPUT TOKENS", .is_right = true, .is_wide = true },
	{ .name = "unread_gpu_hours", .title = "UNREAD", .is_right = true, .is_wide = true },
	{ .name = "watched_hours", .title = "WATCHED HOURS", .is_right = true, .is_wide = true },
};

static const enum gpu_state shown_states[] = { GPU_SERVING, GPU_IDLE, GPU_LENT, GPU_STARTING, GPU_STANDBY };
enum { SHOWN_STATES = sizeof shown_states / sizeof *shown_states };

static void add_small_dollars(struct table *t, int64_t nano)
{
	CLEANUP(buf_release) struct buf raw = { 0 };
	char shown[40];

	if (nano == ABSENT) {
		table_absent(t);
		return;
	}
	fixed_format(nano, 9, &raw);
	snprintf(shown, sizeof shown, "$%.*f", nano < 100000000 ? 6 : 2, (double)nano / 1e9);
	table_value(t, shown, raw.text);
}

static void add_sums(struct table *t, const struct cost_sums *s)
{
	int64_t dollars = cost_micro_dollars(s);
	bool is_priced = dollars > 0 || !cost_billed_gpu_ms(s);

	add_money(t, dollars, is_priced);
	add_money(t, s->watched_ms ? (int64_t)((__int128)dollars * HOUR / s->watched_ms) : 0, is_priced);
	cost_add_hours(t, cost_billed_gpu_ms(s));
	for (int i = 0; i < SHOWN_STATES; i++)
		cost_add_hours(t, s->gpu_ms[shown_states[i]]);
	table_count(t, s->started);
	table_count(t, s->late);
	add_small_dollars(t, is_priced ? cost_per_request(s) : ABSENT);
	add_small_dollars(t, is_priced ? cost_per_1000_tokens(s) : ABSENT);
	for (int i = 0; i < SHOWN_STATES; i++)
		add_money(t, s->dollars[shown_states[i]], is_priced);
	table_count(t, s->prompt_tokens);
	table_count(t, s->output_tokens);
	cost_add_hours(t, s->blind_gpu_ms);
	cost_add_hours(t, s->watched_ms);
}

/* What a row is of: all hours where `pool` and `class` match, -1 for any. */
struct key {
	int64_t pool, class;
};

static struct cost_sums sum_of(const struct costs *c, const struct key *key, size_t *found)
{
	struct cost_sums sum = { 0 };
	millis watched = 0, most = 0;
	int64_t hour = INT64_MIN;

	*found = 0;
	for (size_t i = 0; i < c->count; i++) {
		const struct cost_hour *h = &c->hours[i];
		if ((key->pool >= 0 && (size_t)key->pool != h->pool) || (key->class >= 0 && key->class != h->class))
			continue;
		cost_add(&sum, &h->sums);
		/* Pools are watched at the same time. */
		watched += h->hour != hour ? most : 0;
		most = h->hour != hour || h->sums.watched_ms > most ? h->sums.watched_ms : most;
		hour = h->hour;
		++*found;
	}
	sum.watched_ms = watched + most;
	return sum;
}

static void add_pools(struct table *t, const struct history_args *q, const struct costs *c)
{
	size_t count, found;
	const struct history_pool *pools = history_pools(q->history, &count);

	for (size_t pool = 0; pool < count; pool++)
		for (int64_t class = 0; class < CLASS_COUNT; class ++) {
			struct cost_sums sum = sum_of(c, &(struct key){ (int64_t)pool, class }, &found);
			if (!found)
				continue;
			table_text(t, pools[pool].name);
			table_text(t, pools[pool].namespace);
			table_text(t, pool_class_name((enum pool_class) class));
			add_sums(t, &sum);
		}
}

static void add_classes(struct table *t, const struct costs *c)
{
	size_t found;

	for (int64_t class = 0; class < CLASS_COUNT; class ++) {
		struct cost_sums sum = sum_of(c, &(struct key){ ANY, class }, &found);
		if (!found)
			continue;
		table_text(t, pool_class_name((enum pool_class) class));
		add_sums(t, &sum);
	}
}

/* For people only: programs add up themselves. */
static void add_total(struct table *t, const struct costs *c, size_t names)
{
	size_t found;
	struct cost_sums sum = sum_of(c, &(struct key){ ANY, ANY }, &found);

	table_text(t, "total");
	table_style(t, STYLE_STRONG);
	for (size_t i = 1; i < names; i++)
		table_text(t, "");
	add_sums(t, &sum);
}

static bool print_sums(struct asked *a, bool by_class, struct error *e)
{
	enum table_format format = table_format_of(a->output);
	bool for_programs = table_is_for_programs(format);
	size_t names = by_class ? 1 : 3;
	struct costs c;

	if (!costs_read(&a->args, &a->period, &c, e))
		return false;
	struct table_column shown[sizeof columns / sizeof *columns];
	memcpy(shown, columns, sizeof columns);
	shown[2].is_wide = !by_class;
	struct table *t = table_new(shown + 3 - names, sizeof columns / sizeof *columns - 3 + names);
	if (by_class)
		add_classes(t, &c);
	else
		add_pools(t, &a->args, &c);
	if (!for_programs && table_rows(t) > 1)
		add_total(t, &c, names);
	table_print(t, format, stdout);
	table_free(t);
	if (!for_programs)
		printf("\n%s\n", c.period);
	costs_print_notes(&a->args, &c);
	return true;
}

static bool answer(struct asked *a, struct error *e)
{
	struct cost_label_query labels = { .args = &a->args, .period = &a->period, .output = a->output };

	if ((a->is_excess || a->has_alternatives) && strcmp(a->by, "pool") != 0)
		return error_set(e, ERROR_INVALID, "--%s is of pools; found --by %.60s; leave one of them out",
				 a->is_excess ? "excess" : "alternatives", a->by);
	if (a->is_excess && a->has_alternatives)
		return error_set(e, ERROR_INVALID, "--excess and --alternatives are two answers; ask for one of them");
	if (strcmp(a->by, "pool") != 0 && strcmp(a->by, "class") != 0 && !cost_label_parse(a->by, &labels.label, e))
		return false;
	a->args.needs_no_records = !a->is_excess && !a->has_alternatives;
	if (!history_args_open(&a->args, e))
		return false;
	if (a->is_excess)
		return cost_excess_print(&a->args, &a->period, a->output, e);
	if (a->has_alternatives)
		return cost_alternatives_print(&a->args, &a->period, a->output, e);
	if (!strcmp(a->by, "pool") || !strcmp(a->by, "class"))
		return print_sums(a, !strcmp(a->by, "class"), e);
	return cost_labels_print(&labels, e);
}

static int run(int argc, char **argv)
{
	struct asked a = { .args = HISTORY_ARGS_DEFAULTS, .by = "pool", .output = "table" };
	const struct option_row rows[] = {
		HISTORY_ARGS_OPTIONS(&a.args),
		{ "by", 'b', OPTION_TEXT, "WHAT",
		  "pool (default), class, label, or label=NAME: cost-center, product, environment, workload-type",
		  &a.by, NULL },
		{ "excess", 0, OPTION_FLAG, NULL, "what GPUs were held for, and a lower bound", &a.is_excess, NULL },
		{ "alternatives", 0, OPTION_FLAG, NULL,
		  "the same traffic under what teams run instead (default: of the last 30 days)", &a.has_alternatives,
		  NULL },
		COST_PERIOD_OPTIONS(&a.period),
		PRINT_OPTION(&a.output),
	};
	struct error e;
	int rest, code;

	if (!command_options(&command_cost, argc, argv, rows, sizeof rows / sizeof *rows, &rest, &code))
		return code;
	bool ok = history_args_are_options(argv[rest], &e) && answer(&a, &e);
	return history_args_finish(&a.args, &command_cost, ok, &e);
}

const struct command command_cost = {
	.name = "cost",
	.usage = "cost [--db FILE] [--by pool|class|label[=NAME] | --excess | --alternatives] [--last 7d]",
	.summary = "What pools, classes and the owners of pods cost, from recorded hours",
	.examples = "  preheat cost --db out/history.db\n"
		    "  preheat cost --last 7d --by class -o wide\n"
		    "  preheat cost --by label=cost-center -o csv\n"
		    "  preheat cost --excess --pool chat --last 2d\n"
		    "  preheat cost --alternatives --last 7d\n",
	.notes =
		"--excess cuts what a pool cost into the work and what was held beyond it. The parts add up to all, "
		"by\n"
		"what was held at the end of each decision interval: some tenths of a percent off the bill. The bound\n"
		"knows every arrival of the recorded traffic, and pays only replicas and their starts, as the "
		"recording\n"
		"measured both (docs/simulator.md): no policy can be cheaper with the same replicas.\n"
		"\n"
		"--alternatives sends each recorded day through the model that simulate uses: under an HPA of the "
		"highest\n"
		"target that kept the objective, and as a fixed fleet of the size of the peak. What standby and "
		"lending\n"
		"save, and what a pool that is only watched would have cost, is by the shadows. Where the model does "
		"not\n"
		"give what was recorded the pool has no other fleet. CSV and JSON have a row for each day of UTC.\n",
	.run = run,
};
