#include "base/quantity.h"

#include "base/arena.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

static const int64_t wrong = -7;

static void expect(bool ok, int64_t value, int64_t wanted)
{
	assert_int_equal(ok, wanted != wrong);
	assert_int_equal(value, wanted);
}

static void durations(void **state)
{
	static const struct {
		const char *text;
		int64_t ms;
	} cases[] = {
		{ "2s", 2000 },
		{ "250ms", 250 },
		{ "1h30m", 5400000 },
		{ "1.5h", 5400000 },
		{ "0s", 0 },
		{ "7d", 604800000 },
		{ "1w2d3h4m5s6ms", 788645006 },
		{ "0.001s", 1 },
		{ "1.000000s", 1000 },
		{ "0.0005s", wrong },
		{ "500us", wrong },
		{ "2", wrong },
		{ "", wrong },
		{ "s", wrong },
		{ "-2s", wrong },
		{ "+2s", wrong },
		{ "2 s", wrong },
		{ "2S", wrong },
		{ "1m1h", wrong },
		{ "1m1m", wrong },
		{ "2sx", wrong },
		{ "1.s", wrong },
		{ ".5s", wrong },
		{ "1e3s", wrong },
		{ "nan", wrong },
		{ "99999999999999999999s", wrong },
		{ "9223372036854775807w", wrong },
	};

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		int64_t v = wrong;
		bool ok = duration_parse(cases[i].text, strlen(cases[i].text), &v);
		expect(ok, v, cases[i].ms);
	}
}

static void shares(void **state)
{
	static const struct {
		const char *text;
		int64_t ppm;
	} cases[] = { { "99%", 990000 },   { "99.9%", 999000 }, { "0.0001%", 1 },      { "2.50000%", 25000 },
		      { "100%", 1000000 }, { "101%", 1010000 }, { "0.00001%", wrong }, { "99", wrong },
		      { "%", wrong },	   { "-1%", wrong },	{ "99 %", wrong },     { "99%%", wrong } };

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		int64_t v = wrong;
		bool ok = share_parse(cases[i].text, strlen(cases[i].text), &v);
		expect(ok, v, cases[i].ppm);
	}
}

static void quantities(void **state)
{
	static const struct {
		const char *text;
		int64_t value;
	} cases[] = {
		{ "3500", 3500 },     { "25k", 25000 }, { "1.5k", 1500 },	 { "2Ki", 2048 },
		{ "1.5Mi", 1572864 }, { "3.0", 3 },	{ "2T", 2000000000000 }, { "3.5", wrong },
		{ "1.5", wrong },     { "25K", wrong }, { "25kk", wrong },	 { "k", wrong },
		{ "1e3", wrong },     { "-1", wrong },	{ "", wrong },		 { "9223372036854775807k", wrong }
	};

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		int64_t v = wrong;
		bool ok = quantity_parse(cases[i].text, strlen(cases[i].text), &v);
		expect(ok, v, cases[i].value);
	}
}

static void fixed_point(void **state)
{
	static const struct {
		const char *text;
		int64_t value;
	} cases[] = { { "0.48", 480000 },    { "1", 1000000 },		 { "0", 0 },
		      { "0.000001", 1 },     { "0.0000010000", 1 },	 { "0.0000001", wrong },
		      { "00012", 12000000 }, { "9999999999999", wrong }, { "1.2.3", wrong },
		      { "0x10", wrong } };

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		int64_t v = wrong;
		bool ok = fixed_parse(cases[i].text, strlen(cases[i].text), 6, &v);
		expect(ok, v, cases[i].value);
	}
}

/* What is printed is read back as the same value. */
static void round_trips(void **state)
{
	static const int64_t values[] = { 0, 1, 999, 1000, 1001, 59999, 3600000, 86400000, 90061001, 123456789012 };
	CLEANUP(buf_release) struct buf text = { 0 };

	(void)state;
	for (size_t i = 0; i < sizeof values / sizeof *values; i++) {
		int64_t v = wrong;
		buf_clear(&text);
		duration_format_us(values[i], &text);
		assert_true(duration_parse_us(text.text, text.len, &v));
		assert_int_equal(v, values[i]);
		buf_clear(&text);
		share_format(values[i], &text);
		assert_true(share_parse(text.text, text.len, &v));
		assert_int_equal(v, values[i]);
		buf_clear(&text);
		fixed_format(values[i], 6, &text);
		assert_true(fixed_parse(text.text, text.len, 6, &v));
		assert_int_equal(v, values[i]);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(durations),   cmocka_unit_test(shares),      cmocka_unit_test(quantities),
		cmocka_unit_test(fixed_point), cmocka_unit_test(round_trips),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
