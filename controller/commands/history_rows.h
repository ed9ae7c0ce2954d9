/* Decisions as rows of a table. */
#pragma once
#include "base/table.h"
#include "controller/commands/question.h"

/* Those that the filter lets through, newest last; the caller frees, before the question is closed. NULL with an error.
 */
struct table *history_rows(struct question *q, const struct history_filter *f, bool for_programs,
			   struct error *e) MUST_USE;
