/* What retention left of a history: sums per hour. */
#pragma once
#include "controller/commands/question.h"

/* Prints a row per hour and pool. */
bool history_hours_print(struct question *q, const char *output, struct error *e) MUST_USE;
/* Drops ticks that ended longer before the end than `keep`, and says how many. */
bool history_hours_retain(struct question *q, millis keep, struct error *e) MUST_USE;
