/*
 * What billed GPUs were held for, part by part: the work, and everything
 * beyond it. The states of cost.h cut finer by what the decision wished, so
 * that the parts of any time add up to its cost, to the millisecond and
 * micro-dollar. Pure.
 */
#pragma once
#include "controller/policy/cost.h"

enum excess_part {
	EXCESS_WORK,	/* kept busy by running sequences */
	EXCESS_MARGIN,	/* up to the margin of the rule in force over the demand of now, and what chases a queue */
	EXCESS_HOLD,	/* up to the same over the largest demand that the rule remembers, or what deadlines ask for */
	EXCESS_FLOOR,	/* up to the least that manifest, schedule and queue allow */
	EXCESS_LEAVING, /* ready beyond all that: waits to be released, or stays because only whole machines go */
	EXCESS_EMPTY,	/* of machines without a replica */
	EXCESS_STARTS,	/* of machines and replicas that do not serve yet */
	EXCESS_DRAIN,	/* of replicas that drain */
	EXCESS_LENT,
	EXCESS_STANDBY, /* stopped machines: no GPU time, their share of the price */
	EXCESS_PARTS
};

struct excess_sums {
	int64_t gpu_ms[EXCESS_PARTS], dollars[EXCESS_PARTS]; /* GPU-milliseconds, micro-dollars */
};

/* As cost_add_tick(). */
void excess_add_tick(struct excess_sums *sums, const struct cost_tick *t, int64_t *busy_ppm);

const char *excess_part_name(enum excess_part part); /* "margin" */
