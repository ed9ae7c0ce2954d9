/* RFC 4648's and RFC 7515's own examples; a signature that its certificate verifies. */
#include "base/signature.h"

#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static void base64url_is_as_published(void **state)
{
	static const struct {
		const char *bytes, *text;
	} cases[] = {
		{ "", "" },
		{ "f", "Zg" },
		{ "fo", "Zm8" },
		{ "foo", "Zm9v" },
		{ "foob", "Zm9vYg" },
		{ "fooba", "Zm9vYmE" },
		{ "foobar", "Zm9vYmFy" },
		{ "\xff\xfe\xfb\xef\xbe", "__77774" },
		{ "{\"typ\":\"JWT\",\r\n \"alg\":\"HS256\"}", "eyJ0eXAiOiJKV1QiLA0KICJhbGciOiJIUzI1NiJ9" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		CLEANUP(buf_release) struct buf written = { 0 };
		CLEANUP(buf_release) struct buf read = { 0 };
		base64url_write(cases[i].bytes, strlen(cases[i].bytes), &written);
		buf_text(&written, "");
		assert_string_equal(written.text, cases[i].text);
		assert_true(base64url_read(cases[i].text, strlen(cases[i].text), &read));
		assert_int_equal(read.len, strlen(cases[i].bytes));
		assert_int_equal(memcmp(read.len ? read.text : "", cases[i].bytes, read.len), 0);
	}
}

static void what_is_no_base64url_is_refused(void **state)
{
	static const char *const cases[] = { "Z", "Zg+", "Zg/", "Zm 9", "Zm9vY", "Z=g", "\303\251" };

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		CLEANUP(buf_release) struct buf read = { 0 };
		if (base64url_read(cases[i], strlen(cases[i]), &read))
			fail_msg("%s", cases[i]);
	}
	CLEANUP(buf_release) struct buf padded = { 0 };
	assert_true(base64url_read("Zg==", 4, &padded));
}

/* A key and a certificate of its own, as PEM. */
static void make_pem(int type, int bits, struct buf *out, EVP_PKEY **key)
{
	EVP_PKEY_CTX *context = EVP_PKEY_CTX_new_id(type, NULL);
	X509 *certificate = X509_new();
	BIO *pem = BIO_new(BIO_s_mem());
	char *text;

	*key = NULL;
	assert_int_equal(EVP_PKEY_keygen_init(context), 1);
	if (type == EVP_PKEY_RSA)
		assert_int_equal(EVP_PKEY_CTX_set_rsa_keygen_bits(context, bits), 1);
	assert_int_equal(EVP_PKEY_keygen(context, key), 1);
	EVP_PKEY_CTX_free(context);
	X509_gmtime_adj(X509_getm_notBefore(certificate), 0);
	X509_gmtime_adj(X509_getm_notAfter(certificate), 3600);
	X509_set_pubkey(certificate, *key);
	X509_sign(certificate, *key, type == EVP_PKEY_RSA ? EVP_sha256() : NULL);
	PEM_write_bio_PrivateKey(pem, *key, NULL, NULL, 0, NULL, NULL);
	PEM_write_bio_X509(pem, certificate);
	long len = BIO_get_mem_data(pem, &text);
	buf_append(out, text, (size_t)len);
	BIO_free(pem);
	X509_free(certificate);
}

static void a_signature_verifies(void **state)
{
	CLEANUP(buf_release) struct buf pem = { 0 };
	CLEANUP(buf_release) struct buf text = { 0 };
	CLEANUP(buf_release) struct buf bytes = { 0 };
	CLEANUP(buf_release) struct buf thumbprint = { 0 };
	struct error e = { 0 };
	EVP_PKEY *key;

	(void)state;
	make_pem(EVP_PKEY_RSA, 2048, &pem, &key);
	struct signing_key *k = signing_key_read(pem.text, pem.len, &e);
	assert_non_null(k);
	assert_true(signing_key_sign(k, "a.b", 3, &text, &e));
	assert_true(base64url_read(text.text, text.len, &bytes));
	assert_int_equal(bytes.len, 256);
	EVP_MD_CTX *verify = EVP_MD_CTX_new();
	EVP_DigestVerifyInit(verify, NULL, EVP_sha256(), NULL, key);
	assert_int_equal(
		EVP_DigestVerify(verify, (unsigned char *)bytes.text, bytes.len, (const unsigned char *)"a.b", 3), 1);
	EVP_MD_CTX_free(verify);
	signing_key_thumbprint(k, &thumbprint);
	assert_int_equal(thumbprint.len, 43);
	signing_key_free(k);
	/* the key alone, the certificate alone, in whichever order */
	char *certificate = strstr(pem.text, "-----BEGIN CERTIFICATE");
	assert_null(signing_key_read(pem.text, (size_t)(certificate - pem.text), &e));
	assert_non_null(strstr(e.message, "certificate"));
	assert_null(signing_key_read(certificate, strlen(certificate), &e));
	assert_non_null(strstr(e.message, "private key"));
	EVP_PKEY_free(key);
}

static void other_keys_are_refused(void **state)
{
	static const struct {
		int type, bits;
	} cases[] = { { EVP_PKEY_RSA, 1024 }, { EVP_PKEY_ED25519, 0 } };
	struct error e = { 0 };

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		CLEANUP(buf_release) struct buf pem = { 0 };
		EVP_PKEY *key;
		make_pem(cases[i].type, cases[i].bits, &pem, &key);
		assert_null(signing_key_read(pem.text, pem.len, &e));
		assert_int_equal(e.kind, ERROR_INVALID);
		EVP_PKEY_free(key);
	}
	assert_null(signing_key_read("", 0, &e));
	assert_null(signing_key_read("-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n", 58, &e));
}

static void uuids_differ_and_say_that_they_are_random(void **state)
{
	char a[37], b[37];

	(void)state;
	uuid_write(a);
	uuid_write(b);
	assert_string_not_equal(a, b);
	assert_int_equal(strlen(a), 36);
	assert_true(a[14] == '4' && strchr("89ab", a[19]) && a[8] == '-' && a[23] == '-');
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(base64url_is_as_published),
		cmocka_unit_test(what_is_no_base64url_is_refused),
		cmocka_unit_test(a_signature_verifies),
		cmocka_unit_test(other_keys_are_refused),
		cmocka_unit_test(uuids_differ_and_say_that_they_are_random),
	};

	return cmocka_run_group_tests_name("signature", tests, NULL, NULL);
}
