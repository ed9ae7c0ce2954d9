#include "base/net/http.h"
#include "signals/scraper.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

static const millis REAL_DEADLINE_LEAST = SECOND;
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

/* A page whose counters jumped is refused, and is what the next one is compared with. */
static bool take_content(struct target *t, struct page_content *c, struct error *e)
{
	struct scraper *s = t->scraper;
	millis now = clock_mono(s->clock), elapsed = now - t->content_at;
	struct tally tally = { 0 };
	bool ok = !t->has_content || tally_between(&t->content, c, s->settings.objective_us, elapsed, &tally, e);

	if (ok && t->has_content)
		add_tally(s, &tally, elapsed);
	page_content_release(&t->content);
	t->content = *c;
	t->content_at = now;
	t->has_content = true;
	return ok;
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
		return error_set(e, kind, "%s: HTTP status %ld", t->url, r->status);
	}
	if (!page_finish(t->page, &c, e) || !take_content(t, &c, e))
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

static void refuse(struct target *t, const struct error *e)
{
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
