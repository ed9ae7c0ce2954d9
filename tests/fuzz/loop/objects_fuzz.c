/*
 * WarmPools of any content, a line each, chosen as they come and once more when the first of them has changed: who is
 * in force makes a manifest, and who is not says why.
 */
#include "base/log.h"
#include "controller/loop/objects.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST = 6 };

static void choose(struct pool_object *items, size_t count)
{
	struct arena a = { 0 };
	struct manifest m = { 0 };

	if (!objects_choose(items, count, NULL, (struct choice_terms){ 0 }, &a, &m))
		abort(); /* there are no files that could make no sense */
	size_t out = 0;
	for (size_t i = 0; i < count; i++)
		out += items[i].refusal && !items[i].is_former;
	if (m.fleet.pool_count != count - out)
		abort();
	arena_release(&a);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len);
int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
	struct pool_object items[MOST] = { 0 };
	size_t count = 0;
	const char *text = (const char *)bytes, *end = text + len;

	log_level_set(LEVEL_ERROR);
	for (; text < end && count < MOST; count++) {
		const char *stop = memchr(text, '\n', (size_t)(end - text));
		size_t n = stop ? (size_t)(stop - text) : (size_t)(end - text);
		char name[16];
		snprintf(name, sizeof name, "pool-%zu", count);
		items[count] = (struct pool_object){ .namespace = strdup("llm"),
						     .name = strdup(name),
						     .uid = strdup(name),
						     .spec = strndup(text, n),
						     .generation = 1,
						     .created = (millis)(count * 7 % 3) * SECOND,
						     .uid_low = count + 1 };
		text += n + (stop != NULL);
	}
	choose(items, count);
	if (count > 1) {
		pool_object_say(&items[0], items[1].spec, strlen(items[1].spec));
		items[0].generation++;
		choose(items, count);
	}
	for (size_t i = 0; i < count; i++)
		pool_object_release(&items[i]);
	return 0;
}
