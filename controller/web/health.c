#include "controller/web/health.h"

#include "base/human.h"

bool health_is_alive(const struct published *p, millis now_mono, struct buf *why)
{
	bool in_tick = p && p->tick_begun_mono > p->tick_ended_mono;

	/* A follower, and a leader that still reads the cluster, make no ticks. */
	if (!p || p->role == ROLE_FOLLOWER || !p->tick_begun_mono || p->is_stopping) {
		buf_text(why, "ok");
		return true;
	}
	millis since = now_mono - p->tick_begun_mono;
	if (since <= HEALTH_INTERVALS * p->tick_interval) {
		buf_text(why, "ok");
		return true;
	}
	buf_printf(why, "wedged: the last tick began %s ago and is %s", human_duration(since).text,
		   in_tick ? "not over" : "over, but no other followed");
	if (in_tick && p->tick_waits_for)
		buf_printf(why, "; it waits for %s", p->tick_waits_for);
	buf_printf(why, " (due every %s)", human_duration(p->tick_interval).text);
	return false;
}

static bool is_synced(const struct published *p, struct buf *why)
{
	for (size_t i = 0; i < p->watch_count; i++) {
		const struct published_watch *w = &p->watches[i];
		if (w->is_synced)
			continue;
		buf_printf(why, "not ready: %s have not been read from the API server", w->resource);
		if (w->trouble)
			buf_printf(why, ": %s", w->trouble);
		return false;
	}
	return true;
}

bool health_is_ready(const struct published *p, struct buf *why)
{
	if (!p || p->is_stopping) {
		buf_text(why, p ? "not ready: stopping" : "not ready: starting");
		return false;
	}
	if (p->history_error.kind != ERROR_NONE) {
		buf_printf(why, "not ready: %s", p->history_error.message);
		return false;
	}
	if (!is_synced(p, why))
		return false;
	if (p->role == ROLE_FOLLOWER) {
		buf_printf(why, "ready: following %s", p->leader && *p->leader ? p->leader : "nobody yet");
		return true;
	}
	if (!p->ticks) {
		buf_text(why, "not ready: no decision yet");
		return false;
	}
	buf_printf(why, "ready: leading%s", p->is_dry_run ? ", dry run: nothing is changed" : "");
	return true;
}
