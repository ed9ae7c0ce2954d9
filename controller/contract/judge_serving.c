/* Rules about pods that serve requests, and about jobs. */
#include "controller/contract/parts.h"

#include <string.h>

static const struct workload *serving(const struct court *c, size_t i)
{
	const struct workload *w = &c->contract->workloads[i];

	return w->gpu_resource && !w->is_owned && !w->is_daemon && is_serving(c->contract, w) ? w : NULL;
}

/* Zones that the pool's groups name; 0: none does. */
static size_t zones_of(const struct court *c, const struct workload *w)
{
	const struct group_facts *groups[GROUPS_MOST];
	size_t count = groups_of(c->contract, w, groups, GROUPS_MOST), zones = 0;

	for (size_t i = 0; i < count; i++) {
		bool is_new = *groups[i]->spec->zone;
		for (size_t k = 0; k < i; k++)
			is_new = is_new && strcmp(groups[k]->spec->zone, groups[i]->spec->zone) != 0;
		zones += is_new;
	}
	return zones;
}

void judge_zone_spread(struct court *c)
{
	for (size_t i = 0; i < c->contract->workload_count; i++) {
		const struct workload *w = serving(c, i);
		if (w && pool_of(c->contract, w)->class == CLASS_INTERACTIVE && !w->spreads_zones && w->replicas != 1 &&
		    zones_of(c, w) != 1)
			violate(c, &(struct breach){ &w->object, w->spec, NULL },
				"its replicas may all stand in one zone");
	}
}

static const struct priority *class_of(const struct contract *c, const char *name)
{
	for (size_t i = 0; i < c->priority_count; i++)
		if (!strcmp(c->priorities[i].object.ref.name, name))
			return &c->priorities[i];
	return NULL;
}

void judge_priority_class(struct court *c)
{
	const struct contract *all = c->contract;

	for (size_t i = 0; i < all->workload_count; i++) {
		const struct workload *w = &all->workloads[i];
		if (!w->gpu_resource || w->is_owned)
			continue;
		if (!*w->priority_class)
			violate(c, &(struct breach){ &w->object, w->spec, NULL }, "its pods have no priorityClassName");
		else if ((all->is_whole || all->priority_count) && !class_of(all, w->priority_class) &&
			 strncmp(w->priority_class, "system-", 7) != 0)
			violate(c, &(struct breach){ &w->object, w->spec, "make it, or name one that is there" },
				"there is no PriorityClass %s", w->priority_class);
	}
}

/* The container that serves: the one with GPUs. */
static const struct container *server_of(const struct workload *w)
{
	for (size_t i = 0; i < w->container_count; i++)
		if (w->containers[i].gpu_count && !w->containers[i].is_init)
			return &w->containers[i];
	return NULL;
}

void judge_readiness_probe(struct court *c)
{
	for (size_t i = 0; i < c->contract->workload_count; i++) {
		const struct workload *w = serving(c, i);
		const struct container *k = w ? server_of(w) : NULL;
		if (k && !k->readiness.at)
			violate(c, &(struct breach){ &w->object, k->at, NULL },
				"container %s has no readinessProbe: it counts as serving while it loads", k->name);
	}
}

static void judge_startup(struct court *c, const struct workload *w, const struct container *k)
{
	int64_t load_s = pool_of(c->contract, w)->stage[STAGE_LOAD].p95 / SECOND;
	const char *remedy =
		load_s ? say(c, "add a startupProbe whose failureThreshold * periodSeconds is above %lld s",
			     (long long)load_s)
		       : NULL;

	if (k->startup.at && load_s > k->startup.allows_s)
		violate(c, &(struct breach){ &w->object, k->startup.at, remedy },
			"container %s is ended after %lld s of starting, and loading takes %lld s (leadTime.load.p95)",
			k->name, (long long)k->startup.allows_s, (long long)load_s);
	else if (!k->startup.at && k->liveness.at && (!load_s || load_s > k->liveness.allows_s))
		violate(c, &(struct breach){ &w->object, k->liveness.at, remedy },
			"container %s has a livenessProbe and no startupProbe: it is ended when loading takes over "
			"%lld s",
			k->name, (long long)k->liveness.allows_s);
}

void judge_startup_probe(struct court *c)
{
	for (size_t i = 0; i < c->contract->workload_count; i++) {
		const struct workload *w = serving(c, i);
		const struct container *k = w ? server_of(w) : NULL;
		if (k)
			judge_startup(c, w, k);
	}
}

void judge_grace_period(struct court *c)
{
	enum { USUAL_S = 30, HOUR_S = 3600 };

	for (size_t i = 0; i < c->contract->workload_count; i++) {
		const struct workload *w = serving(c, i);
		if (!w)
			continue;
		if (w->grace_s == UNSAID || w->grace_s <= USUAL_S)
			violate(c, &(struct breach){ &w->object, w->spec, NULL },
				"requests under way are cut %lld s after a drain begins",
				(long long)(w->grace_s == UNSAID ? USUAL_S : w->grace_s));
		else if (w->grace_s > HOUR_S)
			violate(c,
				&(struct breach){
					&w->object, w->spec,
					"lower terminationGracePeriodSeconds to what the longest request takes" },
				"a drain of its node may wait %lld s for it, at the price of the machine",
				(long long)w->grace_s);
	}
}

static bool covers(const struct budget *b, const struct workload *w)
{
	return same_namespace(&b->object, &w->object) &&
	       (!b->selects_by_labels || labels_match(&b->selector, &w->labels));
}

void judge_disruption_budget(struct court *c)
{
	for (size_t i = 0; i < c->contract->workload_count; i++) {
		const struct workload *w = serving(c, i);
		bool is_covered = !w || w->replicas == 1;
		for (size_t b = 0; !is_covered && b < c->contract->budget_count; b++)
			is_covered = covers(&c->contract->budgets[b], w);
		if (!is_covered)
			violate(c, &(struct breach){ &w->object, NULL, NULL },
				"no PodDisruptionBudget covers its pods");
	}
}

/* How many must stay, of so many: UNSAID where the text is another. */
static bool keeps_all(const struct budget *b, int64_t replicas)
{
	const char *most = b->max_unavailable, *least = b->min_available;
	int64_t kept = tree_count(b->at, "minAvailable");

	if (!strcmp(most, "0") || !strcmp(most, "0%") || !strcmp(least, "100%"))
		return true;
	return kept != UNSAID && replicas > 0 && kept >= replicas;
}

void judge_budget_blocks(struct court *c)
{
	for (size_t b = 0; b < c->contract->budget_count; b++) {
		const struct budget *budget = &c->contract->budgets[b];
		for (size_t i = 0; i < c->contract->workload_count; i++) {
			const struct workload *w = &c->contract->workloads[i];
			if (!w->gpu_resource || w->is_owned || !covers(budget, w) || !keeps_all(budget, w->replicas))
				continue;
			violate(c, &(struct breach){ &budget->object, budget->at, NULL },
				"no pod of %s %s may ever be evicted, so no drain of its nodes ends",
				w->object.ref.kind, w->object.ref.name);
			break;
		}
	}
}

static const struct workload *gpu_job(const struct court *c, size_t i)
{
	const struct workload *w = &c->contract->workloads[i];

	return w->gpu_resource && w->job && !w->is_owned ? w : NULL;
}

void judge_job_ttl(struct court *c)
{
	for (size_t i = 0; i < c->contract->workload_count; i++) {
		const struct workload *w = gpu_job(c, i);
		if (w && w->ttl_s == UNSAID && strcmp(w->object.ref.kind, "CronJob") != 0)
			violate(c, &(struct breach){ &w->object, w->job, NULL },
				"the job stays for ever when it is done");
		else if (w && w->ttl_s == UNSAID)
			violate(c, &(struct breach){ &w->object, w->job, NULL },
				"the jobs that it makes stay until its history limits are reached");
	}
}

void judge_job_backoff(struct court *c)
{
	for (size_t i = 0; i < c->contract->workload_count; i++) {
		const struct workload *w = gpu_job(c, i);
		if (w && w->backoff == UNSAID)
			violate(c, &(struct breach){ &w->object, w->job, NULL },
				"a job that cannot succeed is run seven times on GPUs (backoffLimit is 6 when not "
				"given)");
	}
}
