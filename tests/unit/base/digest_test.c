/* Known answers: FIPS 180-2 and RFC 4231. */
#include "base/signature.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static void digests_are_as_published(void **state)
{
	static const struct {
		const char *text, *hex;
	} cases[] = {
		{ "", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855" },
		{ "abc", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad" },
	};
	char room[SHA256_TEXT];

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct sha256 d = sha256_of(cases[i].text, strlen(cases[i].text));
		assert_string_equal(sha256_text(&d, room), cases[i].hex);
	}
	struct sha256 none = sha256_of(NULL, 0);
	assert_string_equal(sha256_text(&none, room), cases[0].hex);
}

static void keyed_digests_are_as_published(void **state)
{
	char room[SHA256_TEXT];
	struct sha256 d = sha256_keyed("Jefe", 4, "what do ya want for nothing?", 28);

	(void)state;
	assert_string_equal(sha256_text(&d, room), "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843");
	d = sha256_keyed("", 0, "", 0);
	assert_string_equal(sha256_text(&d, room), "b613679a0814d9ec772f95d778c35fc5ff1697c493715653c6c712144292c5ad");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(digests_are_as_published),
		cmocka_unit_test(keyed_digests_are_as_published),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
