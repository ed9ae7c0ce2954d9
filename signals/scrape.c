#include "signals/scrape.h"

#include "signals/scraper.h"

#include <stdlib.h>
#include <string.h>

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
