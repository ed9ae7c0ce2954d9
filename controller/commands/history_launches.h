/* What was asked of providers: saved before it was asked, with what came of it. */
#pragma once
#include "controller/commands/question.h"
#include "state/launch.h"

/* Prints a row per call that the filter lets through, the newest last. */
bool history_launches_print(struct question *q, const struct launch_filter *f, const char *output,
			    struct error *e) MUST_USE;
/* What was asked, in a word; "?" for what this program does not know. */
const char *history_launches_verb(int64_t verb);
