/*
 * Purchases: each is on disk before the call that costs money is made, and
 * its outcome afterwards. After a crash the open ones are those whose
 * outcome the vendor must be asked for, by token.
 */
#pragma once
#include "state/history.h"

struct launch {
	const char *token; /* unique; what the vendor is told, so that a repeated call buys once */
	const char *group;
	size_t pool;
	enum start_kind kind;
	int64_t count; /* machines asked for */
	millis asked_at;
};

/* On disk when it returns true. ERROR_CONFLICT when the token was used before. */
bool launch_save(struct history *h, const struct launch *l, struct error *e) MUST_USE;
/* `outcome`: "done", or error_kind_name() of what failed. ERROR_NOT_FOUND for a token that was not saved or has one. */
bool launch_end(struct history *h, const char *token, const char *outcome, millis at, struct error *e) MUST_USE;
/* Those without an outcome, oldest first, in the arena. */
bool launch_open_ones(struct history *h, struct arena *a, struct launch **launches, size_t *count,
		      struct error *e) MUST_USE;
