/*
 * An open-addressing table of pointers to structs that carry their own hash.
 * A slot is 8 bytes; the table keeps itself at most three quarters full and
 * shrinks again. Order is that of hashes: never shown to anybody.
 */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct store {
	void **slots;
	size_t room, count; /* room: a power of two, 0 at first */
	size_t hash_offset; /* of the uint32_t in the structs */
};

/* Whether an item of equal hash is the one looked for. */
typedef bool store_same_fn(const void *item, const void *key);

void *store_find(const struct store *s, uint32_t hash, store_same_fn *same, const void *key);
void store_add(struct store *s, void *item);	/* must not be there yet */
void store_remove(struct store *s, void *item); /* must be there */
void store_release(struct store *s);		/* the items stay */

/* Walks the items: for (size_t at = 0; (item = store_next(s, &at));) Nothing may be added or removed meanwhile. */
void *store_next(const struct store *s, size_t *at);

uint32_t hash_bytes(uint32_t hash, const void *bytes, size_t len); /* 0 starts */
uint32_t hash_text(uint32_t hash, const char *text);		   /* its end counts too */
uint32_t hash_any_case(const char *text);			   /* Azure writes one resource in different cases */
