/* "0 8 * * mon-fri": when a window of a schedule opens. */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { CRON_OPENINGS_MAX = 48 };

struct cron {
	int64_t days;			/* bit 0 = Monday */
	int minutes[CRON_OPENINGS_MAX]; /* after midnight */
	size_t count;
};

bool cron_parse(const char *text, struct cron *out) __attribute__((warn_unused_result));
