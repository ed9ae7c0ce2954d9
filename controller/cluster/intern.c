#include "controller/cluster/intern.h"

#include "base/alloc.h"
#include "base/fnv1a.h"

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
	uint64_t h = fnv1a_bytes(hash ^ FNV1A_START, bytes, len);
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
	s->slots = xcalloc(room, sizeof *s->slots);
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

struct shared {
	uint32_t hash, references;
	uint32_t len; /* bytes */
	uint32_t kind;
	uintptr_t words[];
};

/* Which words of a row are shared values themselves. */
static const struct {
	size_t size; /* of a row */
	unsigned shared;
} layouts[INTERN_KIND_COUNT] = {
	[INTERN_TEXT] = { 1, 0 },
	[INTERN_LABELS] = { sizeof(struct label), 3 },
	[INTERN_RESOURCES] = { sizeof(struct resource), 1 },
	[INTERN_TAINTS] = { sizeof(struct taint), 7 },
	[INTERN_TOLERATIONS] = { sizeof(struct toleration), 7 },
	[INTERN_REQUIREMENTS] = { sizeof(struct requirement), 24 },
	[INTERN_OWNER] = { 3 * sizeof(char *), 7 },
	[INTERN_NAMES] = { sizeof(struct name), 1 },
	[INTERN_CLAIMS] = { sizeof(struct claim), 1 },
	[INTERN_PORTS] = { sizeof(struct host_port), 3 },
	[INTERN_POD_TERMS] = { sizeof(struct pod_term), 15 },
	[INTERN_SPREADS] = { sizeof(struct spread), 3 },
	[INTERN_SHAPE] = { sizeof(struct pod_shape), 1023 },
};

struct wanted {
	enum intern_kind kind;
	const void *bytes;
	size_t len;
};

static bool is_wanted(const void *item, const void *key)
{
	const struct shared *s = item;
	const struct wanted *w = key;
	return s->kind == w->kind && s->len == w->len && memcmp(s->words, w->bytes, w->len) == 0;
}

static struct shared *shared_of(const void *value)
{
	return (struct shared *)((uintptr_t)value - offsetof(struct shared, words));
}

void intern_open(struct intern *in)
{
	*in = (struct intern){ .store = { .hash_offset = offsetof(struct shared, hash) } };
}

void intern_close(struct intern *in)
{
	assert(in->store.count == 0);
	store_release(&in->store);
}

void intern_hold(const void *value)
{
	if (value != NULL)
		shared_of(value)->references++;
}

/* Calls `visit` with each shared value inside. */
static void each_inner(struct intern *in, const struct shared *s, void (*visit)(struct intern *, const void *))
{
	size_t words = s->kind == INTERN_TEXT ? 0 : s->len / sizeof(uintptr_t);
	size_t width = layouts[s->kind].size / sizeof(uintptr_t);
	for (size_t i = 0; i < words; i++)
		if ((layouts[s->kind].shared >> (i % width) & 1) != 0)
			visit(in, (const void *)s->words[i]);
}

static void hold_inner(struct intern *in, const void *value)
{
	(void)in;
	intern_hold(value);
}

static const void *take(struct intern *in, enum intern_kind kind, const void *bytes, size_t len)
{
	struct wanted wanted = { kind, bytes, len };
	uint32_t hash = hash_bytes((uint32_t)kind, bytes, len);
	struct shared *s = store_find(&in->store, hash, is_wanted, &wanted);
	if (s != NULL) {
		s->references++;
		return s->words;
	}
	size_t room = len + (kind == INTERN_TEXT ? 1 : 0);
	s = xmalloc(sizeof *s + room);
	*s = (struct shared){ .hash = hash, .references = 1, .len = (uint32_t)len, .kind = kind };
	memcpy(s->words, bytes, len);
	if (kind == INTERN_TEXT)
		((char *)s->words)[len] = '\0';
	store_add(&in->store, s);
	each_inner(in, s, hold_inner);
	return s->words;
}

const void *intern_rows(struct intern *in, enum intern_kind kind, const void *rows, size_t count)
{
	return count == 0 ? NULL : take(in, kind, rows, count * layouts[kind].size);
}

const char *intern_bytes(struct intern *in, const char *text, size_t len)
{
	return take(in, INTERN_TEXT, text, len);
}

const char *intern_text(struct intern *in, const char *text)
{
	return text == NULL ? NULL : intern_bytes(in, text, strlen(text));
}

void intern_drop(struct intern *in, const void *value)
{
	if (value == NULL)
		return;
	struct shared *s = shared_of(value);
	assert(s->references > 0);
	if (--s->references > 0)
		return;
	store_remove(&in->store, s);
	each_inner(in, s, intern_drop);
	free(s);
}

size_t intern_rows_in(const void *set)
{
	return shared_of(set)->len / layouts[shared_of(set)->kind].size;
}

const char *label_set_get(const struct label_set *set, const char *key)
{
	for (size_t i = 0; i < intern_count(set); i++)
		if (strcmp(set->items[i].key, key) == 0)
			return set->items[i].value;
	return NULL;
}

int64_t resources_get(const struct resources *set, const char *name)
{
	for (size_t i = 0; i < intern_count(set); i++)
		if (strcmp(set->items[i].name, name) == 0)
			return set->items[i].milli;
	return 0;
}
