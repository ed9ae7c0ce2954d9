/*
 * A call's life, the same for every provider: begun from the loop, ended by
 * exactly one done(), cancelled at most once. What stands between is the
 * provider's own: its requests, one after another.
 *
 * A provider embeds struct provider first in what it opens, and struct
 * exchange first in what it keeps of a call under way.
 */
#pragma once
#include "base/net/loop.h"
#include "providers/provider.h"

struct exchange;

struct exchange_kind {
	size_t size; /* of the provider's own struct, zeroed at the start of a call */
	millis read_deadline, change_deadline, cancel_deadline; /* cancel_deadline 0: as of any change */
	bool protects;						/* PROVIDER_PROTECT */
	/* What is wrong with the call beyond what exchange_start() looks at, into its error; reads the settings. */
	bool (*accepts)(struct exchange *x) MUST_USE;
	void (*begin)(struct exchange *x); /* from the loop; nothing was wrong, nobody cancelled */
	/* Ends the request under way, whose answer then calls exchange_finish(); false: none is. */
	bool (*cancel)(struct exchange *x);
	void (*end)(struct exchange *x); /* gives up what it holds; the call has its outcome */
};

struct provider {
	const struct exchange_kind *kind;
	struct loop *loop;
	size_t active;
};

struct exchange {
	struct provider *provider;
	struct provider_call *call;
	struct timer timer;	  /* starts the call; a provider that pauses may use it */
	millis deadline, ends_at; /* of all of it; ends_at: loop_now */
	bool is_cancelled;
};

/* The ops `start` and `cancel` of every provider. */
void exchange_start(struct provider *p, struct provider_call *c);
void exchange_cancel(struct provider *p, struct provider_call *c);
/* Ends the call with what stands in its error, whose text gets group and verb in front. The exchange is gone then. */
void exchange_finish(struct exchange *x);
/* Time that is left, at least 1. */
millis exchange_left(const struct exchange *x);
bool provider_verb_changes(enum provider_verb verb);

/* One more of its cautions; the text is kept as it is, the list is in the arena. */
void group_description_caution(struct group_description *d, struct arena *a, const char *text);
/* What its cloud promises of new nodes, and a caution about what of that makes no sense. */
void group_description_promise(struct group_description *d, struct arena *a, const struct node_promise *p);
/* Machines oldest first, as far as that is told, else by id; failures by their number. */
void group_description_sort(struct group_description *d);
/* The same, and ERROR_INVALID where an id stands twice: that machine would be counted twice. */
bool group_description_check(struct group_description *d, struct arena *a, struct error *e) MUST_USE;
