#include "state/record.h"

#include "base/alloc.h"
#include "base/gzip.h"
#include "base/millis.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Lists of equal records as differences to the list before; what record.c is made of. */

enum { FIELDS_MAX = 128, NO_FIELD = -1 };

/* How one list of a part is told. */
struct list_layout {
	const struct record_info *info;
	size_t key_fields; /* the first ones say which element it is; 0: its position does */
	int relative;	   /* this field is a time near now, or NO_FIELD */
};

struct reader {
	const unsigned char *at, *end;
	bool failed;
};

static void list_reserve(struct record_list *list, size_t values);
static void list_put(struct buf *out, const struct list_layout *l, const struct record_list *before,
		     const struct record_list *now);
static bool list_get(struct reader *r, size_t fields, const struct record_list *before, struct record_list *now);

_Static_assert(sizeof(struct pool_decision) <= FIELDS_MAX * sizeof(int64_t), "the largest record fits");

static const struct list_layout input_lists[] = {
	{ &pool_input_info, 0, NO_FIELD },  { &scrape_input_info, 0, 0 },	{ &group_input_info, 0, NO_FIELD },
	{ &start_input_info, 3, NO_FIELD }, { &event_input_info, 0, NO_FIELD }, { &deadline_input_info, 1, NO_FIELD },
};
static const struct list_layout plan_lists[] = {
	{ &pool_decision_info, 0, NO_FIELD },
	{ &group_decision_info, 0, NO_FIELD },
	{ &objective_price_info, 0, NO_FIELD },
};

static const struct part_layout {
	const char *name;
	const struct list_layout *lists;
	size_t count;
} parts[RECORD_PART_COUNT] = {
	[RECORD_INPUT] = { "input", input_lists, sizeof input_lists / sizeof *input_lists },
	[RECORD_PLAN] = { "plan", plan_lists, sizeof plan_lists / sizeof *plan_lists },
};

/* A list that belongs to somebody else. */
struct list_view {
	const void *values;
	size_t count;
};

uint32_t record_layout(void)
{
	uint32_t crc = 0;

	for (size_t p = 0; p < RECORD_PART_COUNT; p++)
		for (size_t l = 0; l < parts[p].count; l++) {
			const struct record_info *info = parts[p].lists[l].info;

			crc = crc32_bytes(crc, info->name, strlen(info->name) + 1);
			for (size_t f = 0; f < info->count; f++)
				crc = crc32_bytes(crc, info->fields[f].name, strlen(info->fields[f].name) + 1);
		}
	return crc;
}

void record_state_release(struct record_state *s)
{
	for (size_t i = 0; i < RECORD_LISTS_MAX; i++)
		free(s->lists[i].values);
	free(s->spare.values);
	*s = (struct record_state){ 0 };
}

static void swap_in(struct record_state *s, size_t list)
{
	struct record_list old = s->lists[list];

	s->lists[list] = s->spare;
	s->spare = old;
}

/* A field that is a time near now is expected to move on as now does. */
static void expect_times(struct record_state *s, const struct part_layout *p, millis now)
{
	uint64_t passed = (uint64_t)now - (uint64_t)s->now;

	s->now = now;
	for (size_t i = 0; i < p->count; i++) {
		const struct list_layout *l = &p->lists[i];

		for (size_t j = 0; j < s->lists[i].count && l->relative != NO_FIELD; j++) {
			int64_t *v = &s->lists[i].values[j * l->info->count + (size_t)l->relative];

			if (*v != ABSENT)
				*v = (int64_t)((uint64_t)*v + passed);
		}
	}
}

static void set_spare(struct record_state *s, const struct list_view *view, size_t fields)
{
	list_reserve(&s->spare, view->count * fields);
	s->spare.count = view->count;
	if (view->count)
		memcpy(s->spare.values, view->values, view->count * fields * sizeof(int64_t));
}

static uint32_t checksum(enum record_part part, const struct record_key *k, const void *bytes, size_t len)
{
	uint64_t whose[] = { (uint64_t)k->tick,	    (uint64_t)k->pool, (uint64_t)k->now,
			     (uint64_t)k->interval, k->is_keyframe,    part };
	unsigned char le[sizeof whose];

	for (size_t i = 0; i < sizeof le; i++)
		le[i] = (unsigned char)(whose[i / 8] >> i % 8 * 8);
	return crc32_bytes(crc32_bytes(0, le, sizeof le), bytes, len);
}

void record_seal(enum record_part part, const struct record_key *k, struct buf *bytes, size_t start)
{
	uint32_t crc = checksum(part, k, bytes->text + start, bytes->len - start);
	unsigned char le[4] = { (unsigned char)crc, (unsigned char)(crc >> 8), (unsigned char)(crc >> 16),
				(unsigned char)(crc >> 24) };

	buf_append(bytes, le, sizeof le);
}

static void forget(struct record_state *s)
{
	for (size_t i = 0; i < RECORD_LISTS_MAX; i++)
		s->lists[i].count = 0;
}

static void encode(struct record_state *s, const struct part_layout *p, const struct record_key *k,
		   const struct list_view *views, struct buf *out)
{
	size_t start = out->len;
	unsigned char changed = 0;

	if (k->is_keyframe)
		forget(s);
	expect_times(s, p, k->now);
	buf_append(out, &changed, 1);
	for (size_t i = 0; i < p->count; i++) {
		const struct list_layout *l = &p->lists[i];
		struct record_list *before = &s->lists[i];

		set_spare(s, &views[i], l->info->count);
		if (s->spare.count == before->count &&
		    (!before->count ||
		     !memcmp(s->spare.values, before->values, before->count * l->info->count * sizeof(int64_t))))
			continue;
		changed |= (unsigned char)(1u << i);
		list_put(out, l, before, &s->spare);
		swap_in(s, i);
	}
	if (!buf_ok(out))
		return;
	out->text[start] = (char)changed;
	record_seal((enum record_part)(p - parts), k, out, start);
}

void record_encode_input(struct record_state *s, const struct record_key *k, const struct pool_snapshot *in,
			 struct buf *out)
{
	const struct list_view views[RECORD_LISTS_MAX] = {
		{ &in->input, 1 },
		{ in->scrapes, in->scrape_count },
		{ in->groups, in->group_count },
		{ in->starts, in->start_count },
		{ in->events, in->event_count },
		{ in->deadlines, in->deadline_count },
	};

	encode(s, &parts[RECORD_INPUT], k, views, out);
}

void record_encode_plan(struct record_state *s, const struct record_key *k, const struct pool_plan *in, struct buf *out)
{
	const struct list_view views[RECORD_LISTS_MAX] = {
		{ &in->decision, 1 },
		{ in->groups, in->group_count },
		{ in->prices, in->price_count },
	};

	encode(s, &parts[RECORD_PLAN], k, views, out);
}

void record_set_plan(struct record_state *s, const struct pool_plan *plan)
{
	const struct list_view views[RECORD_LISTS_MAX] = {
		{ &plan->decision, 1 },
		{ plan->groups, plan->group_count },
		{ plan->prices, plan->price_count },
	};

	for (size_t i = 0; i < parts[RECORD_PLAN].count; i++) {
		set_spare(s, &views[i], plan_lists[i].info->count);
		swap_in(s, i);
	}
}

static bool decode_lists(struct record_state *s, const struct part_layout *p, struct reader *r, unsigned changed)
{
	for (size_t i = 0; i < p->count; i++)
		if (changed >> i & 1) {
			if (!list_get(r, p->lists[i].info->count, &s->lists[i], &s->spare))
				return false;
			swap_in(s, i);
		}
	/* The first list is the record itself: there is one. */
	return r->at == r->end && changed >> p->count == 0 && s->lists[0].count == 1;
}

bool record_decode(struct record_state *s, enum record_part part, const struct record_key *k, const void *bytes,
		   size_t len, struct error *e)
{
	const struct part_layout *p = &parts[part];
	const unsigned char *b = bytes;

	if (len < 5)
		return error_set(e, ERROR_INVALID, "the stored %s is damaged: only %zu bytes", p->name, len);
	uint32_t crc = (uint32_t)b[len - 4] | (uint32_t)b[len - 3] << 8 | (uint32_t)b[len - 2] << 16 |
		       (uint32_t)b[len - 1] << 24;
	if (crc != checksum(part, k, b, len - 4))
		return error_set(e, ERROR_INVALID, "the stored %s is damaged: its checksum does not match", p->name);
	if (k->is_keyframe)
		forget(s);
	expect_times(s, p, k->now);
	struct reader r = { b + 1, b + len - 4, false };
	if (!decode_lists(s, p, &r, b[0]))
		return error_set(e, ERROR_INVALID, "the stored %s is damaged: its fields do not make sense", p->name);
	return true;
}

struct pool_snapshot record_snapshot(const struct record_state *s)
{
	const struct record_list *l = s->lists;
	struct pool_snapshot out = {
		.scrapes = (const struct scrape_input *)l[1].values,
		.groups = (const struct group_input *)l[2].values,
		.starts = (const struct start_input *)l[3].values,
		.events = (const struct event_input *)l[4].values,
		.deadlines = (const struct deadline_input *)l[5].values,
		.scrape_count = l[1].count,
		.group_count = l[2].count,
		.start_count = l[3].count,
		.event_count = l[4].count,
		.deadline_count = l[5].count,
	};

	if (l[0].count)
		memcpy(&out.input, l[0].values, sizeof out.input);
	return out;
}

struct pool_plan record_plan(const struct record_state *s)
{
	const struct record_list *l = s->lists;
	struct pool_plan out = {
		.groups = (struct group_decision *)l[1].values,
		.group_count = l[1].count,
		.price_count = l[2].count < OBJECTIVE_PRICES ? l[2].count : OBJECTIVE_PRICES,
	};

	if (l[0].count)
		memcpy(&out.decision, l[0].values, sizeof out.decision);
	if (out.price_count)
		memcpy(out.prices, l[2].values, out.price_count * sizeof *out.prices);
	return out;
}

/* A pool of 100,000 nodes of 1,024 GPUs is the largest that a manifest can ask for. */
static const int64_t REPLICAS_MOST = 102400000;
static const int64_t READ_MOST = INT64_C(1000000000000);	/* requests or tokens of one reading, ms of an event */
static const int64_t WORK_MOST = INT64_C(1000000000000000);	/* replica-milliseconds */
static const int64_t YEAR_10000 = INT64_C(253402300800) * 1000; /* and as far before 1970 */

struct list {
	const struct record_info *info;
	const void *values;
	size_t count;
	int64_t most; /* of a number that is no time */
};

/* Only these may be untold. */
static bool may_be_absent(const char *field)
{
	static const char *const names[] = {
		"started",	     "late",	     "full", "running_full", "inter_token_latency_us",
		"kv_cache_permille", "queue_waiting"
	};

	for (size_t i = 0; i < sizeof names / sizeof *names; i++)
		if (!strcmp(names[i], field))
			return true;
	return false;
}

static bool refuse(const struct record_info *of, const struct field_info *f, int64_t value, struct error *e)
{
	if (value == ABSENT)
		return error_set(e, ERROR_INVALID, "the stored input makes no sense: %s.%s is absent", of->name,
				 f->name);
	return error_set(e, ERROR_INVALID, "the stored input makes no sense: %s.%s is %lld", of->name, f->name,
			 (long long)value);
}

static bool is_possible(const struct field_info *f, int64_t value, int64_t most)
{
	if (value == ABSENT)
		return may_be_absent(f->name);
	if (!strncmp(f->unit, "enum:", 5))
		return field_enum_name(f->unit + 5, value) != NULL;
	if (!strcmp(f->unit, "time"))
		return value >= -YEAR_10000 && value < YEAR_10000;
	return value >= 0 && value <= most;
}

static bool check_list(const struct list *l, struct error *e)
{
	const int64_t *v = l->values;

	for (size_t i = 0; i < l->count; i++)
		for (size_t f = 0; f < l->info->count; f++, v++)
			if (!is_possible(&l->info->fields[f], *v, l->most))
				return refuse(l->info, &l->info->fields[f], *v, e);
	return true;
}

static bool check_groups(const struct pool_snapshot *s, struct error *e)
{
	for (size_t i = 0; i < s->start_count; i++)
		if ((uint64_t)s->starts[i].group >= s->group_count)
			return refuse(&start_input_info, &start_input_info.fields[0], s->starts[i].group, e);
	for (size_t i = 0; i < s->event_count; i++)
		if ((uint64_t)s->events[i].group >= s->group_count)
			return refuse(&event_input_info, &event_input_info.fields[0], s->events[i].group, e);
	return true;
}

static bool check_times(const struct record_key *k, struct error *e)
{
	if (k->interval < 0 || k->interval > DAY)
		return error_set(
			e, ERROR_INVALID,
			"the tick makes no sense: it is %lld ms long; allowed: from 0 ms, between two ticks, to a day",
			(long long)k->interval);
	return (k->now >= -YEAR_10000 && k->now < YEAR_10000) ||
	       error_set(e, ERROR_INVALID, "the tick makes no sense: it ends %lld ms after 1970", (long long)k->now);
}

bool record_check_input(const struct record_key *k, const struct pool_snapshot *s, struct error *e)
{
	const struct list lists[] = {
		{ &pool_input_info, &s->input, 1, REPLICAS_MOST },
		{ &scrape_input_info, s->scrapes, s->scrape_count, READ_MOST },
		{ &group_input_info, s->groups, s->group_count, REPLICAS_MOST * 1000 },
		{ &start_input_info, s->starts, s->start_count, REPLICAS_MOST },
		{ &event_input_info, s->events, s->event_count, READ_MOST },
		{ &deadline_input_info, s->deadlines, s->deadline_count, WORK_MOST },
	};

	if (!check_times(k, e))
		return false;
	for (size_t i = 0; i < sizeof lists / sizeof *lists; i++)
		if (!check_list(&lists[i], e))
			return false;
	if (s->scrape_count > SCRAPES_MAX)
		return error_set(e, ERROR_INVALID,
				 "the stored input makes no sense: %zu readings in one tick; allowed: up to %d",
				 s->scrape_count, SCRAPES_MAX);
	return check_groups(s, e);
}

/* Runs of elements, coded as run << 2 | op. */
enum op {
	OP_COPY,   /* as in the list before */
	OP_SKIP,   /* elements of the list before that are gone */
	OP_CHANGE, /* told against the element in turn of the list before */
	OP_NEW,	   /* told against the element before it in this list */
};

/* Makes room for so many values, and keeps those that are there. */
static void list_reserve(struct record_list *list, size_t values)
{
	if (values <= list->room && list->values)
		return;
	size_t room = list->room ? list->room : 64;
	while (room < values)
		room *= 2;
	int64_t *grown = xrealloc(list->values, room, sizeof *grown);
	list->values = grown;
	list->room = room;
}

static void put_varint(struct buf *out, uint64_t v)
{
	unsigned char bytes[10];
	size_t n = 0;

	for (; v >= 0x80; v >>= 7)
		bytes[n++] = (unsigned char)(v | 0x80);
	bytes[n++] = (unsigned char)v;
	buf_append(out, bytes, n);
}

/*
 * A difference as an unsigned number whose small values are small
 * differences of either sign, plus one; 0 is the escape for what does not fit: an absent
 * value, and the one difference without room.
 */
enum { ESCAPE = 0, ESCAPE_ABSENT = 0, ESCAPE_FARTHEST = 1 };

static uint64_t base_of(int64_t before)
{
	return before == ABSENT ? 0 : (uint64_t)before;
}

static void put_change(struct buf *out, int64_t before, int64_t now)
{
	uint64_t diff = (uint64_t)now - base_of(before);
	uint64_t zigzag = diff >> 63 ? ~(diff << 1) : diff << 1;

	if (now == ABSENT || zigzag == UINT64_MAX) {
		put_varint(out, ESCAPE);
		put_varint(out, now == ABSENT ? ESCAPE_ABSENT : ESCAPE_FARTHEST);
	} else {
		put_varint(out, zigzag + 1);
	}
}

static uint64_t get_varint(struct reader *r)
{
	uint64_t v = 0;

	for (unsigned shift = 0; shift < 64 && r->at < r->end; shift += 7) {
		unsigned char byte = *r->at++;

		if (shift == 63 && byte > 1)
			break;
		v |= (uint64_t)(byte & 0x7f) << shift;
		if (!(byte & 0x80))
			return v;
	}
	r->failed = true;
	return 0;
}

static int64_t get_change(struct reader *r, int64_t before)
{
	uint64_t code = get_varint(r);

	if (code == ESCAPE) {
		uint64_t which = get_varint(r);

		if (which > ESCAPE_FARTHEST)
			r->failed = true;
		return which == ESCAPE_ABSENT ? ABSENT : (int64_t)(base_of(before) + (UINT64_C(1) << 63));
	}
	code--;
	return (int64_t)(base_of(before) + (code & 1 ? ~(code >> 1) : code >> 1));
}

/* --- one element: a bit per field that changed, then the changes --- */

static void put_element(struct buf *out, const int64_t *before, const int64_t *now, size_t fields)
{
	unsigned char mask[FIELDS_MAX / 8] = { 0 };

	for (size_t f = 0; f < fields; f++)
		if (now[f] != before[f])
			mask[f / 8] |= (unsigned char)(1u << f % 8);
	buf_append(out, mask, (fields + 7) / 8);
	for (size_t f = 0; f < fields; f++)
		if (now[f] != before[f])
			put_change(out, before[f], now[f]);
}

static void get_element(struct reader *r, const int64_t *before, int64_t *now, size_t fields)
{
	const unsigned char *mask = r->at;

	if ((size_t)(r->end - r->at) < (fields + 7) / 8) {
		r->failed = true;
		return;
	}
	r->at += (fields + 7) / 8;
	for (size_t f = 0; f < fields; f++)
		now[f] = mask[f / 8] & 1u << f % 8 ? get_change(r, before[f]) : before[f];
}

/* --- lists --- */

static const int64_t zeros[FIELDS_MAX];

/* Where the element stands in the list before, from `from` on; its end when it is not there. */
static size_t find(const struct list_layout *l, const struct record_list *before, size_t from, const int64_t *element)
{
	size_t fields = l->info->count;

	if (!l->key_fields)
		return from;
	for (size_t i = from; i < before->count; i++)
		if (!memcmp(before->values + i * fields, element, l->key_fields * sizeof *element))
			return i;
	return before->count;
}

static enum op best_op(const struct list_layout *l, const struct record_list *before, size_t from, size_t *found,
		       const int64_t *element)
{
	size_t fields = l->info->count;

	*found = find(l, before, from, element);
	if (*found >= before->count)
		return OP_NEW;
	return memcmp(before->values + *found * fields, element, fields * sizeof *element) ? OP_CHANGE : OP_COPY;
}

static void list_put(struct buf *out, const struct list_layout *l, const struct record_list *before,
		     const struct record_list *now)
{
	size_t fields = l->info->count, from = 0;

	put_varint(out, now->count);
	for (size_t i = 0; i < now->count;) {
		size_t found, first = i;
		enum op op = best_op(l, before, from, &found, now->values + i * fields);

		if (op != OP_NEW && found > from)
			put_varint(out, (found - from) << 2 | OP_SKIP);
		if (op != OP_NEW)
			from = found;
		/* The longest run of the same op. */
		while (i < now->count && best_op(l, before, from, &found, now->values + i * fields) == op &&
		       (op == OP_NEW || found == from)) {
			from += op != OP_NEW;
			i++;
		}
		put_varint(out, (i - first) << 2 | op);
		if (op == OP_COPY)
			continue;
		size_t old = from - (op == OP_CHANGE ? i - first : 0);
		for (size_t j = first; j < i; j++) {
			const int64_t *base = op == OP_CHANGE ? before->values + (old + j - first) * fields
					      : j	      ? now->values + (j - 1) * fields
							      : zeros;
			put_element(out, base, now->values + j * fields, fields);
		}
	}
}

/* One run; false when it does not fit the lists. */
static bool get_run(struct reader *r, size_t fields, const struct record_list *before, size_t *from,
		    struct record_list *now, size_t wanted)
{
	uint64_t code = get_varint(r), run = code >> 2;
	enum op op = (enum op)(code & 3);

	if (r->failed || !run || (op != OP_NEW && run > before->count - *from) ||
	    (op != OP_SKIP && run > wanted - now->count))
		return false;
	for (uint64_t i = 0; i < run && !r->failed; i++) {
		int64_t *to = now->values + now->count * fields;
		const int64_t *old = op == OP_NEW ? NULL : before->values + (*from)++ * fields;

		if (op == OP_SKIP)
			continue;
		if (op == OP_COPY)
			memcpy(to, old, fields * sizeof *to);
		else if (op == OP_CHANGE)
			get_element(r, old, to, fields);
		else
			get_element(r, now->count ? to - fields : zeros, to, fields);
		now->count++;
	}
	return !r->failed;
}

/* False when the bytes make no sense as the successor of `before`. */
static bool list_get(struct reader *r, size_t fields, const struct record_list *before, struct record_list *now)
{
	uint64_t wanted = get_varint(r);
	size_t from = 0;

	if (r->failed || wanted > RECORD_ELEMENTS_MAX)
		return false;
	list_reserve(now, (size_t)wanted * fields);
	now->count = 0;
	while (now->count < wanted)
		if (!get_run(r, fields, before, &from, now, (size_t)wanted))
			return false;
	return true;
}
