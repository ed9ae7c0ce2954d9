/*
 * What a cloud accepted of late, and so what its reads must show. Reads of a
 * cloud are eventually consistent: one that was served from an older copy
 * shows the size before a write, or a machine that is gone. Until a write is
 * seen, or for LAG_MOST after it was accepted, a read that contradicts it is
 * not believed. Pure bookkeeping, in milliseconds of a clock that never goes
 * back; where wall time is meant, it says so.
 */
#pragma once
#include "providers/provider.h"

struct accepted_removal {
	char *id;
	enum provider_verb verb;
	bool is_gone;	  /* a read showed it */
	bool may_be_left; /* where another of its call is gone, it was left alone */
	int64_t call;
	millis until, at; /* at: wall time */
};

struct accepted {
	int64_t least;	 /* machines that the size was raised to and not lowered from; -1: nothing is known of that */
	int64_t standby; /* the size of standby that was asked for and was not seen yet; -1: none */
	int64_t most; /* the size that a cancel lowered it to, or what was there by then; -1: none did, or it was raised
			 since */
	millis least_until, standby_until, most_until;
	/* The size that the last removal was to lower; -1: none was, or it was raised since. has_fallen: a read showed
	 * it. */
	int64_t before;
	millis before_until;
	bool has_fallen;
	millis at;     /* wall time of the last write */
	int64_t calls; /* so many named machines */
	struct accepted_removal *removals;
	size_t count, room;
};

/* A change as it was sent. */
struct accepted_call {
	enum provider_verb verb;
	int64_t desired;
	const char *const *ids;
	size_t id_count;
	int64_t size;	  /* that it was decided on; 0: not known */
	bool is_recalled; /* of an earlier life: which of its machines were asked to end is not known */
	millis at;	  /* wall time when it was sent */
	millis mono;	  /* the same */
};

/* Nothing was accepted. */
struct accepted accepted_none(void);
void accepted_release(struct accepted *a);
void accepted_note(struct accepted *a, const struct accepted_call *c);
/*
 * Whether a read that began at `began` shows what was accepted, or is to be believed nevertheless: it began later than
 * LAG_MOST after the write, or where nothing launches anew what failed it tells of launches that failed since (their
 * ids are above `last_failure`) and lacks no more machines than these, or it shows the size and that the cloud is still
 * at work.
 */
bool accepted_shows(const struct accepted *a, const struct group_description *d, millis began, int64_t last_failure);
/* Whether a read lacks a machine that boots by the one believed before and that we did not name, at the same size and
 * without a launch that failed since: for LAG_MOST after the size was raised that is an older copy. A read that shows
 * one which was not there is newer. */
bool accepted_forgets(const struct accepted *a, const struct group_description *before,
		      const struct group_description *d, millis began, int64_t last_failure);
/* Whether the size that a believed read shows may be that of before a cancel: where so many machines are there as well,
 * the read may be older, or the cancel may have come too late. */
bool accepted_leaves_doubt(const struct accepted *a, const struct group_description *d, millis began);
/* A read that was believed: what it shows is what later ones must show. */
void accepted_seen(struct accepted *a, const struct group_description *d, millis began);
