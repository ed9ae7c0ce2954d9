/* preheat replay: decides a history again. */
#include "base/json.h"
#include "controller/commands/answer.h"
#include "controller/commands/command.h"
#include "controller/commands/question.h"
#include "controller/manifest/variation.h"
#include "controller/commands/replay_with.h"
#include "controller/explain/explain.h"

#include <stdio.h>
#include <string.h>

struct asked {
	struct question question;
	const char *from, *to, *with, *output;
	struct variation change;
	bool is_progress_told;
};

static bool fill_range(const struct asked *a, struct replay_range *range, struct error *e)
{
	const struct question *q = &a->question;

	*range = (struct replay_range){ q->span.first_tick, q->span.last_tick, q->pool_index };
	if (!question_ticks(q, a->from, a->to, &range->from, &range->to, e))
		return false;
	if (range->from > range->to)
		return error_set(e, ERROR_INVALID, "no tick lies between --from and --to; %s has ticks %lld to %lld",
				 history_path(q->history), (long long)q->span.first_tick, (long long)q->span.last_tick);
	return true;
}

static bool load_stored(struct question *q, int64_t tick, struct manifest *m, struct error *e)
{
	CLEANUP(findings_release) struct findings findings = { 0 };
	const char *text;

	return history_manifest(q->history, tick, &q->arena, &text, e) &&
	       (manifest_load_text("manifest", text, &q->arena, m, &findings, e) ||
		error_wrap(e, "%s: its manifest", history_path(q->history)));
}

static bool compare_with(struct question *q, const struct asked *a, const struct replay_range *range, struct error *e)
{
	CLEANUP(findings_release) struct findings findings = { 0 };
	struct manifest then, other;

	if (!load_stored(q, range->from, &then, e))
		return false;
	other = then;
	if (a->with ? !manifest_load(&a->with, 1, &q->arena, &other, &findings, e)
		    : !variation_apply(&a->change, q->pool, &other, &q->arena, e))
		return false;
	return replay_with(q->history, &then, &other, range, &(struct replay_telling){ a->output, a->is_progress_told },
			   e);
}

static void print_values(const struct replay_field *f, millis offset, struct table *t)
{
	CLEANUP(buf_release) struct buf stored = { 0 }, now = { 0 };

	explain_value(f->field, f->stored, offset, &stored);
	explain_value(f->field, f->now, offset, &now);
	/* Two values that look alike to people are told in full. */
	if (!strcmp(stored.text, now.text)) {
		buf_printf(&stored, " (%lld)", (long long)f->stored);
		buf_printf(&now, " (%lld)", (long long)f->now);
	}
	table_text(t, f->of);
	table_text(t, f->field->name);
	table_text(t, stored.text);
	table_text(t, now.text);
}

static void print_difference(const struct question *q, const struct replay_outcome *o)
{
	static const struct table_column columns[] = {
		{ .name = "of" },
		{ .name = "field" },
		{ .name = "stored", .is_right = true },
		{ .name = "now", .is_right = true },
	};
	CLEANUP(buf_release) struct buf time = { 0 };
	size_t count;
	const struct history_pool *pools = history_pools(q->history, &count);

	explain_time(o->at, question_offset(q, o->at), &time);
	if (o->is_cut_short && !o->at)
		printf("First difference: tick %lld: %s\n", (long long)o->tick, o->what);
	else
		printf("First difference: tick %lld, pool %s, %s: %s\n", (long long)o->tick, pools[o->pool].name,
		       time.text, o->what);
	if (o->is_cut_short)
		printf("What the policy saw cannot be read from there on, so nothing after it was replayed.\n");
	if (!o->field_count)
		return;
	struct table *t = table_new(columns, sizeof columns / sizeof *columns);
	for (size_t i = 0; i < o->field_count; i++)
		print_values(&o->fields[i], question_offset(q, o->at), t);
	table_print(t, TABLE_PLAIN, stdout);
	table_free(t);
	if (o->field_count == REPLAY_FIELDS_MAX)
		puts("... and perhaps more fields.");
}

static void put_number(const char *name, int64_t value, struct buf *out)
{
	buf_printf(out, ",\"%s\":", name);
	if (value == ABSENT)
		buf_text(out, "null");
	else
		buf_printf(out, "%lld", (long long)value);
}

static void put_text(const char *name, const char *text, struct buf *out)
{
	buf_printf(out, ",\"%s\":", name);
	json_write_text(text, out);
}

static void put_first(const struct question *q, const struct replay_outcome *o, struct buf *out)
{
	size_t count;
	const struct history_pool *pools = history_pools(q->history, &count);

	buf_printf(out, ",\"first\":{\"tick\":%lld,\"at\":", (long long)o->tick);
	if (o->at) {
		buf_text(out, "\"");
		explain_time_rfc3339(o->at, out);
		buf_text(out, "\"");
	} else {
		buf_text(out, "null");
	}
	put_text("pool", pools[o->pool].name, out);
	put_text("what", o->what, out);
	buf_text(out, ",\"fields\":[");
	for (size_t i = 0; i < o->field_count; i++) {
		buf_text(out, i ? ",{\"of\":" : "{\"of\":");
		json_write_text(o->fields[i].of, out);
		buf_printf(out, ",\"field\":\"%s\"", o->fields[i].field->name);
		put_number("stored", o->fields[i].stored, out);
		put_number("now", o->fields[i].now, out);
		buf_text(out, "}");
	}
	buf_text(out, "]}");
}

static void print_outcome(const struct asked *a, const struct replay_outcome *o)
{
	CLEANUP(answer_release) struct answer answer = { 0 };
	struct buf *out = &answer.json;

	buf_printf(out, "{\"ticks\":%lld,\"differ\":%lld,\"cut_short\":%s", (long long)o->ticks,
		   (long long)o->differing, o->is_cut_short ? "true" : "false");
	if (o->what)
		put_first(&a->question, o, out);
	buf_text(out, "}\n");
	answer_print(&answer, a->output);
}

static bool replay(struct asked *a, bool *differs, struct error *e)
{
	struct question *q = &a->question;
	struct replay_range range;
	struct replay_outcome outcome;

	bool has_change = variation_is_any(&a->change);

	if (a->with && has_change)
		return error_set(
			e, ERROR_INVALID,
			"--with brings a whole manifest; give it without --objective, --violation-cost, --budget "
			"and --max");
	if (!question_open(q, e) || !fill_range(a, &range, e))
		return false;
	if (a->with || has_change)
		return compare_with(q, a, &range, e);
	if (!replay_fold(q->history, &range, &q->arena, &outcome, e))
		return false;
	*differs = outcome.differing > 0;
	if (answer_is_for_programs(a->output)) {
		print_outcome(a, &outcome);
		return true;
	}
	printf("%lld ticks replayed, %lld %s\n", (long long)outcome.ticks, (long long)outcome.differing,
	       outcome.differing == 1 ? "differs" : "differ");
	if (*differs)
		print_difference(q, &outcome);
	return true;
}

static int run(int argc, char **argv)
{
	static const struct variation_names names = { "--objective", "--violation-cost", "--budget", "--max" };
	struct asked a = { .question = QUESTION_DEFAULTS, .output = "table", .change = { .names = &names } };
	const struct option_row rows[] = {
		QUESTION_OPTIONS(&a.question),
		{ "from", 0, OPTION_TEXT, "TIME", "compare from this time on; -2h counts from the end", &a.from, NULL },
		{ "to", 0, OPTION_TEXT, "TIME", "compare up to this time", &a.to, NULL },
		{ "with", 'w', OPTION_TEXT, "FILE", "instead: what this manifest would have come to, by a model",
		  &a.with, NULL },
		{ "objective", 0, OPTION_TEXT, "[POOL=]WAIT,SHARE",
		  "instead: what another objective would have come to, by a model", &a.change.objective, NULL },
		{ "violation-cost", 0, OPTION_TEXT, "[POOL=]DOLLARS", "likewise: with late requests worth so much",
		  &a.change.violation_cost, NULL },
		{ "budget", 0, OPTION_TEXT, "[POOL=]DOLLARS", "likewise: with so much to spend an hour",
		  &a.change.budget, NULL },
		{ "max", 0, OPTION_TEXT, "[POOL=]REPLICAS", "likewise: with at most so many replicas", &a.change.max,
		  NULL },
		{ "progress", 0, OPTION_FLAG, NULL,
		  "for programs: how far a model is, on standard error: {\"progress\":0.42}", &a.is_progress_told,
		  NULL },
		ANSWER_OPTION(&a.output),
	};
	struct error e;
	int rest, code;
	bool differs = false;

	if (!command_options(&command_replay, argc, argv, rows, sizeof rows / sizeof *rows, &rest, &code))
		return code;
	if (rest < argc) {
		error_set(&e, ERROR_INVALID, "found '%.60s'; allowed: options only, a history is named by --db FILE",
			  argv[rest]);
		code = command_failed(&command_replay, &e);
	} else if (!replay(&a, &differs, &e)) {
		code = command_failed(&command_replay, &e);
	} else {
		code = differs ? EXIT_FOUND : EXIT_DONE;
	}
	question_close(&a.question);
	return code;
}

const struct command command_replay = {
	.name = "replay",
	.usage = "replay [--db FILE] [--from TIME] [--to TIME] [--pool POOL] [--with FILE | --objective "
		 "[POOL=]WAIT,SHARE]",
	.summary = "Decide recorded ticks again: nothing may differ; or with other settings",
	.examples = "  preheat replay --db out/history.db\n"
		    "  preheat replay --from -2h --pool chat\n"
		    "  preheat replay --db out/history.db --with cheaper.yaml\n"
		    "  preheat replay --from -7d --objective llm/chat=2s,99.5%\n",
	.run = run,
};
