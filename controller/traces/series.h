/*
 * Sampled counters of many servers made into counts per bin. Counters may
 * start again at 0 (a new pod); what a gap hides is spread evenly over it.
 */
#pragma once
#include "controller/traces/trace.h"

enum quantity { QUANTITY_REQUESTS, QUANTITY_PROMPT, QUANTITY_OUTPUT, QUANTITIES };
enum series_kind { SERIES_COUNTER, SERIES_RATE, SERIES_INCREASE };

struct slot {
	millis at; /* end of the step that the amounts belong to */
	double amounts[QUANTITIES];
};

struct stretch { /* an amount that belongs to more than one step */
	millis from, to;
	enum quantity quantity;
	double amount;
};

struct series {
	enum series_kind kind;
	struct slot *slots; /* by time */
	size_t count, room, next;
	struct stretch *stretches;
	size_t stretch_count, stretch_room;
	millis step; /* shortest distance of two samples; 0: not known yet */
	bool is_seen[QUANTITIES];
	/* The one at hand. */
	bool has_last;
	millis last_at;
	double last_value;
};

void series_start(struct series *s); /* the samples that follow are of another server */
bool series_add(struct series *s, enum quantity q, millis at, double value, struct error *e) MUST_USE;
/* *origin is the time of the first bin. */
bool series_bins(struct series *s, struct trace *out, millis *origin, struct error *e) MUST_USE;
void series_release(struct series *s);
