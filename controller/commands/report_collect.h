/* What a report tells, out of a history. */
#pragma once
#include "controller/commands/cost_read.h"
#include "controller/report/team.h"

struct report_question {
	struct question *question; /* open */
	struct cost_period period;
	const char *namespace; /* NULL: all */
};

/* In the question's arena. ERROR_NOT_FOUND for a namespace that the history does not know; names those it does. */
bool report_collect(struct report_question *q, struct team_report *out, struct error *e) MUST_USE;
