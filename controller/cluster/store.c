#include "controller/cluster/store.h"

#include <assert.h>
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

enum { ROOM_LEAST = 16 };

static uint32_t hash_of(const struct store *s, const void *item)
{
	uint32_t hash = 0;
	memcpy(&hash, (const char *)item + s->hash_offset, sizeof hash);
	return hash;
}

/* FNV-1a with a last stir: slots are told apart by the low bits. */
uint32_t hash_bytes(uint32_t hash, const void *bytes, size_t len)
{
	const unsigned char *at = bytes;
	uint64_t h = hash ^ UINT64_C(0xcbf29ce484222325);
	for (size_t i = 0; i < len; i++)
		h = (h ^ at[i]) * UINT64_C(0x100000001b3);
	h ^= h >> 32;
	h *= UINT64_C(0x9e3779b97f4a7c15);
	return (uint32_t)(h >> 32);
}

uint32_t hash_text(uint32_t hash, const char *text)
{
	return hash_bytes(hash, text, strlen(text) + 1);
}

void *store_find(const struct store *s, uint32_t hash, store_same_fn *same, const void *key)
{
	if (s->room == 0)
		return NULL;
	size_t mask = s->room - 1;
	for (size_t i = hash & mask; s->slots[i] != NULL; i = (i + 1) & mask)
		if (hash_of(s, s->slots[i]) == hash && same(s->slots[i], key))
			return s->slots[i];
	return NULL;
}

static void put(struct store *s, void *item)
{
	size_t mask = s->room - 1, i = hash_of(s, item) & mask;
	while (s->slots[i] != NULL)
		i = (i + 1) & mask;
	s->slots[i] = item;
}

static void resize(struct store *s, size_t room)
{
	void **old = s->slots;
	size_t old_room = s->room;
	s->slots = calloc(room, sizeof *s->slots);
	if (s->slots == NULL)
		abort();
	s->room = room;
	for (size_t i = 0; i < old_room; i++)
		if (old[i] != NULL)
			put(s, old[i]);
	free(old);
}

void store_add(struct store *s, void *item)
{
	if ((s->count + 1) * 4 > s->room * 3)
		resize(s, s->room == 0 ? ROOM_LEAST : s->room * 2);
	put(s, item);
	s->count++;
}

void store_remove(struct store *s, void *item)
{
	assert(s->room > 0);
	size_t mask = s->room - 1, hole = hash_of(s, item) & mask;
	while (s->slots[hole] != item) {
		assert(s->slots[hole] != NULL);
		hole = (hole + 1) & mask;
	}
	/* What follows moves back, unless its own place lies behind the hole. */
	for (size_t i = (hole + 1) & mask; s->slots[i] != NULL; i = (i + 1) & mask) {
		size_t home = hash_of(s, s->slots[i]) & mask;
		if (((i - home) & mask) < ((i - hole) & mask))
			continue;
		s->slots[hole] = s->slots[i];
		hole = i;
	}
	s->slots[hole] = NULL;
	s->count--;
	if (s->room > ROOM_LEAST && s->count * 8 < s->room)
		resize(s, s->room / 2);
}

void store_release(struct store *s)
{
	free(s->slots);
	*s = (struct store){ .hash_offset = s->hash_offset };
}

void *store_next(const struct store *s, size_t *at)
{
	while (*at < s->room) {
		void *item = s->slots[(*at)++];
		if (item != NULL)
			return item;
	}
	return NULL;
}

uint32_t hash_any_case(const char *text)
{
	uint32_t h = 2166136261U; /* FNV-1a */

	for (; *text; text++)
		h = (h ^ (uint32_t)tolower((unsigned char)*text)) * 16777619U;
	return h;
}
