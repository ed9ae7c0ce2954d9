#include "signals/prometheus_replica.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

static char *copy(const char *text)
{
	char *made = strdup(text ? text : "");

	if (!made)
		abort();
	return made;
}

struct prometheus_replica *replica_new(const struct source_target *t)
{
	struct prometheus_replica *r = calloc(1, sizeof *r);

	if (!r)
		abort();
	r->key = copy(t->key);
	r->namespace = copy(t->namespace);
	r->pod = copy(t->pod);
	r->address = copy(t->address);
	r->is_ready = t->is_ready;
	return r;
}

void replica_free(struct prometheus_replica *r)
{
	page_content_release(&r->content);
	free(r->series);
	free(r->key);
	free(r->namespace);
	free(r->pod);
	free(r->address);
	free(r);
}

void replica_begin(struct prometheus_replica *r)
{
	r->place = 0;
	r->read_at = 0;
	r->is_fresh = false;
	r->error = (struct error){ 0 };
	memset(r->is_told, 0, sizeof r->is_told);
	r->count = 0;
}

uint64_t replica_place(const struct prometheus_series *s)
{
	static const char *const names[] = { "instance", "job", "prometheus", "prometheus_replica" };
	uint64_t h = UINT64_C(14695981039346656037);

	for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
		const char *value = prometheus_label(s, names[i]);
		for (const char *c = value ? value : ""; *c; c++)
			h = (h ^ (unsigned char)*c) * UINT64_C(1099511628211);
		h = (h ^ 255) * UINT64_C(1099511628211);
	}
	return h ? h : 1;
}

/* Two places are told apart by their hash where nothing else differs, so that every round chooses alike. */
void replica_seen(struct prometheus_replica *r, uint64_t place, millis read_at, millis oldest)
{
	bool was_chosen = r->place && r->place == r->place_before && r->read_at >= oldest;
	bool is_chosen = place == r->place_before && read_at >= oldest;
	bool is_newer = read_at > r->read_at || (read_at == r->read_at && place < r->place);

	if (r->place && (was_chosen || (!is_chosen && !is_newer)))
		return;
	r->place = place;
	r->read_at = read_at;
}

static void push(struct prometheus_replica *r, struct page_series s)
{
	if (r->count == r->room) {
		r->room = r->room ? 2 * r->room : 32;
		r->series = realloc(r->series, r->room * sizeof *r->series);
		if (!r->series)
			abort();
	}
	r->series[r->count++] = s;
}

static bool take(struct prometheus_replica *r, enum engine_quantity q, const struct prometheus_sample *sample,
		 size_t row, struct error *e)
{
	struct page_series s = { .row = row, .id = (uint64_t)q << 56 };
	const char *le = prometheus_label(sample->series, "le");

	if (page_is_unknown(q, sample->value))
		return true;
	if (!page_value(q, sample->value, &s.value, e))
		return false;
	r->is_told[q] = true;
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
	push(r, s);
	return true;
}

void replica_take(struct prometheus_replica *r, enum engine_quantity q, const struct prometheus_sample *sample,
		  size_t row)
{
	struct error e = { 0 };

	if (!r->place || replica_place(sample->series) != r->place || r->error.kind != ERROR_NONE)
		return;
	if (take(r, q, sample, row, &e) || engine_is_shown_only(q))
		return;
	error_wrap(&e, "%s: %s", r->pod, engine_quantity_name(q));
	r->error = e;
}

static int by_id(const void *left, const void *right)
{
	const struct page_series *a = left, *b = right;

	return (a->id > b->id) - (a->id < b->id);
}

static bool check(const struct prometheus_replica *r, struct error *e)
{
	static const enum engine_quantity needed[] = { ENGINE_RUNNING, ENGINE_WAITING };

	for (size_t i = 0; i < sizeof needed / sizeof *needed; i++)
		if (!r->is_told[needed[i]])
			return error_set(e, ERROR_INVALID, "%s: no %s", r->pod, engine_quantity_name(needed[i]));
	for (size_t i = 1; i < r->count; i++)
		if (r->series[i - 1].id == r->series[i].id)
			return error_set(e, ERROR_INVALID, "%s: %s: the same series twice", r->pod,
					 engine_quantity_name((enum engine_quantity)(r->series[i].id >> 56)));
	return true;
}

/* Counters that could not be asked for stay as they were, so that the next round counts from there. */
static void carry(struct prometheus_replica *r, const bool asked[ENGINE_QUANTITY_COUNT])
{
	for (size_t i = 0; i < r->content.series_count; i++)
		if (!asked[r->content.series[i].id >> 56])
			push(r, r->content.series[i]);
}

static struct page_content settle_content(struct prometheus_replica *r, const struct page_table *table)
{
	struct page_content c = { .table = table,
				  .running = (r->level[ENGINE_RUNNING] + 500) / 1000,
				  .waiting = (r->level[ENGINE_WAITING] + 500) / 1000,
				  .series = r->series,
				  .series_count = r->count };

	page_tell_levels(&c, r->level, r->is_told);
	for (int q = 0; q < ENGINE_QUANTITY_COUNT; q++)
		c.rank[q] = r->is_told[q] ? 0 : -1;
	r->series = NULL;
	r->count = r->room = 0;
	return c;
}

/* A replica whose counters jumped is not believed, and counts from there. */
static bool compare(struct prometheus_replica *r, struct page_content *c, const struct source_settings *s,
		    struct round_sums *sums)
{
	struct tally tally = { 0 };
	struct error e = { 0 };
	millis elapsed = r->read_at > r->content_at ? r->read_at - r->content_at : 0;
	bool is_same_place = r->has_content && r->place == r->place_before;

	if (!is_same_place)
		return true;
	if (!tally_between(&r->content, c, s->objective_us, elapsed, &tally, &e)) {
		error_wrap(&e, "%s", r->pod);
		r->error = e;
		return false;
	}
	round_add(sums, &tally, elapsed, s->interval);
	return true;
}

bool replica_settle(struct prometheus_replica *r, const struct page_table *table,
		    const bool asked[ENGINE_QUANTITY_COUNT], const struct source_settings *s, struct round_sums *sums)
{
	if (!r->is_fresh || r->error.kind != ERROR_NONE)
		return false;
	carry(r, asked);
	if (r->count)
		qsort(r->series, r->count, sizeof *r->series, by_id);
	if (!check(r, &r->error))
		return false;
	struct page_content c = settle_content(r, table);
	bool ok = compare(r, &c, s, sums);
	for (int q = 0; q < ENGINE_QUANTITY_COUNT; q++)
		if (!asked[q] && r->has_content)
			c.rank[q] = r->content.rank[q];
	page_content_release(&r->content);
	r->content = c;
	r->content_at = r->read_at;
	r->has_content = true;
	r->place_before = r->place;
	r->in_flight = c.running + c.waiting;
	return ok;
}
