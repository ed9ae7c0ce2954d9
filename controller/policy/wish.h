/*
 * What a pool would do if it were alone and unlimited: the rule in force on
 * the real fleet, the deadline law for batch, the floors of the manifest.
 */
#pragma once
#include "controller/policy/learn.h"

struct wish {
	struct moves moves;
	struct fleet fleet; /* the real one, as the rule sees it */
	int64_t have;	    /* ready and on the way */
	int64_t overdue;    /* starts that most would have finished; not counted in have */
	int64_t floor;	    /* least hot replicas */
	int64_t ceiling;    /* most hot replicas by headroom, INT64_MAX without */
	int64_t stock_excess;
	bool keeps_stock;	 /* the rule in force uses stopped machines */
	bool is_cut;		 /* a limit took something off */
	double deadline_need;	 /* replicas that deadlines ask for; negative without any */
	int64_t next_serving_ms; /* ABSENT when nothing is on its way */
	enum limit held_by;
};

struct wish wish_make(struct pool_memory *m, const struct snapshot *s, size_t pool, const struct learned *l);

/* Changes a wish while keeping its parts consistent; each returns how many replicas it changed. */
int64_t wish_ask_more(struct wish *w, int64_t replicas);
int64_t wish_ask_less(struct wish *w, int64_t replicas);
int64_t wish_keep(struct wish *w); /* drops every release and cancellation */
int64_t wish_wanted(const struct wish *w);
