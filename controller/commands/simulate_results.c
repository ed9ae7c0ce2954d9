#include "controller/commands/simulate_results.h"

#include "base/file.h"
#include "base/terminal.h"
#include "controller/commands/answer.h"
#include "controller/commands/compare.h"
#include "controller/policy/decide.h"
#include "controller/report/summary.h"
#include "controller/simulation/files/timeline.h"
#include "state/cost.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { TICKS_PER_COMMIT = 4000 };

struct results {
	struct arena arena;
	const struct simulate_options *options;
	const struct simulate_inputs *in;
	const char *folder; /* NULL: none */
	bool is_folder_ours;
	const char *partial; /* of the history */
	struct history *history;
	int64_t *busy_ppm; /* one per pool: see cost_add_tick() */
	struct timeline *timeline;
	struct report *report;
	struct progress progress;
};

static const char *join(struct arena *a, const char *folder, const char *name)
{
	CLEANUP(buf_release) struct buf path = { 0 };

	buf_printf(&path, "%s/%s", folder, name);
	return arena_strdup(a, path.text, path.len);
}

static bool any_name(const char *name)
{
	return strcmp(name, ".") != 0 && strcmp(name, "..") != 0;
}

static bool cannot_make(const char *path, struct error *e)
{
	return error_set(e, file_error_kind(errno),
			 "--out %s: cannot make this folder: %s; name one where you may write", path, strerror(errno));
}

/* Makes the folder, and those above it, as needed. */
static bool make_folder(const char *path, struct arena *a, bool *is_made, struct error *e)
{
	char *part = arena_strdup(a, path, strlen(path));

	for (char *slash = strchr(part + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
		*slash = '\0';
		if (mkdir(part, 0777) < 0 && errno != EEXIST)
			return cannot_make(part, e);
		*slash = '/';
	}
	*is_made = mkdir(path, 0777) == 0;
	if (!*is_made && errno != EEXIST)
		return cannot_make(path, e);
	return true;
}

static bool check_folder(struct results *r, struct error *e)
{
	struct folder folder;

	if (!make_folder(r->folder, &r->arena, &r->is_folder_ours, e))
		return false;
	if (!folder_list(r->folder, any_name, &r->arena, &folder, e))
		return error_wrap(e, "--out");
	if (!folder.is_folder)
		return error_set(e, ERROR_INVALID, "--out %s: this is no folder; name another", r->folder);
	if (folder.count && !r->options->force)
		return error_set(e, ERROR_CONFLICT,
				 "--out %s: the folder is not empty; name another, or add --force to replace the "
				 "results in it and leave other files alone",
				 r->folder);
	return true;
}

static void remove_with_logs(const char *path)
{
	static const char *const ends[] = { "", "-wal", "-shm", "-journal" };
	CLEANUP(buf_release) struct buf name = { 0 };

	for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) {
		buf_clear(&name);
		buf_printf(&name, "%s%s", path, ends[i]);
		unlink(name.text);
	}
}

static bool open_history(struct results *r, struct error *e)
{
	const struct simulate_inputs *in = r->in;

	r->partial = join(&r->arena, r->folder, "history.db.partial");
	remove_with_logs(r->partial);
	r->history = history_create(&(struct history_setup){ .path = r->partial,
							     .manifest = in->manifest.text,
							     .fleet = &in->manifest.fleet,
							     .program = command_version_text(),
							     .policy = r->options->policy,
							     .run = in->run,
							     .ticks_per_commit = TICKS_PER_COMMIT,
							     .checkpoint_every = HOUR },
				    e);
	return r->history;
}

static struct report *open_report(const struct simulate_options *o, const struct simulate_inputs *in)
{
	return report_new(&(struct report_run){ .fleet = &in->manifest.fleet,
						.policy = in->policy->name,
						.setting = in->setting,
						.traffic = in->traffic,
						.program = command_version_text(),
						.seed = (uint64_t)o->seed,
						.start = in->start,
						.interval = o->tick,
						.warm_up = o->warm_up });
}

struct results *results_open(const struct simulate_options *o, const struct simulate_inputs *in, struct error *e)
{
	struct arena arena = { 0 };
	struct results *r = arena_new(&arena, struct results);

	r->arena = arena;
	r->options = o;
	r->in = in;
	r->folder = o->out;
	r->report = open_report(o, in);
	r->busy_ppm = arena_array(&r->arena, int64_t, in->manifest.fleet.pool_count);
	for (size_t i = 0; i < in->manifest.fleet.pool_count; i++)
		r->busy_ppm[i] = ABSENT;
	if (!r->folder)
		return r;
	if (check_folder(r, e) && open_history(r, e)) {
		r->timeline = timeline_open(join(&r->arena, r->folder, "timeline.csv"), e);
		if (r->timeline)
			return r;
	}
	results_release(r);
	return NULL;
}

static bool keep_memory(struct results *r, const struct tick_view *v, struct error *e)
{
	CLEANUP(buf_release) struct buf memory = { 0 };

	if (r->in->policy != &policy_preheat || !history_wants_checkpoint(r->history))
		return true;
	policy_state_encode(preheat_memory(v->policy), &memory);
	return history_checkpoint(r->history, &memory, e);
}

/* The world meters what it bills, within ticks. */
static void keep_costs(struct results *r, const struct tick_view *v)
{
	const struct fleet_spec *fleet = v->snapshot->fleet;

	for (size_t i = 0; i < fleet->pool_count; i++) {
		const struct tick_result *was = &v->results[i];
		struct cost_sums sums = { 0 };

		cost_add_tick(&sums,
			      &(struct cost_tick){ v->snapshot, i, &v->plan->pools[i], v->snapshot->interval,
						   &(struct cost_requests){ was->arrived, was->started, was->late } },
			      &r->busy_ppm[i]);
		cost_meter(&sums, was->gpu_ms, was->micro_dollars);
		history_cost(r->history, v->snapshot->now, i, fleet->pools[i].class, &sums);
	}
}

static bool on_tick(void *user, const struct tick_view *v, struct error *e)
{
	struct results *r = user;

	if (!r->progress.what)
		r->progress = progress_start("simulating", "ticks", v->ticks);
	progress_show(&r->progress, v->snapshot->tick + 1);
	if (!report_tick(r->report, v, e))
		return false;
	if (!r->folder)
		return true;
	keep_costs(r, v);
	return timeline_tick(r->timeline, v, e) && history_append(r->history, v->snapshot, v->plan, e) &&
	       keep_memory(r, v, e);
}

struct observer results_observer(struct results *r)
{
	return (struct observer){ on_tick, r };
}

struct report *results_report(struct results *r)
{
	return r->report;
}

static bool finish_history(struct results *r, struct error *e)
{
	const char *path = join(&r->arena, r->folder, "history.db");
	struct history *h = r->history;

	r->history = NULL;
	if (!history_finish(h, e))
		return false;
	remove_with_logs(path);
	if (rename(r->partial, path) < 0)
		return error_set(e, file_error_kind(errno), "%s: %s", path, strerror(errno));
	return true;
}

static bool finish_files(struct results *r, const struct buf *summary, const struct compare_result *compared,
			 struct error *e)
{
	struct timeline *t = r->timeline;

	r->timeline = NULL;
	unlink(join(&r->arena, r->folder, "compare.json")); /* of an earlier run */
	return finish_history(r, e) && timeline_commit(t, e) &&
	       (!compared || compare_write(compared, join(&r->arena, r->folder, "compare.json"), e)) &&
	       file_write(join(&r->arena, r->folder, "summary.json"), summary->text, summary->len, e) &&
	       report_write(r->report, join(&r->arena, r->folder, "report.html"), e);
}

static void print(const struct results *r, const struct buf *summary, const struct compare_result *compared)
{
	CLEANUP(answer_release) struct answer answer = { .rows = compared ? "" : "pools", .key = "pool" };

	if (!answer_is_for_programs(r->options->output)) {
		summary_print(r->report, !strcmp(r->options->output, "wide"), stdout);
		if (compared)
			compare_print(compared, stdout);
		summary_print_next(r->report, r->folder, stdout);
		return;
	}
	if (compared)
		compare_json(compared, &answer.json);
	else
		buf_append(&answer.json, summary->text, summary->len);
	answer_print(&answer, r->options->output);
}

bool results_finish(struct results *r, const struct run_result *result, const struct compare_result *compared,
		    struct error *e)
{
	CLEANUP(buf_release) struct buf summary = { 0 };

	progress_end(&r->progress);
	summary_json(&(struct summary_run){ .fleet = &r->in->manifest.fleet,
					    .program = command_version_text(),
					    .policy = r->in->policy->name,
					    .setting = r->in->setting,
					    .seed = (uint64_t)r->options->seed,
					    .interval = r->options->tick,
					    .warm_up = r->options->warm_up },
		     result, &summary);
	report_result(r->report, result);
	if (compared)
		compare_report(compared, r->report);
	if (r->folder && !finish_files(r, &summary, compared, e))
		return false;
	print(r, &summary, compared);
	return true;
}

void results_release(struct results *r)
{
	if (!r)
		return;
	if (r->progress.what)
		progress_end(&r->progress);
	report_free(r->report);
	timeline_abandon(r->timeline);
	history_close(r->history);
	if (r->partial)
		remove_with_logs(r->partial);
	if (r->is_folder_ours)
		rmdir(r->folder);      /* stays when there is something in it */
	struct arena arena = r->arena; /* the results lie in it */
	arena_release(&arena);
}
