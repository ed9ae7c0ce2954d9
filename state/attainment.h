/*
 * What a stretch of time came to for a pool against its objective, and what
 * it cost: from rows of five minutes up to a day, from rows of an hour above.
 */
#pragma once
#include "state/level.h"

struct attainment {
	millis from, to;
	bool is_short;		 /* the record begins after `from` */
	int64_t requests, late;	 /* that started; ABSENT where nothing was recorded */
	int64_t micro_dollars;	 /* likewise */
	int64_t gpu_ms;		 /* likewise; billed, stopped machines not */
	int64_t share_ppm;	 /* late of them; ABSENT without any */
	int64_t burn_milli;	 /* late against allowed; 1000 uses the budget up in just this time */
	int64_t budget_left_ppm; /* of what may be late that has not been; negative when more was */
	int64_t budget_left;	 /* the same in requests */
	millis wait_most;	 /* ABSENT where it is not known */
	/* burn and budget are ABSENT without requests, and for a pool without an allowed share */
};

struct attainment_question {
	size_t pool; /* index of history_pools() */
	const struct pool_spec *spec;
	millis from, to;
};

/* Of what ends after `from` and not after `to`. */
bool attainment_read(struct history *h, const struct attainment_question *q, struct attainment *out,
		     struct error *e) MUST_USE;
/* No more was late than allowed; also where nothing was to be. */
bool attainment_is_met(const struct attainment *a);

/* What an operator asks for first: since midnight, and the last 7 and 30 days. */
enum attainment_window { ATTAINMENT_TODAY, ATTAINMENT_WEEK, ATTAINMENT_MONTH, ATTAINMENT_WINDOWS };
enum { ATTAINMENT_DAYS = 30 };

/* 24 hours, from rows of an hour: one that begins before a midnight and ends after it is of the day that has most of
 * it. ABSENT where nothing was recorded. */
struct attainment_day {
	millis from, to;
	int64_t requests, late, micro_dollars, gpu_ms, share_ppm;
	bool is_over; /* more was late than the objective allows */
};

struct attainment_report {
	struct attainment window[ATTAINMENT_WINDOWS];
	struct attainment_day days[ATTAINMENT_DAYS]; /* the oldest first; the last is today, so far */
	int64_t dollars_before[ATTAINMENT_WINDOWS];  /* micro-dollars of as long a time before each; ABSENT where it
							was not recorded whole, and before today */
};
/* `from` is the midnight before `to`. */
bool attainment_report(struct history *h, const struct attainment_question *q, struct attainment_report *out,
		       struct error *e) MUST_USE;
