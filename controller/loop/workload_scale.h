/* The number of replicas of each pool's workload, through its scale subresource. */
#pragma once
#include "controller/cluster/verbs.h"

struct controller;

struct workload_scale {
	struct scale_call call;
	bool is_calling;
	int64_t wanted;					      /* replicas that we want; ABSENT: not decided yet */
	int64_t is;					      /* as told last; ABSENT: not known */
	int64_t was;					      /* before it was lowered last */
	millis quiet_until, fewer_since, told_at, lowered_at; /* loop_now */
	int failures;
};

/* Sets what is decided, but where somebody else scales the workload. */
extern const struct actor workload_scale_actor;
/* What we set the workload to last, a moment ago where that was more; ABSENT where we set nothing, or have not yet. */
int64_t workload_scale_set(const struct controller *c, size_t pool);
