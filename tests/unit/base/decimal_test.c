#include "base/quantity.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

static void decimals(void **state)
{
	static const struct {
		const char *text;
		int places;
		enum decimal_result result;
		int64_t value;
	} cases[] = {
		{ "0", 0, DECIMAL_OK, 0 },
		{ "12.3456", 3, DECIMAL_OK, 12346 },
		{ "12.3454999999999999999999", 3, DECIMAL_OK, 12345 },
		{ "0.0005", 3, DECIMAL_OK, 1 },
		{ ".5", 3, DECIMAL_OK, 500 },
		{ "5.", 3, DECIMAL_OK, 5000 },
		{ "007", 0, DECIMAL_OK, 7 },
		{ "1e3", 0, DECIMAL_OK, 1000 },
		{ "1.25E+1", 3, DECIMAL_OK, 12500 },
		{ "1e-9", 3, DECIMAL_OK, 0 },
		{ "-0.0", 3, DECIMAL_OK, 0 },
		{ "374.0", 0, DECIMAL_OK, 374 },
		{ "374.5", 0, DECIMAL_FRACTION, 0 },
		{ "99999999999999999", 0, DECIMAL_OK, 99999999999999999 },
		{ "100000000000000001", 0, DECIMAL_HUGE, 0 },
		{ "1e300", 3, DECIMAL_HUGE, 0 },
		{ "1e99999999999999999999", 3, DECIMAL_HUGE, 0 },
		{ "123456789012345678901234567890", 0, DECIMAL_HUGE, 0 },
		{ "-1", 0, DECIMAL_NEGATIVE, 0 },
		{ "-1e-400", 3, DECIMAL_NEGATIVE, 0 },
		{ "", 3, DECIMAL_MALFORMED, 0 },
		{ ".", 3, DECIMAL_MALFORMED, 0 },
		{ "-", 3, DECIMAL_MALFORMED, 0 },
		{ "+1", 3, DECIMAL_MALFORMED, 0 },
		{ " 1", 3, DECIMAL_MALFORMED, 0 },
		{ "1 ", 3, DECIMAL_MALFORMED, 0 },
		{ "1e", 3, DECIMAL_MALFORMED, 0 },
		{ "nan", 3, DECIMAL_MALFORMED, 0 },
		{ "NaN", 0, DECIMAL_MALFORMED, 0 },
		{ "inf", 3, DECIMAL_MALFORMED, 0 },
		{ "0x10", 0, DECIMAL_MALFORMED, 0 },
		{ "1,5", 3, DECIMAL_MALFORMED, 0 },
		{ "1.2.3", 3, DECIMAL_MALFORMED, 0 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		int64_t value = -7;
		enum decimal_result r = decimal_parse(cases[i].text, strlen(cases[i].text), cases[i].places, &value);
		if (r != cases[i].result || value != (r == DECIMAL_OK ? cases[i].value : -7))
			fail_msg("'%s': result %d, value %lld", cases[i].text, (int)r, (long long)value);
	}
}

static void every_millisecond_comes_back(void **state)
{
	(void)state;
	for (int64_t v = 0; v < 20000000; v += 997) {
		char text[32];
		int64_t back;
		snprintf(text, sizeof text, "%lld.%03lld", (long long)(v / 1000), (long long)(v % 1000));
		assert_int_equal(decimal_parse(text, strlen(text), 3, &back), DECIMAL_OK);
		assert_int_equal(back, v);
	}
}

static void times(void **state)
{
	static const struct {
		const char *text;
		bool ok;
		int64_t micros;
	} cases[] = {
		{ "1970-01-01 00:00:00", true, 0 },
		{ "2023-11-16 18:15:46.6805900", true, 1700158546680590 },
		{ "2024-05-10 00:00:00.009930+00:00", true, 1715299200009930 },
		{ "2024-05-10T02:00:00+02:00", true, 1715299200000000 },
		{ "2024-05-09T20:30:00-0330", true, 1715299200000000 },
		{ "2024-02-29T00:00:00Z", true, 1709164800000000 },
		{ "2000-03-01 00:00:00 +00:00", true, 951868800000000 },
		{ "2023-02-29 00:00:00", false, 0 },
		{ "2023-13-01 00:00:00", false, 0 },
		{ "2023-00-01 00:00:00", false, 0 },
		{ "2023-01-01 24:00:00", false, 0 },
		{ "2023-01-01 00:60:00", false, 0 },
		{ "2023-01-01", false, 0 },
		{ "2023-01-01 00:00:00.", false, 0 },
		{ "2023-01-01 00:00:00x", false, 0 },
		{ "2023-01-01 00:00:00+99:00", false, 0 },
		{ "1700158546", false, 0 },
		{ "", false, 0 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		int64_t micros = 0;
		bool ok = decimal_parse_time(cases[i].text, strlen(cases[i].text), &micros);
		if (ok != cases[i].ok || (ok && micros != cases[i].micros))
			fail_msg("'%s': %d, %lld", cases[i].text, ok, (long long)micros);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(decimals),
		cmocka_unit_test(every_millisecond_comes_back),
		cmocka_unit_test(times),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
