#include "controller/cluster/intern.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

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
	[INTERN_SHAPE] = { sizeof(struct pod_shape), 15 },
};

struct wanted {
	enum intern_kind kind;
	const void *bytes;
	size_t len;
};

static bool same(const void *item, const void *key)
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
	struct shared *s = store_find(&in->store, hash, same, &wanted);
	if (s != NULL) {
		s->references++;
		return s->words;
	}
	size_t room = len + (kind == INTERN_TEXT ? 1 : 0);
	s = malloc(sizeof *s + room);
	if (s == NULL)
		abort();
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

size_t intern_count(const void *set)
{
	return set == NULL ? 0 : shared_of(set)->len / layouts[shared_of(set)->kind].size;
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
