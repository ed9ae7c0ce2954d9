/* What a history says of today, 7 and 30 days, below the rows of `preheat status`. */
#pragma once
#include "controller/commands/history_args.h"

/* On standard output, for people: objectives, cost, the newest incidents. `namespace` NULL: all. */
bool status_report_print(struct history_args *q, const char *namespace, struct error *e) MUST_USE;
