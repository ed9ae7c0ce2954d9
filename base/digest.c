#include "base/digest.h"

#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <stdlib.h>

struct sha256 sha256_of(const void *bytes, size_t len)
{
	struct sha256 d;
	unsigned written = 0;

	if (!EVP_Digest(len ? bytes : "", len, d.bytes, &written, EVP_sha256(), NULL) || written != SHA256_BYTES)
		abort();
	return d;
}

struct sha256 sha256_keyed(const void *key, size_t key_len, const void *bytes, size_t len)
{
	struct sha256 d;
	unsigned written = 0;

	if (!HMAC(EVP_sha256(), key_len ? key : "", (int)key_len, len ? bytes : (const void *)"", len, d.bytes,
		  &written) ||
	    written != SHA256_BYTES)
		abort();
	return d;
}

const char *sha256_text(const struct sha256 *d, char room[SHA256_TEXT])
{
	static const char digits[] = "0123456789abcdef";

	for (size_t i = 0; i < SHA256_BYTES; i++) {
		room[2 * i] = digits[d->bytes[i] >> 4];
		room[2 * i + 1] = digits[d->bytes[i] & 15];
	}
	room[SHA256_TEXT - 1] = '\0';
	return room;
}
