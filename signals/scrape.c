#include "signals/scrape.h"

#include "base/alloc.h"
#include "base/log.h"
#include "base/text.h"
#include "signals/evidence.h"
#include "signals/pool_reading.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { COMPLAINTS_A_MINUTE = 5 };
static const millis REAL_DEADLINE_LEAST = SECOND;
static const size_t MOST_REFUSAL = (size_t)64 << 10;

/* One replica. */
struct target {
	char *key, *url;
	bool is_ready, was_ready; /* now; at its last request */
	bool has_fallen, is_due;  /* is_due: of the round that is reported */
	bool is_gone;		  /* no longer a target: freed when its call completes */
	struct scraper *scraper;
	struct http_request request;
	struct http_auth_shown shown;
	struct page *page;	     /* while its request is under way */
	int64_t requested, answered; /* rounds of the last request and of the last accepted page; 0: never */
	bool has_content;	     /* counters to subtract from */
	struct page_content content;
	millis content_at;  /* clock_mono() */
	millis stamp_at;    /* clock_mono() at which the time stamp of its content was new */
	millis read_at;	    /* clock_mono() of the last accepted page */
	int64_t in_flight;  /* running and waiting in it */
	struct error error; /* of the last page; ERROR_NONE: accepted, or none came yet */
	struct evidence evidence;
	bool has_answered; /* in HTTP, whatever it said */
	millis mute_since; /* clock_mono() of the first request in a row that showed no server of the engine; 0: none */
};

struct scraper {
	struct source base; /* first */
	struct loop *loop;
	struct http *http;
	const struct clock *clock;
	struct source_settings settings;
	millis deadline;    /* of one answer, of the controller's clock */
	struct arena arena; /* of the table */
	struct page_table table;
	struct http_auth *auth;
	struct timer timer;
	struct target **targets; /* by key */
	size_t target_count, in_flight;
	bool is_closed;
	int64_t round;	  /* counts from 1 */
	millis round_at;  /* clock_mono() of its beginning */
	bool is_reported; /* the reading of this round was handed over */
	struct reading_sums sums;
	struct source_report report;
	millis complained_at; /* clock_mono() of the first of these: */
	int complaints;	      /* lines of the log within a minute */
};

static void advance(struct scraper *s);

static void on_timer(struct timer *t)
{
	advance(t->user);
}

static void free_scraper(struct scraper *s)
{
	timer_stop(&s->timer);
	http_auth_close(s->auth);
	arena_release(&s->arena);
	free(s->targets);
	free(s);
}

/* Of its key: "namespace/name". */
static int name_len(const struct target *t)
{
	const char *uid = strrchr(t->key, '/');

	return (int)(uid && strchr(t->key, '/') != uid ? uid - t->key : (ptrdiff_t)strlen(t->key));
}

static void free_target(struct target *t)
{
	assert(!t->page);
	page_content_release(&t->content);
	free(t->key);
	free(t->url);
	free(t);
}

static void drop_target(struct target *t)
{
	t->is_gone = true;
	if (t->page)
		http_cancel(&t->request);
	else
		free_target(t);
}

/* It may start requests, and is no server that sleeps. */
static bool is_serving(const struct target *t)
{
	return t->is_ready && !(t->has_content && t->content.sleep != SLEEP_NONE);
}

/* A worker of another pod's engine, say: it has never told a level, and may not even listen. */
static bool is_mute(const struct target *t)
{
	return t->mute_since && !t->has_content && clock_mono(t->scraper->clock) - t->mute_since >= SOURCE_MUTE_AFTER;
}

/* A replica that was requested before it was ready could not answer in this round. */
static bool is_expected(const struct target *t)
{
	int64_t round = t->scraper->round;

	return is_serving(t) && (t->was_ready || t->requested != round || t->answered == round);
}

static bool on_chunk(struct http_request *r, const char *bytes, size_t len)
{
	struct target *t = r->user;

	return page_feed(t->page, bytes, len, &r->error) || error_wrap(&r->error, "%s", t->url);
}

/* A stamp that stands still belongs to a page that a cache serves. Its distance to our clock proves nothing. */
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

/* A page whose counters jumped is rejected, and is what the next one is compared with. */
static bool take_content(struct target *t, struct page_content *c, struct error *e)
{
	struct scraper *s = t->scraper;
	millis now = clock_mono(s->clock), elapsed = now - t->content_at;
	struct counter_delta delta;
	bool ok = is_moving(t, c, now, e);

	if (ok && t->has_content) {
		ok = counter_delta_between(&t->content, c, s->settings.objective_us, elapsed, &delta, e);
		if (ok && evidence_look(&t->evidence, c, &delta, elapsed) != EVIDENCE_RESETS)
			reading_add_delta(&s->sums, &delta, elapsed, s->settings.interval);
	} else if (ok) {
		evidence_look(&t->evidence, c, NULL, 0);
	}
	page_content_release(&t->content);
	t->content = *c;
	t->content_at = now;
	t->has_content = true;
	return ok;
}

static bool is_text(const char *type)
{
	return !type || strncmp(type, "text/plain", 10) == 0 || strstr(type, "openmetrics");
}

static void add_content_type(const struct http_request *r, struct error *e)
{
	const char *type = http_header(r, "Content-Type");
	struct error was = *e;
	char shown[QUOTE_ROOM];

	if (!is_text(type))
		error_set(e, was.kind, "%s (its type is %s)", was.message, quote(shown, type, strlen(type)));
}

/* There is no page, as often as we ask: it leads elsewhere, or knows no such path; not that we may not read or come too
 * often. */
static bool has_no_page(long status)
{
	return status >= 300 && status <= 499 && status != 401 && status != 403 && status != 407 && status != 408 &&
	       status != 429;
}

/* It answered, and not with a page of its engine: there is none at that path, it is none, or another program's. */
static bool tells_nothing(const struct http_request *r, const struct error *e)
{
	bool is_page = r->status >= 200 && r->status <= 299;

	if (is_page && !is_text(http_header(r, "Content-Type")))
		return r->error.kind == ERROR_NONE || r->error.kind == ERROR_INVALID;
	return r->error.kind == ERROR_NONE && (has_no_page(r->status) || (is_page && e->kind == ERROR_NOT_FOUND));
}

/* A headless rank, say: its host is there, and nothing has listened there since it is ready. */
static bool never_listened(const struct target *t, const struct http_request *r)
{
	return r->is_refused && !t->has_answered && t->is_ready && t->was_ready;
}

static bool accept_page(struct target *t, const struct http_request *r, struct error *e)
{
	struct page_content c;

	if (never_listened(t, r))
		return error_set(e, r->error.kind,
				 "%s: nothing listens there: is signals.scrape.port right? signals.podSelector names "
				 "the pods that tell",
				 t->url);
	if (r->error.kind != ERROR_NONE) {
		*e = r->error;
		return false;
	}
	if (r->status < 200 || r->status > 299)
		return error_set(e, http_status_kind(r->status), "%s: HTTP status %ld%s", t->url, r->status,
				 r->status / 100 == 3
					 ? ": redirects are not followed; give signals.scrape where it leads"
				 : r->status == 404 ? ": is signals.scrape.path right?"
						    : "");
	if (!page_finish(t->page, &c, e)) {
		add_content_type(r, e);
		return error_wrap(e, "%s", t->url);
	}
	if (!take_content(t, &c, e))
		return error_wrap(e, "%s", t->url);
	t->answered = t->scraper->round;
	t->read_at = t->content_at;
	t->in_flight = evidence_in_flight(&t->evidence);
	t->error = (struct error){ 0 };
	return true;
}

/* Logged once per replica, and a few a minute: a pool of which nothing can be read is one story, not a thousand. */
static void reject(struct target *t, const struct error *e)
{
	struct scraper *s = t->scraper;
	millis now = clock_mono(s->clock);
	char pod[256];

	if (t->error.kind == ERROR_NONE) {
		if (!s->complaints || now - s->complained_at >= MINUTE) {
			s->complained_at = now;
			s->complaints = 0;
		}
		snprintf(pod, sizeof pod, "%.*s", name_len(t), t->key);
		if (s->complaints++ < COMPLAINTS_A_MINUTE)
			log_warn("replica-not-read", LOG_S("pool", s->settings.pool), LOG_S("pod", pod),
				 LOG_S("why", e->message), LOG_END);
	}
	t->error = *e;
}

static bool is_complete(const struct scraper *s)
{
	for (size_t i = 0; i < s->target_count; i++)
		if (s->targets[i]->requested != s->round || s->targets[i]->page)
			return false;
	return true;
}

static void on_done(struct http_request *r)
{
	struct target *t = r->user;
	struct scraper *s = t->scraper;
	struct error e = { 0 };

	t->has_answered |= r->status != 0;
	if (!t->is_gone && !accept_page(t, r, &e)) {
		bool is_mute = never_listened(t, r) || tells_nothing(r, &e);
		t->mute_since = !is_mute ? 0 : t->mute_since ? t->mute_since : clock_mono(s->clock);
		reject(t, &e);
	}
	http_auth_shown_release(&t->shown);
	page_close(t->page);
	t->page = NULL;
	if (t->is_gone)
		free_target(t);
	s->in_flight--;
	if (s->is_closed && !s->in_flight)
		free_scraper(s);
	else if (!s->is_closed && !s->is_reported && is_complete(s))
		advance(s);
}

/* It may have been rejected when this returns: what authorizes us cannot be read. */
static void request_page(struct target *t)
{
	struct scraper *s = t->scraper;
	/* A fast clock speeds up what is measured, not the machines that answer. */
	millis real = clock_real(s->clock, s->deadline);
	struct error e = { 0 };

	t->requested = s->round;
	t->was_ready = t->is_ready;
	t->page = page_open(&s->table);
	t->request = (struct http_request){
		.method = "GET",
		.url = t->url,
		.proxy = "",
		.accepts_gzip = true,
		.timeout = s->clock->speed > 1 && real < REAL_DEADLINE_LEAST ? REAL_DEADLINE_LEAST : real,
		.max_response = MOST_REFUSAL,
		.on_chunk = on_chunk,
		.done = on_done,
		.user = t,
	};
	if (!http_auth_show(s->auth, "Accept: text/plain;version=0.0.4", &t->request, &t->shown, &e)) {
		reject(t, &e);
		page_close(t->page);
		t->page = NULL;
		return;
	}
	s->in_flight++;
	http_start(s->http, &t->request);
}

/* Requests are spread over the part of a round in which an answer still comes within it. */
static size_t due_by(const struct scraper *s, millis elapsed)
{
	millis window = s->settings.interval - s->deadline;

	if (elapsed >= window)
		return s->target_count;
	return (size_t)((millis)s->target_count * elapsed / window) + 1;
}

static void request_due(struct scraper *s, millis elapsed)
{
	size_t due = due_by(s, elapsed), requested = 0;

	for (size_t i = 0; i < s->target_count; i++)
		requested += s->targets[i]->requested == s->round;
	for (size_t i = 0; i < s->target_count && requested < due; i++) {
		struct target *t = s->targets[i];
		if (t->requested == s->round)
			continue;
		requested++;
		if (t->page)
			t->requested = s->round; /* still under way: its answer counts in this round */
		else
			request_page(t);
	}
}

static void set_timer(struct scraper *s)
{
	millis interval = s->settings.interval, window = interval - s->deadline;
	millis elapsed = clock_mono(s->clock) - s->round_at, next = interval;
	size_t due = due_by(s, elapsed);

	if (!s->is_reported && due < s->target_count)
		next = ((millis)due * window + (millis)s->target_count - 1) / (millis)s->target_count;
	timer_start(s->loop, &s->timer, clock_real(s->clock, next > elapsed ? next - elapsed : 0), on_timer);
}

/* What is wrong with how many of those whose readings were due, and with the first by its key. */
struct trouble {
	const struct target *first;
	struct error error; /* of it */
	size_t count;
	const char *what; /* of several */
};

static void add_trouble(struct trouble *trouble, const struct target *t, const struct error *e)
{
	if (!trouble->count++) {
		trouble->first = t;
		trouble->error = *e;
	}
}

static bool tell_trouble(const struct trouble *trouble, size_t of, struct error *out)
{
	if (!trouble->count)
		return false;
	*out = trouble->error;
	error_wrap(out, "pod %.*s", name_len(trouble->first), trouble->first->key);
	if (trouble->count > 1)
		error_wrap(out, "%zu of %zu pods %s, first", trouble->count, of, trouble->what);
	return true;
}

/* Those that were not read come first: of the others something is known. */
static void report_trouble(const struct scraper *s, bool mute_are_due, struct error *out)
{
	struct trouble unread = { .what = "were not read" }, disputed = { .what = "contradict themselves" };
	size_t due = 0;

	for (size_t i = 0; i < s->target_count; i++) {
		const struct target *t = s->targets[i];
		struct error e;
		if (!t->is_due || (is_mute(t) && !mute_are_due))
			continue;
		due++;
		evidence_tell(&t->evidence, &e);
		if (t->error.kind != ERROR_NONE)
			add_trouble(&unread, t, &t->error);
		else if (e.kind != ERROR_NONE)
			add_trouble(&disputed, t, &e);
	}
	if (!tell_trouble(&unread, due, out))
		tell_trouble(&disputed, due, out);
}

/* Whose readings are due: those that serve; where none may, those that did and were not asked to go. How many tell
 * nothing by nature. */
static int64_t settle_due(struct scraper *s)
{
	int64_t serving = 0, mute = 0;

	for (size_t i = 0; i < s->target_count; i++) {
		struct target *t = s->targets[i];
		serving += t->is_ready;
		t->is_due = is_expected(t);
		mute += t->is_due && is_mute(t);
	}
	for (size_t i = 0; i < s->target_count && !serving; i++)
		s->targets[i]->is_due = s->targets[i]->has_fallen;
	return mute;
}

static void add_target(struct scraper *s, const struct target *t, struct pool_reading *r)
{
	bool is_serving_now = is_serving(t);

	r->expected += t->is_due;
	r->ready += is_expected(t);
	if (t->answered != s->round)
		return;
	r->fresh += t->is_due;
	r->disputed += t->is_due && t->evidence.verdict != EVIDENCE_AGREES;
	reading_add_replica(r, &t->evidence, is_serving_now);
	reading_add_levels(&s->sums, &t->content, is_serving_now);
}

/* The last thing that is done: whoever takes the reading may close the source. */
static void report_round(struct scraper *s)
{
	struct pool_reading r = { .at = clock_now(s->clock) };
	struct reading_more more;
	int64_t mute = settle_due(s);

	for (size_t i = 0; i < s->target_count; i++)
		add_target(s, s->targets[i], &r);
	bool mute_are_due = !r.fresh;
	if (!mute_are_due)
		r.expected -= mute;
	reading_write(&s->sums, &r, &more);
	reading_next_round(&s->sums);
	s->report.trouble = (struct error){ 0 };
	if (r.fresh < r.expected || r.disputed)
		report_trouble(s, mute_are_due, &s->report.trouble);
	s->report.warning[0] = '\0';
	source_warn_of_mute(&s->report, mute_are_due ? 0 : mute);
	source_count_round(&s->report, &r, clock_mono(s->clock));
	s->settings.on_reading(s->settings.user, &r);
}

/* Does what is due by the clock. */
static void advance(struct scraper *s)
{
	millis now = clock_mono(s->clock);
	bool is_over = now - s->round_at >= s->settings.interval;

	if (is_over && !s->is_reported) {
		s->is_reported = true;
		timer_start(s->loop, &s->timer, 0, on_timer); /* the next round */
		report_round(s);
		return;
	}
	if (is_over) {
		s->round++;
		s->round_at += s->settings.interval;
		if (now - s->round_at >= s->settings.interval)
			s->round_at = now; /* the loop was held up for more than a round */
		s->is_reported = false;
	}
	if (!s->is_reported)
		request_due(s, now - s->round_at);
	bool is_done = !s->is_reported && is_complete(s);
	s->is_reported |= is_done;
	set_timer(s);
	if (is_done)
		report_round(s);
}

static struct scraper *of(const struct source *base)
{
	return (struct scraper *)base;
}

static void close_source(struct source *base)
{
	struct scraper *s = of(base);

	s->is_closed = true;
	timer_stop(&s->timer);
	for (size_t i = 0; i < s->target_count; i++)
		drop_target(s->targets[i]);
	s->target_count = 0;
	if (!s->in_flight)
		free_scraper(s);
}

static int by_key(const void *left, const void *right)
{
	const struct source_target *const *a = left, *const *b = right;

	return strcmp((*a)->key, (*b)->key);
}

/* The replica of before, where its address is the same; or a new one. */
static struct target *renew(struct scraper *s, struct target *was, const struct source_target *now)
{
	if (!was || strcmp(was->url, now->url) != 0) {
		if (was)
			drop_target(was);
		was = xnew(struct target);
		*was = (struct target){ .scraper = s, .key = xstrdup(now->key), .url = xstrdup(now->url) };
	}
	was->is_ready = now->is_ready;
	was->has_fallen = now->has_fallen;
	return was;
}

static void set_targets(struct source *base, const struct source_target *targets, size_t count)
{
	struct scraper *s = of(base);
	const struct source_target **sorted = xcalloc(count + 1, sizeof(const struct source_target *));
	struct target **merged = xcalloc(count + 1, sizeof(struct target *));
	size_t was = 0, kept = 0;

	for (size_t i = 0; i < count; i++)
		sorted[i] = &targets[i];
	qsort(sorted, count, sizeof(const struct source_target *), by_key);
	for (size_t i = 0; i < count; i++) {
		int order = -1;
		if (kept && strcmp(merged[kept - 1]->key, sorted[i]->key) == 0)
			continue;
		while (was < s->target_count && (order = strcmp(s->targets[was]->key, sorted[i]->key)) < 0)
			drop_target(s->targets[was++]);
		bool is_known = was < s->target_count && order == 0;
		merged[kept++] = renew(s, is_known ? s->targets[was++] : NULL, sorted[i]);
	}
	while (was < s->target_count)
		drop_target(s->targets[was++]);
	free(sorted);
	free(s->targets);
	s->targets = merged;
	s->target_count = kept;
	if (!s->is_reported)
		timer_start(s->loop, &s->timer, 0, on_timer);
}

static int compare_key(const void *key, const void *element)
{
	const struct target *const *t = element;

	return strcmp(key, (*t)->key);
}

static const struct target *find(const struct scraper *s, const char *key)
{
	struct target *const *found =
		s->target_count ? bsearch(key, s->targets, s->target_count, sizeof(struct target *), compare_key)
				: NULL;

	return found ? *found : NULL;
}

static bool in_flight(const struct source *base, const char *key, int64_t *count, millis *age)
{
	const struct scraper *s = of(base);
	const struct target *t = find(s, key);

	if (!t || !t->answered)
		return false;
	*count = t->in_flight;
	*age = clock_mono(s->clock) - t->read_at;
	return true;
}

static enum engine_sleep sleep_of(const struct source *base, const char *key)
{
	const struct target *t = find(of(base), key);

	return t && t->has_content ? t->content.sleep : SLEEP_NONE;
}

static struct source_report report(const struct source *base)
{
	return of(base)->report;
}

static const struct source_ops ops = { close_source, set_targets, in_flight, sleep_of, report };

struct source *scrape_source_open(struct loop *loop, struct http *http, const struct clock *clock,
				  const struct scrape_source_settings *settings)
{
	struct scraper *s = xnew(struct scraper);

	s->base.ops = &ops;
	s->loop = loop;
	s->http = http;
	s->clock = clock;
	s->settings = settings->source;
	s->settings.pool = arena_strdup(&s->arena, settings->source.pool, strlen(settings->source.pool));
	s->deadline = (s->settings.interval + 1) / 2;
	s->table = page_table_make(s->settings.engine, s->settings.custom, &s->arena);
	s->auth = http_auth_open(s->settings.pool, &settings->reach);
	s->round = 1;
	s->round_at = clock_mono(clock);
	s->timer.user = s;
	timer_start(loop, &s->timer, 0, on_timer);
	return &s->base;
}
