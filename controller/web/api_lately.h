/* The requests of a pool over a time, and how much of its objective's budget of late ones is left. */
#pragma once
#include "controller/web/api_parts.h"
#include "state/level.h"

/* What ended in the last `length` of the history, in whole rows of the width that fits. sums->ticks 0: nothing is known
 * of that time. */
bool api_lately(struct api_call *c, size_t pool, millis length, struct level_sums *sums, struct error *e) MUST_USE;
/* Parts per million of what may be late that has not been; negative when more was. ABSENT without requests or without
 * an objective. */
int64_t api_budget_left(const struct pool_spec *spec, const struct level_sums *sums);
/* "late" over what started, or ABSENT. */
int64_t api_late_ppm(const struct level_sums *sums);

extern const struct api_shape api_objective_shape;
void api_write_objective(const struct pool_spec *spec, struct buf *out);
/* What a running controller shows of the pool; NULL where none runs, or it has not decided yet. */
const struct published_pool *api_live_pool(const struct api_call *c, const struct pool_spec *spec);
