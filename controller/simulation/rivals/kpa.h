/* The Knative pod autoscaler as a value: one reading in, one pod count out. */
#pragma once
#include "controller/simulation/rivals/window.h"

#include <stdbool.h>

struct kpa {
	bool begun;
	millis panic_at; /* last time over the threshold; 0: not panicking */
	int64_t panic_pods;
	struct window stable, panic, delay;
};

struct kpa_settings {
	double target_value;	     /* concurrency a pod */
	millis stable, panic, delay; /* windows */
	double threshold;	     /* panic when the panic window asks for so many times the ready pods */
	double up_rate, down_rate;
};

int64_t kpa_scale(struct kpa *k, const struct kpa_settings *s, millis now, int64_t concurrency, int64_t ready);
