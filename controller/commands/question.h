/* What history, explain and replay have in common: which file, which pool, times as people write them. */
#pragma once
#include "base/options.h"
#include "state/history.h"

struct question {
	/* options, with their defaults */
	const char *db;	  /* a history, or the folder that a simulation wrote */
	const char *pool; /* NULL: any */
	bool is_utc;
	bool may_be_empty;     /* a history without ticks is opened, too */
	bool needs_no_records; /* sums of hours will do: also histories of programs with other records */

	/* after question_open */
	struct history *history;
	struct history_span span;
	int64_t pool_index; /* ANY without --pool */
	struct arena arena;
};

#define QUESTION_DEFAULTS          \
	{                          \
		.db = "history.db" \
	}
#define QUESTION_OPTIONS(q)                                                                                        \
	{ "db",	    0,	 OPTION_TEXT, "FILE", "the history to read, or the folder it is in (default: history.db)", \
	  &(q)->db, NULL },                                                                                        \
		{ "pool", 'p', OPTION_TEXT, "POOL", "only this pool: NAME or NAMESPACE/NAME", &(q)->pool, NULL },  \
	{                                                                                                          \
		"utc", 0, OPTION_FLAG, NULL, "times in UTC instead of this machine's zone", &(q)->is_utc, NULL     \
	}

bool question_open(struct question *q, struct error *e) MUST_USE;
void question_close(struct question *q);
/* "2024-05-10T08:00:00Z", the same without a zone (as printed), "-2h" before the end or "+2h" after the first tick. */
bool question_time(const struct question *q, const char *option, const char *text, millis *at,
		   struct error *e) MUST_USE;
/* The ticks that end after `from` and not after `to`; NULL leaves that side open. first > last when there are none. */
bool question_ticks(const struct question *q, const char *from, const char *to, int64_t *first, int64_t *last,
		    struct error *e) MUST_USE;
/* As people read it, or for programs in RFC 3339. */
void question_print_time(const struct question *q, millis at, bool for_programs, struct buf *out);
/* Milliseconds east of UTC of the times to print. */
millis question_offset(const struct question *q, millis at);
