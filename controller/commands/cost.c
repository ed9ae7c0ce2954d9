/* preheat cost: what pools, classes and owners of work cost. */
#include "base/terminal.h"
#include "base/quantity.h"
#include "controller/commands/answer.h"
#include "controller/commands/command.h"
#include "controller/commands/cost_labels.h"
#include "controller/commands/cost_read.h"

#include <stdio.h>
#include <string.h>

struct asked {
	struct question question;
	struct cost_period period;
	const char *by, *output;
};

/* Rows are pools or classes; what follows the first columns is alike. */
static const struct table_column columns[] = {
	{ .name = "pool" },
	{ .name = "namespace", .is_wide = true },
	{ .name = "class" },
	{ .name = "dollars", .is_right = true },
	{ .name = "dollars_per_hour", .title = "$/HOUR", .is_right = true },
	{ .name = "gpu_hours", .title = "GPU HOURS", .is_right = true },
	{ .name = "serving_gpu_hours", .title = "SERVING", .is_right = true },
	{ .name = "idle_gpu_hours", .title = "IDLE", .is_right = true },
	{ .name = "lent_gpu_hours", .title = "LENT", .is_right = true },
	{ .name = "starting_gpu_hours", .title = "STARTING", .is_right = true },
	{ .name = "standby_gpu_hours", .title = "STANDBY", .is_right = true },
	{ .name = "requests", .is_right = true },
	{ .name = "late", .is_right = true },
	{ .name = "dollars_per_request", .title = "$/REQUEST", .is_right = true },
	{ .name = "dollars_per_1000_tokens", .title = "$/1K TOKENS", .is_right = true },
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

	cost_add_dollars(t, dollars);
	cost_add_dollars(t, s->watched_ms ? (int64_t)((__int128)dollars * HOUR / s->watched_ms) : 0);
	cost_add_hours(t, cost_billed_gpu_ms(s));
	for (int i = 0; i < SHOWN_STATES; i++)
		cost_add_hours(t, s->gpu_ms[shown_states[i]]);
	table_count(t, s->started);
	table_count(t, s->late);
	add_small_dollars(t, cost_per_request(s));
	add_small_dollars(t, cost_per_1000_tokens(s));
	for (int i = 0; i < SHOWN_STATES; i++)
		cost_add_dollars(t, s->dollars[shown_states[i]]);
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

static void add_pools(struct table *t, const struct question *q, const struct costs *c)
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
	CLEANUP(buf_release) struct buf period = { 0 };
	size_t names = by_class ? 1 : 3;
	struct costs c;

	if (!costs_read(&a->question, &a->period, &c, e))
		return false;
	struct table *t = table_new(columns + 3 - names, sizeof columns / sizeof *columns - 3 + names);
	if (by_class)
		add_classes(t, &c);
	else
		add_pools(t, &a->question, &c);
	if (!for_programs && table_rows(t) > 1)
		add_total(t, &c, names);
	table_print(t, format, stdout);
	table_free(t);
	cost_period_text(&a->question, &a->period, &period);
	if (!for_programs)
		printf("\n%s\n", period.text);
	costs_print_notes(&a->question, &c);
	return true;
}

static bool answer(struct asked *a, struct error *e)
{
	struct cost_label_question labels = { .question = &a->question, .period = &a->period, .output = a->output };

	if (strcmp(a->by, "pool") != 0 && strcmp(a->by, "class") != 0 && !cost_label_parse(a->by, &labels.label, e))
		return false;
	if (!question_open(&a->question, e))
		return false;
	if (!strcmp(a->by, "pool") || !strcmp(a->by, "class"))
		return print_sums(a, !strcmp(a->by, "class"), e);
	return cost_labels_print(&labels, e);
}

static int run(int argc, char **argv)
{
	struct asked a = { .question = QUESTION_DEFAULTS, .by = "pool", .output = "table" };
	const struct option_row rows[] = {
		QUESTION_OPTIONS(&a.question),
		{ "by", 'b', OPTION_TEXT, "WHAT",
		  "pool (default), class, label, or label=NAME: cost-center, product, environment, workload-type",
		  &a.by, NULL },
		COST_PERIOD_OPTIONS(&a.period),
		ANSWER_OPTION(&a.output),
	};
	struct error e;
	int rest, code;

	a.question.needs_no_records = true;
	if (!command_options(&command_cost, argc, argv, rows, sizeof rows / sizeof *rows, &rest, &code))
		return code;
	code = EXIT_DONE;
	if (rest < argc) {
		error_set(&e, ERROR_INVALID, "found '%.60s'; allowed: options only, a history is named by --db FILE",
			  argv[rest]);
		code = command_failed(&command_cost, &e);
	} else if (!answer(&a, &e)) {
		code = command_failed(&command_cost, &e);
	}
	question_close(&a.question);
	return code;
}

const struct command command_cost = {
	.name = "cost",
	.usage = "cost [--db FILE] [--by pool|class|label[=NAME]] [--last 7d]",
	.summary = "What pools, classes and the owners of pods cost, from recorded hours",
	.examples = "  preheat cost --db out/history.db\n"
		    "  preheat cost --last 7d --by class -o wide\n"
		    "  preheat cost --by label=cost-center -o csv\n",
	.run = run,
};
