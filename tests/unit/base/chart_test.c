#include "base/terminal.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

enum { POINTS = 240 };

static char *drawn(const struct chart *c, const struct terminal *t)
{
	char *text = NULL;
	size_t len = 0;
	FILE *out = open_memstream(&text, &len);

	chart_print(c, t, out);
	fclose(out);
	return text;
}

static size_t occurrences(const char *text, const char *sign)
{
	size_t n = 0;

	for (const char *at = text; (at = strstr(at, sign)); at += strlen(sign))
		n++;
	return n;
}

static struct chart slope(double *demand, double *capacity)
{
	for (size_t i = 0; i < POINTS; i++) {
		demand[i] = (double)i / 20;
		capacity[i] = 11.9;
	}
	return (struct chart){
		.title = "chat",
		.unit = "replicas",
		.area = { "demand", demand, CHART_MEAN },
		.line = { "hot", capacity, CHART_MEAN },
		.points = POINTS,
		.length = 24 * HOUR,
		.height = 6,
	};
}

static void area_and_line_are_different_signs(void **state)
{
	double demand[POINTS], capacity[POINTS];
	struct chart c = slope(demand, capacity);
	struct terminal wide = { .width = 90, .is_unicode = true }, plain = { .width = 40 };

	(void)state;
	char *text = drawn(&c, &wide);
	assert_int_equal(occurrences(text, "━"), 80 + 1); /* once in the legend */
	assert_true(occurrences(text, "█") > 100);
	assert_non_null(strstr(text, "12h"));
	assert_non_null(strstr(text, "24h"));
	assert_null(strchr(text, '\033'));
	free(text);
	text = drawn(&c, &plain);
	assert_int_equal(occurrences(text, "="), 30 + 1);
	for (const char *s = text; *s; s++)
		assert_true((unsigned char)*s < 0x80);
	free(text);
}

static void few_points_and_no_points_are_drawn(void **state)
{
	double one[] = { 3 }, none[] = { 0, 0 };
	struct chart c = { .title = "t", .unit = "u", .area = { "a", one, CHART_MAX }, .points = 1, .height = 4 };
	struct terminal t = { .width = 60, .is_unicode = true };

	(void)state;
	char *text = drawn(&c, &t);
	assert_int_equal(occurrences(text, "█"), 4 * 50);
	free(text);
	c.area.values = none;
	c.points = 2;
	text = drawn(&c, &t);
	assert_int_equal(occurrences(text, "█"), 0);
	free(text);
	c.points = 0;
	text = drawn(&c, &t);
	assert_string_equal(text, "");
	free(text);
}

static void a_short_peak_is_not_lost(void **state)
{
	double late[POINTS] = { 0 };
	struct chart c = {
		.title = "late", .unit = "%", .area = { "late", late, CHART_MAX }, .points = POINTS, .height = 3
	};
	struct terminal t = { .width = 50, .is_unicode = true };

	(void)state;
	late[117] = 8;
	char *text = drawn(&c, &t);
	assert_int_equal(occurrences(text, "█"), 3);
	free(text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(area_and_line_are_different_signs),
		cmocka_unit_test(few_points_and_no_points_are_drawn),
		cmocka_unit_test(a_short_peak_is_not_lost),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
