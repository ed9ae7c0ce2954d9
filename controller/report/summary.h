/* What a run came to, for a terminal: a table, small charts, and what to look at next. */
#pragma once
#include "controller/report/report.h"

#include <stdio.h>

/* After report_result(). */
void summary_print(const struct report *r, bool is_wide, FILE *out);
/* Commands to go on with. `folder`: where report.html and history.db of this run are, NULL when nothing was kept. */
void summary_print_next(const struct report *r, const char *folder, FILE *out);
