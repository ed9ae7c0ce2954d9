#include "controller/cluster/event.h"

#include "base/alloc.h"
#include "base/fnv1a.h"
#include "base/log.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SERIES_AGE    (10 * MINUTE) /* told no more for so long: the next one is a new event */
#define SERIES_PERIOD MINUTE	    /* at most one call for a series in that time */
#define BURST	      40
#define REFILL	      (500) /* one more call each 500 ms */

struct series {
	uint64_t hash; /* 0: free */
	char *path;    /* of the event itself */
	size_t all;    /* bytes of it that name the collection */
	char *body;    /* to be sent; NULL: it is there */
	int64_t count, sent_count;
	millis told_at;		 /* of the wall, for people */
	millis seen_at, sent_at; /* monotonic */
	uint64_t turn;		 /* order among those that wait */
};

struct events {
	struct events_setup setup;
	struct arena texts;
	struct series series[EVENT_SERIES];
	size_t waiting; /* with a body */
	uint64_t turns;
	double tokens;
	millis filled_at;
	struct event_counts counts;
	struct timer timer;
	struct api_call call;
	struct buf path, body;
	struct series *sending; /* NULL: no call is under way */
	bool is_closed, has_complained;
	struct clock wall; /* people read the times, whatever clock the controller lives by */
};

static void pump(struct events *v);

static const char *kept(struct events *v, const char *text)
{
	return arena_strdup(&v->texts, text, strlen(text));
}

struct events *events_open(const struct events_setup *s)
{
	struct events *v = xcalloc(1, sizeof *v);

	v->setup.api = s->api;
	v->setup.controller = kept(v, s->controller);
	v->setup.instance = kept(v, s->instance);
	v->setup.name_space = kept(v, s->name_space ? s->name_space : "default");
	v->wall = clock_open();
	v->tokens = BURST;
	v->filled_at = loop_now(api_loop(s->api));
	return v;
}

struct event_counts event_counts(const struct events *v)
{
	struct event_counts counts = v ? v->counts : (struct event_counts){ 0 };

	counts.waiting = v ? v->waiting : 0;
	return counts;
}

static void forget(struct events *v, struct series *s)
{
	v->waiting -= s->body != NULL;
	free(s->path);
	free(s->body);
	*s = (struct series){ 0 };
}

static void free_events(struct events *v)
{
	for (size_t i = 0; i < EVENT_SERIES; i++)
		forget(v, &v->series[i]);
	timer_stop(&v->timer);
	buf_release(&v->path);
	buf_release(&v->body);
	struct arena texts = v->texts;
	free(v);
	arena_release(&texts);
}

void events_close(struct events *v)
{
	if (!v)
		return;
	v->is_closed = true;
	if (v->sending)
		api_cancel(&v->call);
	else
		free_events(v);
}

static uint64_t hash_event(const struct event *t)
{
	const char *const texts[] = { t->kind, t->name_space, t->name, t->uid, t->reason, t->note };
	uint64_t h = FNV1A_START;

	for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
		h = fnv1a_bytes(fnv1a_text(h, texts[i] ? texts[i] : ""), "\xff", 1);
	return h ? h : 1;
}

/* At most `most` bytes, never a part of a character. */
static void cut_member(const char *key, const char *value, size_t most, struct buf *out)
{
	size_t len = strlen(value);

	if (len > most)
		for (len = most; len && ((unsigned char)value[len] & 0xc0) == 0x80;)
			len--;
	char *cut = xstrndup(value, len);
	api_member(key, cut, out);
	free(cut);
}

static void write_event(struct events *v, const struct event *t, const char *name, millis at, struct buf *out)
{
	buf_text(out, "{\"apiVersion\":\"events.k8s.io/v1\",\"kind\":\"Event\",\"metadata\":{");
	api_member("name", name, out);
	api_member("namespace", t->name_space ? t->name_space : v->setup.name_space, out);
	buf_text(out, "},\"eventTime\":\"");
	api_time(at, out);
	buf_text(out, "\"");
	api_member("type", t->is_warning ? "Warning" : "Normal", out);
	cut_member("reason", t->reason, 128, out);
	cut_member("action", t->action, 128, out);
	cut_member("note", t->note ? t->note : "", EVENT_NOTE_BYTES, out);
	api_member("reportingController", v->setup.controller, out);
	cut_member("reportingInstance", v->setup.instance, 128, out);
	buf_text(out, ",\"regarding\":{");
	api_member("apiVersion", t->api_version, out);
	api_member("kind", t->kind, out);
	api_member("namespace", t->name_space, out);
	api_member("name", t->name, out);
	api_member("uid", t->uid, out);
	buf_text(out, "}}");
}

static struct series *find(struct events *v, uint64_t hash, millis now)
{
	for (size_t i = 0; i < EVENT_SERIES; i++) {
		struct series *s = &v->series[i];
		if (s->hash == hash && (s->body || now - s->seen_at < SERIES_AGE))
			return s;
	}
	return NULL;
}

/* A free place, or that of the series told longest ago; never of what still waits or is being sent. */
static struct series *place(struct events *v, uint64_t hash)
{
	struct series *oldest = NULL;

	for (size_t i = 0; i < EVENT_SERIES; i++) {
		struct series *s = &v->series[i];
		if (s->body || s == v->sending)
			continue;
		if (!s->hash || s->hash == hash)
			return s;
		if (!oldest || s->seen_at < oldest->seen_at)
			oldest = s;
	}
	return oldest;
}

static void describe(struct events *v, struct series *s, const struct event *t)
{
	struct api_object o = { .api_version = "events.k8s.io/v1",
				.plural = "events",
				.name_space = t->name_space ? t->name_space : v->setup.name_space };
	CLEANUP(buf_release) struct buf name = { 0 };
	struct buf path = { 0 }, body = { 0 };
	uint64_t mark = s->hash ^ (uint64_t)s->told_at << 16 ^ s->turn;

	api_object_path(&o, &path);
	s->all = path.len;
	buf_printf(&name, "%.200s.%016llx", t->name, (unsigned long long)mark);
	buf_printf(&path, "/%s", name.text);
	s->path = path.text;
	write_event(v, t, name.text, s->told_at, &body);
	s->body = body.text;
}

void events_tell(struct events *v, const struct event *told)
{
	if (!v)
		return;
	millis now = loop_now(api_loop(v->setup.api));
	uint64_t hash = hash_event(told);
	struct series *s = find(v, hash, now);

	v->counts.told++;
	if (s) {
		s->count++;
		s->seen_at = now;
		s->told_at = clock_now(&v->wall);
		v->counts.repeated++;
	} else if (v->waiting >= EVENT_QUEUE || !(s = place(v, hash))) {
		v->counts.dropped++;
		return;
	} else {
		forget(v, s);
		*s = (struct series){
			.hash = hash, .count = 1, .seen_at = now, .told_at = clock_now(&v->wall), .turn = ++v->turns
		};
		describe(v, s, told);
		v->waiting++;
	}
	pump(v);
}

static void on_timer(struct timer *t)
{
	pump(t->user);
}

static bool take_token(struct events *v, millis now)
{
	v->tokens += (double)(now - v->filled_at) / REFILL;
	v->filled_at = now;
	if (v->tokens > BURST)
		v->tokens = BURST;
	if (v->tokens < 1)
		return false;
	v->tokens -= 1;
	return true;
}

/* New ones first, in the order told; then series that grew, when their time has come. */
static struct series *choose(struct events *v, millis now, millis *due)
{
	struct series *best = NULL;

	*due = INT64_MAX;
	for (size_t i = 0; i < EVENT_SERIES; i++) {
		struct series *s = &v->series[i];
		if (s->body && (!best || !best->body || s->turn < best->turn)) {
			best = s;
		} else if (s->hash && !s->body && s->count > s->sent_count) {
			millis at = s->sent_at + SERIES_PERIOD;
			if (at <= now && !best)
				best = s;
			else if (at > now && at < *due)
				*due = at;
		}
	}
	return best;
}

static void answered(struct api_call *c)
{
	struct events *v = c->user;
	struct series *s = v->sending;

	v->sending = NULL;
	if (v->is_closed) {
		free_events(v);
		return;
	}
	bool is_there = c->error.kind == ERROR_NONE || (s->body && c->status == 409);
	if (is_there) {
		v->has_complained = false;
		v->counts.sent++;
		v->waiting -= s->body != NULL;
		free(s->body);
		s->body = NULL;
	} else {
		if (!c->is_barred && c->status != 404) {
			v->counts.failed++;
			if (!v->has_complained)
				log_warn("event-not-sent", LOG_E(&c->error), LOG_END);
			v->has_complained = true;
		}
		forget(v, s);
	}
	pump(v);
}

static void send_series(struct events *v, struct series *s)
{
	buf_clear(&v->body);
	if (s->body) {
		buf_text(&v->body, s->body);
	} else {
		buf_printf(&v->body, "{\"series\":{\"count\":%lld,\"lastObservedTime\":\"", (long long)s->count);
		api_time(s->told_at, &v->body);
		buf_text(&v->body, "\"}}");
	}
	s->sent_count = s->body ? 1 : s->count;
	s->sent_at = loop_now(api_loop(v->setup.api));
	v->sending = s;
	buf_clear(&v->path);
	buf_append(&v->path, s->path, s->body ? s->all : strlen(s->path));
	v->call = (struct api_call){ .method = s->body ? "POST" : "PATCH",
				     .path = v->path.text,
				     .body = v->body.text,
				     .content_type = s->body ? NULL : "application/merge-patch+json",
				     .effect = API_WRITE,
				     .is_repeatable = true,
				     .done = answered,
				     .user = v };
	api_start(v->setup.api, &v->call);
}

static void pump(struct events *v)
{
	millis now = loop_now(api_loop(v->setup.api)), due;

	if (v->sending || v->is_closed)
		return;
	struct series *s = choose(v, now, &due);
	if (s && take_token(v, now)) {
		send_series(v, s);
	} else if (s || due != INT64_MAX) {
		v->timer.user = v;
		timer_start(api_loop(v->setup.api), &v->timer, s ? REFILL : due - now, on_timer);
	}
}
