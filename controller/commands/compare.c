#include "controller/commands/compare.h"

#include "base/file.h"
#include "base/terminal.h"
#include "base/json.h"
#include "base/table.h"
#include "controller/commands/runs.h"
#include "controller/report/verdict.h"
#include "controller/simulation/draws.h"
#include "controller/simulation/rivals/rival.h"
#include "controller/simulation/world.h"

#include <inttypes.h>
#include <string.h>

static void put_score(const struct pool_spec *pool, const struct score *s, struct buf *out)
{
	buf_printf(out, "\"requests\": %" PRId64 ", \"late\": %" PRId64 ", \"late_share\": %.8f, ", s->requests,
		   s->late, score_late_share(s));
	buf_printf(out, "\"draws\": %" PRId64 ", \"draws_met\": %" PRId64 ", \"late_share_least\": %.8f, ", s->draws,
		   s->draws_met, s->late_least);
	buf_printf(out, "\"late_share_most\": %.8f, ", s->late_most);
	buf_text(out, "\"wait_p50_s\": ");
	score_write_wait(s, s->wait_p50, out);
	buf_text(out, ", \"wait_p99_s\": ");
	score_write_wait(s, s->wait_p99, out);
	buf_printf(out, ", \"gpu_hours\": %.4f, \"dollars\": ", score_gpu_hours(s));
	score_write_dollars(pool, s->micro_dollars, out);
	buf_printf(out, ", \"starts\": %" PRId64 ", \"removals\": %" PRId64, s->starts, s->removals);
}

static void put_head(const char *pool, const char *policy, const char *setting, struct buf *out)
{
	buf_text(out, "\n  { \"pool\": ");
	json_write_text(pool, out);
	buf_text(out, ", \"policy\": ");
	json_write_text(policy, out);
	buf_text(out, ", \"setting\": ");
	json_write_text(setting, out);
}

/* Of a sweep that was interrupted, the best of a family says little. */
static void put_completeness(const struct compare_result *r, struct buf *out)
{
	buf_printf(out, ", \"sweep_complete\": %s", r->comparison.is_stopped ? "false" : "true");
}

static const char *yes(bool is)
{
	return is ? "true" : "false";
}

/* What the row is among those of its family, and among all. */
static void put_marks(const struct compare_result *r, size_t pool, long row, const struct pool_spec *spec,
		      struct buf *out)
{
	const struct compare_row *c = &r->comparison.rows[row];
	const struct score *s = &c->pools[pool].scored;
	struct compare_filter family = { c->policy, false }, hot = { c->policy, true };
	int64_t ppm = spec->objective_late_ppm;

	buf_printf(out, ", \"is_default\": %s, \"uses_standby\": %s, \"uses_lent\": %s", yes(c->is_default),
		   yes(c->uses_standby), yes(c->uses_lent));
	buf_printf(out, ", \"meets_objective\": %s", yes(score_keeps(s, ppm)));
	if (!c->is_rival)
		return;
	if (c->team && c->team_pool == pool) {
		buf_text(out, ", \"object\": ");
		json_write_text(c->team, out);
	}
	buf_printf(out, ", \"is_cheapest\": %s, \"is_cheapest_hot\": %s",
		   yes(compare_cheapest(&r->comparison, pool, &family, ppm, false) == row),
		   yes(compare_cheapest(&r->comparison, pool, &hot, ppm, false) == row));
	if (r->setup->simulation->warm_up)
		buf_printf(out, ", \"is_tuned\": %s, \"is_tuned_hot\": %s",
			   yes(compare_first_choice(&r->comparison, pool, &family, ppm) == row),
			   yes(compare_first_choice(&r->comparison, pool, &hot, ppm) == row));
}

static void put_row(const struct compare_result *r, size_t pool, size_t row, struct buf *out)
{
	const struct pool_spec *spec = &r->setup->simulation->world.fleet->pools[pool];
	const struct compare_row *c = &r->comparison.rows[row];

	put_head(spec->name, c->policy, c->setting, out);
	put_completeness(r, out);
	put_marks(r, pool, (long)row, spec, out);
	buf_text(out, ",\n    ");
	put_score(spec, &c->pools[pool].whole, out);
	buf_text(out, ",\n    \"scored\": { ");
	put_score(spec, &c->pools[pool].scored, out);
	buf_text(out, " } },");
}

/* The bound has no run behind it: it counts for the scored part only. */
static void put_oracle(const struct compare_result *r, size_t pool, struct buf *out)
{
	const struct pool_spec *spec = &r->setup->simulation->world.fleet->pools[pool];
	const struct oracle_bound *b = &r->oracles[pool];

	put_head(spec->name, "oracle", "dual bound", out);
	put_completeness(r, out);
	buf_printf(out, ", \"price_replica_s\": %.6g,\n    \"scored\": { ", b->price);
	buf_printf(out, "\"late_share\": %.8f, \"gpu_hours\": %.4f, \"starts\": %" PRId64 " } },", b->late_share,
		   b->replica_hours * (double)spec->gpus_per_replica, b->starts);
}

void compare_json(const struct compare_result *r, struct buf *out)
{
	buf_text(out, "[");
	for (size_t pool = 0; pool < r->comparison.pool_count; pool++) {
		for (size_t row = 0; row < r->comparison.row_count; row++)
			put_row(r, pool, row, out);
		put_oracle(r, pool, out);
	}
	if (out->len > 1)
		out->text[--out->len] = '\0';
	buf_text(out, "\n]\n");
}

static const struct table_column columns[] = {
	{ .name = "policy" },
	{ .name = "chosen" },
	{ .name = "late", .is_right = true },
	{ .name = "draws", .is_right = true },
	{ .name = "met" },
	{ .name = "gpu_hours", .title = "GPU HOURS", .is_right = true },
	{ .name = "dollars", .is_right = true },
	{ .name = "starts", .is_right = true },
	{ .name = "against", .title = "AGAINST OURS", .is_right = true },
	{ .name = "setting" },
};

/* What runs the settings of the team's own autoscalers; it is not swept, and nothing is chosen from it. */
static const struct policy_ops *team_policy(void)
{
	return rival_find("configured");
}

struct sheet {
	const struct compare_result *result;
	const struct pool_spec *spec;
	size_t pool;
	struct table *table;
};

static const struct score *score_of(const struct sheet *s, size_t row)
{
	return &s->result->comparison.rows[row].pools[s->pool].scored;
}

static void put_ratio(struct table *t, double value, double ours)
{
	char text[32];

	if (ours <= 0) {
		table_absent(t);
		return;
	}
	snprintf(text, sizeof text, "%.3f", value / ours);
	table_value(t, text, text);
}

static void add_row(const struct sheet *s, long row, const char *chosen)
{
	struct table *t = s->table;

	if (row == NO_ROW)
		return;
	const struct compare_row *c = &s->result->comparison.rows[row];
	const struct score *score = score_of(s, (size_t)row);

	table_text(t, c->team ? "yours" : c->policy);
	table_text(t, chosen);
	table_text(t, human_share(score_late_share(score)).text);
	verdict_put_range(t, score);
	verdict_put_met(t, score, s->spec->objective_late_ppm);
	table_decimal(t, score_gpu_hours(score), 1);
	s->spec->is_unpriced ? table_absent(t) : table_dollars(t, score_dollars(score));
	table_count(t, score->starts);
	put_ratio(t, compare_cost(score), compare_cost(score_of(s, 0)));
	table_text(t, c->team ? c->team : c->setting[0] ? c->setting : "-");
}

/* What the team runs, as it is. */
static void put_team(const struct sheet *s)
{
	const struct comparison *c = &s->result->comparison;

	for (size_t i = 0; i < c->row_count; i++)
		if (c->rows[i].team && c->rows[i].team_pool == s->pool)
			add_row(s, (long)i, "as it is");
}

static long default_row(const struct comparison *c, const char *policy)
{
	for (size_t i = 0; i < c->row_count; i++)
		if (c->rows[i].is_default && !strcmp(c->rows[i].policy, policy))
			return (long)i;
	return NO_ROW;
}

struct choice {
	long row;
	const char *word;
};

/* The rows of a family that are shown, some of them perhaps NO_ROW. */
struct choices {
	struct choice list[5];
	size_t count;
};

static void choose(struct choices *c, long row, const char *word)
{
	c->list[c->count++] = (struct choice){ row, word };
}

/* As somebody would tune it: on what came before the scored part. */
static void choose_first(const struct sheet *s, const char *policy, struct choices *out)
{
	const struct comparison *c = &s->result->comparison;
	struct compare_filter all = { policy, false }, hot = { policy, true };
	long any = compare_first_choice(c, s->pool, &all, s->spec->objective_late_ppm);
	long only_hot = compare_first_choice(c, s->pool, &hot, s->spec->objective_late_ppm);

	if (!s->result->setup->simulation->warm_up)
		return;
	if (any != only_hot)
		choose(out, only_hot, "tuned, hot");
	choose(out, any, any == only_hot ? "tuned" : "tuned, tiers");
}

static struct choices choices_of(const struct sheet *s, const char *policy)
{
	const struct comparison *c = &s->result->comparison;
	struct compare_filter all = { policy, false }, hot = { policy, true };
	struct choices chosen = { 0 };
	int64_t ppm = s->spec->objective_late_ppm;
	long best = compare_cheapest(c, s->pool, &all, ppm, false),
	     best_hot = compare_cheapest(c, s->pool, &hot, ppm, false);

	if (best == NO_ROW)
		choose(&chosen, compare_least_late(c, s->pool, &all, false), "least late");
	else if (best != best_hot)
		choose(&chosen, best_hot, "cheapest, hot");
	choose(&chosen, best, best == best_hot ? "cheapest" : "cheapest, tiers");
	choose_first(s, policy, &chosen);
	choose(&chosen, default_row(c, policy), "default");
	return chosen;
}

static void put_family(const struct sheet *s, const char *policy)
{
	const struct choices chosen = choices_of(s, policy);

	for (size_t i = 0; i < chosen.count; i++)
		add_row(s, chosen.list[i].row, chosen.list[i].word);
}

static void add_oracle(const struct sheet *s)
{
	const struct oracle_bound *b = &s->result->oracles[s->pool];
	double hours = b->replica_hours * (double)s->spec->gpus_per_replica;
	struct table *t = s->table;

	table_text(t, "oracle");
	table_text(t, "bound");
	table_text(t, human_share(b->late_share).text);
	table_absent(t);
	table_absent(t);
	table_decimal(t, hours, 1);
	table_absent(t);
	table_count(t, b->starts);
	put_ratio(t, hours, score_gpu_hours(score_of(s, 0)));
	table_text(t, "knows every arrival; cold starts only");
}

static void print_frontier(const struct sheet *s, FILE *out)
{
	CLEANUP(arena_release) struct arena a = { 0 };
	struct compare_filter all = { NULL, false };
	const struct compare_point *points;
	size_t count = compare_frontier(&s->result->comparison, s->pool, &all, &a, &points);
	const struct score *ours = score_of(s, 0);
	double cost = compare_frontier_cost(points, count, score_late_share(ours));

	if (cost > 0)
		fprintf(out, "At %s late the cheapest rivals, chosen in hindsight, cost %.3f of ours.\n",
			human_share(score_late_share(ours)).text, cost / compare_cost(ours));
}

static void print_pool(const struct compare_result *r, size_t pool, FILE *out)
{
	const struct fleet_spec *fleet = r->setup->simulation->world.fleet;
	struct sheet s = { .result = r, .spec = &fleet->pools[pool], .pool = pool };

	if (!score_of(&s, 0)->requests) {
		fprintf(out, "\nPool %s had no traffic to compare on.\n", s.spec->name);
		return;
	}
	s.table = table_new(columns, sizeof columns / sizeof *columns);
	fprintf(out, "\nPool %s against %zu settings of other autoscalers%s,\nat most %s late%s\n", s.spec->name,
		r->comparison.row_count - 1,
		r->comparison.is_stopped ? " (PARTIAL: interrupted before the others)" : "",
		human_share((double)s.spec->objective_late_ppm / 1e6).text,
		r->setup->simulation->warm_up ? ", after the warm-up" : "");
	add_row(&s, 0, "untuned");
	put_team(&s);
	for (size_t i = 0; i < rival_count(); i++)
		if (rival_at(i) != team_policy())
			put_family(&s, rival_at(i)->name);
	add_oracle(&s);
	table_print(s.table, TABLE_PLAIN, out);
	table_free(s.table);
	print_frontier(&s, out);
}

void compare_print(const struct compare_result *r, FILE *out)
{
	if (r->comparison.is_stopped)
		fprintf(out, "\nThe comparison was interrupted; these are the runs that were done.\n");
	for (size_t i = 0; i < r->comparison.pool_count; i++)
		print_pool(r, i, out);
	fputs("\ncheapest: of the settings that kept the objective, known only afterwards.\n"
	      "tuned: the cheapest that kept it in the warm-up, as somebody would choose after\n"
	      "the first day. default: as documented (docs/simulator.md).\n",
	      out);
	if (r->setup->draws > 1)
		fprintf(out,
			"Each row is the mean of the same %zu draws of chance; DRAWS is late in the best\n"
			"and the worst of them; %zu/%zu in MET: met in so many of them. The sweep, to choose\n"
			"from, is of the first draw.\n",
			r->setup->draws, r->setup->draws - 1, r->setup->draws);
}

/* "hpa + standby": rivals with stopped or lent machines are another family to whoever reads the chart. */
static const char *family_of(const struct compare_row *row, struct buf *out)
{
	buf_clear(out);
	buf_text(out, row->team ? "yours" : row->policy);
	if (row->is_rival && row->uses_standby)
		buf_text(out, " + standby");
	if (row->is_rival && row->uses_lent)
		buf_text(out, " + lent");
	return out->text;
}

void compare_report(const struct compare_result *r, struct report *report)
{
	CLEANUP(buf_release) struct buf family = { 0 };

	for (size_t pool = 0; pool < r->comparison.pool_count; pool++) {
		for (size_t i = 0; i < r->comparison.row_count; i++) {
			const struct compare_row *row = &r->comparison.rows[i];
			const struct score *s = &row->pools[pool].scored;

			report_add_rival(report, &(struct report_rival){ .pool = pool,
									 .family = family_of(row, &family),
									 .setting = row->setting,
									 .dollars = score_dollars(s),
									 .gpu_hours = score_gpu_hours(s),
									 .late_share = score_late_share(s),
									 .draws = s->draws });
		}
	}
}

/* One run to be made. */
struct job {
	const struct policy_ops *policy;
	struct rival_setting setting;
	const struct team_autoscaler *team; /* whose settings they are; NULL: of a sweep */
};

struct sweep_run {
	const struct compare_setup *setup;
	struct job *jobs;
	size_t count, pools;
	struct pool_score *scores; /* as many a job as there are pools: of the first draw, or the mean of all */
	bool *is_done, *is_drawn;  /* a job each: it ran once; it ran in all draws */
	bool is_stopped;
};

static size_t pool_count(const struct compare_setup *s)
{
	return s->simulation->world.fleet->pool_count;
}

static bool is_named(const char *list, const char *name)
{
	size_t len = strlen(name);

	for (const char *at = list; at && *at; at += strcspn(at, ",") + (at[strcspn(at, ",")] == ','))
		if (strcspn(at, ",") == len && !strncmp(at, name, len))
			return true;
	return !list;
}

bool compare_check(const char *rivals, struct error *e)
{
	CLEANUP(buf_release) struct buf known = { 0 };

	for (size_t i = 0; i < rival_count(); i++)
		buf_printf(&known, "%s%s", i ? ", " : "", rival_at(i)->name);
	for (const char *at = rivals; at; at = strchr(at, ',') ? strchr(at, ',') + 1 : NULL) {
		size_t len = strcspn(at, ",");
		bool found = false;

		for (size_t i = 0; i < rival_count(); i++)
			found |= strlen(rival_at(i)->name) == len && !strncmp(at, rival_at(i)->name, len);
		if (!found)
			return error_set(e, ERROR_INVALID, "--rivals: there is no \"%.*s\"; there are %s",
					 (int)(len < 40 ? len : 40), at, known.text);
	}
	return true;
}

/* What the world is like: the load that it offers, its truths, its tiers. */
static struct load load_in(const struct compare_setup *s, size_t pool, struct arena *a)
{
	const struct world_setup *w = &s->simulation->world;
	const struct pool_world *truth = w->spec ? &w->spec->pools[pool] : &pool_world_default;
	struct queue_truth queue = queue_truth_of(&w->fleet->pools[pool], truth);

	return w->traces[pool] ? load_of(w->traces[pool], &queue, w->interval, a) : (struct load){ 0 };
}

static size_t first_scored(const struct compare_setup *s)
{
	return (size_t)(s->simulation->warm_up / s->simulation->world.interval);
}

static struct rival_scale scale_of(const struct compare_setup *s, const struct load *loads)
{
	const struct world_setup *w = &s->simulation->world;
	struct rival_scale scale = { 0 };

	for (size_t i = 0; i < pool_count(s); i++) {
		double mean = load_mean(&loads[i], first_scored(s)), peak = load_peak(&loads[i], first_scored(s));

		if (mean > 0 && (scale.mean <= 0 || mean < scale.mean))
			scale.mean = mean;
		if (peak > scale.peak)
			scale.peak = peak;
		scale.has_lent |= w->spec && w->spec->pools[i].lendable.replicas > 0;
	}
	for (size_t g = 0; g < w->fleet->group_count; g++)
		scale.has_standby |= w->fleet->groups[g].standby_max_nodes > 0;
	return scale;
}

static void plan_jobs(struct sweep_run *run, const struct rival_scale *scale, struct arena *a)
{
	const struct rival_setting **settings = arena_array(a, const struct rival_setting *, rival_count());
	size_t *counts = arena_array(a, size_t, rival_count());

	for (size_t i = 0; i < rival_count(); i++) {
		if (!is_named(run->setup->rivals, rival_at(i)->name))
			continue;
		counts[i] = rival_settings(rival_at(i), scale, a, &settings[i]);
		run->count += counts[i];
	}
	run->jobs = arena_array(a, struct job, run->count + run->setup->team_count + 1);
	run->count = 0;
	for (size_t i = 0; i < rival_count(); i++)
		for (size_t k = 0; k < counts[i]; k++)
			run->jobs[run->count++] = (struct job){ rival_at(i), settings[i][k], NULL };
	for (size_t i = 0; i < run->setup->team_count; i++) {
		const struct team_autoscaler *t = &run->setup->team[i];

		run->jobs[run->count++] = (struct job){ team_policy(), { .text = t->setting }, t };
	}
}

static struct compare_row *collect(const struct sweep_run *run, struct arena *a, size_t *count)
{
	struct compare_row *rows = arena_array(a, struct compare_row, run->count + 1);
	const struct simulation *s = run->setup->simulation;

	rows[0] = (struct compare_row){ .policy = s->policy->name,
					.setting = s->setting ? s->setting : "",
					.pools = run->setup->ours->pools };
	*count = 1;
	for (size_t i = 0; i < run->count; i++) {
		const struct job *j = &run->jobs[i];

		if (run->is_done[i])
			rows[(*count)++] = (struct compare_row){ .policy = j->policy->name,
								 .setting = j->setting.text,
								 .is_rival = true,
								 .is_default = j->setting.is_default,
								 .uses_standby = j->setting.uses_standby,
								 .uses_lent = j->setting.uses_lent,
								 .team = j->team ? j->team->label : NULL,
								 .team_pool = j->team ? j->team->pool : 0,
								 .pools = &run->scores[i * run->pools] };
	}
	return rows;
}

static struct oracle_bound *ask_oracle(const struct compare_setup *s, const struct load *loads, struct arena *a)
{
	const struct world_setup *w = &s->simulation->world;
	struct oracle_bound *bounds = arena_array(a, struct oracle_bound, pool_count(s));

	for (size_t i = 0; i < pool_count(s); i++) {
		const struct pool_world *truth = w->spec ? &w->spec->pools[i] : &pool_world_default;
		struct oracle_question q = { .load = &loads[i],
					     .from = first_scored(s),
					     .lead_s = oracle_mean_start(&w->fleet->pools[i], truth),
					     .late_share = (double)w->fleet->pools[i].objective_late_ppm / 1e6 };

		bounds[i] = oracle_bound(&q, a);
	}
	return bounds;
}

/* Every setting once, in the first draw. */
static bool sweep(struct sweep_run *run, struct arena *a, struct error *e)
{
	struct run_job *jobs = arena_array(a, struct run_job, run->count + 1);
	const struct runs all = { run->setup->simulation, jobs, run->count, "comparing", "runs" };

	run->scores = arena_array(a, struct pool_score, run->count * run->pools + 1);
	run->is_done = arena_array(a, bool, run->count + 1);
	run->is_drawn = arena_array(a, bool, run->count + 1);
	for (size_t i = 0; i < run->count; i++)
		jobs[i] = (struct run_job){ run->jobs[i].policy, run->jobs[i].setting.text, 0 };
	if (!runs_make(&all, run->scores, run->is_done, e))
		return false;
	for (size_t i = 0; i < run->count; i++)
		run->is_stopped |= !run->is_done[i];
	return true;
}

static void want(const struct sweep_run *run, long row, bool *is_wanted)
{
	if (row > 0 && !run->is_drawn[row - 1])
		is_wanted[row - 1] = true;
}

/* Those between which the frontier is read at Preheat's late share. */
static void want_frontier(const struct sweep_run *run, const struct sheet *s, struct arena *a, bool *is_wanted)
{
	const struct compare_point *points;
	struct compare_filter all = { NULL, false };
	size_t count = compare_frontier(&s->result->comparison, s->pool, &all, a, &points), i = 0;
	double late = score_late_share(score_of(s, 0));

	while (i < count && points[i].late_share < late)
		i++;
	if (i < count)
		want(run, (long)points[i].row, is_wanted);
	if (i > 0)
		want(run, (long)points[i - 1].row, is_wanted);
}

/* The rows that are shown as they now stand, as far as they ran in one draw only; all settings were swept, so that row
 * i is of job i - 1. */
static size_t want_chosen(const struct sweep_run *run, const struct compare_result *r, struct arena *a, bool *is_wanted)
{
	size_t count = 0;

	for (size_t i = 0; i < r->comparison.row_count; i++)
		if (r->comparison.rows[i].team)
			want(run, (long)i, is_wanted);
	for (size_t pool = 0; pool < run->pools; pool++) {
		const struct sheet s = { r, &run->setup->simulation->world.fleet->pools[pool], pool, NULL };

		for (size_t i = 0; i < rival_count(); i++) {
			const struct choices chosen = choices_of(&s, rival_at(i)->name);
			for (size_t k = 0; k < chosen.count; k++)
				want(run, chosen.list[k].row, is_wanted);
		}
		want_frontier(run, &s, a, is_wanted);
	}
	for (size_t i = 0; i < run->count; i++)
		count += is_wanted[i];
	return count;
}

/* One job in all draws: its mean takes the place of the first. */
static void take_draws(struct sweep_run *run, size_t job, const struct pool_score *more, size_t count, struct arena *a)
{
	struct pool_score *draws = arena_array(a, struct pool_score, (count + 1) * run->pools);
	struct pool_score *first = &run->scores[job * run->pools];

	memcpy(draws, first, run->pools * sizeof *draws);
	memcpy(draws + run->pools, more, count * run->pools * sizeof *draws);
	draws_mean(draws, count + 1, run->pools, first);
	run->is_drawn[job] = true;
}

static bool draw_wanted(struct sweep_run *run, const bool *is_wanted, size_t wanted, struct arena *a, struct error *e)
{
	size_t more = run->setup->draws - 1, count = 0;
	struct run_job *jobs = arena_array(a, struct run_job, wanted * more);
	struct pool_score *scores = arena_array(a, struct pool_score, wanted * more * run->pools);
	bool *is_done = arena_array(a, bool, wanted *more);
	const struct runs draws = { run->setup->simulation, jobs, wanted * more, "comparing", "more draws" };

	for (size_t i = 0; i < run->count; i++)
		for (size_t k = 0; is_wanted[i] && k < more; k++)
			jobs[count++] = (struct run_job){ run->jobs[i].policy, run->jobs[i].setting.text, k + 1 };
	if (!runs_make(&draws, scores, is_done, e))
		return false;
	for (size_t i = 0; i < count; i++)
		run->is_stopped |= !is_done[i];
	count = 0;
	for (size_t i = 0; i < run->count && !run->is_stopped; i++)
		if (is_wanted[i])
			take_draws(run, i, &scores[more * run->pools * count++], more, a);
	return true;
}

/* What is chosen in one draw may not be in the mean: all that is chosen in the end has run in every draw. */
static bool draw_chosen(struct sweep_run *run, const struct compare_result *r, struct error *e)
{
	while (!run->is_stopped && run->setup->draws > 1) {
		CLEANUP(arena_release) struct arena a = { 0 };
		bool *is_wanted = arena_array(&a, bool, run->count + 1);
		size_t wanted = want_chosen(run, r, &a, is_wanted);

		if (!wanted)
			break;
		if (!draw_wanted(run, is_wanted, wanted, &a, e))
			return false;
	}
	return true;
}

bool compare_run(const struct compare_setup *setup, struct arena *a, struct compare_result *out, struct error *e)
{
	struct sweep_run run = { .setup = setup, .pools = pool_count(setup) };
	struct load *loads = arena_array(a, struct load, run.pools);

	for (size_t i = 0; i < run.pools; i++)
		loads[i] = load_in(setup, i, a);
	struct rival_scale scale = scale_of(setup, loads);
	plan_jobs(&run, &scale, a);
	if (!sweep(&run, a, e))
		return error_wrap(e, "--compare");
	*out = (struct compare_result){ .setup = setup };
	out->comparison.rows = collect(&run, a, &out->comparison.row_count);
	out->comparison.pool_count = run.pools;
	if (!draw_chosen(&run, out, e))
		return error_wrap(e, "--compare");
	out->comparison.is_stopped = run.is_stopped;
	out->oracles = ask_oracle(setup, loads, a);
	return true;
}
