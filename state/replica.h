/*
 * A follower's copy of a leader's history: the leader tells what is new in
 * batches, the follower takes each in one transaction. A copy is a history
 * like any other: it can be asked, replayed, and gone on with.
 */
#pragma once
#include "state/history.h"

enum replica_way {
	REPLICA_NEXT,	/* what follows; where there is nothing yet, from the first tick on */
	REPLICA_NEWEST, /* where there is nothing yet: from the last checkpoint on, so that deciding can go on at once
			 */
	REPLICA_PAST,	/* what comes before, the last of it */
};

/* An end of a copy, and what is asked for there. */
struct replica_tail {
	int64_t tick; /* -1: nothing yet */
	uint32_t crc; /* of that tick's decisions: tells histories of equal length apart */
	enum replica_way way;
};

/* A file to copy into, made when none is there. One of another version of the program is set aside. NULL on failure. */
struct history *replica_open(const char *path, struct error *e);
bool replica_tail(struct history *h, struct replica_tail *out, struct error *e) MUST_USE; /* REPLICA_NEXT */
bool replica_head(struct history *h, struct replica_tail *out, struct error *e) MUST_USE; /* REPLICA_PAST */
/* Its oldest ticks went (history_retain_...()): no past can be put before what is left. */
bool replica_was_thinned(struct history *h);

/*
 * Appends what is asked for to `out`, nothing when there is nothing: at least one tick, else about `max_bytes`.
 * ERROR_CONFLICT when `at` is not a tick of this history, or is no longer kept: the follower has to start over
 * (replica_give_way).
 */
bool replica_export(struct history *h, const struct replica_tail *at, size_t max_bytes, struct buf *out,
		    struct error *e) MUST_USE;
/*
 * Takes a batch, all or nothing. A batch that is known already changes nothing. ERROR_UNAVAILABLE when it came damaged
 * (ask again later), or the disk is full; ERROR_NOT_FOUND when it is of another version of the program, of which
 * nothing can be copied; ERROR_CONFLICT when ticks before it are missing, ERROR_INVALID when the file is damaged (start
 * over).
 */
bool replica_import(struct history *h, const void *bytes, size_t len, struct error *e) MUST_USE;

/*
 * Takes a batch of the time before the copy, which the leader has not, from a history that was set aside beside it and
 * is the same one at the copy's first tick. *more: there was one, call again.
 */
bool replica_recall(struct history *copy, bool *more, struct error *e) MUST_USE;

/*
 * Copies what `to` (of replica_open) has not yet, and tells how far it is after each batch. Either may be a file or in
 * PostgreSQL. ERROR_CONFLICT when what is there is another history's.
 */
bool replica_copy(struct history *from, struct history *to, void (*tell)(void *user, int64_t ticks), void *user,
		  struct error *e) MUST_USE;
/* In PostgreSQL: the views over all clusters made anew (schema "fleet"). Harmless for a file. */
bool replica_renew_fleet(struct history *to, struct error *e) MUST_USE;

/*
 * Closes a copy that cannot go on, and why. It may be the only long record there is, should the leader's volume be
 * lost: it is never removed. One that is another history's (ERROR_CONFLICT) or damaged (ERROR_INVALID) gets another
 * name, which is appended to `aside`; after any other failure, of the disk say, it stays where it is, to be opened and
 * tried again. False when it could not be renamed, and stays, too.
 */
bool replica_give_way(struct history *copy, const struct error *why, struct buf *aside, struct error *e) MUST_USE;
/*
 * For a copy that is whole: of more than three that were set aside beside it the shortest goes, and its name is
 * appended to `dropped`, if the copy covers all of its time. What it does not cover, or nobody can read, stays.
 */
bool replica_drop_aside(struct history *copy, struct buf *dropped, struct error *e) MUST_USE;
