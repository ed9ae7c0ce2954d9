/*
 * Machines of a node group that somebody else had protected from scale-in before we protected the rest: what we lift
 * again is ours alone. One line of a group, written before the first of our protection there and gone with the last.
 */
#pragma once
#include "state/history.h"

/* On disk when it returns true. */
bool guard_record_save(struct history *h, const char *group, const char *const *machines, size_t count,
		       struct error *e) MUST_USE;
bool guard_record_forget(struct history *h, const char *group, struct error *e) MUST_USE;
/* *machines is NULL without one: nothing there was protected by us, as far as the history goes back. The list is in the
 * arena. False when it cannot be read. */
bool guard_record_find(struct history *h, const char *group, struct arena *a, const char ***machines, size_t *count,
		       struct error *e) MUST_USE;
