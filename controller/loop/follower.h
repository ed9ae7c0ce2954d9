/*
 * A follower's copy of the leader's history, kept up through the leader's
 * API, so that whoever leads next goes on from the same memory. The leader's
 * address stands in the Lease; whoever may read that may read the history.
 */
#pragma once
#include "base/net/http.h"
#include "base/net/loop.h"
#include "base/net/retry.h"

struct controller;
struct history;

struct follower {
	struct controller *controller;
	struct history *copy;
	struct timer timer;
	struct http_request request;
	struct retry retry;
	char url[512];
	int64_t lag;	/* ticks that the leader has decided and the copy does not hold yet; 0 when not known */
	int64_t newest; /* tick of the leader, as told last */
	bool is_calling, is_paused;
	bool was_whole; /* the copy, since it was opened */
	void (*on_turn)(struct controller *c);
};

/* Nothing without an election. `on_turn` is called before each time that the leader is asked. */
void follower_open(struct controller *c, void (*on_turn)(struct controller *c));
/* The copy is closed and left alone: we lead, and write it ourselves, or stop. */
void follower_pause(struct controller *c);
void follower_go_on(struct controller *c);
