#include "controller/web/gate_cache.h"

#include <stdlib.h>
#include <string.h>

struct gate_cache {
	size_t count, most;
	struct gate_fact facts[];
};

struct gate_cache *gate_cache_new(size_t most)
{
	struct gate_cache *c = calloc(1, sizeof *c + most * sizeof *c->facts);

	if (!c)
		abort();
	c->most = most;
	return c;
}

void gate_cache_free(struct gate_cache *c)
{
	if (!c)
		return;
	for (size_t i = 0; i < c->count; i++)
		free((char *)(uintptr_t)c->facts[i].text);
	free(c);
}

static struct gate_fact *place_of(struct gate_cache *c, const struct sha256 *key)
{
	for (size_t i = 0; i < c->count; i++)
		if (memcmp(&c->facts[i].key, key, sizeof *key) == 0)
			return &c->facts[i];
	return NULL;
}

const struct gate_fact *gate_cache_find(struct gate_cache *c, const struct sha256 *key, millis now)
{
	const struct gate_fact *f = place_of(c, key);

	return f && f->until > now ? f : NULL;
}

static struct gate_fact *room(struct gate_cache *c)
{
	struct gate_fact *first = &c->facts[0];

	if (c->count < c->most)
		return &c->facts[c->count++];
	for (size_t i = 1; i < c->count; i++)
		if (c->facts[i].until < first->until)
			first = &c->facts[i];
	return first;
}

void gate_cache_keep(struct gate_cache *c, const struct gate_fact *fact)
{
	struct gate_fact *f = place_of(c, &fact->key);
	char *text = fact->text ? strdup(fact->text) : NULL;

	if (fact->text && !text)
		abort();
	if (!f)
		f = room(c);
	free((char *)(uintptr_t)f->text);
	*f = *fact;
	f->text = text;
}
