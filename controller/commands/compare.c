#include "controller/commands/compare.h"

#include "base/buf.h"
#include "base/terminal.h"
#include "base/workers.h"
#include "controller/simulation/rivals/rival.h"
#include "controller/simulation/world.h"

#include <stdio.h>
#include <string.h>

/* One run to be made. */
struct job {
	const struct policy_ops *policy;
	struct rival_setting setting;
};

struct sweep_run {
	const struct compare_setup *setup;
	struct job *jobs;
	size_t count, pools;
	struct progress *progress;
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
	run->jobs = arena_array(a, struct job, run->count + 1);
	run->count = 0;
	for (size_t i = 0; i < rival_count(); i++)
		for (size_t k = 0; k < counts[i]; k++)
			run->jobs[run->count++] = (struct job){ rival_at(i), settings[i][k] };
}

static bool work(void *user, size_t job, void *answer, struct error *e)
{
	CLEANUP(arena_release) struct arena a = { 0 };
	const struct sweep_run *run = user;
	struct simulation s = *run->setup->simulation;
	struct run_result result;

	s.policy = run->jobs[job].policy;
	s.setting = run->jobs[job].setting.text;
	s.observers = NULL;
	s.observer_count = 0;
	if (!simulate(&s, &a, &result, e))
		return false;
	for (size_t i = 0; i < run->pools; i++) {
		/* Classes live in this process only. */
		result.pools[i].classes = NULL;
		result.pools[i].class_count = 0;
	}
	memcpy(answer, result.pools, run->pools * sizeof *result.pools);
	return true;
}

static const char *name(void *user, size_t job)
{
	static char text[200];
	const struct sweep_run *run = user;

	snprintf(text, sizeof text, "%s %s", run->jobs[job].policy->name, run->jobs[job].setting.text);
	return text;
}

static void show(void *user, size_t count)
{
	struct sweep_run *run = user;

	progress_show(run->progress, (int64_t)count);
}

static struct compare_row *collect(const struct sweep_run *run, const struct pool_score *scores, const bool *is_done,
				   struct arena *a, size_t *count)
{
	struct compare_row *rows = arena_array(a, struct compare_row, run->count + 1);
	const struct simulation *s = run->setup->simulation;

	rows[0] = (struct compare_row){ .policy = s->policy->name,
					.setting = s->setting ? s->setting : "",
					.pools = run->setup->ours->pools };
	*count = 1;
	for (size_t i = 0; i < run->count; i++) {
		const struct job *j = &run->jobs[i];

		if (is_done[i])
			rows[(*count)++] = (struct compare_row){ .policy = j->policy->name,
								 .setting = j->setting.text,
								 .is_rival = true,
								 .is_default = j->setting.is_default,
								 .uses_standby = j->setting.uses_standby,
								 .uses_lent = j->setting.uses_lent,
								 .pools = &scores[i * run->pools] };
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

bool compare_run(const struct compare_setup *setup, struct arena *a, struct compare_result *out, struct error *e)
{
	struct sweep_run run = { .setup = setup, .pools = pool_count(setup) };
	struct load *loads = arena_array(a, struct load, run.pools);

	for (size_t i = 0; i < run.pools; i++)
		loads[i] = load_in(setup, i, a);
	struct rival_scale scale = scale_of(setup, loads);
	plan_jobs(&run, &scale, a);
	struct progress progress = progress_start("comparing", "runs", (int64_t)run.count);
	struct pool_score *scores = arena_array(a, struct pool_score, run.count * run.pools + 1);
	bool *is_done = arena_array(a, bool, run.count + 1);
	struct workers workers = { .jobs = run.count,
				   .answer_size = run.pools * sizeof *scores,
				   .work = work,
				   .name = name,
				   .done = show,
				   .user = &run,
				   .stop = setup->simulation->stop };

	run.progress = &progress;
	bool ok = workers_run(&workers, scores, is_done, e);
	progress_end(&progress);
	if (!ok)
		return error_wrap(e, "--compare");
	*out = (struct compare_result){ .setup = setup };
	out->comparison.rows = collect(&run, scores, is_done, a, &out->comparison.row_count);
	out->comparison.pool_count = run.pools;
	out->comparison.is_stopped = out->comparison.row_count < run.count + 1;
	out->oracles = ask_oracle(setup, loads, a);
	return true;
}
