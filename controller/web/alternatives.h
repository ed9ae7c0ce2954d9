/* What the same traffic would have cost under other fleets, as `preheat cost --alternatives` says it of 30 days. */
#pragma once
#include "controller/web/daily.h"

#include <stdint.h>

struct alternative_sum {
	int64_t micro_dollars, recorded; /* recorded: of the same days, as it was */
	int64_t requests, late;		 /* late: ABSENT where it is not known */
};

/* A pool under one of the fleets: "recorded", "autoscaler", "static", "hot-only", "preheat". */
struct alternative_fleet {
	const char *namespace, *pool, *fleet;
	const char *setting; /* NULL: as it was */
	bool model_fits;
	struct alternative_sum week, month; /* of the last 7 days of UTC; of all */
};

/* All pools together; one that is not known under a fleet counts as it was. */
struct alternative_day {
	millis from;
	const char *fleet;
	int64_t micro_dollars;
};

struct alternatives {
	const struct alternative_fleet *fleets;
	size_t fleet_count;
	const struct alternative_day *days; /* in order of fleet and time, without "recorded" */
	size_t day_count;
};

extern const struct daily_question alternatives_question;
