/*
 * What should be changed: this program runs once more as `advise`, in a
 * process of its own, at most once a day or when somebody asks. What it came
 * to is kept in memory, and where a controller writes the history also in a
 * file beside it, so that a restart and `preheat status` know it.
 */
#pragma once
#include "base/arena.h"
#include "base/error.h"
#include "base/net/loop.h"

#include <stdint.h>

enum recommending { RECOMMEND_NEVER, RECOMMEND_TRYING, RECOMMEND_TRIED, RECOMMEND_FAILED };

/* One change that pays, by the columns of `preheat advise`. */
struct recommendation {
	const char *namespace, *pool, *change;
	const char *needs;			      /* NULL: nothing */
	int64_t saves, dollars;			      /* micro-dollars a day; what it saves may be negative */
	int64_t late_ppm, late_with_ppm, allowed_ppm; /* now; with it; by the objective, as it is with it */
};

struct recommended {
	enum recommending state;
	millis tried_at;		    /* what stands in items; 0: never */
	const struct recommendation *items; /* the best first; also while the next ones are tried */
	size_t count;
	const char *message; /* why the last try failed; "" */
};

struct recommendations;

struct recommendations_setup {
	struct loop *loop;
	const char *program; /* to run; must outlive it */
	const char *history; /* likewise */
	bool is_kept;	     /* beside the history */
};

struct recommendations *recommendations_open(const struct recommendations_setup *setup);
/* Ends what runs, and returns when it is gone. Takes NULL. */
void recommendations_close(struct recommendations *r);
/* As it stands, valid until the loop runs. Begins to try when the last time was a day ago (an hour when it failed). */
const struct recommended *recommendations_look(struct recommendations *r);
/* Tries now; nothing where one runs. */
void recommendations_ask(struct recommendations *r);

/* What was kept beside a history; RECOMMEND_NEVER where nothing was. Texts live in the arena. */
bool recommendations_read(const char *history, struct arena *a, struct recommended *out, struct error *e) MUST_USE;
