/*
 * The Kubernetes HorizontalPodAutoscaler (autoscaling/v2) as a value: what
 * it does between a metric and spec.replicas. KEDA drives one, too.
 */
#pragma once
#include "controller/simulation/rivals/kpa.h"

#include <stdbool.h>

enum { HPA_EVENTS = 128 }; /* changes remembered: the longest period of a policy is 1800 s, one change in 15 s */

/* One of behavior.scaleUp.policies or scaleDown.policies; there is at most one of each type. */
struct hpa_policy {
	int64_t value; /* pods, or percent of those at the start of the period; negative: no such policy */
	millis period;
};

enum hpa_select { HPA_SELECT_MAX, HPA_SELECT_MIN, HPA_SELECT_DISABLED };

/* behavior.scaleUp or behavior.scaleDown */
struct hpa_rule {
	millis stabilization;
	struct hpa_policy pods, percent;
	enum hpa_select select;
};

struct hpa_limits {
	int64_t least, most; /* minReplicas, maxReplicas */
	struct hpa_rule up, down;
};

struct hpa {
	bool begun;
	int64_t replicas;      /* spec.replicas, pods that are pending included */
	struct window highest; /* of the proposals within the stabilization of scaling down ... */
	struct window lowest;  /* ... and up: of their negatives */
	struct {
		millis at;
		int64_t change;
	} events[HPA_EVENTS]; /* newest last */
	size_t event_count;
};

/* What the API reference gives where `behavior` is absent, and a scale-down stabilization that is not 300 s. */
struct hpa_limits hpa_default_limits(int64_t most, millis stabilization);
/* First call: takes over a Deployment that has so many replicas. Later calls change nothing. */
void hpa_begin(struct hpa *h, millis now, int64_t replicas, const struct hpa_limits *limits);
/* Replicas that one metric of target type AverageValue asks for: ceil(total / target), or those we have
 * when the ratio lies within the tolerance. */
int64_t hpa_proposal(const struct hpa *h, double total, double target, double tolerance);
/* Applies the behaviour to a proposal, and remembers it. */
int64_t hpa_scale(struct hpa *h, millis now, int64_t proposal, const struct hpa_limits *limits);
