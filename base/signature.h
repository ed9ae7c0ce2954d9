/*
 * RS256 signatures with a private key and its certificate from one PEM text,
 * and base64url (RFC 7515): what a JSON Web Token needs. The only place
 * beside base/digest.h that knows libcrypto.
 */
#pragma once
#include "base/arena.h"
#include "base/buf.h"

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
