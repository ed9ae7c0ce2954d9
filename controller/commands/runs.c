#include "controller/commands/runs.h"

#include "base/terminal.h"
#include "base/workers.h"
#include "controller/simulation/draws.h"

#include <stdio.h>
#include <string.h>

struct running {
	const struct runs *runs;
	size_t pools;
	struct progress progress;
};

static bool work(void *user, size_t job, void *answer, struct error *e)
{
	CLEANUP(arena_release) struct arena a = { 0 };
	const struct running *run = user;
	const struct run_job *j = &run->runs->jobs[job];
	struct simulation s = *run->runs->simulation;
	struct run_result result;

	s.policy = j->policy;
	s.setting = j->setting;
	s.world.seed = draw_seed(s.world.seed, j->draw);
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
	const struct running *run = user;

	snprintf(text, sizeof text, "%s %s", run->runs->jobs[job].policy->name, run->runs->jobs[job].setting);
	return text;
}

static void show(void *user, size_t count)
{
	struct running *run = user;

	progress_show(&run->progress, (int64_t)count);
}

bool runs_make(const struct runs *r, struct pool_score *scores, bool *is_done, struct error *e)
{
	struct running run = { r, r->simulation->world.fleet->pool_count,
			       progress_start(r->what, r->unit, (int64_t)r->count) };
	const struct workers workers = { .jobs = r->count,
					 .answer_size = run.pools * sizeof *scores,
					 .work = work,
					 .name = name,
					 .done = show,
					 .user = &run,
					 .stop = r->simulation->stop };
	bool ok = workers_run(&workers, scores, is_done, e);

	progress_end(&run.progress);
	return ok;
}
