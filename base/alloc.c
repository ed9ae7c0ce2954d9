#include "base/alloc.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void *xmust(void *made)
{
	if (!made) {
		fputs("out of memory\n", stderr);
		abort();
	}
	return made;
}

void *xmalloc(size_t size)
{
	return xmust(malloc(size ? size : 1));
}

void *xcalloc(size_t count, size_t size)
{
	return xmust(calloc(count ? count : 1, size ? size : 1));
}

void *xrealloc(void *memory, size_t count, size_t size)
{
	return xmust(reallocarray(memory, count ? count : 1, size));
}

char *xstrdup(const char *text)
{
	return text ? xmust(strdup(text)) : NULL;
}

char *xstrndup(const char *text, size_t len)
{
	return xmust(strndup(text, len));
}

void *xgrow(void *items, size_t count, size_t *room, size_t size)
{
	if (count < *room)
		return items;
	*room = *room ? 2 * *room : 16;
	return xrealloc(items, *room, size);
}
