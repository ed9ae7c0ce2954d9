/* What a replica recorded, decided again: for the tests of worlds. */
#pragma once
#include "controller/policy/decide.h"
#include "controller/restore/restore.h"
#include "state/history.h"

#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static inline bool is_as_stored(const struct plan *plan, const struct pool_plan **stored)
{
	for (size_t i = 0; i < plan->pool_count; i++)
		if (memcmp(&plan->pools[i].decision, &stored[i]->decision, sizeof stored[i]->decision) != 0)
			return false;
	return true;
}

/* Whoever decides the ticks again, through all the manifests, comes to what was decided. Returns how many decisions lay
 * between ticks; no two of them within a second. */
static inline int64_t assert_replays(const char *path)
{
	struct error e = { 0 };
	struct history_span span = { 0 };
	struct cursor_tick t = { 0 };
	struct history *h = history_open(path, &e);
	struct policy_state *memory = NULL, *next = NULL;
	int64_t between = 0, last = 0;
	struct tick_cursor *w = h && history_span(h, &span, &e) ? tick_cursor_open(h, span.first_tick, &e) : NULL;

	if (!w)
		fail_msg("%s", e.message);
	for (int64_t tick = span.first_tick; tick <= span.last_tick; tick++) {
		CLEANUP(arena_release) struct arena a = { 0 };
		if (!tick_cursor_next(w, &t, &e))
			fail_msg("%s", e.message);
		next = !memory ? policy_state_new(t.snapshot.fleet)
		       : t.was ? policy_state_migrate(memory, t.was, t.snapshot.fleet)
			       : memory;
		if (next != memory)
			policy_state_free(memory);
		memory = next;
		struct plan plan = policy_decide(&t.snapshot, memory, &a);
		if (!is_as_stored(&plan, t.plans))
			fail_msg("tick %" PRId64 " is decided otherwise when it is decided again", tick);
		if (t.snapshot.interval == 0) {
			assert_true(t.snapshot.now - last >= SECOND);
			last = t.snapshot.now;
			between++;
		}
	}
	policy_state_free(memory);
	tick_cursor_close(w);
	history_close(h);
	return between;
}
