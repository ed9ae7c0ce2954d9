/*
 * The slots of shares: nodes of one GPU, or claims of one, on which engines of several pools stand, found from their
 * pods. At every reading of one of its pools a share decides (policy/share.h) what each slot does next and which
 * engines get requests; the decision is recorded with all that it depended on, and carried out where all pools of the
 * share act (engine_moves.h).
 */
#pragma once
#include "base/millis.h"
#include "base/net/loop.h"

#include <stdbool.h>
#include <stddef.h>

struct arena;
struct buf;
struct controller;

struct slots {
	struct timer timer;
	struct share_told *told; /* of each share, what was recorded last */
	struct share_follow *follows;
};

/* What the pools of a share need together, held as its rule says. */
struct share_need {
	millis at;			/* clock_mono() of the decision; 0: none yet */
	millis interval;		/* of the pool that is read least often */
	int64_t pools, read;		/* in the share; of them those whose last reading knew */
	int64_t wanted, ready, leaving; /* slots; ready: there, and stay; leaving: work until they go */
	int64_t awake;			/* engines on a slot, at most */
	bool may_act;			/* its engines are moved */
};
/* For whom an engine of a pool waits to wake. */
struct share_wait {
	millis since;	  /* clock_mono(); 0: it does not */
	millis seen;	  /* it did, last */
	char holder[254]; /* name of the pool */
};

/* As last decided; share: NAMESPACE/NAME. */
struct share_need slots_need(const struct controller *c, const char *share);

/* Why no engine of the pool wakes though requests wait: a sentence with its remedy, in the arena; NULL where that has
 * not gone on for long. */
const char *slots_waits(const struct controller *c, size_t pool, struct arena *a);

/* A pool was read, or an engine has moved: the shares decide once more, soon. */
void slots_read(struct controller *c);
/* The decision of a share between two readings ends with the term. */
void slots_stop(struct controller *c);
void slots_close(struct controller *c);
