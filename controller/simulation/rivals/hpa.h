/*
 * The Kubernetes HorizontalPodAutoscaler (autoscaling/v2) as a value: what
 * it does between a metric and spec.replicas. KEDA drives one, too.
 */
#pragma once
#include "controller/simulation/rivals/kpa.h"

#include <stdbool.h>

enum { HPA_EVENTS = 16 };

struct hpa {
	bool begun;
	int64_t replicas; /* spec.replicas, pods that are pending included */
	struct window proposals;
	struct {
		millis at;
		int64_t change;
	} events[HPA_EVENTS]; /* of scaling up, newest last */
	size_t event_count;
};

struct hpa_limits {
	int64_t least, most;  /* minReplicas, maxReplicas */
	millis stabilization; /* scaleDown.stabilizationWindowSeconds */
};

/* First call: takes over a Deployment that has so many replicas. Later calls change nothing. */
void hpa_begin(struct hpa *h, millis now, int64_t replicas, millis stabilization);
/* Replicas that one metric of target type AverageValue asks for: ceil(total / target), or those we have
 * when the ratio lies within the tolerance. */
int64_t hpa_proposal(const struct hpa *h, double total, double target, double tolerance);
/* Applies the behaviour to a proposal, and remembers it. */
int64_t hpa_scale(struct hpa *h, millis now, int64_t proposal, const struct hpa_limits *limits);
