/* The recorded traffic, where it is at hand: it must read without a complaint, with its known sizes. */
#include "controller/traces/trace.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

static const char *folder(void)
{
	const char *shared = getenv("PREHEAT_SHARED");

	return shared ? shared : "../shared";
}

static void sizes(void **state)
{
	static const struct {
		const char *name;
		size_t requests, bins, labels;
		millis width;
	} cases[] = {
		{ "azure23_conv.csv.gz", 19366, 0, 0, 0 },
		{ "mooncake_conversation.csv.gz", 12031, 0, 0, 0 },
		{ "azure24_conv_d0-3.csv.gz", 593834, 0, 0, 0 },
		{ "azure24_conv_d0-3.bins.csv.gz", 0, 25920, 0, 10000 },
		{ "servegen_image_1d.csv.gz", 818604, 0, 35, 0 },
		{ "servegen_image_1d.bins.csv.gz", 0, 17280, 0, 5000 },
		{ "servegen_small_d2.9-9_filled.bins.csv.gz", 0, 52704, 0, 10000 },
		{ "servegen_large_d1.3-5.7.bins.csv.gz", 0, 38016, 0, 10000 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		char path[512];
		struct trace t;
		struct error e = { 0 };
		snprintf(path, sizeof path, "%s/traces/%s", folder(), cases[i].name);
		if (access(path, R_OK) != 0) {
			printf("skipped: %s is not there (set PREHEAT_SHARED)\n", path);
			skip();
		}
		if (!trace_read(path, &t, &e))
			fail_msg("%s", e.message);
		assert_int_equal(t.request_count, cases[i].requests);
		assert_int_equal(t.bin_count, cases[i].bins);
		assert_int_equal(t.label_count, cases[i].labels);
		assert_int_equal(t.bin_width, cases[i].width);
		trace_release(&t);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(sizes) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
