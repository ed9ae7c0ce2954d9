/*
 * Memory that is always there: where the machine has none left the process
 * says so and ends, so no caller asks. Freed with free(). Sizes that a network
 * chooses are capped before they come here.
 */
#pragma once
#include <stddef.h>

void *xmalloc(size_t size) __attribute__((malloc, returns_nonnull, alloc_size(1)));
/* Zeroed; of no items too it is memory of its own. */
void *xcalloc(size_t count, size_t size) __attribute__((malloc, returns_nonnull, alloc_size(1, 2)));
void *xrealloc(void *memory, size_t count, size_t size) __attribute__((returns_nonnull, alloc_size(2, 3)));
/* NULL stays NULL. */
char *xstrdup(const char *text) __attribute__((malloc));
/* At most so many bytes of it, ended by a NUL. */
char *xstrndup(const char *text, size_t len) __attribute__((malloc, returns_nonnull));
/* Items with room for one more than there are: grown twofold, from 16. What is new is not zeroed. */
void *xgrow(void *items, size_t count, size_t *room, size_t size) __attribute__((returns_nonnull, warn_unused_result));
/* What a library made, for which NULL can only mean that there is no memory. */
void *xmust(void *made) __attribute__((returns_nonnull));

/* One zeroed thing. */
#define xnew(type) ((type *)xcalloc(1, sizeof(type)))
