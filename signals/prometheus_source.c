#include "signals/prometheus_source.h"

#include "base/alloc.h"
#include "base/fnv1a.h"
#include "signals/evidence.h"
#include "signals/pool_reading.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_SAMPLES = 100000 };
static const size_t MOST_BYTES = (size_t)32 << 20;
static const millis TIMEOUT_LEAST = SECOND;
/* Prometheus scrapes a pod when its turn comes: one that became ready lately is not missing yet. */
static const millis NEW_FOR = MINUTE;

/* One replica as the server shows it. */
struct replica {
	char *key, *namespace, *pod, *address;
	bool is_ready, has_fallen; /* is_ready: as the API server says */
	millis ready_at;	   /* clock_mono() + 1 at which it was first seen ready; 0: never */

	millis mute_since; /* clock_mono() + 1 of the first round in a row that it answered and told nothing */

	/* Of the round under way. */
	bool answers;	/* Prometheus reads a page of it, whatever that tells; ... */
	bool fails;	/* ... or has one that it cannot read, which may be the engine's */
	uint64_t place; /* hash of the one place it is scraped at that counts; 0: none was shown */
	millis read_at; /* its scrape there, by the server's clock */
	bool is_fresh;
	struct error error; /* why it is rejected */
	int64_t level[ENGINE_STARTED];
	bool has_value[ENGINE_QUANTITY_COUNT];
	struct page_series *series;
	size_t count, room;

	/* Of the last round in which it was accepted. */
	uint64_t place_before;
	bool has_content;
	struct page_content content; /* counters to subtract from; a rank is kept from when it was last shown */
	millis content_at;	     /* by the server's clock */
	struct evidence evidence;
	int64_t in_flight;
	millis known_at; /* clock_mono() at which it was scraped */
};

/* One query; the last is the one that comes first: when each replica was scraped. */
enum { ANSWERS = ENGINE_QUANTITY_COUNT, READ_AT, QUERIES };

struct query {
	struct prometheus_source *source;
	struct prometheus_call call;
	struct buf text; /* empty: the engine lacks the quantity */
	size_t row;	 /* of the engine's table, the first of the quantity */
};

struct prometheus_source {
	struct source base; /* first */
	struct loop *loop;
	const struct clock *clock;
	struct source_settings settings;
	struct arena arena;
	struct prometheus *prometheus;
	struct page_table table;
	struct query queries[QUERIES];
	struct timer timer;
	struct replica **by_key, **by_pod, **by_address;
	size_t count;

	bool is_closed, has_begun;
	size_t in_flight;
	millis round_at; /* clock_mono() at which it was due */
	millis asked_at; /* clock_mono() */
	millis at;	 /* the instant that it is about, by the server's clock; 0: not known */
	int64_t shown, strangers;
	bool is_answered[ENGINE_QUANTITY_COUNT];
	char stranger[160];
	struct reading_sums sums;
	struct source_report report; /* of the rounds that are over */
	struct source_report draft;  /* of the one under way: trouble and warning */
};

static void free_replica(struct replica *r)
{
	page_content_release(&r->content);
	free(r->series);
	free(r->key);
	free(r->namespace);
	free(r->pod);
	free(r->address);
	free(r);
}

/* Which place a series was scraped at, never 0. */
static uint64_t place_of(const struct prometheus_series *s)
{
	static const char *const names[] = { "instance", "job", "prometheus", "prometheus_replica" };
	uint64_t h = FNV1A_START;

	for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
		const char *value = prometheus_label(s, names[i]);
		h = fnv1a_bytes(fnv1a_text(h, value ? value : ""), "\xff", 1);
	}
	return h ? h : 1;
}

/*
 * It was scraped there at `read_at`. The place of before is kept while it is not older than `oldest`; of two that
 * differ in nothing else the lower hash wins, so that every round chooses the same.
 */
static void choose_place(struct replica *r, uint64_t place, millis read_at, millis oldest)
{
	bool was_chosen = r->place && r->place == r->place_before && r->read_at >= oldest;
	bool is_chosen = place == r->place_before && read_at >= oldest;
	bool is_newer = read_at > r->read_at || (read_at == r->read_at && place < r->place);

	if (r->place && (was_chosen || (!is_chosen && !is_newer)))
		return;
	r->place = place;
	r->read_at = read_at;
}

static void push_series(struct replica *r, struct page_series s)
{
	r->series = xgrow(r->series, r->count, &r->room, sizeof *r->series);
	r->series[r->count++] = s;
}

static bool read_sample(struct replica *r, enum engine_quantity q, const struct prometheus_sample *sample, size_t row,
			struct error *e)
{
	struct page_series s = { .row = row, .id = (uint64_t)q << 56 };
	const char *le = prometheus_label(sample->series, "le");

	if (page_is_unknown(q, sample->value))
		return true;
	if (!page_value(q, sample->value, &s.value, e))
		return false;
	r->has_value[q] = true;
	if (engine_is_level(q)) {
		r->level[q] = s.value;
		return true;
	}
	if (engine_is_bucket(q)) {
		if (!le)
			return error_set(e, ERROR_INVALID, "a bucket without the label le");
		if (!page_bound((struct exposition_slice){ le, strlen(le) }, &s.le_us, e))
			return false;
		s.id |= (uint64_t)s.le_us & ((UINT64_C(1) << 56) - 1);
	}
	push_series(r, s);
	return true;
}

/* A sample of another place is passed over. An impossible value rejects the replica. */
static void take_sample(struct replica *r, enum engine_quantity q, const struct prometheus_sample *sample, size_t row)
{
	struct error e = { 0 };

	if (!r->place || place_of(sample->series) != r->place || r->error.kind != ERROR_NONE)
		return;
	if (read_sample(r, q, sample, row, &e) || engine_is_shown_only(q))
		return;
	error_wrap(&e, "%s: %s", r->pod, engine_quantity_name(q));
	r->error = e;
}

static bool is_whole(const struct replica *r, struct error *e)
{
	static const enum engine_quantity needed[] = { ENGINE_RUNNING, ENGINE_WAITING };

	for (size_t i = 0; i < sizeof needed / sizeof *needed; i++)
		if (!r->has_value[needed[i]])
			return error_set(e, ERROR_INVALID, "%s: no %s", r->pod, engine_quantity_name(needed[i]));
	for (size_t i = 1; i < r->count; i++)
		if (r->series[i - 1].id == r->series[i].id)
			return error_set(e, ERROR_INVALID, "%s: %s: the same series twice", r->pod,
					 engine_quantity_name((enum engine_quantity)(r->series[i].id >> 56)));
	return true;
}

/* Adds what the replica did since its last content. One whose counters jumped is rejected, and counts from there. */
static bool add_delta(struct prometheus_source *s, struct replica *r, const struct page_content *c)
{
	struct counter_delta delta = { 0 };
	/* The server's clock is the world's; what is counted and for how long is told on ours. */
	millis elapsed = r->read_at > r->content_at ? (r->read_at - r->content_at) * s->clock->speed : 0;

	if (!r->has_content || r->place != r->place_before) {
		evidence_look(&r->evidence, c, NULL, 0);
		return true;
	}
	if (!counter_delta_between(&r->content, c, s->settings.objective_us, elapsed, &delta, &r->error))
		return error_wrap(&r->error, "%s", r->pod);
	if (elapsed && evidence_look(&r->evidence, c, &delta, elapsed) == EVIDENCE_RESETS)
		return true;
	reading_add_delta(&s->sums, &delta, elapsed, s->settings.interval);
	return true;
}

/* The end of the round for a replica: whether it is accepted; r->error says why not. */
static bool settle_replica(struct prometheus_source *s, struct replica *r)
{
	if (!r->is_fresh || r->error.kind != ERROR_NONE)
		return false;
	/* Counters that could not be asked for stay as they were, so that the next round counts from there. */
	for (size_t i = 0; i < r->content.series_count; i++)
		if (!s->is_answered[r->content.series[i].id >> 56])
			push_series(r, r->content.series[i]);
	page_sort_series(r->series, r->count);
	if (!is_whole(r, &r->error))
		return false;
	struct page_content c = { .table = &s->table, .series = r->series, .series_count = r->count };
	page_take_levels(&c, r->level, r->has_value);
	for (int q = 0; q < ENGINE_QUANTITY_COUNT; q++)
		c.rank[q] = r->has_value[q] ? 0 : -1;
	r->series = NULL;
	r->count = r->room = 0;
	bool ok = add_delta(s, r, &c);
	for (int q = 0; q < ENGINE_QUANTITY_COUNT; q++)
		if (!s->is_answered[q] && r->has_content)
			c.rank[q] = r->content.rank[q];
	page_content_release(&r->content);
	r->content = c;
	r->content_at = r->read_at;
	r->has_content = true;
	r->place_before = r->place;
	r->in_flight = evidence_in_flight(&r->evidence);
	return ok;
}

static int by_key(const void *left, const void *right)
{
	const struct replica *const *a = left, *const *b = right;

	return strcmp((*a)->key, (*b)->key);
}

static int by_pod(const void *left, const void *right)
{
	const struct replica *const *a = left, *const *b = right;

	return strcmp((*a)->pod, (*b)->pod);
}

static int by_address(const void *left, const void *right)
{
	const struct replica *const *a = left, *const *b = right;

	return strcmp((*a)->address, (*b)->address);
}

typedef int order_fn(const void *left, const void *right);

static struct replica *find(struct replica *const *sorted, size_t count, const struct replica *like, order_fn *order)
{
	struct replica *const *found = count ? bsearch(&like, sorted, count, sizeof(struct replica *), order) : NULL;

	return found ? *found : NULL;
}

static struct replica *find_key(const struct prometheus_source *s, const char *key)
{
	return find(s->by_key, s->count, &(struct replica){ .key = (char *)(uintptr_t)key }, by_key);
}

/* Whose series it is, by pod and namespace, or else by the host of instance; NULL: of none. */
static struct replica *owner_of(const struct prometheus_source *s, const struct prometheus_series *series)
{
	char host[80] = "";
	const char *pod = prometheus_label(series, "pod"), *namespace = prometheus_label(series, "namespace");
	const char *instance = prometheus_label(series, "instance");
	const struct replica like = { .pod = (char *)(uintptr_t)pod, .address = host };

	if (pod) {
		struct replica *r = find(s->by_pod, s->count, &like, by_pod);
		return r && (!namespace || !strcmp(namespace, r->namespace)) ? r : NULL;
	}
	if (!instance)
		return NULL;
	/* "10.1.2.3:8000" and "[fd00::1]:8000" without the port. */
	bool is_v6 = instance[0] == '[';
	size_t len = strcspn(instance + is_v6, is_v6 ? "]" : ":");
	snprintf(host, sizeof host, "%.*s", (int)(len < sizeof host ? len : sizeof host - 1), instance + is_v6);
	return host[0] ? find(s->by_address, s->count, &like, by_address) : NULL;
}

static struct replica **sort(struct replica *const *items, size_t count, order_fn *order)
{
	struct replica **made = xcalloc(count + 1, sizeof(struct replica *));

	if (count) {
		memcpy(made, items, count * sizeof(struct replica *));
		qsort(made, count, sizeof(struct replica *), order);
	}
	return made;
}

/* `items`, unsorted, become the replicas; those that are not among them are freed. */
static void replace_replicas(struct prometheus_source *s, struct replica *const *items, size_t count)
{
	struct replica **kept = sort(items, count, by_key);

	for (size_t i = 0; i < s->count; i++)
		if (!find(kept, count, s->by_key[i], by_key))
			free_replica(s->by_key[i]);
	free(s->by_key);
	free(s->by_pod);
	free(s->by_address);
	s->by_key = kept;
	s->by_pod = sort(items, count, by_pod);
	s->by_address = sort(items, count, by_address);
	s->count = count;
}

static struct prometheus_source *of(const struct source *base)
{
	return (struct prometheus_source *)base;
}

static void set_targets(struct source *base, const struct source_target *targets, size_t count)
{
	struct prometheus_source *s = of(base);
	struct replica **items = xcalloc(count + 1, sizeof(struct replica *));

	for (size_t i = 0; i < count; i++) {
		const struct source_target *t = &targets[i];
		items[i] = find_key(s, t->key);
		if (!items[i]) {
			items[i] = xnew(struct replica);
			*items[i] = (struct replica){ .key = xstrdup(t->key),
						      .namespace = xstrdup(t->namespace ? t->namespace : ""),
						      .pod = xstrdup(t->pod ? t->pod : ""),
						      .address = xstrdup(t->address ? t->address : "") };
		}
		items[i]->is_ready = t->is_ready;
		items[i]->has_fallen = t->has_fallen;
		if (t->is_ready && !items[i]->ready_at)
			items[i]->ready_at = clock_mono(s->clock) + 1;
	}
	replace_replicas(s, items, count);
	free(items);
}

static bool in_flight(const struct source *base, const char *key, int64_t *count, millis *age)
{
	const struct prometheus_source *s = of(base);
	const struct replica *r = find_key(s, key);

	if (!r || !r->has_content)
		return false;
	*count = r->in_flight;
	*age = clock_mono(s->clock) - r->known_at;
	return true;
}

static enum engine_sleep sleep_of(const struct source *base, const char *key)
{
	const struct replica *r = find_key(of(base), key);

	return r && r->has_content ? r->content.sleep : SLEEP_NONE;
}

static struct source_report report(const struct source *base)
{
	return of(base)->report;
}

static void free_source(struct prometheus_source *s)
{
	timer_stop(&s->timer);
	replace_replicas(s, NULL, 0);
	free(s->by_key);
	free(s->by_pod);
	free(s->by_address);
	for (int i = 0; i < QUERIES; i++)
		buf_release(&s->queries[i].text);
	prometheus_close(s->prometheus);
	arena_release(&s->arena);
	free(s);
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
		prometheus_cancel(&s->queries[i].call);
}

static millis oldest(const struct prometheus_source *s, millis now)
{
	millis gap = clock_real(s->clock, READING_GAP * s->settings.interval);

	return now - (gap > READING_GAP * SECOND ? gap : READING_GAP * SECOND);
}

static bool is_new(const struct prometheus_source *s, const struct replica *r)
{
	return !r->known_at && r->error.kind == ERROR_NOT_FOUND &&
	       clock_mono(s->clock) - r->ready_at < NEW_FOR + s->settings.interval;
}

/* A worker of another pod's engine, say: Prometheus reads it, and it has never told a level. */
static bool look_for_mute(const struct prometheus_source *s, struct replica *r)
{
	millis now = clock_mono(s->clock);

	if (!r->answers || r->fails || r->place || r->has_content)
		r->mute_since = 0;
	else if (!r->mute_since)
		r->mute_since = now + 1;
	return r->mute_since && now + 1 - r->mute_since >= SOURCE_MUTE_AFTER;
}

static void blame(struct prometheus_source *s, const struct error *e, const char *what)
{
	if (s->draft.trouble.kind != ERROR_NONE || e->kind == ERROR_NONE)
		return;
	s->draft.trouble = *e;
	error_wrap(&s->draft.trouble, "%s", what);
}

static void on_timer(struct timer *t);

/* It may start requests, and is no server that sleeps. */
static bool is_serving(const struct replica *r)
{
	return r->is_ready && !(r->has_content && r->content.sleep != SLEEP_NONE);
}

/* One that was read. What contradicts itself is trouble, unless there is worse. */
static void add_replica(struct prometheus_source *s, const struct replica *p, struct pool_reading *r)
{
	struct error e;

	r->fresh += is_serving(p);
	reading_add_replica(r, &p->evidence, is_serving(p));
	reading_add_levels(&s->sums, &p->content, is_serving(p));
	evidence_tell(&p->evidence, &e);
	if (!is_serving(p) || e.kind == ERROR_NONE)
		return;
	r->disputed++;
	blame(s, &e, p->pod);
}

/* The last thing that is done: whoever takes the reading may close the source. */
static void end_round(struct prometheus_source *s)
{
	struct pool_reading r = { .at = clock_now(s->clock) };
	struct reading_more more;
	millis next = s->round_at + s->settings.interval, now = clock_mono(s->clock);
	int64_t ready = 0, fallen = 0, fallen_read = 0, mute = 0;
	struct error untold = { 0 };

	timer_start(s->loop, &s->timer, clock_real(s->clock, next > now ? next - now : 0), on_timer);
	for (int i = 0; i < ENGINE_QUANTITY_COUNT; i++)
		blame(s, &s->queries[i].call.error, engine_quantity_name((enum engine_quantity)i));
	for (size_t i = 0; i < s->count; i++) {
		struct replica *p = s->by_key[i];
		bool is_read = settle_replica(s, p);
		bool is_mute = look_for_mute(s, p) && is_serving(p);
		ready += is_serving(p);
		mute += is_mute;
		fallen += p->has_fallen;
		r.expected += is_serving(p) && !is_mute && (is_read || !is_new(s, p));
		if (!is_read) {
			struct error *trouble = is_mute ? &untold : &s->draft.trouble;
			if (trouble->kind == ERROR_NONE)
				*trouble = p->error;
			continue;
		}
		p->known_at = s->asked_at - (s->at > p->read_at ? (s->at - p->read_at) * s->clock->speed : 0);
		fallen_read += p->has_fallen;
		add_replica(s, p, &r);
	}
	if (r.fresh) {
		source_warn_of_mute(&s->draft, mute);
	} else {
		r.expected = ready; /* it shows none of the pool, so not only new or mute ones are missing */
		if (s->draft.trouble.kind == ERROR_NONE)
			s->draft.trouble = untold;
	}
	r.ready = r.expected;
	if (!ready) {
		r.expected = fallen;
		r.fresh = fallen_read;
	}
	reading_write(&s->sums, &r, &more);
	reading_next_round(&s->sums);
	s->report.trouble = s->draft.trouble;
	memcpy(s->report.warning, s->draft.warning, sizeof s->report.warning);
	source_count_round(&s->report, &r, now);
	s->settings.on_reading(s->settings.user, &r);
}

/* False: the source was closed meanwhile, and is gone or will be. */
static bool end_call(struct prometheus_source *s, const struct prometheus_call *c)
{
	s->in_flight--;
	if (s->is_closed) {
		if (!s->in_flight)
			free_source(s);
		return false;
	}
	if (c->notes.warnings && !s->draft.warning[0])
		memcpy(s->draft.warning, c->notes.warning, sizeof s->draft.warning);
	return true;
}

static bool on_value(void *user, const struct prometheus_sample *sample, struct error *e)
{
	struct query *q = user;
	struct replica *r = sample->series ? owner_of(q->source, sample->series) : NULL;

	(void)e;
	if (r)
		take_sample(r, (enum engine_quantity)(q - q->source->queries), sample, q->row);
	return true;
}

static void on_values(struct prometheus_call *c)
{
	struct query *q = c->user;
	struct prometheus_source *s = q->source;

	if (!end_call(s, c))
		return;
	s->is_answered[q - s->queries] = c->error.kind == ERROR_NONE;
	if (!s->in_flight)
		end_round(s);
}

static void ask(struct query *q, millis at)
{
	struct prometheus_source *s = q->source;
	millis timeout = clock_real(s->clock, s->settings.interval) * 2 / 5;

	q->call.at = at;
	q->call.timeout = timeout > TIMEOUT_LEAST ? timeout : TIMEOUT_LEAST;
	s->in_flight++;
	prometheus_start(s->prometheus, &q->call);
}

static bool on_answers(void *user, const struct prometheus_sample *sample, struct error *e)
{
	struct query *q = user;
	struct replica *r = sample->series ? owner_of(q->source, sample->series) : NULL;
	int64_t up;

	(void)e;
	if (!r || exposition_value(sample->value, 3, &up) != EXPOSITION_NUMBER)
		return true;
	r->answers |= up > 0;
	r->fails |= !up;
	return true;
}

/* Whatever came of it: who is not known to answer is missed. */
static void on_all_answers(struct prometheus_call *c)
{
	struct query *q = c->user;
	struct prometheus_source *s = q->source;

	if (end_call(s, c) && !s->in_flight)
		end_round(s);
}

static bool on_read_at(void *user, const struct prometheus_sample *sample, struct error *e)
{
	struct query *q = user;
	struct prometheus_source *s = q->source;
	millis read_at;

	if (!sample->series)
		return error_set(e, ERROR_INVALID, "a scalar, where a vector was asked for");
	s->at = sample->at;
	s->shown++;
	struct replica *r = owner_of(s, sample->series);
	if (!r && !s->strangers++)
		prometheus_series_text(sample->series, s->stranger, sizeof s->stranger);
	if (r && exposition_value(sample->value, 3, &read_at) == EXPOSITION_NUMBER)
		choose_place(r, place_of(sample->series), read_at, oldest(s, sample->at));
	return true;
}

static bool shows_replicas(struct prometheus_source *s, struct error *e)
{
	const char *url = prometheus_url(s->prometheus);

	if (s->shown > s->strangers)
		return true;
	if (!s->shown)
		return error_set(e, ERROR_NOT_FOUND,
				 "%s: no series of %s; is the engine right, are the labels, and does it read the pods?",
				 url, s->table.metrics.rows[0].name);
	return error_set(e, ERROR_NOT_FOUND,
			 "%s: %" PRId64 " series, none of a pod of the pool by its labels pod and namespace or by "
			 "instance; found %s",
			 url, s->shown, s->stranger);
}

/* When each replica was scraped is known: everything else is asked for at the same instant. */
static void on_places(struct prometheus_call *c)
{
	struct query *q = c->user;
	struct prometheus_source *s = q->source;
	struct error e = c->error;

	if (!end_call(s, c))
		return;
	if (e.kind != ERROR_NONE || !shows_replicas(s, &e)) {
		blame(s, &e, s->settings.pool);
		end_round(s);
		return;
	}
	for (size_t i = 0; i < s->count; i++) {
		struct replica *r = s->by_key[i];
		r->is_fresh = r->place && r->read_at >= oldest(s, s->at);
		if (!r->place)
			error_set(&r->error, ERROR_NOT_FOUND,
				  "%s: no series of pod %s; do: have it read, or name those that tell with "
				  "signals.podSelector",
				  prometheus_url(s->prometheus), r->pod);
		else if (!r->is_fresh)
			error_set(
				&r->error, ERROR_TIMEOUT,
				"%s: it has not read pod %s for more than %d intervals of signals.prometheus.interval",
				prometheus_url(s->prometheus), r->pod, READING_GAP);
	}
	for (int i = 0; i < READ_AT; i++)
		if (s->queries[i].text.len)
			ask(&s->queries[i], s->at);
}

static void begin_round(struct prometheus_source *s)
{
	millis now = clock_mono(s->clock), due = s->round_at + s->settings.interval;

	s->round_at = s->has_begun && now - due < s->settings.interval ? due : now;
	s->has_begun = true;
	s->asked_at = now;
	s->at = s->shown = s->strangers = 0;
	s->draft.trouble = (struct error){ 0 };
	s->draft.warning[0] = '\0';
	memset(s->is_answered, 0, sizeof s->is_answered);
	for (int i = 0; i < QUERIES; i++)
		s->queries[i].call.error = (struct error){ 0 };
	for (size_t i = 0; i < s->count; i++) {
		struct replica *r = s->by_key[i];
		r->answers = r->fails = false;
		r->place = 0;
		r->read_at = 0;
		r->is_fresh = false;
		r->error = (struct error){ 0 };
		memset(r->has_value, 0, sizeof r->has_value);
		r->count = 0;
	}
	if (s->count)
		ask(&s->queries[READ_AT], 0);
	else
		end_round(s);
}

static void on_timer(struct timer *t)
{
	begin_round(t->user);
}

static void write_query(struct prometheus_source *s, const struct promql_scope *scope, int i)
{
	struct query *q = &s->queries[i];
	enum engine_quantity quantity = (enum engine_quantity)i;

	q->source = s;
	if (i == READ_AT) {
		promql_read_at(scope, &q->text);
	} else if (i == ANSWERS) {
		promql_answers(scope, &q->text);
	} else {
		promql_now(scope, quantity, &q->text);
		while (q->row < scope->metrics.count && scope->metrics.rows[q->row].quantity != quantity)
			q->row++;
	}
	q->call = (struct prometheus_call){ .query = q->text.text,
					    .most_samples = MOST_SAMPLES,
					    .most_bytes = MOST_BYTES,
					    .on_sample = i == READ_AT	? on_read_at
							 : i == ANSWERS ? on_answers
									: on_value,
					    .done = i == READ_AT   ? on_places
						    : i == ANSWERS ? on_all_answers
								   : on_values,
					    .user = q };
}

static const struct source_ops ops = { close_source, set_targets, in_flight, sleep_of, report };

struct source *prometheus_source_open(struct loop *loop, struct http *http, const struct clock *clock,
				      const struct prometheus_source_settings *settings)
{
	struct prometheus_source *s = xnew(struct prometheus_source);

	s->base.ops = &ops;
	s->loop = loop;
	s->clock = clock;
	s->settings = settings->source;
	s->settings.pool = arena_strdup(&s->arena, settings->source.pool, strlen(settings->source.pool));
	s->prometheus = prometheus_open(loop, http, settings->url, &settings->reach);
	s->table = page_table_make(s->settings.engine, s->settings.custom, &s->arena);
	s->timer.user = s;
	for (int i = 0; i < QUERIES; i++)
		write_query(s, &(struct promql_scope){ s->table.metrics, settings->labels, settings->label_count }, i);
	timer_start(loop, &s->timer, 0, on_timer);
	return &s->base;
}
