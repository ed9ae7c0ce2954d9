/*
 * The autoscalers that a team runs today, out of their own manifests, as
 * settings of the rival "configured" (docs/simulator.md): each
 * HorizontalPodAutoscaler (autoscaling/v2) and ScaledObject (keda.sh) that
 * scales a pool's workload, and how long an unneeded node stays, from a
 * NodePool (spec.disruption.consolidateAfter) or the arguments of
 * Cluster Autoscaler.
 */
#pragma once
#include "base/error.h"
#include "controller/manifest/manifest.h"

struct team_autoscaler {
	size_t pool;	     /* of the fleet */
	const char *label;   /* "HorizontalPodAutoscaler llm/chat" */
	const char *setting; /* for policy_ops.open */
};

/* What `path` ("-": standard input) holds, in its order; in the arena. Other kinds are passed over. What the model
 * cannot do as it is written is left out as a whole and named on standard error. ERROR_INVALID: nothing of the file is
 * left. */
bool team_autoscalers_read(const char *path, const struct manifest *m, struct arena *a, struct team_autoscaler **out,
			   size_t *count, struct error *e) MUST_USE;
/* The settings of one such object, in the arena; NULL: another kind, or the model cannot do it as it is written. */
const char *team_autoscaler_setting(const struct yaml_node *object, struct arena *a);
