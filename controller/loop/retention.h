/* How much of a history is kept: its oldest ticks go, and stay as hourly sums, a little at a time. */
#pragma once
#include "base/millis.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct history;

struct retention {
	millis age;	  /* older ticks go; 0: at any age they stay */
	int64_t bytes;	  /* the oldest go while more is in use; 0: no limit */
	int64_t disk_ppm; /* the same as a share of the disk that the file is on; 0: no limit */
};

/* Called again and again while the history grows by ticks of so many pools; failures are logged. Whether any went. */
bool retention_thin(const struct retention *r, struct history *h, millis now, size_t pools, bool *more);
