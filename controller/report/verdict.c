#include "controller/report/verdict.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

void verdict_put_range(struct table *t, const struct score *s)
{
	struct human least = human_share(s->late_least), most = human_share(s->late_most);
	char text[sizeof least.text + sizeof most.text];

	if (s->draws < 2 || !s->requests) {
		table_absent(t);
		return;
	}
	snprintf(text, sizeof text, "%.*s-%s", (int)strcspn(least.text, " "), least.text, most.text);
	table_text(t, strcmp(least.text, most.text) ? text : most.text);
}

/* Draws fall on both sides. */
static bool is_split(const struct score *s)
{
	return s->draws_met > 0 && s->draws_met < s->draws;
}

void verdict_put_met(struct table *t, const struct score *s, int64_t late_ppm)
{
	bool is_met = score_keeps(s, late_ppm);
	char text[64];

	if (is_split(s))
		snprintf(text, sizeof text, "%s, %" PRId64 "/%" PRId64, is_met ? "yes" : "NO", s->draws_met, s->draws);
	else
		snprintf(text, sizeof text, "%s", is_met ? "yes" : "NO");
	table_text(t, text);
	table_style(t, !is_met ? STYLE_BAD : is_split(s) ? STYLE_WARN : STYLE_GOOD);
}

void verdict_write_split(const struct score *s, int64_t late_ppm, struct buf *out)
{
	if (is_split(s))
		buf_printf(out, "met its objective in %" PRId64 " of %" PRId64 " draws, %s on their mean", s->draws_met,
			   s->draws, score_keeps(s, late_ppm) ? "and" : "but missed it");
}
