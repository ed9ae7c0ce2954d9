/* What a run is judged by, per pool: for the whole run, and for the part after the warm-up. */
#pragma once
#include "base/buf.h"
#include "controller/simulation/world.h"

struct score {
	int64_t requests, late, gave_up; /* late: what still waited too long at the end included */
	int64_t started, waiting;	 /* waiting: at the end */
	millis wait_p50, wait_p99;	 /* of the requests that started; to 3 %; 0 where none did */
	int64_t gpu_ms, micro_dollars;	 /* billed; dollars include stopped machines */
	int64_t standby_gpu_ms;		 /* stopped machines, in GPUs */
	int64_t lent_replica_ms;
	int64_t starts, removals, lost, refused;
	int64_t batch_lost_ms; /* replica-milliseconds of borrowed work lost to reclaims */
};

/* Requests with one label of the trace, whole run. Dollars: the pool's, by the slot time that they used. */
struct class_score {
	const char *name;
	int64_t requests, late, slot_ms, micro_dollars;
};

struct pool_score {
	struct score whole, scored;
	const struct class_score *classes;
	size_t class_count;
};

double score_late_share(const struct score *s); /* 0 when there were no requests */
double score_gpu_hours(const struct score *s);
double score_dollars(const struct score *s);
/* One of the waits in seconds as JSON; null where no request started. */
void score_write_wait(const struct score *s, millis wait, struct buf *out);
