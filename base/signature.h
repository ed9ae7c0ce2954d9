/*
 * What needs libcrypto: RS256 signatures with a private key and its
 * certificate from one PEM text and base64url (RFC 7515), as a JSON Web Token
 * has them; SHA-256 and HMAC-SHA-256; random UUIDs.
 */
#pragma once
#include "base/arena.h"
#include "base/buf.h"

#include <stddef.h>

struct signing_key;

/* The first certificate and the private key of a PEM text, RSA, 2048 bits at least. ERROR_INVALID says what is missing.
 */
struct signing_key *signing_key_read(const char *pem, size_t len, struct error *e) MUST_USE;
void signing_key_free(struct signing_key *k); /* takes NULL */
/* SHA-256 of the certificate, base64url: the header x5t#S256. */
void signing_key_thumbprint(const struct signing_key *k, struct buf *out);
/* RSASSA-PKCS1-v1_5 with SHA-256 of the text, base64url. */
bool signing_key_sign(const struct signing_key *k, const char *text, size_t len, struct buf *out,
		      struct error *e) MUST_USE;

void base64url_write(const void *bytes, size_t len, struct buf *out);
/* Without padding or with it; false for any other character. */
bool base64url_read(const char *text, size_t len, struct buf *out) MUST_USE;
/* A random UUID (version 4), 36 characters and NUL. */
void uuid_write(char out[37]);

#define SHA256_BYTES 32
#define SHA256_TEXT  (2 * SHA256_BYTES + 1)

struct sha256 {
	unsigned char bytes[SHA256_BYTES];
};

struct sha256 sha256_of(const void *bytes, size_t len);
struct sha256 sha256_keyed(const void *key, size_t key_len, const void *bytes, size_t len); /* HMAC */
const char *sha256_text(const struct sha256 *d, char room[SHA256_TEXT]); /* lower-case hex; returns room */
