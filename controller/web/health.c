#include "controller/web/health.h"

#include "base/terminal.h"

static const struct published_watch *unsynced(const struct published *p)
{
	for (size_t i = 0; i < p->watch_count; i++)
		if (!p->watches[i].is_synced)
			return &p->watches[i];
	return NULL;
}

static bool is_fine(struct buf *why, const char *text)
{
	buf_text(why, text);
	return true;
}

static millis later(millis a, millis b)
{
	return a > b ? a : b;
}

bool health_is_alive(const struct published *p, millis now_mono, struct buf *why)
{
	/* An API server that is away is waited for: a restart would not bring it back. */
	if (!p || p->is_stopping || !p->tick_due_mono || unsynced(p))
		return is_fine(why, "ok");
	millis began = later(p->tick_begun_mono, p->tick_due_mono);
	if (now_mono - began <= HEALTH_INTERVALS * p->tick_interval)
		return is_fine(why, "ok");
	bool in_tick = p->tick_begun_mono > p->tick_ended_mono;
	buf_printf(why, "wedged: a tick is due every %s, and ", human_duration(p->tick_interval).text);
	if (p->tick_begun_mono >= p->tick_due_mono)
		buf_printf(why, "the last one began %s ago%s", human_duration(now_mono - p->tick_begun_mono).text,
			   in_tick ? " and is not over" : "");
	else
		buf_printf(why, "none has begun since one was due %s ago",
			   human_duration(now_mono - p->tick_due_mono).text);
	if (p->tick_waits_for)
		buf_printf(why, "; it waits for %s", p->tick_waits_for);
	return false;
}

static bool is_missing(const struct published *p, struct buf *why)
{
	const struct published_watch *w = unsynced(p);

	if (p->is_stopping) {
		buf_text(why, "stopping");
	} else if (p->history_error.kind != ERROR_NONE) {
		buf_printf(why, "%s", p->history_error.message);
	} else if (p->obstacle) {
		buf_text(why, p->obstacle);
	} else if (w) {
		buf_printf(why, "%s have not been read from the API server", w->resource);
		if (w->trouble)
			buf_printf(why, ": %s", w->trouble);
	} else if (p->role != ROLE_FOLLOWER && p->fleet && p->fleet->pool_count && !p->ticks) {
		buf_text(why, "no decision yet");
	} else {
		return false;
	}
	return true;
}

bool health_is_ready(const struct published *p, struct buf *why)
{
	CLEANUP(buf_release) struct buf missing = { 0 };

	if (!p || !p->fleet || is_missing(p, &missing)) {
		buf_printf(why, "not ready: %s", missing.len ? missing.text : "starting");
		return false;
	}
	if (p->role == ROLE_FOLLOWER && p->leader && *p->leader)
		buf_printf(why, "ready: following %s, %lld ticks behind", p->leader, (long long)p->history_lag_ticks);
	else if (p->role == ROLE_FOLLOWER)
		buf_text(why, "ready: nobody leads yet");
	else
		buf_printf(why, "ready: leading%s%s", p->fleet->pool_count ? "" : ", no pools to decide on",
			   p->is_dry_run ? ", dry run: nothing is changed" : "");
	return true;
}
