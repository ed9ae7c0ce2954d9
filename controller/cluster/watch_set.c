#include "controller/cluster/watch_parts.h"

#include <stdlib.h>
#include <string.h>

static bool hex_value(char c, uint64_t *value)
{
	if (c >= '0' && c <= '9')
		*value = (unsigned char)c - '0';
	else if (c >= 'a' && c <= 'f')
		*value = (unsigned char)c - 'a' + 10U;
	else
		return false;
	return true;
}

/* 8-4-4-4-12 lower-case hexadecimal digits. */
static bool parse_uuid(const char *text, struct object_uid *out)
{
	uint64_t words[2] = { 0 }, digit;
	int digits = 0, i = 0;

	for (; text[i] && i < 36; i++) {
		if (i == 8 || i == 13 || i == 18 || i == 23) {
			if (text[i] != '-')
				return false;
			continue;
		}
		if (!hex_value(text[i], &digit))
			return false;
		words[digits / 16] = words[digits / 16] << 4 | digit;
		digits++;
	}
	*out = (struct object_uid){ words[0], words[1] };
	return digits == 32 && !text[i];
}

/* FNV-1a, begun at two different places. */
static uint64_t hash_text(const char *text, uint64_t h)
{
	for (; *text; text++)
		h = (h ^ (unsigned char)*text) * UINT64_C(0x100000001b3);
	return h ^ h >> 29;
}

struct object_uid object_uid_of(const char *text)
{
	struct object_uid uid = { 0 };

	if (text && !parse_uuid(text, &uid))
		uid = (struct object_uid){ hash_text(text, UINT64_C(0xcbf29ce484222325)),
					   hash_text(text, UINT64_C(0x84222325cbf29ce4)) };
	return uid;
}

static bool is_same(struct object_uid a, struct object_uid b)
{
	return a.high == b.high && a.low == b.low;
}

static size_t home_of(const struct watch_set *s, struct object_uid uid)
{
	return (size_t)((uid.high ^ uid.low * UINT64_C(0x9e3779b97f4a7c15)) >> 20) & (s->room - 1);
}

/* Where it is, or the empty place where it would be. */
static struct watch_entry *place_of(const struct watch_set *s, struct object_uid uid)
{
	size_t i = home_of(s, uid);

	while (s->entries[i].list && !is_same(s->entries[i].uid, uid))
		i = (i + 1) & (s->room - 1);
	return &s->entries[i];
}

static struct watch_entry *make_room(struct watch_set *s, size_t room)
{
	struct watch_entry *old = s->entries;

	s->entries = calloc(room, sizeof *s->entries);
	if (!s->entries)
		abort();
	s->room = room;
	return old;
}

static void grow(struct watch_set *s)
{
	size_t room = s->room;
	struct watch_entry *old = make_room(s, room ? room * 2 : 64);

	for (size_t i = 0; i < room; i++)
		if (old[i].list)
			*place_of(s, old[i].uid) = old[i];
	free(old);
}

void watch_set_put(struct watch_set *s, struct object_uid uid, uint32_t list)
{
	if ((s->count + 1) * 8 > s->room * 7)
		grow(s);
	struct watch_entry *e = place_of(s, uid);
	s->count += !e->list;
	*e = (struct watch_entry){ uid, list };
}

bool watch_set_has(const struct watch_set *s, struct object_uid uid)
{
	return s->room && place_of(s, uid)->list;
}

/* What stands behind moves up, so that no search ends too early. */
bool watch_set_remove(struct watch_set *s, struct object_uid uid)
{
	if (!watch_set_has(s, uid))
		return false;
	size_t hole = (size_t)(place_of(s, uid) - s->entries), mask = s->room - 1;
	for (size_t i = (hole + 1) & mask; s->entries[i].list; i = (i + 1) & mask) {
		size_t home = home_of(s, s->entries[i].uid);
		if (((i - home) & mask) >= ((i - hole) & mask)) {
			s->entries[hole] = s->entries[i];
			hole = i;
		}
	}
	s->entries[hole].list = 0;
	s->count--;
	return true;
}

struct watch_entry *watch_set_sweep(struct watch_set *s, uint32_t list, size_t *count)
{
	size_t room = s->room;
	struct watch_entry *old;

	*count = 0;
	for (size_t i = 0; i < room; i++)
		*count += s->entries[i].list && s->entries[i].list != list;
	if (!*count)
		return NULL;
	old = make_room(s, room);
	size_t gone = 0;
	for (size_t i = 0; i < room; i++) {
		if (old[i].list == list)
			*place_of(s, old[i].uid) = old[i];
		else if (old[i].list)
			old[gone++] = old[i];
	}
	s->count -= gone;
	return old;
}

void watch_set_release(struct watch_set *s)
{
	free(s->entries);
	*s = (struct watch_set){ 0 };
}
