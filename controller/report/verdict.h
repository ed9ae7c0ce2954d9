/*
 * Whether an objective was met, in words: said of the mean of all draws, and
 * where draws fall on both sides of it, of how many.
 */
#pragma once
#include "base/buf.h"
#include "base/table.h"
#include "controller/simulation/simulate.h"

/* The cells "0.39-1.14 %", "-" of a single draw, and "yes", "NO", "yes, 7/8". */
void verdict_put_range(struct table *t, const struct score *s);
void verdict_put_met(struct table *t, const struct score *s, int64_t late_ppm);
/* "met its objective in 7 of 8 draws, and on their mean"; nothing where all say the same. */
void verdict_write_split(const struct score *s, int64_t late_ppm, struct buf *out);
