#include "state/record.h"

#include "base/deflate.h"
#include "state/record_list.h"

#include <stdlib.h>
#include <string.h>

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
