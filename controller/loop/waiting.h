/*
 * At the event, not at the tick: pods that somebody else asks for, and that a scheduler found no node for, are decided
 * on as soon as no more of them arrive, at most a second after the first. What is decided is recorded as a tick of no
 * length (snapshot.h) and done; whatever it leaves open is the next tick's. At most one such decision a second.
 */
#pragma once
#include "base/net/loop.h"
#include "controller/cluster/model.h"

struct controller;

struct waiting {
	struct timer timer;
	bool is_due;	  /* pods wait that no decision knows of */
	millis first, at; /* clock_mono: the first of them came; the last decision between ticks */
	bool has_decided; /* at */
	char *kept;	  /* what the history knows of those that are given up; NULL: nothing was read */
};

/* A pod changed, or what one waits for was read; the loop calls it for each change. */
void waiting_pod(struct controller *c, const struct cluster_event *e);
/* What was bought for them was refused, while we lead: another node group may have it. */
void waiting_again(struct controller *c);
/* A tick decided on all that wait; or we lead no more. */
void waiting_taken(struct controller *c);
/* Who is given up: what the last leader knew, on becoming one, and nothing of whose its machines are; at each tick what
 * we know; and to free it. */
void waiting_recall(struct controller *c);
void waiting_keep(struct controller *c);
void waiting_release(struct waiting *w);
