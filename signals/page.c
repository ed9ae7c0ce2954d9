#include "signals/page.h"

#include "base/millis.h"
#include "base/text.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

struct page {
	const struct page_table *table;
	struct exposition *text;
	size_t bytes;
	int64_t stamp;
	struct page_series *series; /* gauges too until the end */
	size_t count, room;
};

static const int THOUSANDTHS = 3, MILLIONTHS = 6;

struct page_table page_table_make(enum engine engine)
{
	return page_table_of(engine_metrics(engine));
}

struct page_table page_table_of(struct engine_metrics m)
{
	struct page_table t = { .metrics = m };

	t.name_count = engine_names(t.metrics, t.names, t.name_of_row);
	return t;
}

void page_content_release(struct page_content *c)
{
	free(c->series);
	c->series = NULL;
	c->series_count = 0;
}

static bool is_wanted(const struct engine_metric *m, const struct exposition_sample *s)
{
	struct exposition_slice found;

	return !m->label || (exposition_label(s, m->label, &found) && found.len == strlen(m->value) &&
			     memcmp(found.text, m->value, found.len) == 0);
}

static int places_of(enum engine_quantity q)
{
	return q == ENGINE_KV_CACHE || q == ENGINE_PREFIX_SHARE || q == ENGINE_LATENCY_SUM ? MILLIONTHS : THOUSANDTHS;
}

static bool read_number(struct exposition_slice text, int places, int64_t *out, struct error *e)
{
	char shown[QUOTE_ROOM];
	const char *problem = "is no number";

	switch (exposition_value(text, places, out)) {
	case EXPOSITION_NUMBER:
		return true;
	case EXPOSITION_NEGATIVE:
		problem = "is less than nothing";
		break;
	case EXPOSITION_NAN:
	case EXPOSITION_NONSENSE:
		break;
	case EXPOSITION_INFINITE:
	case EXPOSITION_HUGE:
		problem = "is more than can be";
		break;
	}
	return error_set(e, ERROR_INVALID, "the value %s %s", quote(shown, text.text, text.len), problem);
}

bool page_value(enum engine_quantity q, struct exposition_slice text, int64_t *out, struct error *e)
{
	int64_t value;

	if (!read_number(text, places_of(q), &value, e))
		return false;
	if ((q == ENGINE_RUNNING || q == ENGINE_WAITING) && value > PAGE_MOST_REQUESTS * INT64_C(1000))
		return error_set(e, ERROR_INVALID, "more than %d requests cannot be", PAGE_MOST_REQUESTS);
	*out = value;
	return true;
}

bool page_bound(struct exposition_slice le, int64_t *out, struct error *e)
{
	if (exposition_value(le, MILLIONTHS, out) == EXPOSITION_INFINITE) {
		*out = PAGE_UNBOUNDED;
		return true;
	}
	return read_number(le, MILLIONTHS, out, e) || error_wrap(e, "le");
}

static bool read_bound(const struct exposition_sample *s, int64_t *out, struct error *e)
{
	struct exposition_slice le;

	return exposition_label(s, "le", &le) ? page_bound(le, out, e)
					      : error_set(e, ERROR_INVALID, "a bucket without the label le");
}

static uint64_t hash_series(size_t row, struct exposition_slice labels)
{
	uint64_t h = UINT64_C(14695981039346656037) ^ row;

	for (size_t i = 0; i < labels.len; i++)
		h = (h ^ (unsigned char)labels.text[i]) * UINT64_C(1099511628211);
	h = (h ^ h >> 32) * UINT64_C(0x9e3779b97f4a7c15);
	return h ^ h >> 29;
}

static void push(struct page *p, struct page_series s)
{
	if (p->count == p->room) {
		p->room = p->room ? 2 * p->room : 64;
		p->series = realloc(p->series, p->room * sizeof *p->series);
		if (!p->series)
			abort();
	}
	p->series[p->count++] = s;
}

bool page_is_unknown(enum engine_quantity q, struct exposition_slice value)
{
	int64_t ignored;

	return q == ENGINE_PREFIX_SHARE && exposition_value(value, MILLIONTHS, &ignored) == EXPOSITION_NAN;
}

static void note_stamp(struct page *p, struct exposition_slice time)
{
	int64_t stamp;

	if (time.len && exposition_value(time, THOUSANDTHS, &stamp) == EXPOSITION_NUMBER && stamp > p->stamp)
		p->stamp = stamp;
}

static bool take(struct page *p, size_t row, const struct exposition_sample *sample, struct error *e)
{
	const struct engine_metric *m = &p->table->metrics.rows[row];
	struct page_series s = { .row = row, .id = hash_series(row, sample->labels) };

	if (page_is_unknown(m->quantity, sample->value))
		return true;
	if (!page_value(m->quantity, sample->value, &s.value, e))
		return false;
	if (engine_is_bucket(m->quantity) && !read_bound(sample, &s.le_us, e))
		return false;
	if (engine_is_level(m->quantity))
		note_stamp(p, sample->time);
	push(p, s);
	return true;
}

static bool on_sample(void *user, const struct exposition_sample *s, struct error *e)
{
	struct page *p = user;

	for (size_t i = 0; i < p->table->metrics.count; i++)
		if (p->table->name_of_row[i] == s->name && is_wanted(&p->table->metrics.rows[i], s) &&
		    !take(p, i, s, e))
			return false;
	return true;
}

struct page *page_open(const struct page_table *table)
{
	struct page *p = calloc(1, sizeof *p);

	if (!p)
		abort();
	p->table = table;
	p->stamp = INT64_MIN;
	p->text = exposition_open((struct exposition_names){ table->names, table->name_count }, PAGE_SERIES, on_sample,
				  p);
	return p;
}

void page_close(struct page *p)
{
	if (!p)
		return;
	exposition_close(p->text);
	free(p->series);
	free(p);
}

size_t page_bytes(const struct page *p)
{
	return p->bytes;
}

bool page_feed(struct page *p, const char *bytes, size_t len, struct error *e)
{
	p->bytes += len;
	if (p->bytes > PAGE_BYTES)
		return error_set(e, ERROR_INVALID, "the page is longer than %zu bytes", PAGE_BYTES);
	return exposition_feed(p->text, bytes, len, e);
}

static void choose_names(const struct page *p, int rank[ENGINE_QUANTITY_COUNT])
{
	for (int q = 0; q < ENGINE_QUANTITY_COUNT; q++)
		rank[q] = -1;
	for (size_t i = 0; i < p->count; i++) {
		const struct engine_metric *m = &p->table->metrics.rows[p->series[i].row];
		if (rank[m->quantity] < 0 || m->rank < rank[m->quantity])
			rank[m->quantity] = m->rank;
	}
}

static const char *first_name(const struct page_table *t, enum engine_quantity q)
{
	for (size_t i = 0; i < t->metrics.count; i++)
		if (t->metrics.rows[i].quantity == q)
			return t->metrics.rows[i].name;
	return engine_quantity_name(q);
}

static bool tells(const struct page *p, const struct page_content *c, enum engine_quantity q, struct error *e)
{
	return c->rank[q] >= 0 ||
	       error_set(e, ERROR_INVALID, "the page has no %s: is this the metrics page of the engine?",
			 first_name(p->table, q));
}

struct levels {
	int64_t value[ENGINE_STARTED];
	bool is_told[ENGINE_STARTED];
};

static void add_level(struct levels *l, const struct engine_metric *m, int64_t value)
{
	int64_t *sum = &l->value[m->quantity];

	l->is_told[m->quantity] = true;
	if (!m->is_largest)
		*sum += value;
	else if (value > *sum)
		*sum = value;
}

/* Levels are summed up, counters stay series; what another name tells better goes. */
static struct levels settle(struct page *p, const struct page_content *c)
{
	struct levels l = { 0 };
	size_t kept = 0;

	for (size_t i = 0; i < p->count; i++) {
		const struct engine_metric *m = &p->table->metrics.rows[p->series[i].row];
		if (m->rank != c->rank[m->quantity])
			continue;
		if (engine_is_level(m->quantity))
			add_level(&l, m, p->series[i].value);
		else
			p->series[kept++] = p->series[i];
	}
	p->count = kept;
	return l;
}

static int by_id(const void *left, const void *right)
{
	const struct page_series *a = left, *b = right;

	return (a->id > b->id) - (a->id < b->id);
}

static bool sort_series(struct page *p, struct error *e)
{
	if (p->count)
		qsort(p->series, p->count, sizeof *p->series, by_id);
	for (size_t i = 1; i < p->count; i++)
		if (p->series[i - 1].id == p->series[i].id)
			return error_set(e, ERROR_INVALID, "%s: the same series twice",
					 p->table->metrics.rows[p->series[i].row].name);
	return true;
}

static int64_t share(int64_t millionths, bool is_told)
{
	return is_told && millionths <= 1000000 ? (millionths + 500) / 1000 : INT64_MIN;
}

/* Thousandths of a second; nothing takes days to load. */
static int64_t duration(int64_t value, bool is_told)
{
	return is_told && value > 0 && value <= DAY ? value : INT64_MIN;
}

void page_tell_levels(struct page_content *c, const int64_t value[ENGINE_STARTED], const bool is_told[ENGINE_STARTED])
{
	c->kv_permille = share(value[ENGINE_KV_CACHE], is_told[ENGINE_KV_CACHE]);
	c->prefix_permille = share(value[ENGINE_PREFIX_SHARE], is_told[ENGINE_PREFIX_SHARE]);
	c->load_ms = duration(value[ENGINE_LOAD_TIME], is_told[ENGINE_LOAD_TIME]);
	c->startup_ms = duration(value[ENGINE_STARTUP_TIME], is_told[ENGINE_STARTUP_TIME]);
}

bool page_finish(struct page *p, struct page_content *out, struct error *e)
{
	const int64_t most = PAGE_MOST_REQUESTS;
	struct page_content c = { .table = p->table };

	if (!exposition_finish(p->text, e))
		return false;
	choose_names(p, c.rank);
	if (!tells(p, &c, ENGINE_RUNNING, e) || !tells(p, &c, ENGINE_WAITING, e))
		return false;
	struct levels l = settle(p, &c);
	c.running = (l.value[ENGINE_RUNNING] + 500) / 1000;
	c.waiting = (l.value[ENGINE_WAITING] + 500) / 1000;
	if (c.running > most || c.waiting > most)
		return error_set(e, ERROR_INVALID, "%" PRId64 " running and %" PRId64 " waiting requests cannot be",
				 c.running, c.waiting);
	page_tell_levels(&c, l.value, l.is_told);
	if (!sort_series(p, e))
		return false;
	c.stamp = p->stamp;
	c.series = p->series;
	c.series_count = p->count;
	p->series = NULL;
	p->count = p->room = 0;
	*out = c;
	return true;
}
