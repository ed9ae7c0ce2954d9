/*
 * Whether what a model server tells of itself agrees: its levels (running and
 * waiting requests), what its counters added between two pages, and Little's
 * law, which ties them. A server that contradicts itself is read, with the
 * best estimate of what runs there, but nothing is scaled down by it. Pure.
 * Also whether it is full: only what runs on those tells what a replica holds.
 *
 * Little's law: the seconds between tokens that were counted within an
 * interval, over the interval, are the sequences that decoded in it on
 * average; so are the tokens, over the most that one sequence makes in a
 * second. Both leave prefill out: a lower bound.
 */
#pragma once
#include "signals/counter_delta.h"

enum evidence_verdict {
	EVIDENCE_AGREES,
	EVIDENCE_LEVELS, /* it shows no request, or too few for what its counters tell of */
	EVIDENCE_HUNG,	 /* requests run or wait there, and no counter moves */
	EVIDENCE_RESETS, /* counters went back again and again: a crash loop, a cache, or several servers */
	EVIDENCE_COUNT
};

/* Levels of nothing are no accident where chance would have shown 12 requests: it shows none once in 160,000. One
 * interval counts as at most four of them, and counts from one sequence on: engines refresh their levels late. Of
 * levels that show something what counts is what is beyond twice the higher of two, where counters move as tokens come.
 */
/* So are as many that were there at the look before, and did not end. Clients may have gone: once nothing runs it
 * halves. */
enum { EVIDENCE_UNSEEN_MILLI = 12000, EVIDENCE_UNSEEN_MOST_MILLI = 4000, EVIDENCE_UNSEEN_LEAST_MILLI = 1000 };
/* Of levels that show too little every time, what is missing adds up to so much: most of an interval, more of one that
 * is longer than this, and up to three times as much. */
enum { EVIDENCE_MISSING_MILLI = 40000 };
#define EVIDENCE_EACH (15 * SECOND)
/* Of work at hand without any progress: where counters move as tokens come; where they may move only as requests end.
 */
#define EVIDENCE_HUNG_LIVE (5 * MINUTE)
#define EVIDENCE_HUNG_LATE (15 * MINUTE)
/* So many within so long. No engine loads a model that often. */
enum { EVIDENCE_RESETS_MOST = 3 };
#define EVIDENCE_RESETS_WITHIN (10 * MINUTE)

/* A request in the queue at one look may only wait for the next batch. */
enum { EVIDENCE_FULL_LOOKS = 3 };
/* What nothing moved for so long is not full but stuck. */
#define EVIDENCE_STUCK (30 * SECOND)

/* Of one server; zeroed at first, and when it is another one. */
struct evidence {
	bool has_look, is_live;
	int64_t running, waiting; /* at the last look */
	bool has_moved;		  /* requests began or ended between the last two looks */
	int64_t queued_looks;	  /* in a row, with a request waiting */
	int64_t unseen_milli;	  /* requests that counters told of while the levels showed none, or too few */
	int64_t missing_milli;	  /* sequences by which the levels were too low for the counters, look by look */
	int64_t vanished, ended;  /* requests that were there when the levels fell to none, and ended until then */
	int64_t little_milli;	  /* sequences that decoded at least, in the last interval */
	millis stalled;		  /* for how long nothing has moved, with work at hand */
	millis since_reset[EVIDENCE_RESETS_MOST]; /* the last ones, latest first; 0: none */
	enum evidence_verdict verdict;
};

/* The levels of a page, and what its counters added since the one before; NULL: nothing is to compare it with. */
enum evidence_verdict evidence_look(struct evidence *e, const struct page_content *page,
				    const struct counter_delta *added, millis elapsed);
/* Sequences that run there: the level, or, where it shows nothing, what the counters tell of. */
int64_t evidence_running(const struct evidence *e);
/* Requests that run or wait there; one at least where some began or ended since the look before. */
int64_t evidence_in_flight(const struct evidence *e);
/* Requests have waited there at the last looks, while it worked: it runs as much as it can. */
bool evidence_is_full(const struct evidence *e);
/* ERROR_INVALID: what contradicts what, with its numbers and what to look at; for EVIDENCE_AGREES nothing. */
void evidence_tell(const struct evidence *e, struct error *out);
