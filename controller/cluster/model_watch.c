/* The watches that feed the model. */
#include "controller/cluster/model_inside.h"

#include <stdlib.h>

struct cluster_watches {
	struct watch *of[CLUSTER_KIND_COUNT];
	struct cluster_reader {
		struct cluster *cluster;
		enum cluster_kind kind;
	} readers[CLUSTER_KIND_COUNT];
};

static const struct {
	const char *name, *path;
	const struct record_spec *object;
} kinds[CLUSTER_KIND_COUNT] = {
	[CLUSTER_NODES] = { "nodes", "/api/v1/nodes", &node_spec },
	[CLUSTER_PODS] = { "pods", "/api/v1/pods", &pod_spec },
	[CLUSTER_BUDGETS] = { "poddisruptionbudgets", "/apis/policy/v1/poddisruptionbudgets", &budget_spec },
	[CLUSTER_QUOTAS] = { "resourcequotas", "/api/v1/resourcequotas", &quota_spec },
	[CLUSTER_JOBS] = { "jobs", "/apis/batch/v1/jobs", &job_spec },
	[CLUSTER_JOB_SETS] = { "jobsets", "/apis/jobset.x-k8s.io/v1alpha2/jobsets", &job_set_spec },
	[CLUSTER_POD_GROUPS] = { "podgroups", "/apis/scheduling.x-k8s.io/v1alpha1/podgroups", &pod_group_spec },
	[CLUSTER_KUEUE_WORKLOADS] = { "workloads.v1beta2", "/apis/kueue.x-k8s.io/v1beta2/workloads",
				      &kueue_workload_spec },
	[CLUSTER_KUEUE_WORKLOADS_OLD] = { "workloads.v1beta1", "/apis/kueue.x-k8s.io/v1beta1/workloads",
					  &kueue_workload_spec },
	[CLUSTER_NOTICES] = { "events", "/api/v1/events", &notice_spec },
};

/* Longer than any watch lasts. */
static const millis EVENT_SILENCE = 15 * MINUTE;

const char *cluster_kind_name(enum cluster_kind kind)
{
	return kinds[kind].name;
}

static bool seen(void *user, const void *record, const struct watch_seen *object)
{
	struct cluster_reader *r = user;
	switch (r->kind) {
	case CLUSTER_NODES:
		return cluster_node_seen(r->cluster, record, object);
	case CLUSTER_PODS:
		return cluster_pod_seen(r->cluster, record, object);
	case CLUSTER_BUDGETS:
		return cluster_budget_seen(r->cluster, record, object);
	case CLUSTER_QUOTAS:
		return cluster_quota_seen(r->cluster, record, object);
	case CLUSTER_JOBS:
	case CLUSTER_JOB_SETS:
	case CLUSTER_POD_GROUPS:
	case CLUSTER_KUEUE_WORKLOADS:
		return cluster_workload_seen(r->cluster, r->kind, record, object);
	case CLUSTER_KUEUE_WORKLOADS_OLD:
		return cluster_workload_seen(r->cluster, CLUSTER_KUEUE_WORKLOADS, record, object);
	case CLUSTER_NOTICES:
		return cluster_notice_seen(r->cluster, record, object);
	case CLUSTER_KIND_COUNT:
		break;
	}
	return false;
}

static void gone(void *user, struct object_uid uid, millis arrived)
{
	struct cluster_reader *r = user;
	switch (r->kind) {
	case CLUSTER_NODES:
		cluster_node_gone(r->cluster, uid, arrived);
		break;
	case CLUSTER_PODS:
		cluster_pod_gone(r->cluster, uid, arrived);
		break;
	case CLUSTER_BUDGETS:
		cluster_budget_gone(r->cluster, uid);
		break;
	case CLUSTER_QUOTAS:
		cluster_quota_gone(r->cluster, uid);
		break;
	case CLUSTER_JOBS:
	case CLUSTER_JOB_SETS:
	case CLUSTER_POD_GROUPS:
	case CLUSTER_KUEUE_WORKLOADS:
	case CLUSTER_KUEUE_WORKLOADS_OLD:
		cluster_workload_gone(r->cluster, uid);
		break;
	case CLUSTER_NOTICES:
	case CLUSTER_KIND_COUNT:
		break;
	}
}

void cluster_watch_start(struct cluster *c, struct api *api)
{
	struct cluster_watches *w = model_alloc(sizeof *w);
	c->watches = w;
	for (int i = 0; i < CLUSTER_KIND_COUNT; i++) {
		w->readers[i] = (struct cluster_reader){ c, (enum cluster_kind)i };
		struct watch_spec spec = {
			.name = kinds[i].name,
			.path = kinds[i].path,
			.field_selector = i == CLUSTER_NOTICES ? "involvedObject.kind=Node" : NULL,
			.object = kinds[i].object,
			.way = WATCH_WHOLE,
			/* The server sends no bookmarks for events: there silence is what is usual. */
			.silence = i == CLUSTER_NOTICES ? EVENT_SILENCE : 0,
			.on_object = seen,
			.on_gone = gone,
			.user = &w->readers[i],
		};
		w->of[i] = watch_start(api, &spec);
	}
}

void cluster_watch_stop(struct cluster *c)
{
	if (c->watches == NULL)
		return;
	for (int i = 0; i < CLUSTER_KIND_COUNT; i++)
		watch_stop(c->watches->of[i]);
	free(c->watches);
	c->watches = NULL;
}

const struct watch *cluster_watch_of(const struct cluster *c, enum cluster_kind kind)
{
	return c->watches == NULL ? NULL : c->watches->of[kind];
}

bool cluster_is_synced(const struct cluster *c)
{
	if (c->watches == NULL)
		return false;
	for (int i = 0; i < CLUSTER_KIND_COUNT; i++) {
		const struct watch *w = c->watches->of[i];
		bool may_lack = i != CLUSTER_NODES && i != CLUSTER_PODS && watch_report(w)->state == WATCH_REFUSED;
		if (!watch_is_synced(w) && !may_lack)
			return false;
	}
	return true;
}
