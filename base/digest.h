/*
 * SHA-256 and HMAC-SHA-256, as signatures of requests need them. Pure; the
 * only lack that can show is of memory, which ends the process.
 */
#pragma once
#include <stddef.h>

#define SHA256_BYTES 32
#define SHA256_TEXT  (2 * SHA256_BYTES + 1)

struct sha256 {
	unsigned char bytes[SHA256_BYTES];
};

struct sha256 sha256_of(const void *bytes, size_t len);
struct sha256 sha256_keyed(const void *key, size_t key_len, const void *bytes, size_t len); /* HMAC */
const char *sha256_text(const struct sha256 *d, char room[SHA256_TEXT]); /* lower-case hex; returns room */
