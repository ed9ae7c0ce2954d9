/*
 * Anything that can size a fleet from snapshots: Preheat itself and the
 * rivals. One tick at a time; pure apart from its own state.
 */
#pragma once
#include "controller/policy/plan.h"

struct policy_ops {
	const char *name; /* "preheat", "hpa", ... */
	const char *help; /* one line, with the source of its formula */
	/* `setting`: "target=0.8,window=300", "" for the documented defaults. NULL with an error for a bad one. */
	void *(*open)(const struct fleet_spec *fleet, const char *setting, struct error *e);
	void (*close)(void *state);
	struct plan (*decide)(void *state, const struct snapshot *s, struct arena *a);
};
