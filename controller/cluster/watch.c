#include "controller/cluster/watch_parts.h"

#include "base/log.h"

#include <stdlib.h>
#include <string.h>

/* A page of many objects takes its time, but never stands still for so long. */
#define LIST_SILENCE MINUTE
/* A watch that ended sooner than that is not begun again at once. */
#define WATCH_SHORT (5 * SECOND)

static void begin(struct watch *w);
static void ended(struct api_call *c);

const char *watch_state_name(enum watch_state s)
{
	switch (s) {
	case WATCH_STARTING:
		return "starting";
	case WATCH_SYNCED:
		return "synced";
	case WATCH_BEHIND:
		return "behind";
	case WATCH_ABSENT:
		return "absent";
	case WATCH_REFUSED:
		return "refused";
	case WATCH_STOPPED:
		return "stopped";
	}
	return "";
}

const char *watch_name(const struct watch *w)
{
	return w->spec.name;
}

bool watch_is_synced(const struct watch *w)
{
	return w->report.lists && w->report.state != WATCH_REFUSED;
}

const struct watch_report *watch_report(const struct watch *w)
{
	return &w->report;
}

static void free_watch(struct watch *w)
{
	void (*on_stopped)(void *user) = w->spec.on_stopped;
	void *user = w->spec.user;

	decoder_close(w->decoder);
	watch_reading_close(&w->reading);
	watch_set_release(&w->set);
	buf_release(&w->path);
	buf_release(&w->resource_version);
	buf_release(&w->next);
	buf_release(&w->seen_version);
	timer_stop(&w->timer);
	free(w);
	if (on_stopped)
		on_stopped(user);
}

static void timer_fired(struct timer *t)
{
	struct watch *w = t->user;

	if (w->is_stopped)
		free_watch(w);
	else
		begin(w);
}

static void begin_after(struct watch *w, millis wait)
{
	w->timer.user = w;
	timer_start(api_loop(w->api), &w->timer, wait, timer_fired);
}

/* One watch of five minutes and up to one more, so that many do not end together. */
static void add_timeout(struct watch *w)
{
	double spread = random_uniform(&w->retry.random) * WATCH_TIMEOUT / 5;

	buf_printf(&w->path, "&timeoutSeconds=%d", WATCH_TIMEOUT + (int)spread);
}

static void write_path(struct watch *w)
{
	bool is_watch = w->is_streaming || !w->is_listing;

	buf_clear(&w->path);
	buf_text(&w->path, w->spec.path);
	api_query(&w->path, "labelSelector", w->spec.label_selector);
	api_query(&w->path, "fieldSelector", w->spec.field_selector);
	if (is_watch) {
		api_query(&w->path, "watch", "true");
		api_query(&w->path, "allowWatchBookmarks", "true");
		add_timeout(w);
	}
	if (!w->is_listing) {
		api_query(&w->path, "resourceVersion", w->resource_version.text);
	} else if (w->is_streaming) {
		api_query(&w->path, "sendInitialEvents", "true");
		api_query(&w->path, "resourceVersionMatch", "NotOlderThan");
	} else if (w->spec.way == WATCH_WHOLE && !w->next.len) {
		const char *oldest = w->seen_version.len ? w->seen_version.text : "0";
		api_query(&w->path, "resourceVersion", w->must_ask_etcd ? NULL : oldest);
	} else {
		buf_printf(&w->path, "%climit=%d", strchr(w->path.text, '?') ? '&' : '?',
			   w->spec.page ? w->spec.page : WATCH_PAGE);
		api_query(&w->path, "continue", w->next.len ? w->next.text : NULL);
	}
}

static void not_accepted(struct timer *t)
{
	struct watch *w = t->user;

	if (!w->is_stopped)
		api_cancel(&w->call);
}

/* The server streams from here on what we lack, at once. */
static void accepted(struct api_call *c)
{
	struct watch *w = c->user;

	timer_stop(&w->timer);
	w->refusals = 0;
	w->is_accepted = true;
	if (w->is_listing || w->is_stopped)
		return;
	w->report.state = WATCH_SYNCED;
	w->report.trouble = (struct error){ 0 };
}

static void begin(struct watch *w)
{
	bool is_new_list = !w->resource_version.len && !w->next.len;

	if (is_new_list)
		w->list++;
	w->is_listing = !w->resource_version.len;
	w->is_streaming = w->is_listing && w->spec.way == WATCH_STREAMED && !w->cannot_stream;
	w->must_list = w->is_accepted = false;
	w->report.reconnects += !w->is_listing && w->report.lists != 0;
	w->begun = loop_now(api_loop(w->api));
	write_path(w);
	watch_expect(w, w->is_listing && !w->is_streaming);
	bool is_watch = w->is_streaming || !w->is_listing;
	w->call = (struct api_call){
		.path = w->path.text,
		.is_single = true,
		.silence = !is_watch	     ? LIST_SILENCE
			   : w->spec.silence ? w->spec.silence
					     : WATCH_SILENCE,
		.on_chunk = watch_take_chunk,
		.on_accepted = accepted,
		.done = ended,
		.user = w,
	};
	w->is_calling = true;
	api_start(w->api, &w->call);
	w->timer.user = w;
	if (!w->is_listing)
		timer_start(api_loop(w->api), &w->timer, WATCH_ACCEPT, not_accepted);
}

static void set_trouble(struct watch *w, enum watch_state state, const struct error *e)
{
	bool is_new = w->report.trouble.kind != e->kind || w->report.state != state;

	w->report.failures++;
	w->report.trouble = *e;
	w->report.state = state;
	if (is_new)
		log_warn("watch-trouble", LOG_S("resource", w->spec.name), LOG_S("state", watch_state_name(state)),
			 LOG_E(e), LOG_END);
}

static enum watch_state state_in_trouble(const struct watch *w)
{
	if (w->report.state == WATCH_ABSENT)
		return WATCH_ABSENT;
	return w->report.lists ? WATCH_BEHIND : WATCH_STARTING;
}

/* How long until it is asked again, after one more refusal. */
static millis after_refusal(struct watch *w)
{
	static const millis waits[WATCH_REFUSALS] = { SECOND, 2 * SECOND, 5 * SECOND, 10 * SECOND };
	millis wait = w->refusals < WATCH_REFUSALS ? waits[w->refusals] : WATCH_SLOW;

	w->refusals += w->refusals < WATCH_REFUSALS;
	return wait + (millis)(random_uniform(&w->retry.random) * (double)wait / 5);
}

/* A server that has just started may say so of what it will serve in a moment. */
static bool may_be_passing(const struct watch *w)
{
	return w->report.lists && w->report.state != WATCH_ABSENT && w->refusals < WATCH_REFUSALS;
}

static void list_anew(struct watch *w)
{
	if (w->resource_version.len) {
		buf_clear(&w->seen_version);
		buf_text(&w->seen_version, w->resource_version.text);
	}
	buf_clear(&w->resource_version);
	buf_clear(&w->next);
}

/* The resource does not exist (any more): that is an answer, and a complete list of nothing. */
static millis on_absent(struct watch *w)
{
	bool is_news = w->report.state != WATCH_ABSENT;

	list_anew(w);
	w->arrived = clock_now(api_clock(w->api));
	if (is_news) {
		log_info("resource-absent", LOG_S("resource", w->spec.name), LOG_END);
		w->list++;
		watch_list_is_complete(w);
	}
	if (!w->is_stopped)
		w->report.state = WATCH_ABSENT;
	w->report.trouble = (struct error){ 0 };
	return after_refusal(w);
}

/* Of a later version than this server has come to: one that lags, or one restored from a copy. */
static bool is_version_unknown(const struct api_call *c)
{
	return status_has_cause(&c->answer, "ResourceVersionTooLarge") ||
	       (c->status == 504 && c->answer.message && strstr(c->answer.message, "Too large resource version"));
}

static millis on_old_version(struct watch *w)
{
	w->report.relists += !w->is_listing;
	if (!w->is_list_unproven) /* the server is there again, only the version is not */
		retry_reset(&w->retry);
	w->must_ask_etcd |= w->is_listing || is_version_unknown(&w->call);
	list_anew(w);
	w->report.state = state_in_trouble(w);
	w->report.trouble = w->call.error;
	log_info("watch-expired", LOG_S("resource", w->spec.name), LOG_END);
	return retry_next(&w->retry, 0);
}

static millis on_refusal(struct watch *w)
{
	bool is_absent = w->call.status == 404;

	if (may_be_passing(w)) {
		set_trouble(w, WATCH_BEHIND, &w->call.error);
		return after_refusal(w);
	}
	if (is_absent)
		return on_absent(w);
	set_trouble(w, WATCH_REFUSED, &w->call.error);
	return after_refusal(w);
}

static bool wants_no_streams(const struct watch *w)
{
	return w->is_streaming && (w->call.status == 422 || w->call.status == 400);
}

static millis on_failure(struct watch *w)
{
	const struct api_call *c = &w->call;

	if (wants_no_streams(w)) {
		w->cannot_stream = true;
		return 0;
	}
	if (c->is_expired || w->must_list || is_version_unknown(c))
		return on_old_version(w);
	if (c->status == 404 || c->error.kind == ERROR_AUTH)
		return on_refusal(w);
	if (c->error.kind == ERROR_INVALID) /* the same bytes would come again */
		list_anew(w);
	set_trouble(w, state_in_trouble(w), &c->error);
	return retry_next(&w->retry, c->retry_after);
}

/* A page came whole: the next one, or all of the list is there. */
static bool page_is_over(struct watch *w)
{
	struct error e = { 0 };

	if (!decoder_finish(w->decoder, &e)) {
		set_trouble(w, state_in_trouble(w), &e);
		return false;
	}
	buf_clear(&w->next);
	if (w->document.next && *w->document.next) {
		buf_text(&w->next, w->document.next);
		return true;
	}
	if (!w->document.resource_version || !*w->document.resource_version) {
		error_set(&e, ERROR_INVALID, "%s: a list without a resourceVersion", w->spec.name);
		set_trouble(w, state_in_trouble(w), &e);
		return false;
	}
	buf_text(&w->resource_version, w->document.resource_version);
	watch_list_is_complete(w);
	return true;
}

/* How long until the next call. */
static millis after_success(struct watch *w)
{
	bool was_long = loop_now(api_loop(w->api)) - w->begun >= WATCH_SHORT;

	if (w->is_listing && !w->is_streaming) {
		if (!page_is_over(w))
			return retry_next(&w->retry, 0);
		return 0;
	}
	if (w->is_listing) {
		w->report.state = state_in_trouble(w);
		return retry_next(&w->retry, 0);
	}
	w->report.state = WATCH_BEHIND; /* until the next one is accepted */
	return was_long ? 0 : retry_next(&w->retry, 0);
}

static void ended(struct api_call *c)
{
	struct watch *w = c->user;

	w->is_calling = false;
	if (w->is_stopped) {
		free_watch(w);
		return;
	}
	if (w->is_accepted && !w->is_listing && loop_now(api_loop(w->api)) - w->begun >= WATCH_SHORT) {
		retry_reset(&w->retry);
		w->is_list_unproven = false;
	}
	if (c->error.kind == ERROR_CANCELLED && c->is_cancelled)
		error_set(&c->error, ERROR_TIMEOUT, "%s: the watch was not accepted within %d s", w->spec.name,
			  (int)(WATCH_ACCEPT / SECOND));
	millis wait = c->error.kind == ERROR_NONE ? after_success(w) : on_failure(w);
	if (w->is_stopped) /* by a callback */
		wait = 0;
	begin_after(w, wait);
}

struct watch *watch_start(struct api *api, const struct watch_spec *spec)
{
	struct watch *w = calloc(1, sizeof *w);

	if (!w)
		abort();
	w->api = api;
	w->spec = *spec;
	w->retry = retry_make(WATCH_FIRST, WATCH_LONGEST, api_random(api, spec->name));
	watch_reading_open(&w->reading, spec->object);
	begin(w);
	return w;
}

void watch_stop(struct watch *w)
{
	if (!w || w->is_stopped)
		return;
	w->is_stopped = true;
	w->report.state = WATCH_STOPPED;
	if (w->is_calling)
		api_cancel(&w->call);
	else
		begin_after(w, 0);
}
