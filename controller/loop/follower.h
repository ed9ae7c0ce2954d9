/*
 * A follower's copy of the leader's history, kept up through the leader's
 * API, so that whoever leads next goes on from the same memory. The newest
 * comes first: the last checkpoint and what was decided since; the time
 * before follows bit by bit, from the leader and from what was set aside
 * here. The leader's address stands in the Lease; whoever may read that may
 * read the history.
 */
#pragma once
#include "base/net/http.h"
#include "base/net/loop.h"
#include "base/net/retry.h"
#include "state/replica.h"

struct controller;

struct follower {
	struct controller *controller;
	struct history *copy;
	struct timer timer;
	struct http_request request;
	struct retry retry;
	char url[512];
	int64_t lag;	/* ticks that the leader had decided, as told last, and the copy does not hold yet */
	int64_t newest; /* tick of the leader, as told last */
	/* loop_now(): when it was told, or we began to follow; when we were kept from leading first and last, 0: never
	 */
	millis told_at, waits_since, asked_at;
	enum replica_way asked;
	uint64_t batches;
	bool has_more_to_drop; /* of the copy, by its retention */
	bool is_disk_full;     /* what came last found no room in it */
	bool is_calling, is_paused;
	/* Whoever stops the leader loses nothing: the copy held all, once, or the leader has nothing that we could
	 * copy. */
	bool is_spare, has_none; /* has_none: it has decided nothing yet */
	millis answered_at;	 /* loop_now(): by the leader, or we began to follow */
	bool was_whole; /* the copy, since it was opened: it has the leader's past, and all that was set aside */
	void (*on_turn)(struct controller *c);
};

/* Nothing without an election. `on_turn` is called before each time that the leader is asked. */
void follower_open(struct controller *c, void (*on_turn)(struct controller *c));
/* The copy is closed and left alone: we lead, and write it ourselves, or stop. */
void follower_pause(struct controller *c);
void follower_go_on(struct controller *c);
/* Ticks that the leader has decided and the copy does not hold: those that it told of, and those that it must have made
 * since, while it renewed its lease and we heard nothing. */
int64_t follower_lag(const struct controller *c);
/* Whether nothing is lost with the leader's history that we could have: the copy has held all of it, the leader has
 * none or one of another version, or has not answered for five minutes. */
bool follower_is_spare(const struct controller *c);
/* Whether we may lead after the leader: with the memory that it had. One whose copy has not come to the end waits, in
 * case the leader comes back; after five minutes without it an old memory is better than nobody. */
bool follower_may_lead(struct controller *c);
