/* How the model is fed: a record decoded, and what the watch tells beside it. For the watches, and for tests. */
#pragma once
#include "controller/cluster/model.h"
#include "controller/cluster/watch.h"

/* All return whether the object is kept: only then need its end be told. */
bool cluster_node_seen(struct cluster *c, const struct node_record *r, const struct watch_seen *seen);
bool cluster_pod_seen(struct cluster *c, const struct pod_record *r, const struct watch_seen *seen);
bool cluster_budget_seen(struct cluster *c, const struct budget_record *r, const struct watch_seen *seen);
bool cluster_quota_seen(struct cluster *c, const struct quota_record *r, const struct watch_seen *seen);
/* `kind` is CLUSTER_JOBS, CLUSTER_JOB_SETS, CLUSTER_POD_GROUPS or CLUSTER_KUEUE_WORKLOADS. */
bool cluster_workload_seen(struct cluster *c, enum cluster_kind kind, const struct workload_record *r,
			   const struct watch_seen *seen);

/* An Event about a node: never kept. */
bool cluster_notice_seen(struct cluster *c, const struct notice_record *r, const struct watch_seen *seen);

/* Nothing when it is not there. */
void cluster_node_gone(struct cluster *c, struct object_uid uid, millis at);
void cluster_pod_gone(struct cluster *c, struct object_uid uid, millis at);
void cluster_budget_gone(struct cluster *c, struct object_uid uid);
void cluster_quota_gone(struct cluster *c, struct object_uid uid);
void cluster_workload_gone(struct cluster *c, struct object_uid uid);
