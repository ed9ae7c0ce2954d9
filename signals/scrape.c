#include "signals/scrape.h"

#include "base/log.h"
#include "base/text.h"
#include "signals/scraper.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void on_reading(struct scraper *scraper, const struct pool_reading *r);
static struct source_report report(const struct source *base);

static void on_timer(struct timer *t)
{
	scraper_advance(t->user);
}

struct scraper *scraper_open(struct loop *loop, struct http *http, const struct clock *clock,
			     const struct scrape_settings *settings)
{
	struct scraper *s = calloc(1, sizeof *s);

	if (!s || !(s->pool = strdup(settings->pool)))
		abort();
	s->loop = loop;
	s->http = http;
	s->clock = clock;
	s->settings = *settings;
	s->settings.pool = s->pool;
	if (s->settings.deadline <= 0 || s->settings.deadline >= s->settings.interval)
		s->settings.deadline = (s->settings.interval + 1) / 2;
	s->table = settings->custom ? page_table_of(engine_metrics_copy(settings->custom, &s->arena))
				    : page_table_make(settings->engine);
	s->reach = reach_open(s->pool, &settings->reach);
	s->round = 1;
	s->round_at = clock_mono(clock);
	s->timer.user = s;
	timer_start(loop, &s->timer, 0, on_timer);
	return s;
}

void scraper_free(struct scraper *s)
{
	timer_stop(&s->timer);
	reach_close(s->reach);
	arena_release(&s->arena);
	free(s->targets);
	free(s->pool);
	free(s);
}

void scraper_close(struct scraper *s)
{
	if (!s)
		return;
	s->is_closed = true;
	timer_stop(&s->timer);
	for (size_t i = 0; i < s->target_count; i++)
		target_drop(s->targets[i]);
	s->target_count = 0;
	if (!s->in_flight)
		scraper_free(s);
}

void *scraper_user(const struct scraper *s)
{
	return s->settings.user;
}

void scraper_set_objective(struct scraper *s, int64_t objective_us)
{
	s->settings.objective_us = objective_us;
}

static int by_key(const void *left, const void *right)
{
	const struct scrape_target *const *a = left, *const *b = right;

	return strcmp((*a)->key, (*b)->key);
}

static const struct scrape_target **sort_targets(const struct scrape_target *targets, size_t count)
{
	const struct scrape_target **sorted = calloc(count + 1, sizeof(const struct scrape_target *));

	if (!sorted)
		abort();
	for (size_t i = 0; i < count; i++)
		sorted[i] = &targets[i];
	qsort(sorted, count, sizeof(const struct scrape_target *), by_key);
	return sorted;
}

/* The one of before, when it is at the same place; or a new one. */
static struct target *renew(struct scraper *s, struct target *was, const struct scrape_target *now)
{
	if (was && strcmp(was->url, now->url) == 0) {
		was->is_ready = now->is_ready;
		return was;
	}
	if (was)
		target_drop(was);
	return target_new(s, now);
}

void scraper_set_targets(struct scraper *s, const struct scrape_target *targets, size_t count)
{
	const struct scrape_target **sorted = sort_targets(targets, count);
	struct target **merged = calloc(count + 1, sizeof(struct target *));
	size_t was = 0, kept = 0;

	if (!merged)
		abort();
	for (size_t i = 0; i < count; i++) {
		int order = -1;
		if (kept && strcmp(merged[kept - 1]->key, sorted[i]->key) == 0)
			continue;
		while (was < s->target_count && (order = strcmp(s->targets[was]->key, sorted[i]->key)) < 0)
			target_drop(s->targets[was++]);
		bool is_known = was < s->target_count && order == 0;
		merged[kept++] = renew(s, is_known ? s->targets[was++] : NULL, sorted[i]);
	}
	while (was < s->target_count)
		target_drop(s->targets[was++]);
	free(sorted);
	free(s->targets);
	s->targets = merged;
	s->target_count = kept;
	if (!s->is_told)
		timer_start(s->loop, &s->timer, 0, on_timer);
}

/* Asks are spread over what a round has before the last one must be sent to be answered within it. */
static size_t due_by(const struct scraper *s, millis elapsed)
{
	millis window = s->settings.interval - s->settings.deadline;

	if (elapsed >= window)
		return s->target_count;
	return (size_t)((millis)s->target_count * elapsed / window) + 1;
}

static void ask_due(struct scraper *s, millis elapsed)
{
	size_t due = due_by(s, elapsed), asked = 0;

	for (size_t i = 0; i < s->target_count; i++)
		asked += s->targets[i]->asked == s->round;
	for (size_t i = 0; i < s->target_count && asked < due; i++) {
		struct target *t = s->targets[i];
		if (t->asked == s->round)
			continue;
		asked++;
		if (target_is_asked(t))
			t->asked = s->round; /* still of the round before: its answer counts in this one */
		else
			target_ask(t);
	}
}

static bool is_complete(const struct scraper *s)
{
	for (size_t i = 0; i < s->target_count; i++)
		if (s->targets[i]->asked != s->round || target_is_asked(s->targets[i]))
			return false;
	return true;
}

static void add_level(struct scraper *s, const struct target *t, struct pool_reading *r)
{
	r->expected += target_is_expected(t);
	if (t->answered != s->round)
		return;
	r->fresh += t->is_ready;
	r->waiting += t->content.waiting;
	round_add_levels(&s->sums, &t->content, t->is_ready);
	if (!t->is_ready) {
		r->running_draining += t->content.running;
		return;
	}
	r->running += t->content.running;
}

static struct pool_reading sum_up(struct scraper *s, struct reading_more *more)
{
	struct pool_reading r = { .at = clock_now(s->clock) };

	for (size_t i = 0; i < s->target_count; i++)
		add_level(s, s->targets[i], &r);
	r.ready = r.expected;
	round_tell(&s->sums, &r, more);
	return r;
}

static void next_round(struct scraper *s, millis now)
{
	s->round++;
	s->round_at += s->settings.interval;
	if (now - s->round_at >= s->settings.interval)
		s->round_at = now; /* the loop was held up for more than a round */
	s->is_told = false;
}

static void set_timer(struct scraper *s)
{
	millis interval = s->settings.interval, window = interval - s->settings.deadline;
	millis elapsed = clock_mono(s->clock) - s->round_at, next = interval;
	size_t due = due_by(s, elapsed);

	if (!s->is_told && due < s->target_count) {
		next = ((millis)due * window + (millis)s->target_count - 1) / (millis)s->target_count;
	}
	timer_start(s->loop, &s->timer, clock_real(s->clock, next > elapsed ? next - elapsed : 0), on_timer);
}

/* The last thing that is done: the one told may close the scraper. */
static void tell(struct scraper *s)
{
	struct reading_more more;
	struct pool_reading r = sum_up(s, &more);

	round_clear(&s->sums);
	s->settings.on_reading(s, &r);
}

void scraper_advance(struct scraper *s)
{
	millis now = clock_mono(s->clock);
	bool is_over = now - s->round_at >= s->settings.interval, was_told = s->is_told;

	if (is_over && !was_told) {
		s->is_told = true;
		timer_start(s->loop, &s->timer, 0, on_timer); /* the next round */
		tell(s);
		return;
	}
	if (is_over)
		next_round(s, now);
	if (!s->is_told)
		ask_due(s, now - s->round_at);
	bool is_done = !s->is_told && is_complete(s);
	s->is_told |= is_done;
	set_timer(s);
	if (is_done)
		tell(s);
}

void scraper_heard(struct scraper *s)
{
	s->in_flight--;
	if (s->is_closed) {
		if (!s->in_flight)
			scraper_free(s);
		return;
	}
	if (!s->is_told && is_complete(s))
		scraper_advance(s);
}

static const struct target *find(const struct scraper *s, const char *key)
{
	size_t low = 0, high = s->target_count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;
		int order = strcmp(s->targets[middle]->key, key);
		if (order == 0)
			return s->targets[middle];
		if (order < 0)
			low = middle + 1;
		else
			high = middle;
	}
	return NULL;
}

const struct scrape_state *scraper_state(const struct scraper *s, const char *key)
{
	const struct target *t = find(s, key);

	return t ? &t->state : NULL;
}

bool scrape_in_flight(const struct scraper *s, const char *key, int64_t *count, millis *age)
{
	const struct target *t = find(s, key);

	if (!t || !t->answered)
		return false;
	*count = t->state.in_flight;
	*age = clock_mono(s->clock) - t->state.read_at;
	return true;
}

bool scraper_trouble(const struct scraper *s, struct error *e)
{
	const struct target *first = NULL;
	size_t ready = 0, refused = 0;

	for (size_t i = 0; i < s->target_count; i++) {
		const struct target *t = s->targets[i];
		bool is_expected = target_is_expected(t), is_refused = is_expected && t->state.error.kind != ERROR_NONE;
		ready += is_expected;
		refused += is_refused;
		if (is_refused && !first)
			first = t;
	}
	if (!first)
		return false;
	*e = first->state.error;
	error_wrap(e, "pod %.*s", target_name_len(first), first->key);
	if (refused > 1)
		error_wrap(e, "%zu of %zu pods were not read, first", refused, ready);
	return true;
}

struct scrape_counts scraper_counts(const struct scraper *s)
{
	return s->counts;
}

bool scraper_late_edges(const struct scraper *s, int64_t *below, int64_t *above)
{
	if (!s->has_edges)
		return false;
	*below = s->below_us;
	*above = s->above_us;
	return true;
}

struct scrape_source {
	struct source base; /* first */
	const struct clock *clock;
	struct scraper *scraper;
	void (*on_reading)(void *user, const struct pool_reading *r);
	void *user;
	struct source_report report;
};

static struct scrape_source *of(const struct source *base)
{
	return (struct scrape_source *)base;
}

static void on_reading(struct scraper *scraper, const struct pool_reading *r)
{
	struct scrape_source *s = scraper_user(scraper);

	s->report.trouble = (struct error){ 0 };
	if (r->fresh < r->expected)
		scraper_trouble(scraper, &s->report.trouble);
	s->report.rounds++;
	s->report.blind += r->expected > 0 && !r->fresh;
	if (r->fresh)
		s->report.read_at = clock_mono(s->clock);
	s->on_reading(s->user, r);
}

/* The scraper's own memory may outlive it, this does not: no reading comes any more. */
static void close_source(struct source *base)
{
	scraper_close(of(base)->scraper);
	free(of(base));
}

static void set_targets(struct source *base, const struct source_target *targets, size_t count)
{
	struct scrape_target *made = calloc(count + 1, sizeof *made);

	if (!made)
		abort();
	for (size_t i = 0; i < count; i++)
		made[i] = (struct scrape_target){ targets[i].key, targets[i].url, targets[i].is_ready };
	scraper_set_targets(of(base)->scraper, made, count);
	free(made);
}

static bool in_flight(const struct source *base, const char *key, int64_t *count, millis *age)
{
	return scrape_in_flight(of(base)->scraper, key, count, age);
}

static struct source_report report(const struct source *base)
{
	return of(base)->report;
}

static void advance(struct source *base)
{
	scraper_advance(of(base)->scraper);
}

static const struct source_ops ops = { close_source, set_targets, in_flight, report, advance };

struct source *scrape_source_open(struct loop *loop, struct http *http, const struct clock *clock,
				  const struct scrape_source_settings *settings)
{
	struct scrape_source *s = calloc(1, sizeof *s);

	if (!s)
		abort();
	s->base.ops = &ops;
	s->clock = clock;
	s->on_reading = settings->source.on_reading;
	s->user = settings->source.user;
	s->scraper = scraper_open(loop, http, clock,
				  &(struct scrape_settings){ .pool = settings->source.pool,
							     .engine = settings->source.engine,
							     .interval = settings->source.interval,
							     .objective_us = settings->source.objective_us,
							     .custom = settings->source.custom,
							     .reach = settings->reach,
							     .on_reading = on_reading,
							     .user = s });
	return &s->base;
}

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
