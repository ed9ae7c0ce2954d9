/* The FNV-1a hash of 64 bits: for tables and for short identities, not against an adversary. */
#pragma once
#include <stddef.h>
#include <stdint.h>

#define FNV1A_START UINT64_C(0xcbf29ce484222325)

static inline uint64_t fnv1a_bytes(uint64_t hash, const void *bytes, size_t len)
{
	for (size_t i = 0; i < len; i++)
		hash = (hash ^ ((const unsigned char *)bytes)[i]) * UINT64_C(0x100000001b3);
	return hash;
}

/* Of a text without its NUL: where two follow each other, put a byte between them. */
static inline uint64_t fnv1a_text(uint64_t hash, const char *text)
{
	for (; *text; text++)
		hash = fnv1a_bytes(hash, text, 1);
	return hash;
}
