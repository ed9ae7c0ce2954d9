#include "signals/engine_metrics.h"

#include "base/alloc.h"
#include "base/buf.h"
#include "base/fnv1a.h"
#include "base/text.h"
#include "base/millis.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* The rows of all engines, each behind a row without a name whose rank is the engine. */
#define ENGINE(id, name_, image, slots) { .name = NULL, .rank = ENGINE_##id },
#define METRIC(quantity_, rank_, name_, label_, value_, largest) \
	{ name_, ENGINE_##quantity_, rank_, label_, value_, largest },
static const struct engine_metric engine_rows[] = {
#include "signals/engines/all.def"
};
#undef ENGINE
#undef METRIC

#define ENGINE(id, name, image, slots) { name, image, slots },
#define METRIC(...)
static const struct engine_traits traits[] = {
#include "signals/engines/all.def"
};
#undef ENGINE
#undef METRIC

struct engine_traits engine_traits(enum engine engine)
{
	return traits[engine];
}

struct engine_metrics engine_metrics(enum engine engine)
{
	const size_t all = sizeof engine_rows / sizeof *engine_rows;
	size_t first = 0, end;

	while (engine_rows[first].name || engine_rows[first].rank != (int)engine)
		first++;
	for (end = ++first; end < all && engine_rows[end].name;)
		end++;
	return (struct engine_metrics){ .rows = &engine_rows[first], .count = end - first };
}

const char *engine_quantity_name(enum engine_quantity quantity)
{
	static const char *const texts[] = { "running requests",
					     "waiting requests",
					     "requests that wait outside",
					     "KV cache use",
					     "prefix cache hits",
					     "load time",
					     "startup time",
					     "sleep state",
					     "weights of a server that sleeps",
					     "sign of an idle server",
					     "started requests",
					     "requests waited",
					     "queue wait",
					     "finished requests",
					     "prompt tokens",
					     "output tokens",
					     "seconds between tokens",
					     "times between tokens",
					     "refused requests",
					     "time to first token",
					     "tokens looked for in the prefix cache",
					     "tokens found in the prefix cache" };

	_Static_assert(sizeof texts / sizeof *texts == ENGINE_QUANTITY_COUNT, "a text per quantity");
	return quantity < ENGINE_QUANTITY_COUNT ? texts[quantity] : "unknown";
}

static const struct custom_row {
	enum custom_name name;
	enum engine_quantity quantity;
	int rank;
	const char *ending;
	bool is_largest;
} custom_rows[] = {
	{ CUSTOM_RUNNING, ENGINE_RUNNING, 0, "", false },
	{ CUSTOM_WAITING, ENGINE_WAITING, 0, "", false },
	{ CUSTOM_KV_CACHE, ENGINE_KV_CACHE, 0, "", true },
	{ CUSTOM_STARTED, ENGINE_STARTED, 0, "", false },
	{ CUSTOM_FIRST_TOKEN, ENGINE_STARTED, 1, "_count", false },
	{ CUSTOM_QUEUE_WAIT, ENGINE_STARTED, 2, "_count", false },
	{ CUSTOM_COMPLETED, ENGINE_COMPLETED, 0, "", false },
	{ CUSTOM_PROMPT_TOKENS, ENGINE_PROMPT_TOKENS, 0, "", false },
	{ CUSTOM_OUTPUT_TOKENS, ENGINE_OUTPUT_TOKENS, 0, "", false },
	{ CUSTOM_QUEUE_WAIT, ENGINE_WAITED, 0, "_count", false },
	{ CUSTOM_QUEUE_WAIT, ENGINE_WAIT_BUCKET, 0, "_bucket", false },
	{ CUSTOM_FIRST_TOKEN, ENGINE_FIRST_TOKEN_BUCKET, 0, "_bucket", false },
	{ CUSTOM_TOKEN_LATENCY, ENGINE_LATENCY_SUM, 0, "_sum", false },
	{ CUSTOM_TOKEN_LATENCY, ENGINE_LATENCY_COUNT, 0, "_count", false },
	{ CUSTOM_PREFIX_QUERIES, ENGINE_PREFIX_QUERIES, 0, "", false },
	{ CUSTOM_PREFIX_HITS, ENGINE_PREFIX_HITS, 0, "", false },
	{ CUSTOM_LOAD_TIME, ENGINE_LOAD_TIME, 0, "", true },
	{ CUSTOM_STARTUP_TIME, ENGINE_STARTUP_TIME, 0, "", true },
	{ CUSTOM_REFUSED, ENGINE_REFUSED, 0, "", false },
};

static struct engine_metric make_row(const struct custom_row *row, const char *text, struct arena *a)
{
	CLEANUP(buf_release) struct buf name = { 0 };
	struct metric_name m;

	if (!metric_name_parse(text, &m))
		abort();
	buf_append(&name, text, m.name_len);
	buf_text(&name, row->ending);
	return (struct engine_metric){ .name = arena_strdup(a, name.text, name.len),
				       .quantity = row->quantity,
				       .rank = row->rank,
				       .label = m.label_len ? arena_strdup(a, m.label, m.label_len) : NULL,
				       .value = m.label_len ? arena_strdup(a, m.value, m.value_len) : NULL,
				       .is_largest = row->is_largest };
}

struct engine_metrics custom_metrics(const char *const names[CUSTOM_COUNT], struct arena *a)
{
	size_t most = sizeof custom_rows / sizeof *custom_rows, count = 0;
	struct engine_metric *made = arena_array(a, struct engine_metric, most);

	for (size_t i = 0; i < most; i++)
		if (names[custom_rows[i].name])
			made[count++] = make_row(&custom_rows[i], names[custom_rows[i].name], a);
	return (struct engine_metrics){ .rows = made, .count = count };
}

struct page {
	const struct page_table *table;
	struct exposition *text;
	size_t bytes;
	int64_t stamp;
	bool has_ranks;
	struct page_series *series; /* gauges too until the end */
	size_t count, room;
};

static const int THOUSANDTHS = 3, MILLIONTHS = 6;

static const char *copy(const char *text, struct arena *a)
{
	return text ? arena_strdup(a, text, strlen(text)) : NULL;
}

struct page_table page_table_make(enum engine engine, const struct engine_metrics *custom, struct arena *a)
{
	struct page_table t = { .metrics = custom ? *custom : engine_metrics(engine) };

	if (custom) {
		struct engine_metric *rows = arena_array(a, struct engine_metric, custom->count);
		for (size_t i = 0; i < custom->count; i++) {
			rows[i] = custom->rows[i];
			rows[i].name = copy(rows[i].name, a);
			rows[i].label = copy(rows[i].label, a);
			rows[i].value = copy(rows[i].value, a);
		}
		t.metrics.rows = rows;
	}
	for (size_t i = 0; i < t.metrics.count; i++) {
		size_t at = 0;
		while (at < t.name_count && strcmp(t.names[at], t.metrics.rows[i].name))
			at++;
		t.name_of_row[i] = at;
		if (at == t.name_count)
			t.names[t.name_count++] = t.metrics.rows[i].name;
	}
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

	if (!m->label)
		return true;
	if (!exposition_label(s, m->label, &found))
		return !m->value[0];
	return found.len == strlen(m->value) && memcmp(found.text, m->value, found.len) == 0;
}

static int places_of(enum engine_quantity q)
{
	return q == ENGINE_KV_CACHE || q == ENGINE_PREFIX_SHARE || q == ENGINE_LATENCY_SUM ? MILLIONTHS : THOUSANDTHS;
}

static bool read_number(struct exposition_slice text, int places, int64_t *out, struct error *e)
{
	char shown[QUOTE_ROOM];
	const char *problem = "is not a number";

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

static bool counts_requests(enum engine_quantity q)
{
	return q <= ENGINE_WAITING_OUTSIDE;
}

bool page_value(enum engine_quantity q, struct exposition_slice text, int64_t *out, struct error *e)
{
	int64_t value;

	if (!read_number(text, places_of(q), &value, e))
		return false;
	if (counts_requests(q) && value > PAGE_MOST_REQUESTS * INT64_C(1000))
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

static bool is_rank(struct exposition_slice name)
{
	static const char *const ranks[] = { "tp_rank", "pp_rank", "moe_ep_rank" };

	for (size_t i = 0; i < sizeof ranks / sizeof *ranks; i++)
		if (name.len == strlen(ranks[i]) && !memcmp(name.text, ranks[i], name.len))
			return true;
	return false;
}

static uint64_t hash_series(size_t row, const struct exposition_sample *s, bool *has_ranks)
{
	struct exposition_slice name, value;
	uint64_t h = FNV1A_START ^ row;

	for (const char *at = NULL; exposition_next_label(s, &at, &name, &value);)
		if (is_rank(name))
			*has_ranks = true;
		else /* with the quotes around the value, so that nothing can run together */
			h = fnv1a_bytes(fnv1a_bytes(h, name.text, name.len), value.text - 1, value.len + 2);
	h = (h ^ h >> 32) * UINT64_C(0x9e3779b97f4a7c15);
	return h ^ h >> 29;
}

bool page_is_unknown(enum engine_quantity q, struct exposition_slice value)
{
	int64_t ignored;

	return ((engine_is_level(q) && !counts_requests(q)) || engine_is_shown_only(q)) &&
	       exposition_value(value, places_of(q), &ignored) != EXPOSITION_NUMBER;
}

static bool take(struct page *p, size_t row, const struct exposition_sample *sample, struct error *e)
{
	const struct engine_metric *m = &p->table->metrics.rows[row];
	struct page_series s = { .row = row, .id = hash_series(row, sample, &p->has_ranks) };
	struct exposition_slice le;
	int64_t stamp;

	if (page_is_unknown(m->quantity, sample->value))
		return true;
	if (!page_value(m->quantity, sample->value, &s.value, e))
		return false;
	if (engine_is_bucket(m->quantity)) {
		if (!exposition_label(sample, "le", &le))
			return error_set(e, ERROR_INVALID, "a bucket without the label le");
		if (!page_bound(le, &s.le_us, e))
			return false;
	}
	if (engine_is_level(m->quantity) && sample->time.len &&
	    exposition_value(sample->time, THOUSANDTHS, &stamp) == EXPOSITION_NUMBER && stamp > p->stamp)
		p->stamp = stamp;
	p->series = xgrow(p->series, p->count, &p->room, sizeof *p->series);
	p->series[p->count++] = s;
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
	struct page *p = xcalloc(1, sizeof *p);

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

/* Whether a counter from `first` to `last` has counted anything. */
static bool has_counted(const struct page *p, enum engine_quantity first, enum engine_quantity last)
{
	for (size_t i = 0; i < p->count; i++) {
		enum engine_quantity q = p->table->metrics.rows[p->series[i].row].quantity;
		if (q >= first && q <= last && p->series[i].value)
			return true;
	}
	return false;
}

/* What it is called, "a or b" where servers differ. */
static void write_names(const struct engine_metrics *m, enum engine_quantity q, struct buf *out)
{
	int rank = -1;

	for (size_t i = 0; i < m->count; i++) {
		if (m->rows[i].quantity != q || m->rows[i].rank <= rank)
			continue;
		rank = m->rows[i].rank;
		buf_printf(out, "%s%s", out->len ? " or " : "", m->rows[i].name);
	}
}

static bool has_levels(const struct page *p, const struct page_content *c, struct error *e)
{
	bool has_running = c->rank[ENGINE_RUNNING] >= 0, has_waiting = c->rank[ENGINE_WAITING] >= 0;
	CLEANUP(buf_release) struct buf names = { 0 };

	if ((has_running && has_waiting) ||
	    (c->rank[ENGINE_LEVELS_LATE] >= 0 && !has_counted(p, ENGINE_COMPLETED, ENGINE_COMPLETED)))
		return true;
	bool serves = has_running || has_waiting || has_counted(p, ENGINE_STARTED, ENGINE_QUANTITY_COUNT);
	write_names(&p->table->metrics, has_running ? ENGINE_WAITING : ENGINE_RUNNING, &names);
	return error_set(e, serves ? ERROR_INVALID : ERROR_NOT_FOUND,
			 "the page has no %s: is this the metrics page of the engine?", names.text);
}

static int by_id(const void *left, const void *right)
{
	const struct page_series *a = left, *b = right;

	return (a->id > b->id) - (a->id < b->id);
}

void page_sort_series(struct page_series *series, size_t count)
{
	if (count)
		qsort(series, count, sizeof *series, by_id);
}

static int64_t share(int64_t millionths, bool has_value)
{
	return has_value && millionths <= 1000000 ? (millionths + 500) / 1000 : INT64_MIN;
}

/* Thousandths of a second; nothing takes days to load. */
static int64_t duration(int64_t value, bool has_value)
{
	return has_value && value > 0 && value <= DAY ? value : INT64_MIN;
}

void page_take_levels(struct page_content *c, const int64_t value[ENGINE_STARTED], const bool has_value[ENGINE_STARTED])
{
	c->running = (value[ENGINE_RUNNING] + 500) / 1000;
	c->waiting = (value[ENGINE_WAITING] + value[ENGINE_WAITING_OUTSIDE] + 500) / 1000;
	c->kv_permille = share(value[ENGINE_KV_CACHE], has_value[ENGINE_KV_CACHE]);
	c->prefix_permille = share(value[ENGINE_PREFIX_SHARE], has_value[ENGINE_PREFIX_SHARE]);
	c->load_ms = duration(value[ENGINE_LOAD_TIME], has_value[ENGINE_LOAD_TIME]);
	c->startup_ms = duration(value[ENGINE_STARTUP_TIME], has_value[ENGINE_STARTUP_TIME]);
	if (has_value[ENGINE_AWAKE] && !value[ENGINE_AWAKE])
		c->sleep = !has_value[ENGINE_DISCARDED] ? SLEEP_UNTOLD
			   : value[ENGINE_DISCARDED]	? SLEEP_DISCARDED
							: SLEEP_OFFLOADED;
	else
		c->sleep = SLEEP_NONE;
}

/* Sorted; those of several ranks become one. */
static bool merge(struct page *p, struct error *e)
{
	size_t kept = 0;

	page_sort_series(p->series, p->count);
	for (size_t i = 0; i < p->count; i++) {
		if (!kept || p->series[kept - 1].id != p->series[i].id)
			p->series[kept++] = p->series[i];
		else if (!p->has_ranks)
			return error_set(e, ERROR_INVALID, "%s: the same series twice",
					 p->table->metrics.rows[p->series[i].row].name);
		else if (p->series[i].value > p->series[kept - 1].value)
			p->series[kept - 1].value = p->series[i].value;
	}
	p->count = kept;
	return true;
}

/* Gauges are summed up, counters stay series; what a better name shows goes. */
static void settle(struct page *p, struct page_content *c)
{
	int64_t value[ENGINE_STARTED] = { 0 };
	bool has_value[ENGINE_STARTED] = { false };
	size_t kept = 0;

	for (size_t i = 0; i < p->count; i++) {
		const struct engine_metric *m = &p->table->metrics.rows[p->series[i].row];
		if (m->rank != c->rank[m->quantity])
			continue;
		if (!engine_is_level(m->quantity)) {
			p->series[kept++] = p->series[i];
			continue;
		}
		has_value[m->quantity] = true;
		if (!m->is_largest)
			value[m->quantity] += p->series[i].value;
		else if (p->series[i].value > value[m->quantity])
			value[m->quantity] = p->series[i].value;
	}
	p->count = kept;
	page_take_levels(c, value, has_value);
}

bool page_finish(struct page *p, struct page_content *out, struct error *e)
{
	const int64_t most = PAGE_MOST_REQUESTS;
	struct page_content c = { .table = p->table, .stamp = p->stamp };

	if (!exposition_finish(p->text, e))
		return false;
	choose_names(p, c.rank);
	if (!has_levels(p, &c, e))
		return false;
	if (!merge(p, e))
		return false;
	settle(p, &c);
	if (c.running > most || c.waiting > most)
		return error_set(e, ERROR_INVALID, "%" PRId64 " running and %" PRId64 " waiting requests cannot be",
				 c.running, c.waiting);
	c.series = p->series;
	c.series_count = p->count;
	p->series = NULL;
	p->count = p->room = 0;
	*out = c;
	return true;
}
