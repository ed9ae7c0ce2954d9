#include "state/record_list.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Runs of elements, coded as run << 2 | op. */
enum op {
	OP_COPY,   /* as in the list before */
	OP_SKIP,   /* elements of the list before that are gone */
	OP_CHANGE, /* told against the element in turn of the list before */
	OP_NEW,	   /* told against the element before it in this list */
};

void list_reserve(struct record_list *list, size_t values)
{
	if (values <= list->room && list->values)
		return;
	size_t room = list->room ? list->room : 64;
	while (room < values)
		room *= 2;
	int64_t *grown = realloc(list->values, room * sizeof *grown);
	if (!grown) {
		fputs("out of memory\n", stderr);
		abort();
	}
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

void list_put(struct buf *out, const struct list_layout *l, const struct record_list *before,
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

bool list_get(struct reader *r, size_t fields, const struct record_list *before, struct record_list *now)
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
