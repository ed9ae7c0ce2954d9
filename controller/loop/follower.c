#include "controller/loop/follower.h"

#include "base/quantity.h"
#include "controller/loop/controller_state.h"
#include "state/reserve.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BATCH_MOST = 64 << 20 };

enum { BEHIND_MOST = 10 }; /* ticks: what is missing is decided anew, from a memory of minutes ago */

static const millis ASK_EVERY = 2 * SECOND, ASK_TIMEOUT = 20 * SECOND; /* of the world */
static const millis SILENCE_MOST = 5 * MINUTE,
		    ASKED_AGAIN = MINUTE; /* a lease that ran out is looked at every few seconds */

static void ask(struct timer *t);

static void again(struct follower *f, millis after)
{
	f->timer.user = f;
	if (!f->controller->is_stopping && !f->is_paused)
		timer_start(f->controller->loop, &f->timer, after, ask);
}

static void close_copy(struct follower *f)
{
	history_close(f->copy);
	f->copy = NULL;
}

/* A history of ours that is not the leader's, or is damaged, makes way for the leader's; any other is tried again. */
static void give_way(struct follower *f, const struct error *why)
{
	CLEANUP(buf_release) struct buf name = { 0 };
	struct error e = { 0 };

	log_warn("history-copy-failed", LOG_E(why), LOG_END);
	f->lag = f->newest + 1;
	f->is_spare = false;
	if (!replica_give_way(f->copy, why, &name, &e))
		log_warn("history-not-set-aside", LOG_E(&e), LOG_END);
	else if (name.len)
		log_warn("history-set-aside", LOG_S("as", name.text), LOG_END);
	f->copy = NULL;
}

/* Each that was set aside is as large as a history. */
static void note_whole(struct follower *f)
{
	CLEANUP(buf_release) struct buf name = { 0 };
	struct error e = { 0 };

	f->was_whole = true;
	if (!replica_drop_aside(f->copy, &name, &e))
		log_warn("history-aside-not-read", LOG_E(&e), LOG_END);
	else if (name.len)
		log_warn("history-aside-dropped", LOG_S("file", name.text),
			 LOG_S("why", "the shortest of more than three, and the copy covers its time"), LOG_END);
}

/* The leader has no more of the past. What is set aside here may. */
static bool recall(struct follower *f, struct error *e)
{
	bool more;

	if (!replica_recall(f->copy, &more, e))
		return false;
	if (!more)
		note_whole(f);
	return true;
}

/* Who may hold no more asks for no more of the past. */
static void thin(struct follower *f)
{
	enum { LOOKED_EVERY = 20 };
	const struct controller *c = f->controller;

	if ((f->has_more_to_drop || f->batches++ % LOOKED_EVERY == 0) &&
	    retention_thin(&c->settings.retention, f->copy, clock_now(c->clock), fleet_of(c)->pool_count,
			   &f->has_more_to_drop))
		f->was_whole = true;
}

/* False when it has to be asked again after a while. */
static bool take(struct follower *f, const struct http_request *r)
{
	struct replica_tail tail = { .tick = -1 };
	struct error e = { 0 };

	if (r->response_len ? !replica_import(f->copy, r->response, r->response_len, &e)
			    : f->asked == REPLICA_PAST && !recall(f, &e)) {
		f->is_disk_full = history_lacks_room(f->copy);
		give_way(f, &e);
		f->is_spare = e.kind == ERROR_NOT_FOUND;
		return false;
	}
	f->is_disk_full = false;
	if (replica_tail(f->copy, &tail, &e))
		f->lag = f->newest - tail.tick;
	thin(f);
	f->is_spare |= f->was_whole && f->lag <= BEHIND_MOST;
	return true;
}

/* Before anything is taken: nothing may come of it. */
static void note_newest(struct follower *f, const char *last)
{
	struct replica_tail tail;
	struct error e;

	if (fixed_parse(last, strlen(last), 0, &f->newest))
		f->told_at = loop_now(f->controller->loop);
	else
		f->newest = 0;
	if (f->copy && replica_tail(f->copy, &tail, &e))
		f->lag = f->newest > tail.tick ? f->newest - tail.tick : 0;
}

static void answered(struct http_request *r)
{
	struct follower *f = r->user;
	millis wait = ASK_EVERY;

	const char *last = http_header(r, "Preheat-Last-Tick");
	f->is_calling = false;
	if (last) {
		note_newest(f, last);
		f->has_none = !f->newest;
	}
	if (last && r->error.kind == ERROR_NONE && r->status == 200)
		f->answered_at = loop_now(f->controller->loop);
	if (f->controller->is_stopping || f->is_paused || !f->copy)
		return;
	if (r->error.kind == ERROR_NONE && r->status == 200) {
		bool is_taken = take(f, r);
		if (is_taken)
			retry_reset(&f->retry);
		wait = !is_taken ? retry_next(&f->retry, 0) : f->lag > 0 || !f->was_whole ? 0 : ASK_EVERY;
	} else if (r->error.kind == ERROR_NONE && r->status == 409) {
		give_way(f, &(struct error){ ERROR_CONFLICT, "the leader's history is another one" });
		wait = retry_next(&f->retry, 0);
	} else {
		wait = retry_next(&f->retry, 0);
	}
	again(f, wait);
}

static bool open_copy(struct follower *f)
{
	struct error e = { 0 };

	if (f->copy)
		return true;
	f->copy = replica_open(f->controller->settings.history_path, &e);
	if (!f->copy)
		log_warn("history-copy-not-opened", LOG_E(&e), LOG_END);
	else /* for the day that we lead: copying does not give it up */
		reserve_make(f->controller->settings.history_path, reserve_free(f->controller->settings.history_path));
	f->was_whole = f->copy && replica_was_thinned(f->copy);
	return f->copy != NULL;
}

/* The newest first; then the past in turn with what the leader decides meanwhile. */
static bool find_end(struct follower *f, struct replica_tail *end, struct error *e)
{
	bool is_past = f->copy && f->lag == 0 && f->newest > 0 && !f->was_whole && f->asked != REPLICA_PAST;

	if (!(is_past ? replica_head(f->copy, end, e) : replica_tail(f->copy, end, e)))
		return false;
	if (end->tick < 0)
		end->way = REPLICA_NEWEST;
	f->asked = end->way;
	return true;
}

static void ask(struct timer *t)
{
	struct follower *f = t->user;
	struct controller *c = f->controller;
	const char *address = c->leader.lease ? lease_holder_address(c->leader.lease) : "";
	struct replica_tail end = { .tick = -1 };
	struct error e = { 0 };

	clock_skew_keep(c);
	f->on_turn(c); /* also what keeps us from following */
	if (f->is_calling || !address[0] || lease_is_held(c->leader.lease) || !open_copy(f)) {
		again(f, ASK_EVERY);
		return;
	}
	if (!find_end(f, &end, &e)) {
		give_way(f, &e);
		again(f, retry_next(&f->retry, 0));
		return;
	}
	snprintf(f->url, sizeof f->url, "%s&tick=%" PRId64 "&crc=%" PRIu32 "&way=%d", address, end.tick, end.crc,
		 (int)end.way);
	f->request = (struct http_request){ .method = "GET",
					    .url = f->url,
					    .timeout = ASK_TIMEOUT,
					    .max_response = BATCH_MOST,
					    .done = answered,
					    .user = f };
	f->is_calling = true;
	http_start(c->settings.http, &f->request);
}

void follower_open(struct controller *c, void (*on_turn)(struct controller *c))
{
	struct follower *f = &c->follower;

	f->controller = c;
	f->on_turn = on_turn;
	f->retry = retry_make(SECOND, 15 * SECOND, api_random(c->api, "follow"));
	f->told_at = f->answered_at = loop_now(c->loop);
	if (c->leader.lease)
		again(f, 0);
}

void follower_pause(struct controller *c)
{
	struct follower *f = &c->follower;

	f->is_paused = true;
	f->is_disk_full = false;
	f->lag = 0;
	timer_stop(&f->timer);
	if (f->is_calling)
		http_cancel(&f->request);
	close_copy(f);
}

void follower_go_on(struct controller *c)
{
	struct follower *f = &c->follower;

	if (!f->is_paused)
		return;
	f->is_paused = false;
	f->told_at = f->answered_at = loop_now(c->loop);
	if (c->leader.lease)
		again(f, ASK_EVERY);
}

int64_t follower_lag(const struct controller *c)
{
	const struct follower *f = &c->follower;
	millis unheard = c->leader.lease && !f->is_paused ? lease_changed_at(c->leader.lease) - f->told_at : 0;

	return f->lag + (unheard > 0 ? unheard / clock_real(c->clock, c->settings.interval) : 0);
}

bool follower_is_spare(const struct controller *c)
{
	const struct follower *f = &c->follower;

	return f->is_spare || f->has_none || loop_now(c->loop) - f->answered_at >= SILENCE_MOST;
}

bool follower_may_lead(struct controller *c)
{
	struct follower *f = &c->follower;
	millis now = loop_now(c->loop);

	if (follower_lag(c) <= BEHIND_MOST)
		return true;
	if (!f->waits_since || now - f->asked_at > ASKED_AGAIN)
		f->waits_since = now;
	f->asked_at = now;
	return now - f->waits_since >= SILENCE_MOST;
}
