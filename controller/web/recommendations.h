/* What should be changed, as `preheat advise` says it of the last month. */
#pragma once
#include "controller/web/daily.h"

#include <stdint.h>

/* One change that pays, by the columns of `preheat advise`. */
struct recommendation {
	const char *namespace, *pool, *change;
	const char *needs;					/* NULL: nothing */
	const char *why;					/* why it saves, where that is not plain; NULL */
	int64_t saves, dollars;					/* micro-dollars a day; what it saves may be negative */
	int64_t saves_gpu_hours;				/* millionths a day, where there are no prices */
	int64_t late_ppm, late_with_ppm, allowed_ppm;		/* now; with it; by the objective, as it is with it */
	int64_t days_milli;					/* of recorded traffic that it was tried on */
	int64_t incidents, incidents_late, incidents_late_with; /* recent ones; late requests in them, by the model */
};

/* The answer: the best first. */
struct recommendations {
	const struct recommendation *items;
	size_t count;
};

extern const struct daily_question recommendations_question;
