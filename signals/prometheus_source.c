#include "signals/prometheus_source.h"

#include "base/arena.h"
#include "signals/prometheus.h"
#include "signals/prometheus_replica.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_SAMPLES = 100000 };
static const size_t MOST_BYTES = (size_t)32 << 20;
static const millis TIMEOUT_LEAST = SECOND;

/* One query; the last is the one that comes first: when each replica was read. */
enum { READ_AT = ENGINE_QUANTITY_COUNT, QUERIES };

struct question {
	struct prometheus_source *source;
	struct prometheus_call call;
	struct buf query; /* empty: the engine does not tell it */
	size_t row;	  /* of the engine's table, the first of the quantity */
};

struct prometheus_source {
	struct source base; /* first */
	struct loop *loop;
	const struct clock *clock;
	struct source_settings settings;
	struct arena arena;
	struct prometheus *prometheus;
	struct page_table table;
	struct question questions[QUERIES];
	struct timer timer;
	struct replica_set set;

	bool is_closed, has_begun;
	size_t in_flight;
	millis round_at; /* clock_mono() of its beginning */
	millis asked_at; /* the instant that it is about, by the server's clock; 0: not known */
	int64_t shown, strangers;
	bool asked[ENGINE_QUANTITY_COUNT];
	char stranger[160];
	struct round_sums sums;
	struct source_report report; /* of the rounds that are over */
	struct source_report said;   /* in the one under way: trouble and warning */
};

static void advance(struct source *base);

static void on_timer(struct timer *t)
{
	advance(t->user);
}

static const millis NEW_FOR = MINUTE;

static struct prometheus_source *of(const struct source *base)
{
	return (struct prometheus_source *)base;
}

static millis oldest(const struct prometheus_source *s, millis now)
{
	millis gap = clock_real(s->clock, READING_GAP * s->settings.interval);

	return now - (gap > READING_GAP * SECOND ? gap : READING_GAP * SECOND);
}

/* Prometheus reads its pods in its own time: one that has just become ready is not missing yet. */
static bool is_new(const struct prometheus_source *s, const struct prometheus_replica *p)
{
	return !p->known_at && p->error.kind == ERROR_NOT_FOUND &&
	       clock_mono(s->clock) - p->ready_at < NEW_FOR + s->settings.interval;
}

static void tell(struct prometheus_source *s)
{
	int64_t ready = 0;
	struct pool_reading r = { .at = clock_now(s->clock) };
	struct reading_more more;

	for (size_t i = 0; i < s->set.count; i++) {
		struct prometheus_replica *p = s->set.by_key[i];
		bool is_read = replica_settle(p, &s->table, s->asked, &s->settings, &s->sums);
		ready += p->is_ready;
		r.expected += p->is_ready && (is_read || !is_new(s, p));
		if (!is_read) {
			if (s->said.trouble.kind == ERROR_NONE)
				s->said.trouble = p->error;
			continue;
		}
		p->known_at = clock_mono(s->clock);
		r.fresh += p->is_ready;
		r.waiting += p->content.waiting;
		*(p->is_ready ? &r.running : &r.running_draining) += p->content.running;
		round_add_levels(&s->sums, &p->content, p->is_ready);
	}
	if (!r.fresh)
		r.expected = ready; /* it tells of nobody, so not only of the new ones */
	r.ready = r.expected;
	round_tell(&s->sums, &r, &more);
	round_clear(&s->sums);
	s->report.trouble = s->said.trouble;
	memcpy(s->report.warning, s->said.warning, sizeof s->report.warning);
	s->report.rounds++;
	s->report.blind += r.expected > 0 && !r.fresh;
	if (r.fresh)
		s->report.read_at = clock_mono(s->clock);
	s->settings.on_reading(s->settings.user, &r);
}

static void wait_for_next(struct prometheus_source *s)
{
	millis next = s->round_at + s->settings.interval, now = clock_mono(s->clock);

	timer_start(s->loop, &s->timer, clock_real(s->clock, next > now ? next - now : 0), on_timer);
}

static void blame(struct prometheus_source *s, const struct error *e, const char *what)
{
	if (s->said.trouble.kind != ERROR_NONE || e->kind == ERROR_NONE)
		return;
	s->said.trouble = *e;
	error_wrap(&s->said.trouble, "%s", what);
}

/* The last thing that is done: the one told may close the source. */
static void end_round(struct prometheus_source *s)
{
	for (int i = 0; i < ENGINE_QUANTITY_COUNT; i++)
		blame(s, &s->questions[i].call.error, engine_quantity_name((enum engine_quantity)i));
	wait_for_next(s);
	tell(s);
}

static void note(struct prometheus_source *s, const struct prometheus_notes *n)
{
	if (n->warnings && !s->said.warning[0])
		memcpy(s->said.warning, n->warning, sizeof s->said.warning);
}

static void free_source(struct prometheus_source *s)
{
	timer_stop(&s->timer);
	replica_set_release(&s->set);
	for (int i = 0; i < QUERIES; i++)
		buf_release(&s->questions[i].query);
	prometheus_close(s->prometheus);
	arena_release(&s->arena);
	free(s);
}

/* False: it was closed meanwhile, and is gone or will be. */
static bool goes_on(struct prometheus_source *s)
{
	s->in_flight--;
	if (s->is_closed && !s->in_flight)
		free_source(s);
	else if (!s->is_closed)
		return true;
	return false;
}

static bool on_value(void *user, const struct prometheus_sample *sample, struct error *e)
{
	struct question *q = user;
	struct prometheus_source *s = q->source;
	struct prometheus_replica *r = sample->series ? replica_set_owner(&s->set, sample->series) : NULL;

	(void)e;
	if (r)
		replica_take(r, (enum engine_quantity)(q - s->questions), sample, q->row);
	return true;
}

static void on_answer(struct prometheus_call *c)
{
	struct question *q = c->user;
	struct prometheus_source *s = q->source;
	enum engine_quantity quantity = (enum engine_quantity)(q - s->questions);

	if (!goes_on(s))
		return;
	s->asked[quantity] = c->error.kind == ERROR_NONE;
	note(s, &c->notes);
	if (!s->in_flight)
		end_round(s);
}

static void ask(struct question *q, millis at)
{
	struct prometheus_source *s = q->source;
	millis timeout = clock_real(s->clock, s->settings.interval) * 2 / 5;

	q->call.at = at;
	q->call.timeout = timeout > TIMEOUT_LEAST ? timeout : TIMEOUT_LEAST;
	s->in_flight++;
	prometheus_start(s->prometheus, &q->call);
}

static void judge_age(const struct prometheus_source *s, struct prometheus_replica *r)
{
	r->is_fresh = r->place && r->read_at >= oldest(s, s->asked_at);
	if (r->is_fresh)
		return;
	if (!r->place)
		error_set(&r->error, ERROR_NOT_FOUND, "%s: no series of pod %s", prometheus_url(s->prometheus), r->pod);
	else
		error_set(&r->error, ERROR_TIMEOUT,
			  "%s: it has not read pod %s for more than %d intervals of signals.prometheus.interval",
			  prometheus_url(s->prometheus), r->pod, READING_GAP);
}

static bool names_replicas(struct prometheus_source *s, struct error *e)
{
	if (s->shown > s->strangers)
		return true;
	if (!s->shown)
		return error_set(e, ERROR_NOT_FOUND,
				 "%s: no series of %s; is the engine right, are the labels, and does it read the pods?",
				 prometheus_url(s->prometheus), s->table.metrics.rows[0].name);
	return error_set(e, ERROR_NOT_FOUND,
			 "%s: %" PRId64 " series, none of a pod of the pool by its labels pod and namespace or by "
			 "instance; found %s",
			 prometheus_url(s->prometheus), s->shown, s->stranger);
}

static bool on_read_at(void *user, const struct prometheus_sample *sample, struct error *e)
{
	struct question *q = user;
	struct prometheus_source *s = q->source;
	millis read_at;

	if (!sample->series)
		return error_set(e, ERROR_INVALID, "a scalar, where a vector was asked for");
	s->asked_at = sample->at;
	s->shown++;
	struct prometheus_replica *r = replica_set_owner(&s->set, sample->series);
	if (!r && !s->strangers++)
		prometheus_series_text(sample->series, s->stranger, sizeof s->stranger);
	if (r && exposition_value(sample->value, 3, &read_at) == EXPOSITION_NUMBER)
		replica_seen(r, replica_place(sample->series), read_at, oldest(s, sample->at));
	return true;
}

/* Nobody was read: nothing further to ask. */
static void on_places(struct prometheus_call *c)
{
	struct question *q = c->user;
	struct prometheus_source *s = q->source;
	struct error e = c->error;

	if (!goes_on(s))
		return;
	note(s, &c->notes);
	if (e.kind != ERROR_NONE || !names_replicas(s, &e)) {
		blame(s, &e, s->settings.pool);
		end_round(s);
		return;
	}
	for (size_t i = 0; i < s->set.count; i++)
		judge_age(s, s->set.by_key[i]);
	for (int i = 0; i < ENGINE_QUANTITY_COUNT; i++)
		if (s->questions[i].query.len)
			ask(&s->questions[i], s->asked_at);
}

static void begin_round(struct prometheus_source *s, millis now)
{
	millis due = s->round_at + s->settings.interval;

	s->round_at = s->has_begun && now - due < s->settings.interval ? due : now;
	s->has_begun = true;
	s->asked_at = s->shown = s->strangers = 0;
	s->said.trouble = (struct error){ 0 };
	s->said.warning[0] = '\0';
	memset(s->asked, 0, sizeof s->asked);
	for (int i = 0; i < QUERIES; i++)
		s->questions[i].call.error = (struct error){ 0 };
	for (size_t i = 0; i < s->set.count; i++)
		replica_begin(s->set.by_key[i]);
	if (s->set.count)
		ask(&s->questions[READ_AT], 0);
	else
		end_round(s);
}

static void advance(struct source *base)
{
	struct prometheus_source *s = of(base);
	millis now = clock_mono(s->clock);

	if (s->in_flight)
		return; /* what is under way ends by itself, and the round with it */
	if (s->has_begun && now - s->round_at < s->settings.interval)
		wait_for_next(s);
	else
		begin_round(s, now);
}

static void close_source(struct source *base)
{
	struct prometheus_source *s = of(base);

	s->is_closed = true;
	timer_stop(&s->timer);
	if (!s->in_flight) {
		free_source(s);
		return;
	}
	for (int i = 0; i < QUERIES; i++)
		prometheus_cancel(&s->questions[i].call);
}

static void set_targets(struct source *base, const struct source_target *targets, size_t count)
{
	replica_set_renew(&of(base)->set, targets, count, clock_mono(of(base)->clock));
}

static bool in_flight(const struct source *base, const char *key, int64_t *count, millis *age)
{
	const struct prometheus_source *s = of(base);
	const struct prometheus_replica *r = replica_set_find(&s->set, key);

	if (!r || !r->has_content)
		return false;
	*count = r->in_flight;
	*age = clock_mono(s->clock) - r->known_at;
	return true;
}

static struct source_report report(const struct source *base)
{
	return of(base)->report;
}

static const struct source_ops ops = { close_source, set_targets, in_flight, report, advance };

static const char *keep(struct prometheus_source *s, const char *text)
{
	return arena_strdup(&s->arena, text, strlen(text));
}

static void make_questions(struct prometheus_source *s, const struct promql_scope *scope)
{
	for (int i = 0; i < QUERIES; i++) {
		struct question *q = &s->questions[i];
		enum engine_quantity quantity = (enum engine_quantity)i;
		q->source = s;
		if (i == READ_AT)
			promql_read_at(scope, &q->query);
		else
			promql_now(scope, quantity, &q->query);
		while (i != READ_AT && q->row < scope->metrics.count &&
		       scope->metrics.rows[q->row].quantity != quantity)
			q->row++;
		q->call = (struct prometheus_call){ .query = q->query.text,
						    .most_samples = MOST_SAMPLES,
						    .most_bytes = MOST_BYTES,
						    .on_sample = i == READ_AT ? on_read_at : on_value,
						    .done = i == READ_AT ? on_places : on_answer,
						    .user = q };
	}
}

struct source *prometheus_source_open(struct loop *loop, struct http *http, const struct clock *clock,
				      const struct prometheus_source_settings *settings)
{
	struct prometheus_source *s = calloc(1, sizeof *s);

	if (!s)
		abort();
	s->base.ops = &ops;
	s->loop = loop;
	s->clock = clock;
	s->settings = settings->source;
	s->settings.pool = keep(s, settings->source.pool);
	s->prometheus = prometheus_open(loop, http, settings->url, &settings->reach);
	s->table = settings->source.custom ? page_table_of(engine_metrics_copy(settings->source.custom, &s->arena))
					   : page_table_make(settings->source.engine);
	s->timer.user = s;
	const struct promql_scope scope = { s->table.metrics, settings->labels, settings->label_count };
	make_questions(s, &scope);
	timer_start(loop, &s->timer, 0, on_timer);
	return &s->base;
}
