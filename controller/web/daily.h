/*
 * What takes too long for a request: this program runs once more with other
 * arguments, in a process of its own that stands back: at most once a day when
 * somebody looks, also when nobody does where that is said, or when asked. What it said is kept in memory, and where a
 * controller writes the history also in a file beside it, so that a restart and `preheat status` know it.
 */
#pragma once
#include "base/arena.h"
#include "base/error.h"
#include "base/net/loop.h"

enum daily_state { DAILY_NEVER, DAILY_TRYING, DAILY_TRIED, DAILY_FAILED };
extern const char *const daily_state_names[]; /* ends in NULL */

struct daily;

/* One question that is asked again and again. */
struct daily_question {
	const char *const *arguments; /* the verb and its options, but --db; ends in NULL */
	const char *suffix;	      /* of the file beside the history: ".advice.json" */
	size_t output_most;
	millis timeout;
	/* Reads what the program said into a new answer in the arena; NULL with an error. */
	void *(*read)(const char *text, size_t len, struct arena *a, struct error *e);
};

struct daily_setup {
	struct loop *loop;
	const char *program; /* to run; must outlive it */
	const char *history; /* likewise */
	bool is_kept;	     /* beside the history */
	millis looks_every;  /* it looks by itself; 0: others do */
};

struct daily_shown {
	enum daily_state state;
	millis tried_at;     /* what stands in the answer; 0: never */
	const void *answer;  /* NULL: none yet; stays while the next one is tried */
	const char *message; /* why the last try failed; "" */
};

struct daily *daily_open(const struct daily_setup *setup, const struct daily_question *question);
/* Ends what runs, and returns when it is gone. Takes NULL. */
void daily_close(struct daily *d);
/* As it stands, valid until the loop runs. Begins to try when the last time was a day ago (an hour when it failed). */
const struct daily_shown *daily_look(struct daily *d);
/* Tries now; nothing where one runs. */
void daily_ask(struct daily *d);

/* What was kept beside a history; DAILY_NEVER where nothing was. The answer lives in the arena. */
bool daily_read(const char *history, const struct daily_question *question, struct arena *a, struct daily_shown *out,
		struct error *e) MUST_USE;
