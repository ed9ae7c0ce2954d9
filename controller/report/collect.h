/* What a report has collected; private to this folder. */
#pragma once
#include "base/buf.h"
#include "controller/report/report.h"

/* Some ticks in a row, of one pool. Sums are over ticks; levels divide by `ticks`. */
struct point {
	int64_t ticks;
	int64_t demand_milli, demand_most; /* sum of the ticks, largest of the ticks */
	int64_t ready, starting, draining, standby, lent;
	int64_t waiting, waiting_most;
	int64_t arrived, started, late;
	int64_t gpu_ms, micro_dollars;
	int64_t margin_permille, hold_ms; /* of the rule in force at the end */
};

/* A decision worth a mark: the largest change of its stretch of time. */
struct mark {
	millis end; /* since the start of the traffic; 0: none in this stretch */
	int64_t tick;
	int64_t before, changes; /* hot before it; changes in the stretch */
	struct pool_plan plan;	 /* groups copied */
};

/* A time during which one rule was in force. */
struct reign {
	millis from;
	struct pool_decision decision; /* when it was adopted */
};

enum { REIGNS = 200 };

struct pool_report {
	struct point *points; /* most_points */
	struct mark *marks;   /* most_marks */
	struct reign *reigns; /* REIGNS, the latest ones */
	size_t reign_count;
	int64_t reigns_before; /* left out, because there were more */
	int64_t hot;	       /* after the last decision, ABSENT before the first */
	struct objective_price prices[OBJECTIVE_PRICES];
	size_t price_count;
	struct pool_decision last;
	struct pool_score score;
};

struct rival_node {
	struct rival_node *next;
	struct report_rival rival;
};

struct report {
	struct arena arena;
	struct report_run run;
	struct pool_report *pools;
	size_t most_points, most_marks; /* of a pool, so that the page stays small with many pools */
	size_t point_count;		/* in use */
	int64_t ticks_a_point;		/* 0 before the first tick */
	int64_t ticks, ticks_planned;
	bool is_stopped, has_scores, has_rules;
	struct rival_node *rivals, **rivals_end; /* in the order given */
};

/* "10 % over demand, hold 13m30s, chase 0.25, standby 0.2". */
void report_rule_text(const struct pool_decision *d, struct buf *out);
