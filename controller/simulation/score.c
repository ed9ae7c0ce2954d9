#include "controller/simulation/score.h"

double score_late_share(const struct score *s)
{
	return s->requests ? (double)s->late / (double)s->requests : 0;
}

double score_gpu_hours(const struct score *s)
{
	return (double)s->gpu_ms / (double)HOUR;
}

double score_dollars(const struct score *s)
{
	return (double)s->micro_dollars / 1e6;
}

void score_write_wait(const struct score *s, millis wait, struct buf *out)
{
	if (s->started)
		buf_printf(out, "%.3f", (double)wait / 1000);
	else
		buf_text(out, "null");
}
