/* Any text as the cron of a window, as days of the week, and as a window at any time. */
#include "base/schedule.h"
#include "controller/manifest/cron.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

static void look(const struct cron *c, millis now)
{
	struct schedule_window windows[CRON_OPENINGS_MAX];

	for (size_t i = 0; i < c->count; i++)
		windows[i] = (struct schedule_window){ .days = (unsigned)c->days,
						       .from = c->minutes[i],
						       .to = (c->minutes[i] + 60) % 1440,
						       .time_zone = "UTC",
						       .min = 2 };
	struct schedule_state s = schedule_at(windows, c->count, now);
	if ((s.floor != 0 && s.floor != 2) || (s.next_at && s.next_at <= now))
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len);
int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
	struct cron c;
	int64_t days = 0;
	char *text = strndup((const char *)bytes, len);

	if (!text)
		abort();
	if (weekdays_parse(text, true, &days) && (days <= 0 || days > 127))
		abort();
	if (weekdays_parse(text, false, &days) && (days <= 0 || days > 127))
		abort();
	if (cron_parse(text, &c)) {
		if (!c.count || c.count > CRON_OPENINGS_MAX || c.days <= 0 || c.days > 127)
			abort();
		for (size_t i = 0; i < c.count; i++)
			if (c.minutes[i] < 0 || c.minutes[i] >= 1440)
				abort();
		look(&c, INT64_C(1767571200000) + (millis)(len * 7919 % 604800) * SECOND);
	}
	free(text);
	return 0;
}
