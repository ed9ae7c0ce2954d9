/*
 * Readings of the past, told again at the pace at which they came by the
 * controller's clock: the first one as soon as it opens. For trying decisions
 * on signals that are no more, or before there is anything to read.
 */
#pragma once
#include "base/net/loop.h"
#include "signals/source.h"

struct recorded_source_settings {
	struct source_settings source;	     /* interval and engine are not used */
	const struct pool_reading *readings; /* by time; must outlive it */
	size_t reading_count;
	millis begun;		  /* the time in the recording that is now: of all pools the same */
	void (*over)(void *user); /* once, from the loop, after the last reading; may be NULL */
	void *over_user;
};

struct source *recorded_source_open(struct loop *loop, const struct clock *clock,
				    const struct recorded_source_settings *s);
