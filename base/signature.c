#include "base/signature.h"

#include "base/alloc.h"

#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/pem.h>
#include <openssl/rand.h>
#include <openssl/x509.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LEAST_BITS = 2048, SHA256_SIZE = 32 };

struct signing_key {
	EVP_PKEY *key;
	unsigned char thumbprint[SHA256_SIZE];
};

/* A password is never asked for: there is nobody to answer. */
static int no_password(char *room, int size, int is_writing, void *user)
{
	(void)room;
	(void)size;
	(void)is_writing;
	(void)user;
	return -1;
}

static bool read_certificate(const char *pem, int len, struct signing_key *k, struct error *e)
{
	BIO *source = BIO_new_mem_buf(pem, len);
	X509 *certificate = source ? PEM_read_bio_X509(source, NULL, no_password, NULL) : NULL;
	unsigned size = 0;
	bool ok =
		certificate && X509_digest(certificate, EVP_sha256(), k->thumbprint, &size) == 1 && size == SHA256_SIZE;

	X509_free(certificate);
	BIO_free(source);
	return ok || error_set(e, ERROR_INVALID,
			       "found no certificate; allowed: PEM with BEGIN CERTIFICATE and BEGIN PRIVATE KEY");
}

static bool read_key(const char *pem, int len, struct signing_key *k, struct error *e)
{
	BIO *source = BIO_new_mem_buf(pem, len);

	k->key = source ? PEM_read_bio_PrivateKey(source, NULL, no_password, NULL) : NULL;
	BIO_free(source);
	if (!k->key)
		return error_set(e, ERROR_INVALID,
				 "found no private key that can be read; allowed: PEM with BEGIN PRIVATE KEY, not "
				 "encrypted");
	if (EVP_PKEY_base_id(k->key) != EVP_PKEY_RSA || EVP_PKEY_bits(k->key) < LEAST_BITS)
		return error_set(e, ERROR_INVALID, "found a key that is not RSA of %d bits or more", LEAST_BITS);
	return true;
}

struct signing_key *signing_key_read(const char *pem, size_t len, struct error *e)
{
	struct signing_key *k = xcalloc(1, sizeof *k);

	if (len > 1 << 20)
		error_set(e, ERROR_INVALID, "found %zu bytes; allowed: 1 MiB", len);
	else if (read_certificate(pem, (int)len, k, e) && read_key(pem, (int)len, k, e))
		return k;
	signing_key_free(k);
	return NULL;
}

void signing_key_free(struct signing_key *k)
{
	if (k)
		EVP_PKEY_free(k->key);
	free(k);
}

void signing_key_thumbprint(const struct signing_key *k, struct buf *out)
{
	base64url_write(k->thumbprint, sizeof k->thumbprint, out);
}

bool signing_key_sign(const struct signing_key *k, const char *text, size_t len, struct buf *out, struct error *e)
{
	unsigned char room[1024];
	size_t size = sizeof room;
	EVP_MD_CTX *context = EVP_MD_CTX_new();
	bool ok = context && EVP_DigestSignInit(context, NULL, EVP_sha256(), NULL, k->key) == 1 &&
		  EVP_DigestSign(context, room, &size, (const unsigned char *)text, len) == 1;

	EVP_MD_CTX_free(context);
	if (!ok)
		return error_set(e, ERROR_INVALID, "the key signs nothing of RS256; allowed: RSA up to 8192 bits");
	base64url_write(room, size, out);
	return true;
}

static const char base64_digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

void base64url_write(const void *bytes, size_t len, struct buf *out)
{
	const unsigned char *b = bytes;

	for (size_t i = 0; i < len; i += 3) {
		size_t n = len - i < 3 ? len - i : 3;
		unsigned group = (unsigned)b[i] << 16 | (n > 1 ? (unsigned)b[i + 1] << 8 : 0) | (n > 2 ? b[i + 2] : 0U);
		char four[4];
		for (size_t d = 0; d <= n; d++)
			four[d] = base64_digits[group >> (18 - 6 * d) & 63];
		buf_append(out, four, n + 1);
	}
}

bool base64url_read(const char *text, size_t len, struct buf *out)
{
	unsigned group = 0, bits = 0;

	while (len && text[len - 1] == '=')
		len--;
	if (len % 4 == 1)
		return false;
	for (size_t i = 0; i < len; i++) {
		const char *digit = text[i] ? strchr(base64_digits, text[i]) : NULL;
		if (!digit)
			return false;
		group = (group << 6 | (unsigned)(digit - base64_digits)) & 0xffffff;
		bits += 6;
		if (bits < 8)
			continue;
		bits -= 8;
		unsigned char byte = (unsigned char)(group >> bits);
		buf_append(out, &byte, 1);
	}
	return true;
}

void uuid_write(char out[37])
{
	unsigned char b[16];

	if (RAND_bytes(b, sizeof b) != 1)
		abort();
	b[6] = (unsigned char)((b[6] & 0x0f) | 0x40);
	b[8] = (unsigned char)((b[8] & 0x3f) | 0x80);
	snprintf(out, 37, "%02x%02x%02x%02x-%02x%02x-%02x%02x-%02x%02x-%02x%02x%02x%02x%02x%02x", b[0], b[1], b[2],
		 b[3], b[4], b[5], b[6], b[7], b[8], b[9], b[10], b[11], b[12], b[13], b[14], b[15]);
}

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
