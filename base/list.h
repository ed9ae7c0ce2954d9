/*
 * Growing arrays and a time-ordered heap inside an arena; what they outgrow
 * stays there until the arena is released.
 */
#pragma once
#include "base/arena.h"

#include <string.h>

#define NONE ((size_t)-1)

#define LIST(type)                  \
	struct {                    \
		type *items;        \
		size_t count, room; \
	}

static inline void *list_grow(struct arena *a, void *items, size_t count, size_t *room, size_t size)
{
	if (count < *room)
		return items;
	size_t grown = *room ? *room * 2 : 16;
	void *copy = arena_alloc(a, grown, size);

	if (items)
		memcpy(copy, items, count * size);
	*room = grown;
	return copy;
}

/* Makes room for one more item. */
#define LIST_ROOM(a, list) \
	((list)->items = list_grow((a), (list)->items, (list)->count, &(list)->room, sizeof *(list)->items))
/* Appends and counts. */
#define LIST_ADD(a, list, item)                          \
	do {                                             \
		LIST_ROOM(a, list);                      \
		(list)->items[(list)->count++] = (item); \
	} while (0)
