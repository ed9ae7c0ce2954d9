#include "signals/evidence.h"

#include <inttypes.h>
#include <string.h>

/* The fastest that any engine serves one sequence with, drafts included. */
static const int64_t MOST_TOKENS_A_SECOND = 1000;
static const int64_t MOST_LITTLE = PAGE_MOST_REQUESTS * INT64_C(1000);

static bool moved(const struct counter_delta *d, enum engine_quantity q)
{
	return d->has_value[q] && d->added[q] > 0;
}

/* In thousandths of sequences: microseconds over milliseconds, thousandths of tokens over milliseconds. */
static int64_t little(const struct counter_delta *d, millis elapsed)
{
	int64_t by_time = 0, by_tokens = 0;

	if (elapsed <= 0 || d->went_back)
		return 0;
	if (d->has_value[ENGINE_LATENCY_SUM])
		by_time = d->added[ENGINE_LATENCY_SUM] / elapsed;
	if (d->has_value[ENGINE_OUTPUT_TOKENS])
		by_tokens = d->added[ENGINE_OUTPUT_TOKENS] / elapsed * 1000 / MOST_TOKENS_A_SECOND;
	int64_t most = by_time > by_tokens ? by_time : by_tokens;
	return most < MOST_LITTLE ? most : MOST_LITTLE;
}

/* What ran or waited at the last look is in service still, if it has not ended. */
static void look_for_vanished(struct evidence *e, const struct counter_delta *d)
{
	int64_t left = 0;

	e->vanished = e->running + e->waiting;
	e->ended = d->added[ENGINE_COMPLETED] / 1000;
	if (d->has_value[ENGINE_COMPLETED] && !d->went_back)
		left = e->vanished * 1000 - d->added[ENGINE_COMPLETED];
	e->unseen_milli = left < 0 ? 0 : left < EVIDENCE_UNSEEN_MILLI ? left : EVIDENCE_UNSEEN_MILLI;
}

/* Work that begins and ends between two looks is honest; to see none of it, or less than half, every time is not. Where
 * counters move only as requests end they tell of what was, and a level is believed. */
static void look_for_unseen(struct evidence *e, const struct counter_delta *d, int64_t level)
{
	int64_t was = e->running + e->waiting, most = was > level ? was : level;
	int64_t missing = e->little_milli - 2000 * most;
	int64_t each = missing < EVIDENCE_UNSEEN_MOST_MILLI ? missing : EVIDENCE_UNSEEN_MOST_MILLI;

	if (was && !level) {
		look_for_vanished(e, d);
		return;
	}
	e->vanished = 0;
	if (level && (!e->is_live || each < EVIDENCE_UNSEEN_LEAST_MILLI))
		e->unseen_milli = 0;
	else if (each < EVIDENCE_UNSEEN_LEAST_MILLI)
		e->unseen_milli /= 2;
	else if (e->unseen_milli < 2 * EVIDENCE_UNSEEN_MILLI)
		e->unseen_milli += each;
}

/* Requests of a mean length of two looks at most: told as they end, they are told soon. */
static bool is_short(const struct counter_delta *d, millis elapsed)
{
	return moved(d, ENGINE_COMPLETED) && d->has_value[ENGINE_LATENCY_SUM] &&
	       d->added[ENGINE_LATENCY_SUM] / d->added[ENGINE_COMPLETED] <= 2 * elapsed;
}

/* Chance adds nothing up where what counters tell of is compared with the mean of two levels: what is missing every
 * time does. Counters leave prefill out, and some engines refresh their levels late: a seventh and a sequence are
 * allowed. */
static void look_for_missing(struct evidence *e, const struct counter_delta *d, int64_t level, millis elapsed)
{
	int64_t shown = (e->running + e->waiting + level) * 500, allowed = shown / 7 + 1000;
	int64_t missing = e->little_milli - shown - allowed;
	millis counts = elapsed < EVIDENCE_EACH	      ? EVIDENCE_EACH
			: elapsed < 3 * EVIDENCE_EACH ? elapsed
						      : 3 * EVIDENCE_EACH;
	int64_t most = EVIDENCE_UNSEEN_MOST_MILLI * counts / EVIDENCE_EACH;

	if (missing > 0 && !e->is_live && !is_short(d, elapsed))
		return;
	e->missing_milli += missing < most ? missing : most;
	if (!shown && !e->little_milli)
		e->missing_milli /= 2;
	if (e->missing_milli < 0)
		e->missing_milli = 0;
	if (e->missing_milli > 2 * EVIDENCE_MISSING_MILLI)
		e->missing_milli = 2 * EVIDENCE_MISSING_MILLI;
}

static void look_for_progress(struct evidence *e, const struct counter_delta *d, bool has_work, millis elapsed)
{
	static const enum engine_quantity progress[] = { ENGINE_STARTED,       ENGINE_WAITED,
							 ENGINE_COMPLETED,     ENGINE_PROMPT_TOKENS,
							 ENGINE_OUTPUT_TOKENS, ENGINE_LATENCY_COUNT };
	bool is_told = false, has_moved = false;

	for (size_t i = 0; i < sizeof progress / sizeof *progress; i++) {
		is_told |= d->has_value[progress[i]];
		has_moved |= moved(d, progress[i]);
	}
	e->is_live |= d->has_value[ENGINE_COMPLETED] && !moved(d, ENGINE_COMPLETED) &&
		      (moved(d, ENGINE_OUTPUT_TOKENS) || moved(d, ENGINE_LATENCY_COUNT));
	e->stalled = has_work && is_told && !has_moved && !d->went_back ? e->stalled + elapsed : 0;
}

static void look_for_resets(struct evidence *e, bool went_back, millis elapsed)
{
	for (int i = 0; i < EVIDENCE_RESETS_MOST; i++)
		e->since_reset[i] += e->since_reset[i] ? elapsed : 0;
	if (!went_back)
		return;
	memmove(&e->since_reset[1], &e->since_reset[0], (EVIDENCE_RESETS_MOST - 1) * sizeof *e->since_reset);
	e->since_reset[0] = 1;
}

static enum evidence_verdict judge(const struct evidence *e)
{
	const millis *last = &e->since_reset[EVIDENCE_RESETS_MOST - 1];

	if (*last && *last <= EVIDENCE_RESETS_WITHIN)
		return EVIDENCE_RESETS;
	if (e->unseen_milli >= EVIDENCE_UNSEEN_MILLI || e->missing_milli >= EVIDENCE_MISSING_MILLI)
		return EVIDENCE_LEVELS;
	if (e->stalled >= (e->is_live ? EVIDENCE_HUNG_LIVE : EVIDENCE_HUNG_LATE))
		return EVIDENCE_HUNG;
	return EVIDENCE_AGREES;
}

enum evidence_verdict evidence_look(struct evidence *e, const struct page_content *page,
				    const struct counter_delta *added, millis elapsed)
{
	bool was_seen = e->running + e->waiting > 0, is_seen = page->running + page->waiting > 0;

	e->has_moved = added && (moved(added, ENGINE_STARTED) || moved(added, ENGINE_COMPLETED));
	if (e->has_look && added) {
		e->little_milli = little(added, elapsed);
		look_for_unseen(e, added, page->running + page->waiting);
		look_for_missing(e, added, page->running + page->waiting, elapsed);
		look_for_progress(e, added, was_seen && is_seen, elapsed);
		look_for_resets(e, added->went_back, elapsed);
	}
	e->has_look = true;
	e->running = page->running;
	e->waiting = page->waiting;
	e->queued_looks = page->waiting > 0 ? e->queued_looks + 1 : 0;
	e->verdict = judge(e);
	return e->verdict;
}

int64_t evidence_running(const struct evidence *e)
{
	int64_t counted = (e->little_milli + 500) / 1000;

	return e->verdict == EVIDENCE_LEVELS && counted > e->running ? counted : e->running;
}

int64_t evidence_in_flight(const struct evidence *e)
{
	int64_t there = evidence_running(e) + e->waiting;

	return there || !e->has_moved ? there : 1;
}

bool evidence_is_full(const struct evidence *e)
{
	return e->queued_looks >= EVIDENCE_FULL_LOOKS && e->stalled < EVIDENCE_STUCK && e->verdict == EVIDENCE_AGREES;
}

void evidence_tell(const struct evidence *e, struct error *out)
{
	switch (e->verdict) {
	case EVIDENCE_LEVELS:
		if (e->vanished) {
			error_set(out, ERROR_INVALID,
				  "of %" PRId64 " requests its levels show none, and its counters tell of %" PRId64
				  " that ended: have their clients gone, or are these its gauges?",
				  e->vanished, e->ended);
			return;
		}
		error_set(out, ERROR_INVALID,
			  "its levels show %s, and its counters tell of %" PRId64 ".%" PRId64
			  " in service: is it one server's page, and are these its gauges?",
			  e->running + e->waiting ? "too few requests" : "no request", e->little_milli / 1000,
			  e->little_milli % 1000 / 100);
		return;
	case EVIDENCE_HUNG:
		error_set(out, ERROR_INVALID,
			  "%" PRId64 " requests run and %" PRId64 " wait, and no counter has moved for %" PRId64
			  " s: does the engine hang, or is an old page kept in between?",
			  e->running, e->waiting, e->stalled / SECOND);
		return;
	case EVIDENCE_RESETS:
		error_set(out, ERROR_INVALID,
			  "its counters went back %d times within %" PRId64
			  " s: does it crash again and again, or do several servers answer at its address?",
			  EVIDENCE_RESETS_MOST, e->since_reset[EVIDENCE_RESETS_MOST - 1] / SECOND);
		return;
	case EVIDENCE_AGREES:
	case EVIDENCE_COUNT:
		break;
	}
	*out = (struct error){ 0 };
}
