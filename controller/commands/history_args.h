/* What history, explain and replay have in common: which file, which pool, times as people write them. */
#pragma once
#include "base/options.h"
#include "controller/commands/command.h"
#include "controller/manifest/manifest.h"
#include "controller/restore/restore.h"
#include "state/history.h"

struct history_args {
	/* options, with their defaults */
	const char *db;	  /* a history, or the folder that a simulation wrote */
	const char *pool; /* NULL: any */
	bool is_utc;
	bool may_be_empty;     /* a history without ticks is opened, too */
	bool needs_no_records; /* sums of hours will do: also histories of programs with other records */

	/* after history_args_open */
	struct history *history;
	struct history_span span;
	int64_t pool_index; /* ANY without --pool */
	struct arena arena;
};

#define HISTORY_ARGS_DEFAULTS      \
	{                          \
		.db = "history.db" \
	}
#define HISTORY_ARGS_OPTIONS(q)                                                                                    \
	{ "db",	    0,	 OPTION_TEXT, "FILE", "the history to read, or the folder it is in (default: history.db)", \
	  &(q)->db, NULL },                                                                                        \
		{ "pool", 'p', OPTION_TEXT, "POOL", "only this pool: NAME or NAMESPACE/NAME", &(q)->pool, NULL },  \
	{                                                                                                          \
		"utc", 0, OPTION_FLAG, NULL, "times in UTC instead of this machine's zone", &(q)->is_utc, NULL     \
	}

bool history_args_open(struct history_args *q, struct error *e) MUST_USE;
void history_args_close(struct history_args *q);
/* "2024-05-10T08:00:00Z", the same without a zone (as printed), "-2h" before the end or "+2h" after the first tick. */
bool history_args_time(const struct history_args *q, const char *option, const char *text, millis *at,
		       struct error *e) MUST_USE;
/* The ticks that end after `from` and not after `to`; NULL leaves that side open. first > last when there are none. */
bool history_args_ticks(const struct history_args *q, const char *from, const char *to, int64_t *first, int64_t *last,
			struct error *e) MUST_USE;
/* tick_walk() with its progress on a terminal. */
bool history_args_walk(struct history_args *q, const struct tick_walk *walk, struct error *e) MUST_USE;
/* As people read it, or for programs in RFC 3339. */
void history_args_print_time(const struct history_args *q, millis at, bool for_programs, struct buf *out);
/* Milliseconds east of UTC of the times to print. */
millis history_args_offset(const struct history_args *q, millis at);
/* The manifest in force at a tick. */
bool history_args_manifest(struct history *h, int64_t tick, struct arena *a, struct manifest *m,
			   struct error *e) MUST_USE;
/* The one in force at the end, and its pools by index of history_pools(); false: it cannot be read. */
bool history_args_last_manifest(struct history_args *q, struct history_stretch *stretch, struct manifest *m) MUST_USE;
/* By index of history_pools(): the pools without prices, by the manifest in force at the end; one that cannot be read
 * takes no prices away. */
const bool *history_args_unpriced(struct history_args *q);
/* Whether `argument`, the first besides options, is none: a history is named by --db. */
bool history_args_are_options(const char *argument, struct error *e) MUST_USE;
/* Closes the history; the exit code of a verb that went well, or failed with `e`. */
int history_args_finish(struct history_args *q, const struct command *c, bool ok, const struct error *e);
