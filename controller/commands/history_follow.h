/* Decisions as they are written, by whichever process writes them. */
#pragma once
#include "controller/commands/question.h"

/*
 * First those of the filter, then what comes, until SIGINT, SIGTERM, or until nobody reads standard output any more
 * (ERROR_CANCELLED). The question is open, and stays with the caller. What becomes of the file meanwhile (set aside,
 * replaced, gone, thinned) is said on standard error, and what stands in its place is gone on with.
 */
bool history_follow(struct question *q, const struct history_filter *f, const char *form, struct error *e) MUST_USE;
