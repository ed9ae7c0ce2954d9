#include "base/log.h"
#include "base/net/http.h"
#include "base/quote.h"
#include "signals/scraper.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const millis REAL_DEADLINE_LEAST = SECOND;
enum { COMPLAINTS_A_MINUTE = 5 };
static const size_t MOST_REFUSAL = (size_t)64 << 10;

static char *copy(const char *text)
{
	char *made = strdup(text);

	if (!made)
		abort();
	return made;
}

struct target *target_new(struct scraper *s, const struct scrape_target *from)
{
	struct target *t = calloc(1, sizeof *t);

	if (!t)
		abort();
	t->scraper = s;
	t->key = copy(from->key);
	t->url = copy(from->url);
	t->is_ready = from->is_ready;
	return t;
}

void target_free(struct target *t)
{
	assert(!t->page);
	page_content_release(&t->content);
	free(t->key);
	free(t->url);
	free(t);
}

int target_name_len(const struct target *t)
{
	const char *uid = strrchr(t->key, '/');

	return (int)(uid && strchr(t->key, '/') != uid ? uid - t->key : (ptrdiff_t)strlen(t->key));
}

bool target_is_asked(const struct target *t)
{
	return t->page;
}

void target_drop(struct target *t)
{
	t->is_gone = true;
	if (target_is_asked(t))
		http_cancel(&t->request);
	else
		target_free(t);
}

bool target_is_expected(const struct target *t)
{
	int64_t round = t->scraper->round;

	return t->is_ready && (t->was_ready || t->asked != round || t->answered == round);
}

static bool on_chunk(struct http_request *r, const char *bytes, size_t len)
{
	struct target *t = r->user;

	return page_feed(t->page, bytes, len, &r->error) || error_wrap(&r->error, "%s", t->url);
}

static void add_tally(struct scraper *s, const struct tally *t, millis elapsed)
{
	round_add(&s->sums, t, elapsed, s->settings.interval);
	if (!t->is_late_told)
		return;
	s->has_edges = true;
	s->below_us = t->below_us;
	s->above_us = t->above_us;
}

/* A stamp that stands still is of a page that something in between has kept. Its distance to our clock says nothing. */
static bool is_moving(struct target *t, const struct page_content *c, millis now, struct error *e)
{
	millis stood = now - t->stamp_at;

	if (c->stamp == INT64_MIN || !t->has_content || c->stamp != t->content.stamp) {
		t->stamp_at = now;
		return true;
	}
	return stood <= READING_GAP * t->scraper->settings.interval ||
	       error_set(e, ERROR_INVALID,
			 "its time stamps have stood still for %lld s: is an old page kept in between?",
			 (long long)(stood / SECOND));
}

/* A page whose counters jumped is refused, and is what the next one is compared with. */
static bool take_content(struct target *t, struct page_content *c, struct error *e)
{
	struct scraper *s = t->scraper;
	millis now = clock_mono(s->clock), elapsed = now - t->content_at;
	struct tally tally = { 0 };
	bool moves = is_moving(t, c, now, e);
	bool ok = !moves || !t->has_content ||
		  tally_between(&t->content, c, s->settings.objective_us, elapsed, &tally, e);

	if (ok && moves && t->has_content)
		add_tally(s, &tally, elapsed);
	page_content_release(&t->content);
	t->content = *c;
	t->content_at = now;
	t->has_content = true;
	return ok && moves;
}

static void tell_type(const struct http_request *r, struct error *e)
{
	const char *type = http_header(r, "Content-Type");
	struct error was = *e;
	char shown[QUOTE_ROOM];

	if (type && strncmp(type, "text/plain", 10) != 0 && !strstr(type, "openmetrics"))
		error_set(e, was.kind, "%s (its type is %s)", was.message, quote(shown, type, strlen(type)));
}

static bool believe(struct target *t, const struct http_request *r, struct error *e)
{
	struct scraper *s = t->scraper;
	struct page_content c;

	if (r->error.kind != ERROR_NONE) {
		*e = r->error;
		return false;
	}
	if (r->status < 200 || r->status > 299) {
		enum error_kind kind = http_status_kind(r->status);
		return error_set(
			e, kind, "%s: HTTP status %ld%s", t->url, r->status,
			r->status / 100 == 3 ? ": redirects are not followed; give signals.scrape where it leads" : "");
	}
	if (!page_finish(t->page, &c, e)) {
		tell_type(r, e);
		return error_wrap(e, "%s", t->url);
	}
	if (!take_content(t, &c, e))
		return error_wrap(e, "%s", t->url);
	t->answered = s->round;
	t->state.read_at = t->content_at;
	t->state.in_flight = c.running + c.waiting;
	t->state.refused = 0;
	t->state.error = (struct error){ 0 };
	s->counts.pages++;
	s->counts.bytes += (int64_t)page_bytes(t->page);
	return true;
}

/* A pool in the dark is one story, not a thousand. */
static bool may_complain(struct scraper *s)
{
	millis now = clock_mono(s->clock);

	if (!s->complaints || now - s->complained_at >= MINUTE) {
		s->complained_at = now;
		s->complaints = 0;
	}
	return s->complaints++ < COMPLAINTS_A_MINUTE;
}

static void refuse(struct target *t, const struct error *e)
{
	char pod[256];

	snprintf(pod, sizeof pod, "%.*s", target_name_len(t), t->key);
	if (t->state.error.kind == ERROR_NONE && may_complain(t->scraper))
		log_warn("replica-not-read", LOG_S("pool", t->scraper->pool), LOG_S("pod", pod),
			 LOG_S("why", e->message), LOG_END);
	t->state.error = *e;
	t->state.refused++;
	t->scraper->counts.refused[e->kind]++;
}

static void on_done(struct http_request *r)
{
	struct target *t = r->user;
	struct scraper *s = t->scraper;
	struct error e = { 0 };

	if (!t->is_gone && !believe(t, r, &e))
		refuse(t, &e);
	reach_shown_release(&t->shown);
	page_close(t->page);
	t->page = NULL;
	if (t->is_gone)
		target_free(t);
	scraper_heard(s);
}

/* A fast clock speeds up what is measured, not the machines that answer. */
static millis real_deadline(const struct scraper *s)
{
	millis real = clock_real(s->clock, s->settings.deadline);

	return s->clock->speed > 1 && real < REAL_DEADLINE_LEAST ? REAL_DEADLINE_LEAST : real;
}

void target_ask(struct target *t)
{
	struct scraper *s = t->scraper;
	struct error e = { 0 };

	t->asked = s->round;
	t->was_ready = t->is_ready;
	t->page = page_open(&s->table);
	t->request = (struct http_request){ .method = "GET",
					    .url = t->url,
					    .proxy = "",
					    .accepts_gzip = true,
					    .timeout = real_deadline(s),
					    .max_response = MOST_REFUSAL,
					    .on_chunk = on_chunk,
					    .done = on_done,
					    .user = t };
	if (!reach_show(s->reach, "Accept: text/plain;version=0.0.4", &t->request, &t->shown, &e)) {
		refuse(t, &e);
		page_close(t->page);
		t->page = NULL;
		return;
	}
	s->in_flight++;
	http_start(s->http, &t->request);
}
