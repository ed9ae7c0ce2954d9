/* What a run came to, for a terminal: a table, small charts, and what to look at next. */
#pragma once
#include "controller/report/report.h"

#include <stdio.h>

/* `folder`: where report.html and history.db of this run are, NULL: nowhere. Call after report_result(). */
void summary_print(const struct report *r, const char *folder, FILE *out);
