/* How long a queue lasts, from the figures of one decision. */
#pragma once
#include "controller/policy/plan.h"

/* How long the hot replicas need for what waits now; ABSENT when something waits and nothing is hot. */
static inline millis queue_wait(const struct pool_decision *d)
{
	if (d->backlog_ms == ABSENT || d->backlog_ms <= 0)
		return d->waiting_now > 0 && !d->ready ? ABSENT : 0;
	return d->ready > 0 ? d->backlog_ms / d->ready : ABSENT;
}
