/* Rules about pods that serve requests, and about jobs. */
#include "controller/contract/rule_runner.h"

#include <string.h>

/* Of a pool whose class is interactive or embedding, and no job. */
static bool serves(const struct contract *c, const struct workload *w)
{
	const struct pool_spec *p = pool_of(c, w);

	return asks_for_gpus(c, w) && !w->is_daemon && !w->is_job && p && is_selected(c, w) &&
	       (p->class == CLASS_INTERACTIVE || p->class == CLASS_EMBEDDING);
}

/* Zones that the pool's groups name; 0: none does. */
static size_t zones_of(const struct check_run *c, const struct workload *w)
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

static void rule_zone_spread(struct check_run *c, const struct workload *w)
{
	if (pool_of(c->contract, w)->class == CLASS_INTERACTIVE && !w->spreads_zones && w->replicas != 1 &&
	    zones_of(c, w) != 1)
		violate(c, &(struct breach){ &w->object, w->spec, NULL }, "its replicas may all stand in one zone");
}

static void rule_priority_class(struct check_run *c, const struct workload *w)
{
	const struct contract *all = c->contract;

	if (!*w->priority_class)
		violate(c, &(struct breach){ &w->object, w->spec, NULL }, "its pods have no priorityClassName");
	else if ((all->is_whole || all->priority_count) && !priority_find(all, w->priority_class) &&
		 strncmp(w->priority_class, "system-", 7) != 0)
		violate(c, &(struct breach){ &w->object, w->spec, "make it, or name one that is there" },
			"there is no PriorityClass %s", w->priority_class);
}

/* The container that serves: the one with GPUs. */
static const struct container *server_of(const struct workload *w)
{
	for (size_t i = 0; i < w->container_count; i++)
		if (w->containers[i].has_gpus && !w->containers[i].is_init)
			return &w->containers[i];
	return NULL;
}

static void rule_readiness_probe(struct check_run *c, const struct workload *w)
{
	const struct container *k = server_of(w);
	if (k && !k->readiness.at)
		violate(c, &(struct breach){ &w->object, k->at, NULL },
			"container %s has no readinessProbe: it counts as serving while it loads", k->name);
}

static void check_startup(struct check_run *c, const struct workload *w, const struct container *k)
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

static void rule_startup_probe(struct check_run *c, const struct workload *w)
{
	const struct container *k = server_of(w);
	if (k)
		check_startup(c, w, k);
}

static void rule_grace_period(struct check_run *c, const struct workload *w)
{
	enum { USUAL_S = 30, HOUR_S = 3600 };

	if (w->grace_s == UNSAID || w->grace_s <= USUAL_S)
		violate(c, &(struct breach){ &w->object, w->spec, NULL },
			"requests under way are cut %lld s after a drain begins",
			(long long)(w->grace_s == UNSAID ? USUAL_S : w->grace_s));
	else if (w->grace_s > HOUR_S)
		violate(c,
			&(struct breach){ &w->object, w->spec,
					  "lower terminationGracePeriodSeconds to what the longest request takes" },
			"a drain of its node may wait %lld s for it, at the price of the machine",
			(long long)w->grace_s);
}

static bool covers(const struct budget *b, const struct workload *w)
{
	return same_namespace(&b->object, &w->object) &&
	       (!b->selects_by_labels || labels_match(&b->selector, &w->labels));
}

static void rule_disruption_budget(struct check_run *c, const struct workload *w)
{
	bool is_covered = w->replicas == 1;

	for (size_t b = 0; !is_covered && b < c->contract->budget_count; b++)
		is_covered = covers(&c->contract->budgets[b], w);
	if (!is_covered)
		violate(c, &(struct breach){ &w->object, NULL, NULL }, "no PodDisruptionBudget covers its pods");
}

/* How many must stay, of so many: UNSAID where the text is another. */
static bool keeps_all(const struct budget *b, int64_t replicas)
{
	const char *most = b->max_unavailable, *least = b->min_available;

	if (!strcmp(most, "0") || !strcmp(most, "0%") || !strcmp(least, "100%"))
		return true;
	return b->kept != UNSAID && replicas > 0 && b->kept >= replicas;
}

static void rule_budget_blocks(struct check_run *c)
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

static bool is_gpu_job(const struct contract *c, const struct workload *w)
{
	return asks_for_gpus(c, w) && w->job;
}

static void rule_job_ttl(struct check_run *c, const struct workload *w)
{
	if (w->ttl_s == UNSAID && strcmp(w->object.ref.kind, "CronJob") != 0)
		violate(c, &(struct breach){ &w->object, w->job, NULL }, "the job stays for ever when it is done");
	else if (w->ttl_s == UNSAID)
		violate(c, &(struct breach){ &w->object, w->job, NULL },
			"the jobs that it makes stay until its history limits are reached");
}

static void rule_job_backoff(struct check_run *c, const struct workload *w)
{
	if (w->backoff == UNSAID)
		violate(c, &(struct breach){ &w->object, w->job, NULL },
			"a job that cannot succeed is run seven times on GPUs (backoffLimit is 6 when not "
			"given)");
}

#define JOBS "Job, CronJob, JobSet, PyTorchJob"
/* clang-format off */
static const struct contract_rule rules[] = {
	{ "zone-spread", CONTRACT_WARNING, SERVE,
	  "Interactive replicas are spread over zones",
	  "A zone that fails, or has no machines left, takes all replicas with it.",
	  "add topologySpreadConstraints with topologyKey: topology.kubernetes.io/zone, whenUnsatisfiable: ScheduleAnyway",
	  false, serves, rule_zone_spread, NULL },
	{ "priority-class", CONTRACT_WARNING, PODS,
	  "Pods with GPUs have a priority class that exists",
	  "Without one placeholders and batch give nothing back, and who goes first is left to chance.",
	  "set priorityClassName: gpu-critical, gpu-standard or gpu-batch", false, asks_for_gpus, rule_priority_class, NULL },
	{ "readiness-probe", CONTRACT_WARNING, SERVE,
	  "Servers say when they are ready",
	  "Loading takes minutes; without the probe requests reach a server that cannot answer, and lead times look short.",
	  "add a readinessProbe that asks the model server, like httpGet: { path: /health, port: 8000 }", false,
	  serves, rule_readiness_probe, NULL },
	{ "startup-probe", CONTRACT_WARNING, SERVE,
	  "Probes allow for the time that loading takes",
	  "A liveness probe that fires while the model loads ends it, again and again.",
	  "add a startupProbe that allows for the slowest load, like failureThreshold: 120, periodSeconds: 10", false,
	  serves, rule_startup_probe, NULL },
	{ "grace-period", CONTRACT_WARNING, SERVE,
	  "Requests under way may end before a replica goes",
	  "Long answers are cut when the grace period ends; one that is very long keeps a machine that is not needed.",
	  "set terminationGracePeriodSeconds to what the longest request takes, like 600", false, serves, rule_grace_period, NULL },
	{ "disruption-budget", CONTRACT_WARNING, SERVE,
	  "Serving pods have a disruption budget",
	  "Upgrades and other autoscalers may otherwise evict all replicas at once.",
	  "add a PodDisruptionBudget with maxUnavailable: 1 or 25% that selects the pods", false,
	  serves, rule_disruption_budget, NULL },
	{ "budget-blocks", CONTRACT_ERROR, "PodDisruptionBudget",
	  "A disruption budget lets at least one pod go",
	  "Preheat drains through eviction and overrules no budget: machines under such a budget are never given back.",
	  "set maxUnavailable: 1 in place of minAvailable", false, NULL, NULL, rule_budget_blocks },
	{ "job-ttl", CONTRACT_WARNING, JOBS,
	  "Jobs with GPUs go when they are done",
	  "Finished pods keep their volumes and names, and hide what is under way.",
	  "set ttlSecondsAfterFinished, like 3600", false, is_gpu_job, rule_job_ttl, NULL },
	{ "job-backoff", CONTRACT_WARNING, JOBS,
	  "Jobs with GPUs say how often they may fail",
	  "Every retry takes the GPUs for as long as the attempt before it.",
	  "set backoffLimit, like 1", false, is_gpu_job, rule_job_backoff, NULL },
};
/* clang-format on */

const struct rule_list rules_of_serving = { rules, sizeof rules / sizeof *rules };
