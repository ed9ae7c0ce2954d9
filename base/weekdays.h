/* Days of the week as bits, bit 0 = Monday. */
#pragma once
#include "base/error.h"

#include <stdint.h>

/*
 * "mon-fri", "sat,sun", "fri-mon" (over the weekend), short or full names,
 * any case. With `numbers` also cron's 0 to 7, where 0 and 7 are Sunday.
 */
bool weekdays_parse(const char *text, bool numbers, int64_t *days) MUST_USE;
